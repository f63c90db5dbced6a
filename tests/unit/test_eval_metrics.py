"""Agreement of two partitions: worked examples, edge cases, and figures of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import pair_confusion_matrix

from clustering.errors import DataError
from eval.metrics import adjusted_rand, b_cubed, cluster_exact, pairwise

TRUTH = [0, 0, 0, 1, 1, 2]
PREDICTED = [5, 5, 7, 7, 7, 9]
ALL = (pairwise, b_cubed, cluster_exact, adjusted_rand)


def test_pairwise_of_a_worked_example() -> None:
    # Predicted pairs 01 23 24 34, true pairs 01 02 12 34: 01 and 34 are right.
    assert pairwise(TRUTH, PREDICTED) == (2 / 4, 2 / 4, 0.5)


def test_b_cubed_of_a_worked_example() -> None:
    # Shares of the predicted cluster: 1 1 1/3 2/3 2/3 1; of the true one: 2/3 2/3 1/3 1 1 1.
    assert b_cubed(TRUTH, PREDICTED) == pytest.approx((14 / 18, 14 / 18, 14 / 18))


def test_exact_clusters_of_a_worked_example() -> None:
    assert cluster_exact(TRUTH, PREDICTED) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert cluster_exact([0, 0, 1], [0, 1, 2]) == pytest.approx((1 / 3, 1 / 2, 2 / 5))


def test_nothing_claimed_is_precise_and_nothing_to_find_is_found() -> None:
    assert pairwise([0, 0, 1], [0, 1, 2]) == (1.0, 0.0, 0.0)
    assert pairwise([0, 1, 2], [0, 0, 1]) == (0.0, 1.0, 0.0)
    assert pairwise([0, 1], [0, 1]) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("labels", [[4], [4, 4, 4], [1, 2, 3]])
def test_trivial_partitions_agree_with_themselves(labels: list[int]) -> None:
    assert adjusted_rand(labels, labels) == 1.0
    for metric in (pairwise, b_cubed, cluster_exact):
        assert metric(labels, labels) == (1.0, 1.0, 1.0)


def test_figures_of_scikit_learn() -> None:
    random = np.random.default_rng(5)
    for classes in (2, 30, 400):
        truth, predicted = random.integers(0, classes, (2, 500))
        predicted[::2] = truth[::2]
        matrix = pair_confusion_matrix(truth, predicted)
        precision = matrix[1, 1] / (matrix[1, 1] + matrix[0, 1])
        recall = matrix[1, 1] / (matrix[1, 1] + matrix[1, 0])
        assert pairwise(truth, predicted)[:2] == pytest.approx((precision, recall))
        expected = adjusted_rand_score(truth, predicted)
        assert adjusted_rand(truth, predicted) == pytest.approx(expected)


def test_pairs_of_a_million_items_do_not_overflow() -> None:
    half = np.arange(1_000_000) // 500_000
    assert pairwise(half, np.zeros_like(half)).precision == pytest.approx(0.5, abs=1e-6)
    assert adjusted_rand(half, np.zeros_like(half)) == 0.0
    assert adjusted_rand(half, 1 - half) == 1.0


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize(
    ("truth", "predicted", "message"),
    [
        ([], [], "truth must be one row of at least one integer"),
        ([1, 2], [1], "truth has 2 items but predicted has 1"),
        ([1.5], [1], "truth must be"),
        ([1], [[1]], "predicted must be"),
    ],
)
def test_what_is_no_pair_of_partitions_is_refused(
    metric: Callable[..., Any], truth: npt.ArrayLike, predicted: npt.ArrayLike, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        metric(truth, predicted)
