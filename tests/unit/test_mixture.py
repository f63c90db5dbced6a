"""Match probabilities without labels, on pairs drawn from a known mixture."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import rankdata

from clustering.linkage.learned_kernels import N_LEVELS
from clustering.linkage.mixture import (
    MOST_EVIDENCE,
    Mixture,
    level_counts,
    over_all_pairs,
    over_candidates,
)

N_FIELDS = 4
MATCH = np.array([0.02, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.7])
OTHER = np.array([0.6, 0.15, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01])
ALIKE = np.full(N_FIELDS, 0.1)


def drawn(
    n_matches: int, n_others: int, missing: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels of candidate pairs, which of them match, and levels of random pairs."""
    draw = np.random.default_rng(5)
    candidates = np.concatenate(
        [
            draw.choice(N_LEVELS, (n, N_FIELDS), p=p)
            for n, p in ((n_matches, MATCH), (n_others, OTHER))
        ]
    )
    random = draw.choice(N_LEVELS, (40_000, N_FIELDS), p=OTHER)
    for levels in (candidates, random):
        levels[draw.random(levels.shape) < missing] = -1
    return candidates, np.arange(len(candidates)) < n_matches, random


def fitted(
    kind: str, candidates: np.ndarray, random: np.ndarray, alike: np.ndarray = ALIKE
) -> Mixture:
    boost = np.zeros(len(candidates))
    if kind == "candidates":
        return over_candidates(candidates, boost, random, alike)
    return over_all_pairs(candidates, boost, random, alike, 2_000, 2_000_000.0)


KINDS = pytest.mark.parametrize("kind", ["candidates", "all pairs"])


def area(scores: np.ndarray, matches: np.ndarray) -> float:
    """Probability that a match has a higher score than another pair."""
    ranks = rankdata(scores)
    n, m = matches.sum(), (~matches).sum()
    return float((ranks[matches].sum() - n * (n + 1) / 2) / (n * m))


@KINDS
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_matches_are_told_from_others_as_well_as_can_be(kind: str, missing: float) -> None:
    candidates, matches, random = drawn(1_500, 8_000, missing)
    found = fitted(kind, candidates, random).logits(candidates, np.zeros(len(candidates)))
    assert found.shape == (len(candidates),)
    evidence = np.append(np.log(MATCH / OTHER), 0.0)[candidates].sum(axis=1)
    assert area(found, matches) > area(evidence, matches) - 0.002
    assert matches[found > 0].mean() > 0.95


def test_the_distributions_and_shares_are_found_again() -> None:
    candidates, matches, random = drawn(3_000, 9_000)
    mixture = fitted("candidates", candidates, random, np.full(N_FIELDS, 0.01))
    assert mixture.shares[0] == pytest.approx(matches.mean(), abs=0.02)
    for field in range(N_FIELDS):
        assert mixture.distributions[0, field] == pytest.approx(MATCH, abs=0.03)
        assert mixture.distributions[1, field] == pytest.approx(OTHER, abs=0.03)
    posterior = expit(mixture.logits(candidates, np.zeros(len(candidates))))
    assert posterior.sum() == pytest.approx(matches.sum(), rel=0.03)


def test_over_all_pairs_matches_are_as_rare_as_they_are_among_all() -> None:
    candidates, matches, random = drawn(1_500, 8_000)
    shares = fitted("all pairs", candidates, random).shares
    assert shares[0] == pytest.approx(matches.sum() / 2_000_000, rel=0.25)


@KINDS
def test_weights_rise_with_the_level_and_stay_in_bounds(kind: str) -> None:
    candidates, _, random = drawn(300, 2_000)
    mixture = fitted(kind, candidates, random)
    weights = mixture.weights()
    n_classes = 2 if kind == "candidates" else 3
    assert weights.shape == (n_classes - 1, N_FIELDS, N_LEVELS)
    assert (np.diff(weights, axis=2) >= 0).all()
    assert (np.abs(weights) <= MOST_EVIDENCE).all()
    assert mixture.shares.sum() == pytest.approx(1.0)
    assert mixture.distributions.sum(axis=2) == pytest.approx(np.ones((n_classes, N_FIELDS)))
    assert (mixture.distributions > 0).all()


@KINDS
def test_it_is_the_same_every_time(kind: str) -> None:
    candidates, _, random = drawn(300, 2_000)
    one, other = (fitted(kind, candidates, random) for _ in range(2))
    assert one.distributions.tobytes() == other.distributions.tobytes()
    assert one.shares.tobytes() == other.shares.tobytes()


def test_a_missing_field_is_no_evidence_and_a_boost_is_added() -> None:
    candidates, _, random = drawn(300, 2_000)
    mixture = fitted("candidates", candidates, random)
    nothing = np.full((1, N_FIELDS), -1)
    prior = math.log(mixture.shares[0] / mixture.shares[1])
    assert mixture.logits(nothing, np.zeros(1)) == pytest.approx([prior])
    assert mixture.logits(nothing, np.full(1, 2.5)) == pytest.approx([prior + 2.5])
    one = nothing.copy()
    one[0, 2] = 7
    expected = prior + mixture.weights()[0, 2, 7]
    assert mixture.logits(one, np.zeros(1)) == pytest.approx([expected])


@KINDS
@pytest.mark.parametrize("levels", [[-1] * N_FIELDS, [7] * N_FIELDS, [0] * N_FIELDS])
def test_pairs_that_are_all_the_same_do_no_harm(kind: str, levels: list[int]) -> None:
    """All missing, all equal, all unlike, and one pair alone."""
    for n in (1, 500):
        pairs = np.tile(np.array(levels), (n, 1))
        mixture = fitted(kind, pairs, pairs)
        assert np.isfinite(mixture.logits(pairs, np.zeros(n))).all()


def test_levels_are_counted_by_field() -> None:
    levels = np.array([[0, 7], [0, -1], [3, 7]])
    expected = np.zeros((2, N_LEVELS))
    expected[0, [0, 3]], expected[1, 7] = [2, 1], 2
    assert (level_counts(levels) == expected).all()
    assert level_counts(levels, np.array([0.5, 0.25, 1.0]))[0, [0, 3]].tolist() == [0.75, 1.0]
