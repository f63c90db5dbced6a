"""The evidence of a pair, against its definition in plain Python."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest

from clustering.errors import DataError
from clustering.features.bags import encode
from clustering.features.leaves import Leaves
from clustering.features.schema import FieldSpec, FieldType, PartialDate
from clustering.fitting import fit_model
from clustering.linkage.learned_kernels import (
    HEADER,
    LEVEL_ENDS,
    MAY_STAND_ALONE,
    MOST_RARITY,
    N_LEVELS,
    PER_FIELD,
    RARITY_FROM,
    RARITY_FULL,
    RARITY_OFFSET,
    RARITY_SLOPE,
    SWAPPED,
    TOO_LITTLE_EVIDENCE,
    level_of,
    pair_logit,
    pair_similarities,
    rarity_evidence,
)
from clustering.model import Model, first_model

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


@cache
def usual_model() -> Model:
    return fit_model(SPECS, [encode(SPECS, values) for values in people()], 32, 2, seed=1)


def fitted() -> tuple[Model, Leaves]:
    model = usual_model()
    leaves = Leaves(len(SPECS))
    for i, record in enumerate(encode(SPECS, values) for values in people()):
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


def test_levels_begin_at_their_ends() -> None:
    for level, end in enumerate(LEVEL_ENDS):
        assert (level_of(np.nextafter(end, 0.0)), level_of(end)) == (level, level + 1)
    assert (level_of(0.0), level_of(1.0)) == (0, N_LEVELS - 1)


def test_kernels_are_their_python_bodies() -> None:
    model, leaves = fitted()
    params, rarity = model.params(), leaves.arrays[3]
    for alike in np.linspace(0.0, 1.0, 41).tolist():
        assert level_of(alike) == level_of.py_func(alike)
        for field in range(len(SPECS)):
            compiled, plain = (
                kernel(rarity, params, 0, 3, field, alike)
                for kernel in (rarity_evidence, rarity_evidence.py_func)
            )
            assert compiled == pytest.approx(plain, nan_ok=True)
    for a, b in ((0, 1), (2, 3), (5, 90)):
        compiled = pair_logit(leaves.arrays, params, a, b)
        assert compiled == pytest.approx(pair_logit.py_func(leaves.arrays, params, a, b))


def test_rarity_says_more_the_rarer_the_value_within_bounds() -> None:
    """Its own factor is 1 here, and an agreement of the field is usually of 2 nats."""
    params = np.zeros(HEADER + PER_FIELD)
    params[HEADER + RARITY_SLOPE], params[HEADER + RARITY_OFFSET] = 1.0, -2.0

    def evidence(rarity: float, other: float = 99.0, alike: float = 1.0) -> float:
        rarities = np.array([[rarity], [other]], np.float32)
        return rarity_evidence(rarities, params, 0, 1, 0, alike)

    found = [evidence(rarity) for rarity in np.linspace(0.0, 12.0, 50).tolist()]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (-2.0, MOST_RARITY)
    assert evidence(-50.0) == -MOST_RARITY
    assert evidence(4.0, 3.0) == evidence(3.0, 4.0) == 1.0, "the more common one counts"
    assert evidence(5.0, alike=RARITY_FROM) == 0.0
    assert evidence(5.0, alike=RARITY_FULL) == evidence(5.0) == 3.0
    assert 0.0 < evidence(5.0, alike=(RARITY_FROM + RARITY_FULL) / 2) < 3.0


@pytest.mark.parametrize(
    ("first", "second", "matches"),
    [
        ((("ann",), None, PartialDate(1980, 4, 5), None),) * 2 + (True,),
        ((None, None, PartialDate(1980, 4, 5), ("york",)),) * 2 + (True,),
        ((None, None, PartialDate(1980, 4, 5), None),) * 2 + (False,),
        ((("ann",), None, None, None),) * 2 + (True,),
        ((None,) * 4,) * 2 + (False,),
        ((("ann",), None, PartialDate(1980, 4, 5), None), (None, ("x",), None, ("y",)), False),
    ],
)
def test_two_fields_agree_or_one_that_may_stand_alone(
    first: tuple, second: tuple, matches: bool
) -> None:
    """With a bias of zero, all but missing fields agreeing: only the rule can refuse a match."""
    model = first_model(SPECS, 16, 2)
    params = model.params()
    params[0] = 0.5
    assert params[HEADER:].reshape(4, PER_FIELD)[:, MAY_STAND_ALONE].tolist() == [1, 1, 0, 0]
    leaves = Leaves(len(SPECS))
    for leaf, values in enumerate((first, second)):
        leaves.put(leaf, model.weigh(encode(SPECS, values)))
    logit = pair_logit(leaves.arrays, params, 0, 1)
    assert (logit > 0) == matches
    if not matches:
        assert logit == TOO_LITTLE_EVIDENCE


def test_a_missing_field_adds_nothing() -> None:
    model = first_model(SPECS, 16, 2)
    leaves = Leaves(len(SPECS))
    ann = (("ann",), ("lee",), PartialDate(1980, 4, 5), ("york",))
    without = (*ann[:3], None)
    for leaf, values in enumerate((ann, ann, without)):
        leaves.put(leaf, model.weigh(encode(SPECS, values)))
    whole, part = (pair_logit(leaves.arrays, model.params(), 0, other) for other in (1, 2))
    assert whole - part == pytest.approx(model.evidence.weights[3, -1])
    assert part == pytest.approx(model.evidence.bias + model.evidence.weights[:3, -1].sum())
