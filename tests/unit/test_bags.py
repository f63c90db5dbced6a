"""A record as bags of tokens: what shares tokens, and what a bag promises."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from clustering.features.bags import MOST_TEXT_BYTES, MOST_WORDS_WITH_GRAMS, Bags, encode
from clustering.features.schema import ComparisonValue, FieldSpec, FieldType, PartialDate

VALUES: dict[FieldType, tuple[ComparisonValue, ComparisonValue]] = {
    FieldType.NAME: (("ann lee",), ("ann leigh",)),
    FieldType.TEXT: (("a long walk home",), ("a long way home",)),
    FieldType.CATEGORY: (("crime",), ("crimea",)),
    FieldType.PHONE: (("4930123456",), ("4930123457",)),
    FieldType.EMAIL: (("ann@example.org",), ("anna@example.org",)),
    FieldType.IDENTIFIER: (("AB123",), ("AB124",)),
    FieldType.DATE: (PartialDate(1980, 4, 5), PartialDate(1980, 4, 6)),
    FieldType.NUMBER: (12.5, 12.75),
}
TYPES = pytest.mark.parametrize("type_", list(FieldType))


def bag(type_: FieldType, value: ComparisonValue) -> Bags:
    return encode((FieldSpec("f", type_),), (value,))


def cosine(a: Bags, b: Bags) -> float:
    mine, other = (dict(zip(x.ids.tolist(), x.weights.tolist(), strict=True)) for x in (a, b))
    dot = sum(weight * other.get(token, 0.0) for token, weight in mine.items())
    return dot / float(np.linalg.norm(a.weights) * np.linalg.norm(b.weights))


def test_fields_lie_one_behind_the_other() -> None:
    specs = tuple(FieldSpec(type_.value, type_) for type_ in FieldType)
    values = [VALUES[type_][0] for type_ in FieldType]
    whole = encode(specs, values)
    assert [array.dtype for array in whole] == [np.int32, np.int32, np.float32, np.int64]
    assert whole.starts[0] == 0
    assert whole.starts[-1] == len(whole.ids) == len(whole.weights)
    for i, (start, stop) in enumerate(pairwise(whole.starts.tolist())):
        single = bag(specs[i].type, values[i])
        assert whole.ids[start:stop].tolist() == single.ids.tolist()
        assert whole.weights[start:stop].tolist() == single.weights.tolist()
        assert whole.values[i] == single.values[0] != 0


@TYPES
def test_tokens_are_distinct_and_ascending_and_weigh_something(type_: FieldType) -> None:
    for value in VALUES[type_]:
        found = bag(type_, value)
        assert (np.diff(found.ids.astype(np.int64)) > 0).all()
        assert (found.weights > 0).all()


@TYPES
def test_equal_values_give_equal_bags_and_alike_values_share_tokens(type_: FieldType) -> None:
    one, other = (bag(type_, value) for value in VALUES[type_])
    again = bag(type_, VALUES[type_][0])
    assert [a.tobytes() for a in one] == [a.tobytes() for a in again]
    assert one.values[0] != other.values[0]
    assert 0.1 < cosine(one, other) < 0.999


@TYPES
@pytest.mark.parametrize("nothing", [None, ()])
def test_a_missing_field_has_no_token_and_no_value(type_: FieldType, nothing: None) -> None:
    found = encode((FieldSpec("f", type_), FieldSpec("g", FieldType.NAME)), (nothing, ("ann",)))
    assert found.starts.tolist() == [0, 0, len(found.ids)]
    assert found.values[0] == 0 != found.values[1]


def test_a_record_of_nothing_is_empty_bags() -> None:
    found = encode((FieldSpec("f", FieldType.NAME),) * 2, (None, None))
    assert found.starts.tolist() == [0, 0, 0]
    assert len(found.ids) == len(found.weights) == 0
    assert found.values.tolist() == [0, 0]


def test_each_spec_has_a_value() -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        encode((FieldSpec("f", FieldType.NAME),) * 2, (None,))


def test_a_value_of_many_is_the_sum_of_its_values() -> None:
    ann, bo = bag(FieldType.NAME, ("ann",)), bag(FieldType.NAME, ("bo",))
    both = bag(FieldType.NAME, ("ann", "bo"))
    assert both.ids.tolist() == sorted({*ann.ids.tolist(), *bo.ids.tolist()})
    assert both.weights.sum() == pytest.approx(ann.weights.sum() + bo.weights.sum())
    assert len({int(x.values[0]) for x in (ann, bo, both, bag(FieldType.NAME, ("annbo",)))}) == 4


def test_the_order_of_words_in_a_name_is_no_difference_of_tokens() -> None:
    one, other = bag(FieldType.NAME, ("ann lee",)), bag(FieldType.NAME, ("lee ann",))
    assert cosine(one, other) == pytest.approx(1.0)
    assert one.values[0] != other.values[0]


@pytest.mark.parametrize(
    ("other", "least", "most"),
    [
        (PartialDate(1975, 11, 30), 0.0, 0.1),
        (PartialDate(1980, 5, 4), 0.25, 0.7),
        (PartialDate(1980, 4, 6), 0.4, 0.85),
        (PartialDate(1990, 4, 5), 0.4, 0.85),
        (PartialDate(1981, 4, 5), 0.4, 0.85),
        (PartialDate(1980, 4), 0.4, 0.85),
        (PartialDate(1980), 0.2, 0.7),
    ],
)
def test_dates_are_as_alike_as_their_slips(other: PartialDate, least: float, most: float) -> None:
    assert (
        least
        <= cosine(bag(FieldType.DATE, PartialDate(1980, 4, 5)), bag(FieldType.DATE, other))
        <= most
    )


def test_numbers_are_the_more_alike_the_nearer_they_are() -> None:
    base = bag(FieldType.NUMBER, 100.0)
    alike = [cosine(base, bag(FieldType.NUMBER, 100.0 + d)) for d in (0.0, 0.01, 1.0, 30.0, 9e5)]
    assert alike[0] == pytest.approx(1.0)
    assert alike == sorted(alike, reverse=True)
    assert alike[-1] < 0.1


@pytest.mark.parametrize("number", [0.0, -0.0, -5.0, 1e300, -1e300, 5e-324])
def test_any_finite_number_has_tokens(number: float) -> None:
    found = bag(FieldType.NUMBER, number)
    assert len(found.ids) > 0
    assert found.values[0] != 0


def test_long_texts_are_words_alone_and_end_somewhere() -> None:
    short, long = (" ".join(f"word{i}" for i in range(n)) for n in (24, MOST_WORDS_WITH_GRAMS + 1))
    assert len(bag(FieldType.TEXT, (long,)).ids) < len(bag(FieldType.TEXT, (short,)).ids)
    endless = "x" * (MOST_TEXT_BYTES + 1)
    one, other = bag(FieldType.TEXT, (endless + "a",)), bag(FieldType.TEXT, (endless + "b",))
    assert one.ids.tolist() == other.ids.tolist()
    assert one.values[0] != other.values[0], "the whole value counts where values are compared"


def test_an_email_address_knows_its_domain_and_itself() -> None:
    ann = bag(FieldType.EMAIL, ("ann@example.org",))
    assert cosine(ann, bag(FieldType.EMAIL, ("zoe@example.org",))) > 0.0
    assert cosine(ann, bag(FieldType.EMAIL, ("ann@other.net",))) > 0.3
    assert len(bag(FieldType.EMAIL, ("no-at-sign",)).ids) > 0
