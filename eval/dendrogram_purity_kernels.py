"""Kernels of dendrogram purity: one layout of the tree, and what is counted on it.

Leaves are laid out depth first, so the leaves below a node are one range of positions. The child
with most leaves comes first and continues its parent's *heavy path*; a walk from any leaf up to the
root meets at most log2(n) other paths. Nothing recurses, so a chain is as good as a balanced tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

NONE = -1

Ints = npt.NDArray[np.int64]


class Layout(NamedTuple):
    """Where the nodes' leaves lie; the last node is the virtual root above all roots.

    parent: int64[n + 1], the virtual root at roots, -1 at the virtual root.
    size: int64[n + 1], leaves below the node (1 for a leaf).
    start: int64[n + 1], first position of the node's leaves: they are start .. start + size - 1.
    heavy: int64[n + 1], child with most leaves (then the smallest id), -1 for a childless node.
    path_top: int64[n + 1], uppermost node of the node's heavy path.
    """

    parent: Ints
    size: Ints
    start: Ints
    heavy: Ints
    path_top: Ints


@njit(cache=True)
def children_first(parent: Ints) -> Ints:
    """Nodes ordered so that every child comes before its parent.

    parent: int64[n], -1 at roots. Returns int64[m]; m < n exactly when some nodes form a cycle.
    """
    n = parent.size
    waiting = np.zeros(n, np.int64)
    for node in range(n):
        if parent[node] != NONE:
            waiting[parent[node]] += 1
    order = np.empty(n, np.int64)
    found = 0
    for node in range(n):
        if waiting[node] == 0:
            order[found] = node
            found += 1
    done = 0
    while done < found:
        above = parent[order[done]]
        done += 1
        if above != NONE:
            waiting[above] -= 1
            if waiting[above] == 0:
                order[found] = above
                found += 1
    return order[:found]


@njit(cache=True)
def lay_out(parent: Ints, order: Ints, is_leaf: npt.NDArray[np.bool_]) -> Layout:
    """The `Layout` of a tree.

    parent: int64[n + 1], virtual root included; order: int64[n + 1] from `children_first`;
    is_leaf: bool[n + 1].
    """
    n = parent.size
    size = is_leaf.astype(np.int64)
    for node in order[:-1]:
        size[parent[node]] += size[node]
    heavy = np.full(n, NONE, np.int64)
    for node in range(n - 1):
        above = parent[node]
        if heavy[above] == NONE or size[node] > size[heavy[above]]:
            heavy[above] = node
    start = np.zeros(n, np.int64)
    path_top = np.arange(n)
    filled = np.zeros(n, np.int64)
    for node in order[::-1]:
        above = parent[node]
        if above != NONE and node == heavy[above]:
            start[node] = start[above]
            path_top[node] = path_top[above]
        elif above != NONE:
            start[node] = filled[above]
            filled[above] += size[node]
        if heavy[node] != NONE:
            filled[node] = start[node] + size[heavy[node]]
    return Layout(parent, size, start, heavy, path_top)


@njit(cache=True)
def purity_sum(layout: Layout, class_at: Ints, n_classes: int) -> float:
    """Sum over the pairs of leaves of one class of the purity at their lowest common ancestor.

    class_at: int64[n_leaves], class of the leaf at each position, in 0 .. n_classes - 1.

    Each heavy path is climbed once with the class counts of what lies below, so a leaf is added
    once for each path above it: O(n log n) in all.
    """
    first_light, next_light = _light_children(layout)
    count = np.zeros(n_classes, np.int64)
    pairs = np.zeros(n_classes, np.int64)
    total = 0.0
    for bottom in range(layout.parent.size):
        if layout.heavy[bottom] != NONE:
            continue
        top = layout.path_top[bottom]
        if layout.size[bottom] == 1:
            count[class_at[layout.start[bottom]]] += 1
        node = bottom
        while node != top:
            node = layout.parent[node]
            child = first_light[node]
            while child != NONE:
                begin, end = layout.start[child], layout.start[child] + layout.size[child]
                for k in class_at[begin:end]:
                    pairs[k] += count[k]
                for k in class_at[begin:end]:
                    count[k] += 1
                child = next_light[child]
            begin, end = layout.start[node], layout.start[node] + layout.size[node]
            for k in class_at[begin + layout.size[layout.heavy[node]] : end]:
                if pairs[k] > 0:
                    total += pairs[k] * (count[k] / layout.size[node])
                    pairs[k] = 0
        for k in class_at[layout.start[top] : layout.start[top] + layout.size[top]]:
            count[k] = 0
    return total


@njit(cache=True)
def _light_children(layout: Layout) -> tuple[Ints, Ints]:
    """The children that leave their parent's heavy path, as linked lists: first and next, int64."""
    n = layout.parent.size
    first = np.full(n, NONE, np.int64)
    following = np.full(n, NONE, np.int64)
    for node in range(n):
        above = layout.parent[node]
        if above != NONE and node != layout.heavy[above]:
            following[node] = first[above]
            first[above] = node
    return first, following


@njit(cache=True)
def pair_purities(
    layout: Layout,
    leaf_at: Ints,
    class_start: Ints,
    positions: Ints,
    classes: Ints,
    first: Ints,
    second: Ints,
) -> npt.NDArray[np.float64]:
    """Purity at the lowest common ancestor of each given pair of leaves of one class.

    leaf_at: int64[n_leaves], node at each position; class_start: int64[n_classes + 1] and
    positions: int64[n_leaves], class k has the ascending positions
    ``positions[class_start[k]:class_start[k + 1]]``; classes, first, second: int64[m], the pair's
    class and the ranks of its two leaves among that class. Returns float64[m] in (0, 1].
    """
    size, path_top = layout.size, layout.path_top
    purity = np.empty(classes.size, np.float64)
    for i in range(classes.size):
        mates = positions[class_start[classes[i]] : class_start[classes[i] + 1]]
        a, b = leaf_at[mates[first[i]]], leaf_at[mates[second[i]]]
        while path_top[a] != path_top[b]:
            # The smaller of two different paths' subtrees cannot hold the other one.
            if size[path_top[a]] <= size[path_top[b]]:
                a = layout.parent[path_top[a]]
            else:
                b = layout.parent[path_top[b]]
        meeting = a if size[a] >= size[b] else b
        low = layout.start[meeting]
        inside = np.searchsorted(mates, low + size[meeting]) - np.searchsorted(mates, low)
        purity[i] = inside / size[meeting]
    return purity
