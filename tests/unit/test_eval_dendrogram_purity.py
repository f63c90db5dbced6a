"""Dendrogram purity: what it refuses, deep and large trees, and the sampled estimate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from clustering.errors import DataError
from eval import dendrogram_purity_kernels as kernels
from eval.dendrogram_purity import dendrogram_purity, sampled_dendrogram_purity

Ints = npt.NDArray[np.int64]


def chain(labels: Ints) -> tuple[Ints, Ints]:
    """A caterpillar: each inner node joins one more leaf; leaf 0 and 1 are lowest."""
    n = labels.size
    inner = np.arange(n, 2 * n - 1)
    above_inner = np.append(inner[1:], -1)
    return np.concatenate([inner[:1], inner, above_inner]), np.append(labels, np.full(n - 1, -1))


def heap(labels: Ints) -> tuple[Ints, Ints]:
    """A balanced binary tree numbered as a heap, its leaves last."""
    n = labels.size
    parent = (np.arange(2 * n - 1) - 1) // 2
    parent[0] = -1
    return parent, np.append(np.full(n - 1, -1), labels)


def test_a_chain_deeper_than_any_recursion_limit() -> None:
    n = 100_000
    alternating = np.arange(n) % 2
    # The pairs of a class meet at 3, 5, ... leaves (class 0) or 4, 6, ... (class 1); at a leaf of
    # either class the node has half of it, rounded up.
    sizes = np.arange(2, n) + 1
    mates = (sizes - 1) // 2
    expected = (mates * ((mates + 1) / sizes)).sum() / mates.sum()
    assert dendrogram_purity(*chain(alternating)) == pytest.approx(expected, rel=1e-12)
    estimate = sampled_dendrogram_purity(*chain(alternating), pairs=1000, seed=1)
    assert estimate.estimate == pytest.approx(expected, abs=6 * estimate.standard_error)


def test_classes_that_are_subtrees_are_exactly_pure() -> None:
    parent, labels = heap(np.arange(1 << 15) // 8)
    assert dendrogram_purity(parent, labels) == 1.0
    assert sampled_dendrogram_purity(parent, labels, pairs=100, seed=0) == (1.0, 0.0)


def test_no_pair_of_one_class_is_pure() -> None:
    assert dendrogram_purity([2, 2, -1], [0, 1, -1]) == 1.0
    assert dendrogram_purity([], []) == 1.0
    assert sampled_dendrogram_purity([2, 2, -1], [0, 1, -1], pairs=5, seed=0) == (1.0, 0.0)


def test_ids_not_in_use_change_nothing() -> None:
    assert dendrogram_purity([-1, 4, 4, -1, -1, -1], [-1, 7, 9, -1, -1, 7]) == 2 / 3


def test_the_estimate_is_unbiased_and_its_error_honest() -> None:
    parent, labels = heap(np.random.default_rng(3).integers(0, 40, 512) ** 2 // 40)
    exact = dendrogram_purity(parent, labels)
    estimates = [sampled_dendrogram_purity(parent, labels, 400, seed) for seed in range(200)]
    z = np.array([(e.estimate - exact) / e.standard_error for e in estimates])
    assert abs(z.mean()) < 4 / np.sqrt(z.size)
    assert 0.8 < z.std() < 1.2


def test_the_estimate_depends_on_the_seed_alone() -> None:
    parent, labels = heap(np.arange(64) % 5)
    first = sampled_dendrogram_purity(parent, labels, 50, seed=8)
    assert sampled_dendrogram_purity(parent, labels, 50, seed=8) == first
    assert sampled_dendrogram_purity(parent, labels, 50, seed=9) != first


def test_kernels_agree_with_their_python_bodies() -> None:
    parent, labels = heap(np.random.default_rng(0).integers(0, 5, 40))
    above = np.append(np.where(parent < 0, parent.size, parent), -1)
    order = kernels.children_first.py_func(above)
    assert np.array_equal(order, kernels.children_first(above))
    is_leaf = np.append(labels >= 0, False)
    layout = kernels.lay_out.py_func(above, order, is_leaf)
    for plain, compiled in zip(layout, kernels.lay_out(above, order, is_leaf), strict=True):
        assert np.array_equal(plain, compiled)
    leaf_at = np.flatnonzero(labels >= 0)
    leaf_at = leaf_at[np.argsort(layout.start[leaf_at])]
    class_at = labels[leaf_at]
    total = kernels.purity_sum.py_func(layout, class_at, 5)
    assert total == kernels.purity_sum(layout, class_at, 5)
    sizes = np.bincount(class_at, minlength=5)
    starts = np.append(0, np.cumsum(sizes))
    pairs = [(k, a, b) for k in range(5) for a in range(sizes[k]) for b in range(a)]
    arguments = (layout, leaf_at, starts, np.argsort(class_at, kind="stable"), *np.array(pairs).T)
    purity = kernels.pair_purities.py_func(*arguments)
    assert np.array_equal(purity, kernels.pair_purities(*arguments))
    assert purity.sum() == pytest.approx(total)


@pytest.mark.parametrize(
    ("parent", "labels", "message"),
    [
        ([2, 2, -1], [0, 1], "parent has 3 nodes but labels has 2"),
        ([3, 2, -1], [0, 1, -1], "node 0 has a parent that does not exist"),
        ([-2, 2, -1], [0, 1, -1], "node 0 has a parent that does not exist"),
        ([2, 2, -1], [0, -1, -1], "node 1 is a leaf without a label"),
        ([2, 2, -1], [0, 1, 1], "node 2 is labelled as a leaf but has children"),
        ([2, 2, -1], [0, -3, -1], "node 1 has a label below -1"),
        ([1, 2, 1, -1], [0, -1, -1, 1], "node 1 is its own ancestor"),
        ([2.0, 2.0, -1.0], [0, 1, -1], "parent must be one row of integers"),
        ([[2, 2, -1]], [0, 1, -1], "parent must be one row of integers"),
    ],
)
def test_what_is_no_labelled_forest_is_refused(
    parent: npt.ArrayLike, labels: npt.ArrayLike, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        dendrogram_purity(parent, labels)


def test_one_pair_has_no_standard_error() -> None:
    with pytest.raises(DataError, match="at least 2 sampled pairs, not 1"):
        sampled_dendrogram_purity([2, 2, -1], [0, 0, -1], pairs=1, seed=0)
