"""The additive logistic model, on pairs drawn from known weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from clustering.linkage.learned_kernels import N_LEVELS
from clustering.linkage.logistic import MOST_SLOPE, Evidence, fit, score

TRUTH = Evidence(
    -3.0,
    np.array(
        [
            [-2.0, -1.5, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0],
            [-1.0, -1.0, -1.0, -1.0, 0.5, 0.5, 0.5, 2.0],
        ]
    ),
    np.array([1.0, 0.0]),
)
START = Evidence(-1.0, np.zeros((2, N_LEVELS)), np.full(2, 0.5))


def drawn(n: int = 16_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels, rarity terms and true probabilities of pairs."""
    draw = np.random.default_rng(3)
    levels = draw.integers(-1, N_LEVELS, (n, 2))
    rarity = np.where(levels >= 5, draw.uniform(-3, 3, (n, 2)), 0.0)
    return levels, rarity, expit(score(levels, rarity, TRUTH))


def test_score_is_the_sum_of_its_parts() -> None:
    levels = np.array([[-1, -1], [7, -1], [0, 4], [6, 7]])
    rarity = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 0.0], [-1.0, 3.0]])
    expected = [-3.0, -3.0 + 4.0 + 2.0, -3.0 - 2.0 + 0.5, -3.0 + 3.0 - 1.0 + 2.0]
    assert score(levels, rarity, TRUTH) == pytest.approx(expected)


@pytest.mark.parametrize("labelled", [False, True], ids=["probabilities", "labels"])
def test_known_weights_are_found_again(labelled: bool) -> None:
    levels, rarity, probability = drawn()
    if labelled:
        probability = (np.random.default_rng(4).random(len(probability)) < probability).astype(
            float
        )
    found = fit(levels, rarity, probability, START)
    near = 0.35 if labelled else 0.15
    assert found.bias == pytest.approx(TRUTH.bias, abs=near)
    assert found.weights == pytest.approx(TRUTH.weights, abs=near)
    assert found.slopes == pytest.approx(TRUTH.slopes, abs=near)


def test_weights_rise_and_slopes_stay_in_bounds_whatever_the_labels_say() -> None:
    levels, rarity, probability = drawn(4_000)
    found = fit(levels, rarity, 1.0 - probability, START)
    assert (np.diff(found.weights, axis=1) >= 0).all()
    assert (found.slopes >= 0).all()
    found = fit(levels, rarity, (rarity[:, 0] > 0).astype(float), START)
    assert found.slopes[0] == pytest.approx(MOST_SLOPE)


def test_it_is_the_same_every_time() -> None:
    levels, rarity, probability = drawn(4_000)
    one, other = (fit(levels, rarity, probability, START) for _ in range(2))
    assert one.bias == other.bias
    assert one.weights.tobytes() == other.weights.tobytes()


def test_labels_that_a_field_tells_apart_give_finite_weights() -> None:
    levels = np.array([[7, -1], [0, -1]] * 500)
    found = fit(levels, np.zeros((1000, 2)), np.array([1.0, 0.0] * 500), START)
    assert np.isfinite(found.weights).all()
    logits = score(levels[:2], np.zeros((2, 2)), found)
    assert logits[0] > 3 > -3 > logits[1]
    assert found.weights[1] == pytest.approx(START.weights[1]), "nothing is said about it"
