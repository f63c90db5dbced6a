"""How many records have a token or a value, and what a model makes of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from clustering.features.bags import Bags, encode
from clustering.features.schema import ComparisonValue, FieldSpec, FieldType
from clustering.features.weighing_kernels import (
    LEAST_IDF,
    field_key,
    find,
    weigh_tokens,
    weigh_values,
)
from clustering.frequencies import Frequencies, count

SPECS = (FieldSpec("name", FieldType.NAME), FieldSpec("town", FieldType.CATEGORY))
ROWS: list[tuple[ComparisonValue, ...]] = [
    (("ann lee",), ("york",)),
    (("ann roe",), ("york",)),
    (("ann lee",), None),
    (("bo",), ("york",)),
    (None, ("leeds",)),
    (None, None),
]
N_WITH_NAME, N_WITH_TOWN = 4, 4


def bags(rows: Sequence[tuple[ComparisonValue, ...]] = ROWS) -> list[Bags]:
    return [encode(SPECS, row) for row in rows]


def tokens(record: Bags) -> list[tuple[int, int]]:
    fields = np.repeat(np.arange(len(record.values)), np.diff(record.starts))
    return list(zip(fields.tolist(), record.ids.tolist(), strict=True))


def test_counts_are_those_of_a_plain_count() -> None:
    found = count(bags(), 2)
    by_token = Counter(token for record in bags() for token in tokens(record))
    by_value = Counter((f, v) for b in bags() for f, v in enumerate(b.values.tolist()) if v)
    assert found.present.tolist() == [N_WITH_NAME, N_WITH_TOWN]
    for keys, counts, expected in (
        (found.token_keys, found.token_counts, by_token),
        (found.value_keys, found.value_counts, by_value),
    ):
        assert (np.diff(keys) > 0).all()
        repeated = {field_key(f, x): n for (f, x), n in expected.items() if n > 1}
        assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == repeated


def test_clash_is_the_chance_to_draw_one_value_twice() -> None:
    names, towns = [2, 1, 1], [3, 1]
    expected = [sum(n * n for n in c) / sum(c) ** 2 for c in (names, towns)]
    assert count(bags(), 2).clash.tolist() == pytest.approx(expected)


def test_the_order_of_records_does_not_matter() -> None:
    one, other = count(bags(), 2), count(bags(ROWS[::-1]), 2)
    for name in vars(one):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


@pytest.mark.parametrize("rows", [[], [(None, None)], [(None, None)] * 3])
def test_fields_that_nobody_has_are_counted_as_such(rows: list[tuple[None, None]]) -> None:
    found = count(bags(rows), 2)
    assert found.present.tolist() == [0, 0]
    assert len(found.token_keys) == len(found.value_keys) == 0
    assert np.isfinite(np.log(found.clash)).all()


def test_nothing_seen_is_no_frequency() -> None:
    none = Frequencies.none(2)
    assert none.present.tolist() == [0, 0]
    assert none.clash.tolist() == [1.0, 1.0]


def weighed(record: Bags, found: Frequencies, uses_idf: bool = True) -> np.ndarray:
    out = np.empty(len(record.ids), np.float32)
    weigh_tokens(
        record.starts,
        record.ids,
        record.weights,
        found.present,
        np.full(2, uses_idf),
        found.token_keys,
        found.token_counts,
        out,
    )
    return out


def test_weights_are_idf_times_what_the_bag_says_and_of_unit_length() -> None:
    found = count(bags(), 2)
    by_token = Counter(token for record in bags() for token in tokens(record))
    for record in bags():
        out = weighed(record, found)
        for field, present in enumerate((N_WITH_NAME, N_WITH_TOWN)):
            mine = slice(*record.starts[field : field + 2])
            idf = [
                max(math.log((present + 1) / (by_token[field, token] + 0.5)), LEAST_IDF)
                for token in record.ids[mine].tolist()
            ]
            expected = record.weights[mine] * idf
            if len(expected):
                assert out[mine] == pytest.approx(expected / np.linalg.norm(expected), rel=1e-5)


def test_without_idf_or_before_any_fit_weights_are_the_bags_own() -> None:
    record = bags()[0]
    mine = slice(*record.starts[:2])
    expected = record.weights[mine] / np.linalg.norm(record.weights[mine])
    assert weighed(record, count(bags(), 2), uses_idf=False)[mine] == pytest.approx(expected)
    assert weighed(record, Frequencies.none(2))[mine] == pytest.approx(expected)


def test_a_value_is_as_rare_as_the_share_of_records_with_it() -> None:
    found = count(bags(), 2)

    def rarity(row: tuple[ComparisonValue, ...], of: Frequencies = found) -> list[float]:
        out = np.empty(2, np.float32)
        values = encode(SPECS, row).values
        weigh_values(values, of.present, of.value_keys, of.value_counts, out)
        return out.tolist()

    assert rarity((("ann lee",), ("york",))) == pytest.approx([math.log(4 / 2), math.log(4 / 3)])
    assert rarity((("bo",), ("leeds",))) == pytest.approx([math.log(4)] * 2)
    assert rarity((("never seen",), ("neither",))) == pytest.approx([math.log(4)] * 2)
    assert np.isnan(rarity((None, None))).all()
    assert rarity((("bo",), ("leeds",)), Frequencies.none(2)) == [0.0, 0.0]


def test_find_is_a_look_up_in_ascending_keys() -> None:
    keys = np.array([-3, 0, 7, 9], np.int64)
    assert [find(keys, key) for key in (-4, -3, 0, 1, 7, 9, 10)] == [-1, 0, 1, -1, 2, 3, -1]
    assert find(keys[:0], 1) == -1
