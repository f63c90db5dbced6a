"""Unsupervised match probabilities: mixtures over agreement levels, fitted by EM.

Fellegi & Sunter (1969) with the EM of Winkler (1988): given its class, a pair's fields agree
independently of each other, each with its own distribution over levels. Real records break that
independence (a street, a phone prefix and a city go together), so two mixtures are fitted that err
on opposite sides, and their logits are averaged by the caller:

- `over_all_pairs`: all pairs of records; matches, random pairs (measured, not fitted), and near
  misses, which take up pairs that agree in a few dependent fields;
- `over_candidates`: only pairs of near neighbours; matches and all others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression
from scipy.special import logsumexp

from clustering.linkage.learned_kernels import N_LEVELS

Levels = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# What levels a match has before any data: mostly equal, seldom quite different.
MATCH_PRIOR = np.array([0.02, 0.02, 0.03, 0.05, 0.08, 0.10, 0.15, 0.55])

# Strength of priors, in pairs: so many besides, and so many for each pair of the class. How many
# the latter are for matches is the caller's, field by field.
MATCH_BASE = 5.0
NEAR_MISS_STRENGTH = (0.5, 20.0)
OTHER_STRENGTH = (0.3, 20.0)

ITERATIONS = 80
MOST_EVIDENCE = 9.0


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture whose class 0 is the matches.

    distributions: float64[n_classes, n_fields, N_LEVELS], each row sums to 1.
    shares: float64[n_classes], sums to 1.
    counts: float64[n_fields, N_LEVELS], how much data each level has; weights isotonic fits.
    """

    distributions: Floats
    shares: Floats
    counts: Floats

    def weights(self) -> Floats:
        """Nats for a match against each other class: float64[n_classes - 1, n_fields, N_LEVELS].

        More alike is never less evidence: isotonic in the level.
        """
        logs = np.log(self.distributions)
        raw = np.clip(logs[0] - logs[1:], -MOST_EVIDENCE, MOST_EVIDENCE)
        for row in raw:
            for field in range(row.shape[0]):
                row[field] = isotonic_regression(row[field], weights=self.counts[field]).x
        return np.asarray(raw)

    def logits(self, levels: Levels, boost: Floats) -> Floats:
        """Log-odds of a match for each pair: float64[n_pairs]."""
        odds = [
            math.log(self.shares[0] / share) + _sum_by_level(weights, levels)
            for share, weights in zip(self.shares[1:], self.weights(), strict=True)
        ]
        return np.asarray(boost - logsumexp(-np.array(odds), axis=0))


def _sum_by_level(table: Floats, levels: Levels) -> Floats:
    """Sum over fields of table[field, level]; a missing field (level -1) adds 0."""
    padded = np.concatenate([table, np.zeros((table.shape[0], 1))], axis=1)
    return np.asarray(padded[np.arange(table.shape[0]), levels].sum(axis=1))


def level_counts(levels: Levels, weights: Floats | None = None) -> Floats:
    """How often each field has each level: float64[n_fields, N_LEVELS]."""
    counts = np.empty((levels.shape[1], N_LEVELS))
    for field in range(levels.shape[1]):
        seen = levels[:, field] >= 0
        chosen = None if weights is None else weights[seen]
        counts[field] = np.bincount(levels[seen, field], chosen, N_LEVELS)
    return counts


def _normalised(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _fit(
    levels: Levels,
    boost: Floats,
    start: Floats,
    shares: Floats,
    priors: dict[int, tuple[Floats, tuple[Floats | float, float]]],
    outside: float,
    data: Floats,
) -> Mixture:
    """EM. Classes without a prior are fixed; ``outside`` pairs are known to be of class 1."""
    distributions = start.copy()
    shares = shares / shares.sum()
    for _ in range(ITERATIONS):
        logs = np.stack(
            [
                math.log(share) + _sum_by_level(np.log(table), levels)
                for share, table in zip(shares, distributions, strict=True)
            ],
            axis=1,
        )
        logs[:, 0] += boost
        posterior = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        totals = posterior.sum(axis=0)
        for klass, (prior, (relative, absolute)) in priors.items():
            strength = relative * totals[klass] + absolute
            counts = level_counts(levels, posterior[:, klass])
            distributions[klass] = _normalised(counts + strength * prior)
        totals[1] += outside
        shares = (totals + 1.0) / (totals + 1.0).sum()
    return Mixture(distributions, shares, data)


def over_all_pairs(
    candidates: Levels,
    boost: Floats,
    random: Levels,
    alike: Floats,
    n_records: int,
    n_pairs: float,
) -> Mixture:
    """Mixture over all ``n_pairs`` pairs, of which ``candidates`` are looked at one by one.

    candidates, random: int64[n, n_fields], levels of candidate and of random pairs, -1 missing.
    boost: float64[n_candidates], rarity evidence for a match, nats.
    alike: float64[n_fields] > 0, how firmly matches are expected to be alike in each field.
    """
    random_counts, candidate_counts = level_counts(random), level_counts(candidates)
    unlike = _normalised(random_counts + 0.5)
    match = np.tile(MATCH_PRIOR, (candidates.shape[1], 1))
    near = 0.5 * unlike + 0.5 * _normalised(candidate_counts + 1.0)
    return _fit(
        candidates,
        boost,
        np.stack([match, unlike, near]),
        np.array([0.3 * n_records, n_pairs, 0.5 * len(candidates)]),
        {0: (match, (alike[:, None], MATCH_BASE)), 2: (unlike, NEAR_MISS_STRENGTH)},
        max(n_pairs - len(candidates), 0.0),
        random_counts + candidate_counts + 1.0,
    )


def over_candidates(candidates: Levels, boost: Floats, random: Levels, alike: Floats) -> Mixture:
    """Mixture over the candidate pairs alone; arguments as in `over_all_pairs`."""
    random_counts, candidate_counts = level_counts(random), level_counts(candidates)
    unlike = _normalised(random_counts + 0.5)
    match = np.tile(MATCH_PRIOR, (candidates.shape[1], 1))
    return _fit(
        candidates,
        boost,
        np.stack([match, unlike]),
        np.array([0.1, 0.9]),
        {0: (match, (alike[:, None], MATCH_BASE)), 1: (unlike, OTHER_STRENGTH)},
        0.0,
        random_counts + candidate_counts + 1.0,
    )


__all__ = ["Mixture", "over_all_pairs", "over_candidates"]
