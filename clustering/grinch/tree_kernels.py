"""Topology of the cluster tree: node ids, links between nodes, and what is kept up along a path.

Kernels work on one tuple of arrays (`Tree`) and change them in place. A node's aggregate is always
computed as the sum of its two children's, never by adding and subtracting, so it cannot drift and
a tree rebuilt from its topology has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types

from clustering.features.leaves import LEAVES_TYPE
from clustering.linkage import LINKAGE_TYPE

Kernel = Callable[..., float]
Nodes = npt.NDArray[np.int64]

NONE = -1

# A linkage this low says that a hard fact keeps two nodes apart.
FORBIDDEN = -1e6

# Slots of Tree.counts
HIGH, FREE, TOUCHED, LEAVES = 0, 1, 2, 3
N_COUNTS = 4

# Slots of Tree.work
LINKAGES, ROTATIONS, GRAFTS_TRIED, GRAFTS_MADE, RESTRUCTS, SEARCHES = 0, 1, 2, 3, 4, 5
N_WORK = 6


class Tree(NamedTuple):
    """The arrays of one tree; leaves and inner nodes share the ids 0 .. capacity - 1.

    parent, left, right: int32[capacity], -1 = none.
    size: int32[capacity], leaves below the node, 0 = the id is free.
    aggregates: float32[capacity, width], sum of the rows of the leaves below.
    samples: int32[capacity, n], the n leaves below that come first in a fixed shuffled order, in
        that order; -1 behind them.
    unique: int32[capacity, m], leaves below of each kind of which an entity has at most one.
    score: float64[capacity], linkage of the two children; nan for a leaf.
    coherent: bool[capacity], every inner linkage at or below the node reaches the threshold.
    group: int64[capacity], content group shared by all leaves below, -1 = none or mixed.
    free: int32[capacity], a min-heap of the free ids below counts[HIGH].
    touched: int32[capacity], nodes touched since the list was last cleared, in no order.
    is_touched: bool[capacity], membership of ``touched``.
    counts: int64[N_COUNTS], first id never used, length of ``free``, of ``touched``, and leaves.
    work: int64[N_WORK], operations done so far.
    params: float64[n], parameters of the linkage.
    leaves: what the linkage knows of the leaves besides their rows (LEAVES_TYPE).
    """

    parent: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    size: npt.NDArray[np.int32]
    aggregates: npt.NDArray[np.float32]
    samples: npt.NDArray[np.int32]
    unique: npt.NDArray[np.int32]
    score: npt.NDArray[np.float64]
    coherent: npt.NDArray[np.bool_]
    group: npt.NDArray[np.int64]
    free: npt.NDArray[np.int32]
    touched: npt.NDArray[np.int32]
    is_touched: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int64]
    work: npt.NDArray[np.int64]
    params: npt.NDArray[np.float64]
    leaves: tuple[npt.NDArray[Any], ...]


class Rules(NamedTuple):
    """Settings of the tree as the kernels read them; see ``GrinchConfig``."""

    floor: float
    threshold: float
    patience: int
    cap: int
    rotate: bool
    restruct: int
    single_elimination: bool


NODE = types.int64
TREE_TYPE = types.NamedTuple(
    (
        types.int32[::1],
        types.int32[::1],
        types.int32[::1],
        types.int32[::1],
        types.float32[:, ::1],
        types.int32[:, ::1],
        types.int32[:, ::1],
        types.float64[::1],
        types.boolean[::1],
        types.int64[::1],
        types.int32[::1],
        types.int32[::1],
        types.boolean[::1],
        types.int64[::1],
        types.int64[::1],
        types.float64[::1],
        LEAVES_TYPE,
    ),
    Tree,
)
RULES_TYPE = types.NamedTuple(
    (
        types.float64,
        types.float64,
        types.int64,
        types.int64,
        types.boolean,
        types.int64,
        types.boolean,
    ),
    Rules,
)


@njit(types.void(TREE_TYPE, NODE), cache=True)
def touch(tree: Tree, node: int) -> None:
    """Note that something about ``node`` may have changed."""
    if not tree.is_touched[node]:
        tree.is_touched[node] = True
        tree.touched[tree.counts[TOUCHED]] = node
        tree.counts[TOUCHED] += 1


@njit(NODE(TREE_TYPE), cache=True)
def allocate(tree: Tree) -> int:
    """The lowest free id, so that ids depend only on which ones are in use."""
    n = tree.counts[FREE]
    if n == 0:
        tree.counts[HIGH] += 1
        return int(tree.counts[HIGH]) - 1
    heap = tree.free
    node = int(heap[0])
    n -= 1
    tree.counts[FREE] = n
    last = heap[n]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= n:
            break
        if child + 1 < n and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[hole] = heap[child]
        hole = child
    heap[hole] = last
    return node


@njit(types.void(TREE_TYPE, NODE), cache=True)
def release(tree: Tree, node: int) -> None:
    """Give ``node``'s id back."""
    touch(tree, node)
    tree.parent[node] = NONE
    tree.left[node] = NONE
    tree.right[node] = NONE
    tree.size[node] = 0
    tree.score[node] = np.nan
    tree.coherent[node] = False
    tree.group[node] = NONE
    heap = tree.free
    hole = tree.counts[FREE]
    tree.counts[FREE] += 1
    while hole > 0:
        above = (hole - 1) // 2
        if heap[above] <= node:
            break
        heap[hole] = heap[above]
        hole = above
    heap[hole] = node


