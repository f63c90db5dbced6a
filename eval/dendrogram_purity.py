"""Dendrogram purity: how well the classes are subtrees of a cluster tree, with no threshold chosen.

The mean, over all pairs of leaves of one class, of the share of that class among the leaves below
the pair's lowest common ancestor (Heller & Ghahramani, "Bayesian Hierarchical Clustering", ICML
2005; the measure by which Monath et al., KDD 2019, judge Grinch). 1 means that every class is a
subtree. Without any pair of one class there is nothing to get wrong: 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clustering.errors import DataError
from eval.dendrogram_purity_kernels import (
    NONE,
    Layout,
    children_first,
    lay_out,
    pair_purities,
    purity_sum,
)


class PurityEstimate(NamedTuple):
    """A sampled dendrogram purity in [0, 1] and its standard error."""

    estimate: float
    standard_error: float


def dendrogram_purity(parent: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Exact dendrogram purity in (0, 1], in O(n log n) time and O(n) memory.

    parent: integers[n], the node above each node, -1 at roots; nodes in any order, any number of
    children. Several roots count as joined at one root above them all.
    labels: integers[n], class >= 0 at leaves, -1 at inner nodes. A root without children labelled
    -1 is an id not in use.

    Raises DataError when this is not a forest or labels and tree disagree.
    """
    tree = _LabelledTree(parent, labels)
    pairs = tree.pairs_below_class[-1]
    if pairs == 0:
        return 1.0
    return float(purity_sum(tree.layout, tree.class_at, tree.n_classes)) / int(pairs)


def sampled_dendrogram_purity(
    parent: npt.ArrayLike, labels: npt.ArrayLike, pairs: int, seed: int
) -> PurityEstimate:
    """Dendrogram purity estimated from ``pairs`` pairs drawn uniformly with replacement.

    parent, labels: as for `dendrogram_purity`; pairs >= 2. Unbiased; O(log n) a pair after laying
    the tree out in O(n log n). Without any pair of one class: (1, 0).

    Raises DataError as `dendrogram_purity` does, and for fewer than 2 pairs.
    """
    if pairs < 2:
        raise DataError(f"a standard error needs at least 2 sampled pairs, not {pairs}")
    tree = _LabelledTree(parent, labels)
    below = tree.pairs_below_class
    if below[-1] == 0:
        return PurityEstimate(1.0, 0.0)
    generator = np.random.Generator(np.random.PCG64(seed))
    drawn = generator.integers(below[-1], size=pairs)
    classes = np.searchsorted(below, drawn, side="right") - 1
    members = np.diff(tree.class_start)[classes]
    first = generator.integers(members)
    second = generator.integers(members - 1)
    second += second >= first
    purity = pair_purities(
        tree.layout, tree.leaf_at, tree.class_start, tree.positions, classes, first, second
    )
    return PurityEstimate(float(purity.mean()), float(purity.std(ddof=1)) / math.sqrt(pairs))


class _LabelledTree:
    """A checked tree laid out for the kernels, and the places of each class in the layout.

    layout: `Layout`; leaf_at: int64[n_leaves], node at each position; class_at: int64[n_leaves],
    its class as 0 .. n_classes - 1; class_start: int64[n_classes + 1] and positions:
    int64[n_leaves], each class's positions; pairs_below_class: int64[n_classes + 1], number of
    same-class pairs in the classes before, so that the last one is their number in all.
    """

    def __init__(self, parent: npt.ArrayLike, labels: npt.ArrayLike) -> None:
        above, marks = _integers(parent, "parent"), _integers(labels, "labels")
        is_leaf = _check(above, marks)
        root = above.size
        above = np.append(np.where(above == NONE, root, above), NONE)
        order = children_first(above)
        if order.size < above.size:
            node = int(np.setdiff1d(np.arange(above.size), order)[0])
            raise DataError(f"parent is not a forest: node {node} is its own ancestor")
        self.layout: Layout = lay_out(above, order, np.append(is_leaf, False))
        leaves = np.flatnonzero(is_leaf)
        self.leaf_at = np.empty(leaves.size, np.int64)
        self.leaf_at[self.layout.start[leaves]] = leaves
        classes, self.class_at = np.unique(marks[self.leaf_at], return_inverse=True)
        self.n_classes: int = classes.size
        sizes = np.bincount(self.class_at, minlength=self.n_classes).astype(np.int64)
        self.class_start = np.append(0, np.cumsum(sizes))
        self.positions = np.argsort(self.class_at, kind="stable")
        self.pairs_below_class = np.append(0, np.cumsum(sizes * (sizes - 1) // 2))


def _integers(values: npt.ArrayLike, name: str) -> npt.NDArray[np.int64]:
    array: npt.NDArray[Any] = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise DataError(
            f"{name} must be one row of integers, not {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)


def _check(parent: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which nodes are leaves, once parent and labels are known to agree."""
    if parent.size != labels.size:
        raise DataError(f"parent has {parent.size} nodes but labels has {labels.size}")
    _refuse((parent < NONE) | (parent >= parent.size), "has a parent that does not exist")
    has_child = np.zeros(parent.size, np.bool_)
    has_child[parent[parent != NONE]] = True
    is_leaf = labels >= 0
    _refuse(labels < NONE, "has a label below -1")
    _refuse(has_child & is_leaf, "is labelled as a leaf but has children")
    _refuse(~has_child & ~is_leaf & (parent != NONE), "is a leaf without a label")
    return is_leaf


def _refuse(wrong: npt.NDArray[np.bool_], what: str) -> None:
    nodes = np.flatnonzero(wrong)
    if nodes.size:
        raise DataError(f"node {nodes[0]} {what} ({nodes.size} such nodes)")
