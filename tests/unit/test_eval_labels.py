"""Tables of record key to cluster: checked once, compared over the records of the truth."""

from __future__ import annotations

import pytest

from clustering.errors import DataError
from clustering.types import RecordKey
from eval.labels import align, membership


def key(text: str) -> RecordKey:
    return RecordKey("crm", text)


def test_a_table_keeps_every_row() -> None:
    rows = [(key("1"), "a"), (key("2"), "a"), (RecordKey("erp", "1"), "b")]
    assert membership(rows, "truth") == dict(rows)


@pytest.mark.parametrize("again", ["a", "b"])
def test_a_record_listed_twice_is_an_error_that_names_it(again: str) -> None:
    rows = [(key("1"), "a"), (key("2"), "a"), (key("1"), again)]
    with pytest.raises(DataError, match=r"^truth lists crm:1 more than once"):
        membership(iter(rows), "truth")


def test_only_a_few_records_are_named() -> None:
    rows = [(key(str(n)), "a") for n in range(8)]
    with pytest.raises(DataError, match=r"crm:0, crm:1, crm:2, crm:3, crm:4 and 3 others more"):
        membership(rows + rows, "truth")


def test_a_record_without_a_cluster_is_an_error() -> None:
    with pytest.raises(DataError, match="truth gives no cluster for crm:2"):
        membership([(key("1"), "a"), (key("2"), "")], "truth")


def test_records_in_one_table_only_are_counted_and_follow_the_rule() -> None:
    truth = {key(n): cluster for n, cluster in zip("12345", "aaabb", strict=True)}
    predicted = {key("1"): "x", key("2"): "x", key("9"): "x", key("8"): "z"}
    sides = align(predicted, truth)
    assert (sides.unpredicted, sides.unknown) == (3, 2)
    assert sides.truth.tolist() == [0, 0, 0, 1, 1]
    assert sides.predicted.tolist() == [0, 0, 1, 2, 3]


def test_a_source_is_part_of_the_key() -> None:
    truth = {key("1"): "a", RecordKey("erp", "1"): "b"}
    assert align({key("1"): "x"}, truth).unpredicted == 1


def test_tables_with_nothing_in_common_are_an_error() -> None:
    with pytest.raises(DataError, match="no record in common: predicted are erp:1, known are crm:"):
        align({RecordKey("erp", "1"): "x"}, {key("1"): "a"})
    with pytest.raises(DataError, match="predicted are none"):
        align({}, {key("1"): "a"})
