"""Kernels of the exact search: unit vectors, and a scan that keeps the k most alike.

Why not a BLAS product: its summation order may depend on the number of rows, of threads and on
where a row lies, and near-ties would then be broken by chance. Here the similarity of two vectors
depends on nothing but the two (and the machine's instruction set). It is no slower, since dot
products and selection are one pass (see ``tests/benchmarks/neighbours_bench.py``).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, types

from clustering.neighbours.topk_kernels import LABELS_TYPE, best_first, offer

Vector = npt.NDArray[np.float32]
Vectors = npt.NDArray[np.float32]

VECTOR_TYPE = types.float32[::1]

# What `normalise` found.
FINE, NOT_FINITE, ZERO = 0, 1, 2

# A vector whose squared length is this close to 1 is taken as it is. Rounding the quotients to
# float32 moves the square by 2**-23 at most, so what was normalised once never changes again.
UNIT_TOLERANCE = 1e-6


@njit(types.int64(VECTOR_TYPE), cache=True)
def normalise(vector: Vector) -> int:
    """Scale ``vector`` to length 1, in place; returns FINE, NOT_FINITE or ZERO."""
    square = 0.0
    for i in range(len(vector)):
        square += np.float64(vector[i]) * np.float64(vector[i])
    if not np.isfinite(square):
        return NOT_FINITE
    if square == 0.0:
        return ZERO
    length = 1.0 if abs(square - 1.0) <= UNIT_TOLERANCE else np.sqrt(square)
    for i in range(len(vector)):
        # Adding zero turns -0.0 into 0.0, so that equal vectors have equal bytes.
        vector[i] = np.float32(np.float64(vector[i]) / length) + np.float32(0.0)
    return FINE


# Reassociation lets the sum run in vector lanes: eight times the speed. It is fixed when compiled.
@njit(types.float32(VECTOR_TYPE, VECTOR_TYPE), cache=True, fastmath={"reassoc"})
def dot(a: Vector, b: Vector) -> np.float32:
    """Inner product."""
    total = np.float32(0.0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(
    types.int64(types.float32[:, ::1], LABELS_TYPE, VECTOR_TYPE, LABELS_TYPE, types.float64[::1]),
    cache=True,
)
def most_alike(
    vectors: Vectors,
    labels: npt.NDArray[np.int64],
    query: Vector,
    best: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float64],
) -> int:
    """The len(best) rows of ``vectors`` with the largest inner product with ``query``.

    vectors: float32[n, d], unit rows. labels: int64[n], distinct. query: float32[d].
    best, scores: int64[k], float64[k], filled best first, ties by smaller label.
    Returns how many were filled: min(k, n).
    """
    wanted = len(best)
    if not wanted:
        return 0
    held = 0
    for row in range(len(labels)):
        score = float(dot(vectors[row], query))
        # Nearly all rows end here; the call that follows costs more than the product.
        if held == wanted and score < scores[0]:
            continue
        held = offer(scores, best, held, score, labels[row])
    best_first(scores, best, held)
    return held


@njit(types.int64(types.int32[::1], types.int32[::1], types.int64), cache=True)
def next_missing(there: npt.NDArray[np.int32], here: npt.NDArray[np.int32], start: int) -> int:
    """The smallest label from ``start`` on that is mapped in ``there`` but not ``here``, or -1."""
    for label in range(start, len(there)):
        if there[label] >= 0 and (label >= len(here) or here[label] < 0):
            return label
    return -1
