"""The dot product under every linkage."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(cache=True, fastmath={"reassoc"}, inline="always")
def dot(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> float:
    """Sum of products of two float32 vectors of equal length.

    Reassociation lets the compiler use vector registers; the order of additions then depends on
    the length only, so equal inputs give equal bits wherever they lie in memory.
    """
    total = np.float32(0.0)
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total
