"""The model: its bytes, what a fit does with little or odd data, and what a fit depends on."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from clustering.errors import DataError
from clustering.features.bags import Bags, encode
from clustering.features.schema import ComparisonValue, FieldSpec, FieldType, PartialDate
from clustering.fitting import LEAST_RECORDS, fit_model
from clustering.linkage.learned_kernels import BIAS, HEADER, N_FIELDS, N_LEVELS, PER_FIELD
from clustering.model import (
    FIRST_COSINE_THRESHOLD,
    Model,
    first_model,
    sealed,
    with_evidence,
)

SPECS = (
    FieldSpec("name", FieldType.NAME),
    FieldSpec("alias", FieldType.NAME),
    FieldSpec("born", FieldType.DATE, 2.0),
)
DIMENSION = 32


def rows(n: int, seed: int = 2) -> list[tuple[ComparisonValue, ...]]:
    """Invented people, every second one twice, the second time with a typo."""
    draw = np.random.default_rng(seed)
    found: list[tuple[ComparisonValue, ...]] = []
    while len(found) < n:
        name, alias = ("".join(draw.choice(list("abcdefghijkl"), 7)) for _ in range(2))
        born = PartialDate(*(int(draw.integers(*r)) for r in ((1940, 2000), (1, 13), (1, 29))))
        found += [((name,), (alias,), born), ((name[1:],), (alias,), born)]
    return found[:n]


def bags(values: list[tuple[ComparisonValue, ...]]) -> list[Bags]:
    return [encode(SPECS, row) for row in values]


@cache
def usual() -> Model:
    return fitted(rows(120))


def fitted(values: list[tuple[ComparisonValue, ...]], seed: int = 1) -> Model:
    return fit_model(SPECS, bags(values), DIMENSION, 2, seed)


def same_weights(a: Model, b: Model) -> bool:
    return a.evidence.bias == b.evidence.bias and bool(
        (a.evidence.weights == b.evidence.weights).all()
    )


@pytest.mark.parametrize("values", [[], rows(10), rows(120)], ids=["none", "few", "fitted"])
def test_bytes_are_the_model(values: list[tuple[ComparisonValue, ...]]) -> None:
    model = replace(fitted(values), version=3, fitted_at=77)
    data = model.to_bytes()
    read = Model.from_bytes(data)
    assert read.to_bytes() == data == model.to_bytes()
    assert read.specs == SPECS
    assert (read.version, read.fitted_at, read.dimension) == (3, 77, DIMENSION)
    assert read.params().tobytes() == model.params().tobytes()
    record = encode(SPECS, rows(1)[0])
    assert read.vector(read.weigh(record)).tobytes() == model.vector(model.weigh(record)).tobytes()


@pytest.mark.parametrize("bit", range(8))
def test_any_damage_is_told_of_or_does_no_harm(bit: int) -> None:
    data = fitted([]).to_bytes()
    for at in range(bit, len(data), 8):
        damaged = bytearray(data)
        damaged[at] ^= 1 << bit
        try:
            read = Model.from_bytes(bytes(damaged))
        except DataError:
            continue
        assert read.to_bytes() == data


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_what_is_cut_off_is_no_model(keep: int) -> None:
    with pytest.raises(DataError, match="not a graftd model, or it is damaged"):
        Model.from_bytes(fitted([]).to_bytes()[:keep])


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ({"format": 2}, "has format 2, but this graftd reads 1"),
        ({"version": ...}, "version"),
        ({"specs": [["name", "no such type", 1.0]]}, "no such type"),
        ({"specs": [["name"]]}, "damaged"),
    ],
)
def test_the_head_of_another_program_is_refused(head: dict[str, Any], message: str) -> None:
    data = fitted([]).to_bytes()
    archive = data.index(b"PK\x03\x04")
    with np.load(io.BytesIO(data[archive:])) as arrays:
        parts = dict(arrays)
    merged = {**json.loads(parts["head"].tobytes()), **head}
    known = {key: value for key, value in merged.items() if value is not ...}
    parts["head"] = np.frombuffer(json.dumps(known).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **parts)
    with pytest.raises(DataError, match=message):
        Model.from_bytes(sealed(file.getvalue()))


def test_a_model_needs_a_field() -> None:
    with pytest.raises(DataError, match="no field to compare"):
        first_model((), DIMENSION, 1)


def test_params_hold_the_weights_times_how_much_each_field_counts() -> None:
    model = first_model(SPECS, DIMENSION, 9)
    params = model.params()
    assert params[BIAS] == model.evidence.bias
    assert params[N_FIELDS] == len(SPECS)
    table = params[HEADER:].reshape(len(SPECS), PER_FIELD)
    counts = np.array([1.0, 1.0, 2.0])
    assert (table[:, :N_LEVELS] == model.evidence.weights * counts[:, None]).all()
    assert model.search_weights.sum() == pytest.approx(1.0)
    assert model.spaces[0] == model.spaces[1] != model.spaces[2]


def test_a_vector_has_length_one_or_is_zero() -> None:
    model = usual()
    for row in rows(60):
        vector = model.vector(model.weigh(encode(SPECS, row)))
        assert vector.dtype == np.float32
        assert vector.shape == (DIMENSION,)
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)
    assert not model.vector(model.weigh(encode(SPECS, (None, None, None)))).any()


def test_swapped_names_give_the_same_vector() -> None:
    model = first_model(SPECS, DIMENSION, 2)
    one, other = (
        model.vector(model.weigh(encode(SPECS, (first, last, None))))
        for first, last in ((("ann",), ("lee",)), (("lee",), ("ann",)))
    )
    assert one == pytest.approx(other)


def test_other_evidence_moves_the_search_weights_with_it() -> None:
    model = first_model(SPECS, DIMENSION, 2)
    weights = model.evidence.weights.copy()
    weights[0, -1] += 100.0
    moved = with_evidence(model, replace(model.evidence, weights=weights))
    assert moved.search_weights[0] > model.search_weights[0]
    assert moved.search_weights.sum() == pytest.approx(1.0)
    assert not same_weights(moved, model)


def test_the_same_records_in_the_same_order_give_the_same_model() -> None:
    assert fitted(rows(120)).to_bytes() == usual().to_bytes()
    shuffled = rows(40)[::-1]
    frequencies = (vars(fitted(values).frequencies) for values in (rows(40), shuffled))
    for one, other in zip(*(found.values() for found in frequencies), strict=True):
        assert one.tobytes() == other.tobytes(), "in any order, for frequencies"


@pytest.mark.parametrize("n", [0, 1, 2, LEAST_RECORDS - 1])
def test_few_records_leave_the_first_weights(n: int) -> None:
    model = fitted(rows(n))
    assert same_weights(model, first_model(SPECS, DIMENSION, 2))
    assert model.cosine_threshold == FIRST_COSINE_THRESHOLD
    assert model.frequencies.present.tolist() == [n, n, n]


def test_without_candidate_pairs_the_first_weights_stay() -> None:
    nothing: list[tuple[ComparisonValue, ...]] = [(None, None, None)] * 80
    one: list[tuple[ComparisonValue, ...]] = [(("ann",), None, None)]
    for values in (nothing, nothing + one):
        assert same_weights(fitted(values), first_model(SPECS, DIMENSION, 2))


@pytest.mark.parametrize(
    "values",
    [
        [(row[0], None, row[2]) for row in rows(120)],
        [(row[0], row[1], PartialDate(1985, 1, 1)) for row in rows(120)],
        [rows(1)[0]] * 120,
        [((f"{i:x}" * 5,), None, None) for i in range(120)],
    ],
    ids=["a field nobody has", "a field all share", "all equal", "nobody twice"],
)
def test_odd_data_gives_a_model_of_finite_rising_weights(
    values: list[tuple[ComparisonValue, ...]],
) -> None:
    model = fitted(values)
    assert np.isfinite(model.params()).all()
    assert (np.diff(model.evidence.weights, axis=1) >= 0).all()
    assert (model.search_weights > 0).all()
    assert 0.3 <= model.cosine_threshold <= 0.98
    assert Model.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
