"""Exact search: every vector in one array, scanned."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from clustering.errors import DataError
from clustering.neighbours import Labels, Similarities, exact_kernels
from clustering.neighbours.labels import NONE, LabelMap, unit_vector


class ExactNeighbours:
    """Exact k-NN over unit vectors; duplicates are separate vectors (see ``Neighbours``).

    What it answers depends on the live (label, vector) pairs only, not on how they came.
    """

    def __init__(self, dimension: int) -> None:
        if dimension < 1:
            raise DataError(f"vectors of {dimension} numbers cannot be indexed; use at least 1")
        self.dimension = dimension
        self._vectors = np.empty((64, dimension), np.float32)
        self._labels = np.empty(64, np.int64)
        self._rows = LabelMap()
        self._count = 0

    def add(self, label: int, vector: npt.NDArray[np.float32]) -> None:
        unit = unit_vector(vector, self.dimension)
        row = self._rows.get(label)
        if row == NONE:
            row = self._count
            self._rows.put(label, row)
            self._reserve(row + 1)
            self._count += 1
        self._vectors[row] = unit
        self._labels[row] = label

    def remove(self, label: int) -> None:
        row = self._rows.pop(label)
        if row == NONE:
            return
        self._count -= 1
        if row != self._count:
            # The last row fills the hole, so that the rows stay dense.
            moved = self._labels.item(self._count)
            self._vectors[row] = self._vectors[self._count]
            self._labels[row] = moved
            self._rows.put(moved, row)

    def relabel(self, old: int, new: int) -> None:
        """Give the vector of ``old``, which is live, the label ``new``, which is not."""
        row = self._rows.pop(old)
        self._rows.put(new, row)
        self._labels[row] = new

    def search(self, vector: npt.NDArray[np.float32], k: int) -> tuple[Labels, Similarities]:
        unit = unit_vector(vector, self.dimension)
        return _most_alike(self._vectors[: self._count], self._labels[: self._count], unit, k)

    def rank(self, vector: npt.NDArray[np.float32], labels: Labels) -> tuple[Labels, Similarities]:
        """Order ``labels``, live and distinct, as ``search`` would."""
        return _most_alike(
            self.vectors(labels), labels, unit_vector(vector, self.dimension), len(labels)
        )

    def vector(self, label: int) -> npt.NDArray[np.float32]:
        """The unit vector of a live label, float32[d]; a view, good until the next change."""
        row: npt.NDArray[np.float32] = self._vectors[self._rows.get(label)]
        return row

    def vectors(self, labels: Labels) -> npt.NDArray[np.float32]:
        """The unit vectors of live labels, float32[n, d]; a copy."""
        rows: npt.NDArray[np.float32] = self._vectors[self._rows.values[labels]]
        return rows

    def labels(self) -> Labels:
        """The live labels, increasing."""
        return self._rows.labels()

    @property
    def row_of(self) -> npt.NDArray[np.int32]:
        """The row of each label, int32[capacity], negative where the label is not live."""
        return self._rows.values

    def __contains__(self, label: int) -> bool:
        return self._rows.get(label) != NONE

    def __len__(self) -> int:
        return self._count

    def _reserve(self, rows: int) -> None:
        if rows <= len(self._labels):
            return
        vectors = np.empty((2 * len(self._labels), self.dimension), np.float32)
        labels = np.empty(len(vectors), np.int64)
        vectors[: self._count] = self._vectors[: self._count]
        labels[: self._count] = self._labels[: self._count]
        self._vectors, self._labels = vectors, labels


def _most_alike(
    vectors: npt.NDArray[np.float32], labels: Labels, unit: npt.NDArray[np.float32], k: int
) -> tuple[Labels, Similarities]:
    size = max(0, min(k, len(labels)))
    best = np.empty(size, np.int64)
    scores = np.empty(size, np.float64)
    exact_kernels.most_alike(vectors, labels, unit, best, scores)
    return best, scores.astype(np.float32)