@njit(types.float64(TREE_TYPE, LINKAGE_TYPE, NODE, NODE), cache=True)
def link(tree: Tree, linkage: Kernel, a: int, b: int) -> float:
    """Linkage of two nodes, counted; FORBIDDEN where one entity cannot hold the leaves of both."""
    tree.work[LINKAGES] += 1
    for kind in range(tree.unique.shape[1]):
        if tree.unique[a, kind] + tree.unique[b, kind] > 1:
            return FORBIDDEN
    nodes = (tree.aggregates, tree.samples, tree.size)
    return linkage(nodes, tree.leaves, a, b, tree.params)


@njit(types.uint32(types.int64), cache=True)
def shuffled(leaf: int) -> int:
    """Where a leaf comes in the fixed shuffled order of all leaves; no two come together."""
    return np.uint32(leaf) * np.uint32(2654435761)


@njit(types.boolean(types.int32[:, ::1], NODE, NODE, NODE), cache=True)
def merge_samples(samples: npt.NDArray[np.int32], a: int, b: int, into: int) -> bool:
    """Fill one node's sample from those of its two children; returns whether it changed.

    The first n of a union are among the first n of its parts, so this is the sample that the
    leaves below give, whatever the shape of the tree.
    """
    n = samples.shape[1]
    i = j = 0
    changed = False
    for at in range(n):
        x = samples[a, i] if i < n else NONE
        y = samples[b, j] if j < n else NONE
        if y == NONE or (x != NONE and shuffled(x) < shuffled(y)):
            first = x
            i += 1
        else:
            first = y
            j += 1
        changed |= samples[into, at] != first
        samples[into, at] = first
    return changed


@njit(NODE(TREE_TYPE, NODE), cache=True)
def sibling(tree: Tree, node: int) -> int:
    """The other child of ``node``'s parent; ``node`` is not a top."""
    parent = tree.parent[node]
    return int(tree.left[parent] + tree.right[parent] - node)


@njit(NODE(TREE_TYPE, NODE), cache=True)
def top_of(tree: Tree, node: int) -> int:
    """The top of the tree that ``node`` is in."""
    while tree.parent[node] != NONE:
        node = int(tree.parent[node])
    return node


@njit(NODE(TREE_TYPE, NODE), cache=True)
def entity_root(tree: Tree, node: int) -> int:
    """The highest coherent node at or above ``node``; ``node`` itself when it is not coherent."""
    while tree.parent[node] != NONE and tree.coherent[tree.parent[node]]:
        node = int(tree.parent[node])
    return node


@njit(types.boolean(TREE_TYPE, NODE, NODE), cache=True)
def is_below(tree: Tree, node: int, ancestor: int) -> bool:
    """Whether ``node`` is ``ancestor`` or below it; climbs no higher than ``ancestor``'s size."""
    limit = tree.size[ancestor]
    while node != ancestor:
        node = int(tree.parent[node])
        if node == NONE or tree.size[node] > limit:
            return False
    return True


