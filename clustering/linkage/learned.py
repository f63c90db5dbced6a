"""Learned linkage: the mean logit that a record of one node and one of the other match.

The mean is over a sample of each node's leaves (all of them in small nodes), so it is the average
linkage of hierarchical clustering on match logits, at a bounded cost. 0 is probability one half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from clustering.linkage import LINKAGE_SIGNATURE, Linkage
from clustering.linkage.learned_kernels import Arrays, Floats, known_logit

# Leaves of a node that the mean is taken over, at most.
SAMPLED_LEAVES = 6


@njit(LINKAGE_SIGNATURE, cache=True)
def learned_kernel(
    nodes: tuple[npt.NDArray[Any], ...], leaves: Arrays, a: int, b: int, params: Floats
) -> float:
    """Mean logit over all pairs of a sampled leaf of ``a`` and one of ``b``."""
    samples = nodes[1]
    total = 0.0
    pairs = 0
    for i in range(samples.shape[1]):
        x = samples[a, i]
        if x < 0:
            break
        for j in range(samples.shape[1]):
            y = samples[b, j]
            if y < 0:
                break
            total += known_logit(leaves, params, x, y)
            pairs += 1
    return total / pairs


def learned(params: npt.NDArray[np.float64]) -> Linkage:
    """The learned linkage with a model's parameters (`Model.params`)."""
    return Linkage("learned", learned_kernel, params, SAMPLED_LEAVES)


__all__ = ["learned"]
