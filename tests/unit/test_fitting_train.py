"""Weights fitted to labelled records."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from clustering.features.bags import Bags, encode
from clustering.features.leaves import Leaves
from clustering.features.schema import FieldSpec, FieldType
from clustering.fitting import fit_model, train_model
from clustering.linkage.learned_kernels import pair_logit
from clustering.model import Model
from stream.config import NormaliseConfig
from stream.normalise import Normaliser
from tests.support.people import FIELDS, variant

SPECS = tuple(FieldSpec(name, FieldType(type_)) for name, type_ in FIELDS.items())
N_PEOPLE, N_VARIANTS = 40, 3


def labelled(first: int = 0) -> tuple[list[Bags], np.ndarray]:
    """Each of N_PEOPLE people in N_VARIANTS ways, and who each record is."""
    normaliser = Normaliser(SPECS, {}, NormaliseConfig())
    who = np.repeat(np.arange(first, first + N_PEOPLE), N_VARIANTS)
    records = [
        encode(SPECS, normaliser.record(variant(number, i % N_VARIANTS)))
        for i, number in enumerate(who.tolist())
    ]
    return records, who


@cache
def fitted() -> Model:
    return fit_model(SPECS, labelled()[0], 64, 2, seed=1)


def trained() -> Model:
    return train_model(fitted(), *labelled(), seed=1)


def logits(model: Model, bags: list[Bags]) -> np.ndarray:
    """Of all pairs, in the order of `combinations`."""
    leaves = Leaves(len(SPECS))
    for leaf, record in enumerate(bags):
        leaves.put(leaf, model.weigh(record))
    params = model.params()
    pairs = combinations(range(len(bags)), 2)
    return np.array([pair_logit(leaves.arrays, params, a, b) for a, b in pairs])


@pytest.mark.parametrize("first", [0, 5000], ids=["the same people", "other people"])
def test_matches_are_told_from_others(first: int) -> None:
    bags, labels = labelled(first)
    found = logits(trained(), bags)
    same = np.array([labels[a] == labels[b] for a, b in combinations(range(len(bags)), 2)])
    assert (found[same] > 0).mean() > 0.97
    assert (found[~same] > 0).mean() < 0.001


def test_weights_rise_and_the_same_labels_give_the_same_model() -> None:
    model = trained()
    assert (np.diff(model.evidence.weights, axis=1) >= 0).all()
    assert np.isfinite(model.params()).all()
    assert model.to_bytes() == trained().to_bytes()


def test_what_labels_are_called_does_not_matter() -> None:
    bags, labels = labelled()
    one, other = (
        train_model(fitted(), bags, names, seed=1).evidence for names in (labels, 7 * labels - 1000)
    )
    assert one.bias == other.bias
    assert (one.weights == other.weights).all()


def test_labels_overrule_what_looks_alike() -> None:
    """Where no two records are one entity, nothing is evidence that they are."""
    bags, _ = labelled()
    everyone_alone = train_model(fitted(), bags, np.arange(len(bags)), seed=1)
    assert (logits(everyone_alone, bags[:60]) < 0).all()


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_few_labels_are_enough_to_go_on(n: int) -> None:
    bags, labels = labelled()
    found = train_model(fitted(), bags[:n], labels[:n], seed=1)
    assert np.isfinite(found.params()).all()