@njit(NODE(TREE_TYPE, NODE, NODE), cache=True)
def lowest_common_ancestor(tree: Tree, a: int, b: int) -> int:
    """The lowest node above (or equal to) both, or -1 when they are in different trees."""
    while a != b:
        if tree.size[a] <= tree.size[b]:
            a, b = b, a
        b = int(tree.parent[b])
        if b == NONE:
            return NONE
    return a


@njit(types.void(TREE_TYPE, NODE, NODE, NODE), cache=True)
def replace_child(tree: Tree, parent: int, old: int, new: int) -> None:
    """Let ``new`` stand where ``old`` stood below ``parent`` (-1: ``new`` becomes a top)."""
    tree.parent[new] = parent
    touch(tree, new)
    if parent == NONE:
        return
    touch(tree, parent)
    if tree.left[parent] == old:
        tree.left[parent] = new
    else:
        tree.right[parent] = new


@njit(types.void(TREE_TYPE, RULES_TYPE, LINKAGE_TYPE, NODE, NODE), cache=True)
def refresh(tree: Tree, rules: Rules, linkage: Kernel, node: int, stop: int) -> None:
    """Recompute what depends on the children, from ``node`` up to below ``stop`` (-1: to the top).

    The leaves of the nodes below ``stop`` have changed. On the way to the top it stops early at a
    node that comes out as it was: nothing above it can change then.
    """
    while node != stop and node != NONE:
        a, b = tree.left[node], tree.right[node]
        touch(tree, node)
        total, left, right = tree.aggregates[node], tree.aggregates[a], tree.aggregates[b]
        changed = False
        for i in range(total.shape[0]):
            value = left[i] + right[i]
            changed |= value != total[i]
            total[i] = value
        for kind in range(tree.unique.shape[1]):
            count = tree.unique[a, kind] + tree.unique[b, kind]
            changed |= count != tree.unique[node, kind]
            tree.unique[node, kind] = count
        changed |= merge_samples(tree.samples, a, b, node)
        size = tree.size[a] + tree.size[b]
        changed |= size != tree.size[node]
        tree.size[node] = size
        score = link(tree, linkage, a, b)
        tree.score[node] = score
        coherent = tree.coherent[a] and tree.coherent[b] and score >= rules.threshold
        changed |= coherent != tree.coherent[node]
        tree.coherent[node] = coherent
        group = tree.group[a] if tree.group[a] == tree.group[b] else NONE
        changed |= group != tree.group[node]
        tree.group[node] = group
        if not changed and stop == NONE:
            break
        node = int(tree.parent[node])


@njit(NODE(TREE_TYPE, NODE, NODE), cache=True)
def join(tree: Tree, node: int, other: int) -> int:
    """Put a new node in ``node``'s place with children ``node`` and the top ``other``.

    Returns the new node, which still has to be refreshed.
    """
    parent = int(tree.parent[node])
    new = allocate(tree)
    tree.left[new] = node
    tree.right[new] = other
    replace_child(tree, parent, node, new)
    tree.parent[node] = new
    tree.parent[other] = new
    touch(tree, node)
    touch(tree, other)
    return new


@njit(NODE(TREE_TYPE, NODE), cache=True)
def cut(tree: Tree, node: int) -> int:
    """Make ``node`` a top: its sibling takes its parent's place. Returns that sibling.

    What is above the sibling still has to be refreshed. ``node`` is not a top.
    """
    parent = int(tree.parent[node])
    other = sibling(tree, node)
    replace_child(tree, int(tree.parent[parent]), parent, other)
    release(tree, parent)
    tree.parent[node] = NONE
    touch(tree, node)
    return other


@njit(types.void(TREE_TYPE, RULES_TYPE, LINKAGE_TYPE, NODE, NODE), cache=True)
def swap(tree: Tree, rules: Rules, linkage: Kernel, low: int, high: int) -> None:
    """Exchange two subtrees, neither inside the other; ``high``'s parent is above ``low``'s."""
    low_parent, high_parent = int(tree.parent[low]), int(tree.parent[high])
    replace_child(tree, low_parent, low, high)
    replace_child(tree, high_parent, high, low)
    refresh(tree, rules, linkage, low_parent, high_parent)
    refresh(tree, rules, linkage, high_parent, NONE)


