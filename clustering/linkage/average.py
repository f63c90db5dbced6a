"""Average linkage: the mean over pairs of leaves of the dot product of their vectors.

For unit vectors this is the mean pairwise cosine, and it needs only the aggregates:
S(a).S(b) / (|a||b|), with no loop over pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from clustering.linkage import LINKAGE_SIGNATURE, Linkage
from clustering.linkage.dot_kernels import dot


@njit(LINKAGE_SIGNATURE, cache=True)
def average_kernel(
    nodes: tuple[npt.NDArray[Any], ...],
    leaves: tuple[npt.NDArray[Any], ...],
    a: int,
    b: int,
    params: npt.NDArray[np.float64],
) -> float:
    """Mean dot product between a leaf of ``a`` and a leaf of ``b``; in [-1, 1] for unit rows."""
    aggregates, _, sizes = nodes
    return dot(aggregates[a], aggregates[b]) / (float(sizes[a]) * float(sizes[b]))


def average() -> Linkage:
    """The average linkage; rows are unit vectors."""
    return Linkage("average", average_kernel, np.empty(0, np.float64))
