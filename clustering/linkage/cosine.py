"""Cosine linkage: the cosine of the sums of two nodes' vectors (Monath et al. 2019, section 3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from clustering.linkage import LINKAGE_SIGNATURE, Linkage
from clustering.linkage.dot_kernels import dot


@njit(LINKAGE_SIGNATURE, cache=True)
def cosine_kernel(
    nodes: tuple[npt.NDArray[Any], ...],
    leaves: tuple[npt.NDArray[Any], ...],
    a: int,
    b: int,
    params: npt.NDArray[np.float64],
) -> float:
    """Cosine of two aggregate vectors, in [-1, 1]; 0 when either is the zero vector."""
    aggregates = nodes[0]
    norms = dot(aggregates[a], aggregates[a]) * dot(aggregates[b], aggregates[b])
    if norms <= 0.0:
        return 0.0
    return dot(aggregates[a], aggregates[b]) / math.sqrt(norms)


def cosine() -> Linkage:
    """The cosine linkage; rows are the vectors themselves, of any length."""
    return Linkage("cosine", cosine_kernel, np.empty(0, np.float64))