@njit(types.void(TREE_TYPE, RULES_TYPE, NODE), cache=True)
def dissolve(tree: Tree, rules: Rules, top: int) -> None:
    """Take a top apart while its children are less alike than the floor."""
    if not tree.score[top] < rules.floor:
        return
    pending = [top]
    while len(pending) > 0:
        node = pending.pop()
        for child in (int(tree.left[node]), int(tree.right[node])):
            tree.parent[child] = NONE
            touch(tree, child)
            if tree.score[child] < rules.floor:
                pending.append(child)
        release(tree, node)


@njit(types.int64(TREE_TYPE, RULES_TYPE, LINKAGE_TYPE, types.int64[::1]), cache=True)
def restore(tree: Tree, rules: Rules, linkage: Kernel, leaves: Nodes) -> int:
    """Fill in everything but links, leaf rows and leaf groups, from the leaves up.

    tree: links set, ``size`` 1 for leaves and 0 otherwise, ``coherent`` set for leaves.
    leaves: int64[n], ids of all leaves.
    Returns how many nodes were reached; a sound topology reaches all of its nodes once.
    """
    reached = 0
    for leaf in leaves:
        reached += 1
        node = int(tree.parent[leaf])
        while node != NONE:
            a, b = tree.left[node], tree.right[node]
            if tree.size[a] == 0 or tree.size[b] == 0 or tree.size[node] != 0:
                break
            parent = int(tree.parent[node])
            refresh(tree, rules, linkage, node, parent)
            reached += 1
            node = parent
    return reached


@njit(types.int64[::1](TREE_TYPE, types.int32[::1]), cache=True)
def roots_near(tree: Tree, touched: npt.NDArray[np.int32]) -> Nodes:
    """Roots of the entities that nodes ``touched`` are or are above of, each once.

    A node that is not coherent has been cut out of every entity, so its children may be roots.
    """
    found = np.empty(2 * touched.shape[0] + 1, np.int64)
    n = 0
    for node in touched:
        if tree.size[node] == 0:
            continue
        if tree.coherent[node]:
            parent = tree.parent[node]
            if parent == NONE or not tree.coherent[parent]:
                found[n] = node
                n += 1
        else:
            for child in (tree.left[node], tree.right[node]):
                if tree.coherent[child]:
                    found[n] = child
                    n += 1
    return np.unique(found[:n])


@njit(types.void(TREE_TYPE, NODE, types.int32[::1]), cache=True)
def write_leaves(tree: Tree, node: int, out: npt.NDArray[np.int32]) -> None:
    """Write the ids of the leaves at or below ``node``, left to right, to out[: size]."""
    n = 0
    at = node
    while True:
        while tree.left[at] != NONE:
            at = int(tree.left[at])
        out[n] = at
        n += 1
        while at != node and tree.right[tree.parent[at]] == at:
            at = int(tree.parent[at])
        if at == node:
            return
        at = int(tree.right[tree.parent[at]])


@njit(types.int32[::1](TREE_TYPE, NODE), cache=True)
def leaves_below(tree: Tree, node: int) -> npt.NDArray[np.int32]:
    """Ids of the leaves at or below ``node``, left to right."""
    found = np.empty(tree.size[node], np.int32)
    write_leaves(tree, node, found)
    return found


@njit(
    types.Tuple((types.int64[::1], types.int32[::1], types.int64[::1]))(
        TREE_TYPE, types.int32[::1]
    ),
    cache=True,
)
def entities_near(
    tree: Tree, touched: npt.NDArray[np.int32]
) -> tuple[Nodes, npt.NDArray[np.int32], Nodes]:
    """`roots_near`, the leaves below each of them one after the other, and where each's end."""
    roots = roots_near(tree, touched)
    ends = np.empty(len(roots), np.int64)
    n = 0
    for i in range(len(roots)):
        n += tree.size[roots[i]]
        ends[i] = n
    leaves = np.empty(n, np.int32)
    for i in range(len(roots)):
        write_leaves(tree, roots[i], leaves[ends[i] - tree.size[roots[i]] :])
    return roots, leaves, ends
