"""The additive logistic model over agreement levels, fitted to match probabilities or labels.

Rising levels never count less: a level's weight is the weight of level 0 plus non-negative steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from clustering.linkage.learned_kernels import N_LEVELS

Floats = npt.NDArray[np.float64]

# How hard weights are pulled to where they start, and the bias a hundred times less.
PULL = 1.0
MOST_SLOPE = 1.5


@dataclass(frozen=True)
class Evidence:
    """Weights of the learned linkage, in nats.

    bias: logit of a pair that shares no field.
    weights: float64[n_fields, N_LEVELS], ascending in the level.
    slopes: float64[n_fields], how much of the rarity term counts, in [0, MOST_SLOPE].
    """

    bias: float
    weights: Floats
    slopes: Floats


def _design(levels: npt.NDArray[np.int64], rarity: Floats) -> Floats:
    """One column per step of each field and one per rarity term: float64[n, n_fields * (L + 1)]."""
    steps = (levels[:, :, None] >= np.arange(N_LEVELS)) & (levels[:, :, None] >= 0)
    columns = np.concatenate([steps, rarity[:, :, None]], axis=2)
    return columns.reshape(len(levels), levels.shape[1] * (N_LEVELS + 1))


def score(levels: npt.NDArray[np.int64], rarity: Floats, evidence: Evidence) -> Floats:
    """Logits of pairs: float64[n_pairs]; arguments as in `fit`."""
    steps = np.concatenate(
        [
            evidence.weights[:, :1],
            np.diff(evidence.weights, axis=1),
            evidence.slopes[:, None],
        ],
        axis=1,
    )
    return np.asarray(_design(levels, rarity) @ steps.ravel() + evidence.bias)


def fit(
    levels: npt.NDArray[np.int64], rarity: Floats, probability: Floats, start: Evidence
) -> Evidence:
    """Weights that reproduce ``probability`` best (penalised cross-entropy, L-BFGS-B).

    levels: int64[n_pairs, n_fields], -1 missing. rarity: float64[n_pairs, n_fields], nats, 0 where
    it does not apply. probability: float64[n_pairs] in [0, 1]. The result stays near ``start``
    where the pairs say little.
    """
    design = _design(levels, rarity)
    first = np.concatenate(
        [start.weights[:, :1], np.diff(start.weights, axis=1), start.slopes[:, None]], axis=1
    ).ravel()
    pull = np.append(np.full(len(first), PULL), 0.01 * PULL)
    origin = np.append(first, start.bias)

    def loss(point: Floats) -> tuple[float, Floats]:
        logit = design @ point[:-1] + point[-1]
        error = expit(logit) - probability
        drift = point - origin
        value = (np.logaddexp(0.0, logit) - probability * logit).sum() + 0.5 * pull @ drift**2
        return float(value), np.append(design.T @ error, error.sum()) + pull * drift

    per_field = [(None, None)] + [(0.0, None)] * (N_LEVELS - 1) + [(0.0, MOST_SLOPE)]
    bounds = per_field * levels.shape[1] + [(None, None)]
    found = minimize(loss, origin, jac=True, method="L-BFGS-B", bounds=bounds).x
    table = found[:-1].reshape(levels.shape[1], N_LEVELS + 1)
    return Evidence(float(found[-1]), np.cumsum(table[:, :N_LEVELS], axis=1), table[:, N_LEVELS])


__all__ = ["Evidence", "fit", "score"]
