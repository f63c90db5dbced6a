"""Laws of the agreement measures, and their definitions item by item."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.metrics import adjusted_rand, b_cubed, cluster_exact, pairwise

SCORES = (pairwise, b_cubed, cluster_exact)

two_partitions = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=25
).map(lambda items: tuple(np.array(items).T))
Labels = npt.NDArray[Any]
Two = tuple[Labels, Labels]


@settings(max_examples=80, deadline=None)
@given(two_partitions)
def test_definitions_item_by_item(two: Two) -> None:
    truth, predicted = two
    items = range(truth.size)

    def pairs(labels: Labels) -> set[tuple[int, int]]:
        return {(a, b) for a, b in combinations(items, 2) if labels[a] == labels[b]}

    def clusters(labels: Labels) -> list[frozenset[int]]:
        return [frozenset(np.flatnonzero(labels == label).tolist()) for label in labels]

    right = len(pairs(truth) & pairs(predicted))
    claimed, true = len(pairs(predicted)), len(pairs(truth))
    assert pairwise(truth, predicted)[:2] == (
        right / claimed if claimed else 1.0,
        right / true if true else 1.0,
    )
    t, p = clusters(truth), clusters(predicted)
    assert b_cubed(truth, predicted)[:2] == pytest.approx(
        (
            np.mean([len(t[i] & p[i]) / len(p[i]) for i in items]),
            np.mean([len(t[i] & p[i]) / len(t[i]) for i in items]),
        )
    )
    same = len(set(t) & set(p))
    assert cluster_exact(truth, predicted)[:2] == (same / len(set(p)), same / len(set(t)))


@settings(max_examples=50, deadline=None)
@given(two_partitions)
def test_swapping_the_sides_swaps_precision_and_recall(two: Two) -> None:
    for metric in SCORES:
        precision, recall, f1 = metric(*two)
        assert metric(*two[::-1]) == pytest.approx((recall, precision, f1))
    assert adjusted_rand(*two) == adjusted_rand(*two[::-1])


@settings(max_examples=50, deadline=None)
@given(two_partitions, st.randoms(use_true_random=False))
def test_order_of_items_and_names_of_clusters_mean_nothing(two: Two, random: Random) -> None:
    order = list(range(two[0].size))
    names = list(range(-3, 3))
    random.shuffle(order)
    random.shuffle(names)
    other = two[0][order], np.array(names)[two[1]][order]
    for metric in SCORES:
        assert metric(*other) == pytest.approx(metric(*two))
    assert adjusted_rand(*other) == adjusted_rand(*two)


@settings(max_examples=50, deadline=None)
@given(two_partitions)
def test_bounds_and_full_marks_only_for_the_same_partition(two: Two) -> None:
    n = two[0].size
    same = all((two[0][i] == two[0]).tolist() == (two[1][i] == two[1]).tolist() for i in range(n))
    for metric in SCORES:
        precision, recall, f1 = metric(*two)
        assert 0.0 <= min(precision, recall) <= f1 + 1e-12 <= max(precision, recall) + 2e-12
        assert max(precision, recall, f1) <= 1.0
        assert (f1 == 1.0) == same
        assert metric(two[0], two[0]) == (1.0, 1.0, 1.0)
    assert adjusted_rand(*two) <= 1.0
    assert (adjusted_rand(*two) == 1.0) == same
