"""Fitting the model: frequencies from the records, weights from pairs of near neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from clustering.features.bags import Bags
from clustering.features.leaves import Leaves
from clustering.features.schema import FieldSpec, FieldType
from clustering.frequencies import count
from clustering.linkage.learned_kernels import (
    LEVEL_ENDS,
    pair_rarity_terms,
    pair_similarities,
)
from clustering.linkage.logistic import Evidence, fit, score
from clustering.linkage.mixture import over_all_pairs, over_candidates
from clustering.model import FIRST_COSINE_THRESHOLD, Model, first_model, with_evidence
from clustering.neighbours.exact import ExactNeighbours

Pairs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Weights are fitted only from this many different records on: fewer say less than the defaults.
LEAST_RECORDS = 50
# Copies of one content that a fit looks at: more say nothing new, and very many would make random
# pairs, which stand for strangers, mostly matches.
COPIES = 4
ANCHORS = 2_000
NEIGHBOURS = 20
RANDOM_PAIRS = 40_000
# How firmly matches are expected to be alike, by type. Where a field identifies they nearly always
# are; in free text, two sources may well use other words.
ALIKE = {
    FieldType.NAME: 2.0,
    FieldType.PHONE: 2.0,
    FieldType.EMAIL: 2.0,
    FieldType.IDENTIFIER: 2.0,
    FieldType.CATEGORY: 1.25,
    FieldType.DATE: 1.25,
    FieldType.NUMBER: 1.25,
    FieldType.TEXT: 0.3,
}
# Cosines that a calibrated threshold may take.
CALIBRATED_COSINES = (0.3, 0.98)
# How the logits of the two mixtures are averaged.
SHARE_OF_ALL_PAIRS = 0.67


def _leaves(model: Model, bags: Sequence[Bags]) -> tuple[Leaves, npt.NDArray[np.float32]]:
    leaves = Leaves(len(model.specs))
    vectors = np.zeros((len(bags), model.dimension), np.float32)
    for i, record in enumerate(bags):
        weighed = model.weigh(record)
        leaves.put(i, weighed)
        vectors[i] = model.vector(weighed)
    return leaves, vectors


def without_copies(bags: Sequence[Bags]) -> list[Bags]:
    """The first COPIES records of each content, in their order."""
    seen: Counter[bytes] = Counter()
    kept = []
    for record in bags:
        content = record.values.tobytes()
        seen[content] += 1
        if seen[content] <= COPIES:
            kept.append(record)
    return kept


def _candidate_pairs(vectors: npt.NDArray[np.float32], anchors: Pairs) -> Pairs:
    """Pairs (smaller, larger) of an anchor and one of its nearest neighbours, each once."""
    index = ExactNeighbours(vectors.shape[1])
    known = np.flatnonzero(vectors.any(axis=1))
    for label in known:
        index.add(int(label), vectors[label])
    found = []
    for anchor in np.intersect1d(anchors, known):
        near, _ = index.search(vectors[anchor], NEIGHBOURS + 1)
        near = near[near != anchor][:NEIGHBOURS]
        found.append(np.stack([np.minimum(near, anchor), np.maximum(near, anchor)], axis=1))
    if not found:
        return np.empty((0, 2), np.int64)
    return np.unique(np.concatenate(found), axis=0)


def _random_pairs(n: int, generator: np.random.Generator) -> Pairs:
    pairs = generator.integers(0, n, (RANDOM_PAIRS, 2))
    return np.ascontiguousarray(pairs[pairs[:, 0] != pairs[:, 1]])


class _Observed:
    """Levels and rarity terms of pairs, as the mixtures and the logistic fit read them."""

    def __init__(self, leaves: Leaves, model: Model, pairs: Pairs) -> None:
        params = model.params()
        similarity = pair_similarities(leaves.arrays, params, pairs)
        levels = np.where(np.isnan(similarity), -1, np.digitize(similarity, LEVEL_ENDS))
        self.levels = levels.astype(np.int64)
        self.rarity: Floats = pair_rarity_terms(leaves.arrays, params, pairs, similarity)


def _by_em(
    specs: Sequence[FieldSpec],
    near: _Observed,
    random: _Observed,
    n_records: int,
    n_anchors: int,
) -> Evidence:
    """Additive weights that reproduce the mean logit of the two mixtures."""
    alike = np.array([ALIKE[spec.type] for spec in specs])
    boost = near.rarity.sum(axis=1)
    n_pairs = n_anchors * (n_records - 1 - (n_anchors - 1) / 2)
    everywhere = over_all_pairs(near.levels, boost, random.levels, alike, n_anchors, n_pairs)
    nearby = over_candidates(near.levels, boost, random.levels, alike)
    a, b = SHARE_OF_ALL_PAIRS, 1.0 - SHARE_OF_ALL_PAIRS
    levels = np.concatenate([near.levels, random.levels])
    rarity = np.concatenate([near.rarity, random.rarity])
    boosts = rarity.sum(axis=1)
    logits = a * everywhere.logits(levels, boosts) + b * nearby.logits(levels, boosts)
    weights = a * everywhere.weights().mean(axis=0) + b * nearby.weights()[0]
    start = Evidence(-4.0, weights, np.ones(levels.shape[1]))
    return fit(levels, rarity, expit(logits), start)


def _calibrated(model: Model, bags: Sequence[Bags], pairs: Pairs, seen: _Observed) -> Model:
    """The model with the cosine at which its own match probabilities cross one half.

    One-dimensional logistic regression of the probabilities on the cosines of search vectors.
    """
    needed = np.unique(pairs)
    vectors = np.array([model.vector(model.weigh(bags[i])) for i in needed.tolist()])
    place = np.searchsorted(needed, pairs)
    cosines = (vectors[place[:, 0]] * vectors[place[:, 1]]).sum(axis=1).astype(np.float64)
    probability = expit(score(seen.levels, seen.rarity, model.evidence))

    def loss(line: Floats) -> float:
        logit = line[0] * (cosines - line[1])
        return float((np.logaddexp(0.0, logit) - probability * logit).sum())

    lowest, highest = CALIBRATED_COSINES
    start = np.array([10.0, FIRST_COSINE_THRESHOLD])
    bounds = [(1.0, 200.0), (lowest, highest)]
    found = minimize(loss, start, method="L-BFGS-B", bounds=bounds).x
    return replace(model, cosine_threshold=float(found[1]))


def fit_model(
    specs: Sequence[FieldSpec],
    bags: Sequence[Bags],
    dimension: int,
    evidence_fields: int,
    seed: int,
) -> Model:
    """A model fitted to records without labels; the same records in the same order give the same.

    bags: in an order that does not depend on arrival (by record key), so that the model does not.
        Of equal ones only the first COPIES are looked at, for frequencies too.
    """
    bags = without_copies(bags)
    first = first_model(specs, dimension, evidence_fields)
    model = replace(first, frequencies=count(bags, len(specs)))
    if len({record.values.tobytes() for record in bags}) < LEAST_RECORDS:
        return model
    generator = np.random.Generator(np.random.PCG64(seed))
    leaves, vectors = _leaves(model, bags)
    anchors = np.arange(len(bags))
    if len(bags) > ANCHORS:
        anchors = np.sort(generator.choice(len(bags), ANCHORS, replace=False))
    pairs = _candidate_pairs(vectors, anchors)
    if len(pairs) == 0:
        return model
    near = _Observed(leaves, model, pairs)
    random = _Observed(leaves, model, _random_pairs(len(bags), generator))
    fitted = with_evidence(model, _by_em(specs, near, random, len(bags), len(anchors)))
    return _calibrated(fitted, bags, pairs, near)


def train_model(model: Model, bags: Sequence[Bags], labels: Pairs, seed: int) -> Model:
    """The model with weights fitted to labelled clusters instead.

    labels: int64[n_records], the cluster of each record. Pairs are those of near neighbours, all
    pairs within a cluster up to NEIGHBOURS a record, and random ones.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    leaves, vectors = _leaves(model, bags)
    order = np.argsort(labels, kind="stable")
    within = []
    for step in range(1, NEIGHBOURS + 1):
        left, right = order[:-step], order[step:]
        same = labels[left] == labels[right]
        within.append(np.stack([left[same], right[same]], axis=1))
    pairs = np.concatenate(
        [
            _candidate_pairs(vectors, np.arange(len(bags))),
            np.sort(np.concatenate(within), axis=1),
            np.sort(_random_pairs(len(bags), generator), axis=1),
        ]
    )
    pairs = np.ascontiguousarray(np.unique(pairs, axis=0))
    seen = _Observed(leaves, model, pairs)
    same_entity = (labels[pairs[:, 0]] == labels[pairs[:, 1]]).astype(np.float64)
    return with_evidence(model, fit(seen.levels, seen.rarity, same_entity, model.evidence))


__all__ = ["fit_model", "train_model"]
