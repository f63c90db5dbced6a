"""What must hold of a tree after every operation: O(leaves), for tests and start-up checks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clustering.grinch.tree import NONE, GrinchTree, TreeError
from clustering.grinch.tree_kernels import FREE, HIGH


def check_invariants(tree: GrinchTree) -> None:
    """Raise TreeError saying what is wrong with a tree.

    Links form a forest; sizes, aggregates, scores, coherence and groups equal, bit for bit, those
    of a tree rebuilt from the links; the free ids are a heap of exactly the unused ids; no top is
    below the floor.
    """
    n = tree.n_ids
    used = tree.size[:n] > 0
    leaves = np.flatnonzero(used & (tree.left[:n] < 0))
    if len(leaves) != len(tree):
        raise TreeError(f"{len(leaves)} leaves are in the tree, {len(tree)} are counted")
    n_unique = tree._tree.unique.shape[1]
    unique = tree._tree.unique[leaves]
    again = GrinchTree.rebuild(
        tree.linkage,
        replace(tree.config, single_search=True),
        tree.parent[:n],
        tree.left[:n],
        tree.right[:n],
        leaves,
        tree.aggregates[leaves].reshape(len(leaves), tree.width),
        tree.group[leaves],
        kinds=np.where(unique.any(axis=1), unique.argmax(axis=1), NONE) if n_unique else None,
        n_unique=n_unique,
        features=tree._features,
    )
    for name in ("size", "coherent", "group", "score"):
        mine, other = getattr(tree, name)[:n], getattr(again, name)[:n]
        wrong = np.flatnonzero((mine != other) & ~(np.isnan(mine) & np.isnan(other)))
        if len(wrong):
            raise TreeError(f"{name} is not what the links give at nodes {wrong[:10].tolist()}")
    for name in ("samples", "unique"):
        of_mine, of_other = getattr(tree._tree, name)[:n], getattr(again._tree, name)[:n]
        wrong = np.flatnonzero(used & (of_mine != of_other).any(axis=1))
        if len(wrong):
            raise TreeError(f"{name} is not what the links give at nodes {wrong[:10].tolist()}")
    mine, other = tree.aggregates[:n].view(np.int32), again.aggregates[:n].view(np.int32)
    wrong = np.flatnonzero(used & (mine != other).any(axis=1))
    if len(wrong):
        raise TreeError(f"aggregates are not left + right at nodes {wrong[:10].tolist()}")
    counts = tree._tree.counts
    heap = tree._tree.free[: counts[FREE]]
    if not np.array_equal(np.sort(heap), np.flatnonzero(~used)) or counts[HIGH] != n:
        raise TreeError("the free ids are not the unused ones")
    below = np.arange(1, len(heap))
    if (heap[below] < heap[(below - 1) // 2]).any():
        raise TreeError("the free ids are not a heap")
    tops = tree.tops()
    low = tops[tree.score[tops] < tree.config.floor]
    if len(low):
        raise TreeError(f"tops {low[:10].tolist()} score less than the floor")
