"""The evidence of a pair, against its definition in plain Python."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from clustering.errors import DataError
from clustering.features.bags import encode
from clustering.features.leaves import Leaves
from clustering.features.schema import FieldSpec, FieldType, PartialDate
from clustering.fitting import fit_model
from clustering.linkage.learned_kernels import (
    LEVEL_ENDS,
    MOST_RARITY,
    RARITY_FROM,
    RARITY_FULL,
    SWAPPED,
    TOO_LITTLE_EVIDENCE,
    pair_logit,
    pair_similarities,
)
from clustering.model import Model

SPECS = (
    FieldSpec("first", FieldType.NAME),
    FieldSpec("last", FieldType.NAME),
    FieldSpec("born", FieldType.DATE),
    FieldSpec("city", FieldType.CATEGORY),
)
FIRST = ("ann", "bo", "cy", "dora", "eve", "finn", "gus", "hal", "ida", "jo")
LAST = ("lee", "roe", "smith", "jones", "brown", "stone", "wood", "hill", "marsh", "ford")


def people(n: int = 120) -> list[tuple]:
    """Invented people, every third one twice, now and then with a field missing or swapped."""
    draw = np.random.default_rng(7)
    out: list[tuple] = []
    while len(out) < n:
        first, last = FIRST[draw.integers(10)], LAST[draw.integers(10)]
        born = PartialDate(int(draw.integers(1940, 2000)), int(draw.integers(1, 13)), 5)
        out.append(((first,), (last,), born, ("york",)))
        if len(out) % 3 == 0:
            out.append(((last,), (first,), born, None))
    return out[:n]


def fitted() -> tuple[Model, Leaves]:
    bags = [encode(SPECS, values) for values in people()]
    model = fit_model(SPECS, bags, 32, 2, seed=1)
    leaves = Leaves(len(SPECS))
    for i, record in enumerate(bags):
        leaves.put(i, model.weigh(record))
    return model, leaves


def plain_logit(model: Model, leaves: Leaves, a: int, b: int) -> float:
    starts, ids, weights, rarity, values = leaves.arrays[:5]
    spaces = model.spaces
    total, agreeing, alone = model.evidence.bias, 0, False
    for f, spec in enumerate(model.specs):
        if values[a, f] == 0 or values[b, f] == 0:
            continue
        mine, other = (
            {int(ids[t]): float(weights[t]) for t in range(starts[x, f], starts[x, f + 1])}
            for x in (a, b)
        )
        alike = min(sum(w * other.get(token, 0.0) for token, w in mine.items()), 1.0)
        swaps = [
            g
            for g in range(len(spaces))
            if g != f and spaces[g] == spaces[f]
            if values[a, f] == values[b, g] or values[a, g] == values[b, f]
        ]
        if values[a, f] == values[b, f]:
            alike = 1.0
        elif swaps and alike < SWAPPED:
            alike = SWAPPED
        evidence = float(model.evidence.weights[f][np.digitize(alike, LEVEL_ENDS)])
        fade = min(max((alike - RARITY_FROM) / (RARITY_FULL - RARITY_FROM), 0.0), 1.0)
        rarer = min(rarity[a, f], rarity[b, f]) + math.log(model.frequencies.clash[f])
        evidence += model.evidence.slopes[f] * fade * min(max(rarer, -MOST_RARITY), MOST_RARITY)
        total += evidence
        agreeing += evidence > 0
        alone = alone or (evidence > 0 and spec.type is FieldType.NAME)
    return total if agreeing >= 2 or alone else min(total, TOO_LITTLE_EVIDENCE)


def test_the_kernel_is_the_definition_and_symmetric_whatever_lies_on_the_desk() -> None:
    model, leaves = fitted()
    params = model.params()
    for a, b in itertools.combinations(range(0, 120, 7), 2):
        logit = pair_logit(leaves.arrays, params, a, b)
        assert logit == pytest.approx(plain_logit(model, leaves, a, b), abs=1e-5)
        pair_logit(leaves.arrays, params, 3, 4)
        assert pair_logit(leaves.arrays, params, b, a) == logit


def test_swapped_names_count_as_nearly_equal() -> None:
    model, leaves = fitted()
    swapped = np.array([[2, 3]])
    first, last, born, city = pair_similarities(leaves.arrays, model.params(), swapped)[0]
    assert (first, last, born) == (SWAPPED, SWAPPED, 1.0)
    assert math.isnan(city)


@pytest.mark.parametrize(
    ("other", "low", "high"),
    [
        (PartialDate(1980, 1, 1), 1.0, 1.0),
        (PartialDate(1975, 11, 30), 0.0, 0.25),
        (PartialDate(1980, 10, 1), 0.25, 0.9),
        (PartialDate(1990, 1, 1), 0.25, 0.9),
    ],
)
def test_dates_are_alike_by_their_parts(other: PartialDate, low: float, high: float) -> None:
    model, leaves = fitted()
    for i, born in enumerate((PartialDate(1980, 1, 1), other)):
        leaves.put(200 + i, model.weigh(encode(SPECS, (None, None, born, None))))
    alike = pair_similarities(leaves.arrays, model.params(), np.array([[200, 201]]))[0][2]
    assert low <= alike <= high


def test_a_birthday_alone_is_no_match() -> None:
    model, leaves = fitted()
    born = PartialDate(1911, 2, 3)
    for i in range(2):
        leaves.put(300 + i, model.weigh(encode(SPECS, (None, None, born, None))))
    assert pair_logit(leaves.arrays, model.params(), 300, 301) <= TOO_LITTLE_EVIDENCE


def test_a_model_survives_its_bytes_and_damage_is_told() -> None:
    model, _ = fitted()
    data = model.to_bytes()
    assert Model.from_bytes(data).to_bytes() == data
    with pytest.raises(DataError):
        Model.from_bytes(data[: len(data) // 2])


def test_weights_never_fall_with_the_level() -> None:
    model, _ = fitted()
    assert (np.diff(model.evidence.weights, axis=1) >= 0).all()
