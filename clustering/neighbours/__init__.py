"""Neighbour search: the vectors most alike to a new one, among all that are live.

Below some tens of thousands of vectors a scan is both fastest and exact; above, a navigable small
world graph takes over (`hybrid`). Identifiers and rare tokens have an exact index of their own
(`tokens`), for candidates that vectors miss.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.int64]
Similarities = npt.NDArray[np.float32]


class Neighbours(Protocol):
    """A set of labelled vectors that can be searched by cosine similarity.

    Labels are leaf ids: small non-negative integers, as memory grows with the largest one.
    Vectors are float32[d], finite and not zero; only their direction counts.
    """

    def add(self, label: int, vector: npt.NDArray[np.float32]) -> None:
        """Put ``vector`` under ``label``; a live label moves to its new vector.

        Raises DataError when the vector has another length than d, is not finite or is zero, and
        when the label is out of range.
        """

    def remove(self, label: int) -> None:
        """Forget ``label``; one that is not live is left alone."""

    def search(self, vector: npt.NDArray[np.float32], k: int) -> tuple[Labels, Similarities]:
        """Find the ``k`` live vectors most alike to ``vector``.

        Returns (int64[m], float32[m]): labels and cosines in [-1, 1], best first, ties by smaller
        label. m is the smaller of ``k`` and the number of live vectors, where an index that
        collapses duplicates counts distinct vectors and answers with the smallest label of each.
        Raises DataError for a vector that could not be added.
        """

    def __len__(self) -> int:
        """Number of live labels."""


__all__ = ["Labels", "Neighbours", "Similarities"]
