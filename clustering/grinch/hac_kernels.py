"""Agglomeration of a few tops: join the two most alike, by a linkage that needs only sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, types

from clustering.features.leaves import LEAVES_TYPE
from clustering.grinch.tree_kernels import Kernel, Nodes
from clustering.linkage import LINKAGE_TYPE


@njit(
    types.int64(
        types.float32[:, ::1],
        types.int32[::1],
        types.int32[::1],
        types.int64[::1],
        types.int64,
        types.int64,
        LINKAGE_TYPE,
        types.float64[::1],
        LEAVES_TYPE,
    ),
    cache=True,
)
def join_most_alike(
    aggregates: npt.NDArray[np.float32],
    sizes: npt.NDArray[np.int32],
    parent: npt.NDArray[np.int32],
    tops: Nodes,
    keep: int,
    new: int,
    linkage: Kernel,
    params: npt.NDArray[np.float64],
    leaves: tuple[npt.NDArray[Any], ...],
) -> int:
    """Join the most alike two of ``tops`` until ``keep`` are left; ties: the earlier pair.

    aggregates, sizes, parent: per node, filled in for the new nodes ``new``, ``new + 1``, …
    tops: int64[m], node ids; on return its first ``keep`` entries are those left.
    Returns the next unused node id. Takes O(m^2) linkages and memory.
    """
    m = len(tops)
    nodes = (aggregates, np.empty((1, 0), np.int32), sizes)
    alike = np.full((m, m), -np.inf)
    for i in range(m):
        for j in range(i):
            alike[i, j] = linkage(nodes, leaves, tops[i], tops[j], params)
            alike[j, i] = alike[i, j]
    partner = np.empty(m, np.int64)
    best = np.empty(m)
    for i in range(m):
        partner[i] = np.argmax(alike[i])
        best[i] = alike[i, partner[i]]
    left = m
    while left > keep:
        i = int(np.argmax(best))
        j = int(partner[i])
        aggregates[new] = aggregates[tops[i]] + aggregates[tops[j]]
        sizes[new] = sizes[tops[i]] + sizes[tops[j]]
        parent[tops[i]] = new
        parent[tops[j]] = new
        tops[i] = new
        tops[j] = -1
        new += 1
        left -= 1
        alike[j, :] = -np.inf
        alike[:, j] = -np.inf
        best[j] = -np.inf
        for other in range(m):
            if other != i and tops[other] >= 0:
                alike[i, other] = linkage(nodes, leaves, tops[i], tops[other], params)
                alike[other, i] = alike[i, other]
        for other in range(m):
            if tops[other] < 0:
                continue
            if other == i or partner[other] == i or partner[other] == j:
                partner[other] = np.argmax(alike[other])
                best[other] = alike[other, partner[other]]
            elif alike[other, i] > best[other]:
                partner[other] = i
                best[other] = alike[other, i]
    at = 0
    for i in range(m):
        if tops[i] >= 0:
            tops[at] = tops[i]
            at += 1
    return new
