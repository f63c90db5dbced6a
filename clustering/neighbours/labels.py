"""Dense maps from labels to small integers, and what every index checks of its input."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from clustering.errors import DataError
from clustering.neighbours import exact_kernels

NONE = -1
LARGEST = 2**31 - 2


class LabelMap:
    """A map from labels to numbers in 0 .. 2**31 - 1, as one array.

    values: int32[capacity], the number of each label, NONE where there is none.
    """

    def __init__(self) -> None:
        self.values = np.full(64, NONE, np.int32)

    def get(self, label: int) -> int:
        """The number of ``label``, or NONE."""
        return self.values.item(label) if 0 <= label < len(self.values) else NONE

    def put(self, label: int, number: int) -> None:
        """Map ``label`` to ``number``; raises DataError when the label is out of range."""
        check_label(label)
        self._reserve(label + 1)
        self.values[label] = number

    def put_all(self, labels: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> None:
        """Map each of ``labels``, which are in range, to its number."""
        self._reserve(int(labels.max(initial=NONE)) + 1)
        self.values[labels] = numbers

    def pop(self, label: int) -> int:
        """Unmap ``label``; returns its number, or NONE when it had none."""
        number = self.get(label)
        if number != NONE:
            self.values[label] = NONE
        return number

    def labels(self) -> npt.NDArray[np.int64]:
        """The mapped labels, increasing."""
        return np.flatnonzero(self.values != NONE)

    def _reserve(self, capacity: int) -> None:
        if capacity > len(self.values):
            grown = np.full(max(capacity, 2 * len(self.values)), NONE, np.int32)
            grown[: len(self.values)] = self.values
            self.values = grown


def check_label(label: int) -> None:
    """Raise DataError when ``label`` is not in 0 .. LARGEST."""
    if not 0 <= label <= LARGEST:
        raise DataError(f"label {label} is out of range; use leaf ids, 0 to {LARGEST}")


def unit_vector(vector: npt.NDArray[np.float32], dimension: int) -> npt.NDArray[np.float32]:
    """A copy of ``vector`` of length 1, float32[dimension], never with a negative zero.

    Raises DataError when it is not float32[dimension], not finite, or zero.
    """
    unit = np.array(vector, np.float32)
    if unit.shape != (dimension,):
        raise DataError(f"the vector has shape {unit.shape}; this index holds ({dimension},)")
    found = exact_kernels.normalise(unit)
    if found == exact_kernels.NOT_FINITE:
        raise DataError("the vector holds nan or infinity; embed the record again")
    if found == exact_kernels.ZERO:
        raise DataError("the vector is zero, so nothing is alike to it; do not index such a record")
    return unit
