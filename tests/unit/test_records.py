from __future__ import annotations

import itertools
import math
from typing import Any

import orjson
import pytest

from clustering.types import RecordKey
from stream.config import SourceConfig
from stream.records import (
    MAX_KEY_BYTES,
    Bad,
    BadReason,
    Delete,
    Operation,
    Upsert,
    canonical_json,
    compare_versions,
    content_hash,
    parse_record,
)

POSITION = {"file": "a.jsonl", "line": 3}
VERSIONED = SourceConfig(version_field="rev")


def parse(data: object, config: SourceConfig | None = None, raw: bytes = b"raw") -> Operation:
    return parse_record(data, raw, POSITION, config or SourceConfig())


def refused(data: object, config: SourceConfig | None = None, raw: bytes = b"raw") -> Bad:
    operation = parse(data, config, raw)
    assert isinstance(operation, Bad)
    assert operation.raw == raw
    assert operation.position == POSITION
    return operation


def upserted(data: object, config: SourceConfig | None = None) -> Upsert:
    operation = parse(data, config)
    assert isinstance(operation, Upsert), operation
    return operation


def test_flat_record() -> None:
    data = {"id": "7", "source": "crm", "name": "Ann", "age": 40, "tags": ["a", None, 1.5, True]}
    assert parse(data) == Upsert(
        RecordKey("crm", "7"),
        {"name": "Ann", "age": 40, "tags": ["a", None, 1.5, True]},
        None,
        POSITION,
    )


def test_reserved_names_are_configured() -> None:
    config = SourceConfig(id_field="uid", source_field="sys", operation_field="op")
    data = {"uid": 1, "sys": "erp", "op": "upsert", "id": "x", "source": "y"}
    found = upserted(data, config)
    assert found.key == ("erp", "1")
    assert found.fields == {"id": "x", "source": "y"}


@pytest.mark.parametrize("data", [{"id": 1}, {"id": 1, "source": None}, {"id": 1, "source": ""}])
def test_records_without_source_are_of_the_default_one(data: dict[str, Any]) -> None:
    assert upserted(data, SourceConfig(default_source="d")).key == ("d", "1")


def test_envelope_and_flat_record_give_the_same() -> None:
    flat = {"source": "crm", "id": 7, "rev": 3, "name": "Ann"}
    envelope = {"source": "crm", "id": 7, "version": 3, "fields": {"name": "Ann"}}
    inside = {"source": "crm", "id": 7, "fields": {"name": "Ann", "rev": 3, "id": 7}}
    assert parse(flat, VERSIONED) == parse(envelope, VERSIONED) == parse(inside, VERSIONED)
    assert upserted(flat, VERSIONED).version == 3


def test_envelope_without_fields_deletes() -> None:
    found = parse({"source": "crm", "id": 7, "version": 3, "fields": None})
    assert found == Delete(RecordKey("crm", "7"), 3, POSITION)


def test_null_field_called_fields_of_a_flat_record_does_not_delete() -> None:
    assert upserted({"id": 7, "name": "Ann", "fields": None}).fields["name"] == "Ann"


def test_something_beside_the_fields_of_an_envelope() -> None:
    bad = refused({"id": 7, "name": "Ann", "fields": {"age": 3}})
    assert bad.reason == BadReason.BAD_ENVELOPE
    assert '"name"' in bad.detail


@pytest.mark.parametrize("operation", [None, "", "upsert"])
def test_upsert_operation(operation: str | None) -> None:
    assert upserted({"id": 1, "_op": operation, "a": "b"}).fields == {"a": "b"}


def test_delete_operation_needs_no_fields() -> None:
    flat = parse({"id": 1, "_op": "delete", "rev": "5", "junk": {}}, VERSIONED)
    assert flat == Delete(RecordKey("default", "1"), "5", POSITION)
    assert isinstance(parse({"id": 1, "_op": "delete", "fields": {"a": 1}}), Delete)


@pytest.mark.parametrize("operation", ["DELETE", "remove", 1, True, ["delete"], {}])
def test_unknown_operation(operation: object) -> None:
    assert refused({"id": 1, "_op": operation}).reason == BadReason.BAD_OPERATION


def test_upsert_of_no_fields_contradicts_itself() -> None:
    assert refused({"id": 1, "_op": "upsert", "fields": None}).reason == BadReason.BAD_OPERATION


@pytest.mark.parametrize("data", [None, [], [{}], "text", 7, True])
def test_not_an_object(data: object) -> None:
    assert refused(data).reason == BadReason.NOT_AN_OBJECT


@pytest.mark.parametrize(
    ("id_", "text"),
    [
        (7, "7"),
        (7.0, "7"),
        (-0.0, "0"),
        ("007", "007"),
        (" 7", " 7"),
        (0.1, "0.1"),
        (1e-7, "0.0000001"),
        (2**64 - 1, "18446744073709551615"),
        (2.0**52, "4503599627370496"),
    ],
)
def test_ids_become_text(id_: object, text: str) -> None:
    assert upserted({"id": id_, "source": id_}).key == (text, text)


@pytest.mark.parametrize(
    ("id_", "reason"),
    [
        (None, BadReason.MISSING_ID),
        ("", BadReason.MISSING_ID),
        (" \t", BadReason.MISSING_ID),
        (True, BadReason.WRONG_TYPE),
        ([1], BadReason.WRONG_TYPE),
        ({}, BadReason.WRONG_TYPE),
        (math.nan, BadReason.NOT_FINITE),
        (-math.inf, BadReason.NOT_FINITE),
        (2**64, BadReason.WRONG_TYPE),
        pytest.param(10**5000, BadReason.WRONG_TYPE, id="huge"),
        (1.8446744073709552e19, BadReason.WRONG_TYPE),
        ("\ud800", BadReason.INVALID_UTF8),
        ("x" * (MAX_KEY_BYTES + 1), BadReason.FIELD_TOO_LARGE),
        ("é" * (MAX_KEY_BYTES // 2 + 1), BadReason.FIELD_TOO_LARGE),
    ],
)
def test_unusable_ids(id_: object, reason: BadReason) -> None:
    bad = refused({"id": id_, "name": "Ann"})
    assert bad.reason == reason
    assert bad.key is None
    assert "the id" in bad.detail or reason == BadReason.MISSING_ID
    if reason != BadReason.MISSING_ID:
        assert refused({"id": 1, "source": id_}).reason == reason


def test_missing_id() -> None:
    assert refused({"name": "Ann"}).reason == BadReason.MISSING_ID


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"a": 1}, BadReason.WRONG_TYPE),
        ([["a"]], BadReason.WRONG_TYPE),
        ([{"a": 1}], BadReason.WRONG_TYPE),
        (b"bytes", BadReason.WRONG_TYPE),
        (2**64, BadReason.WRONG_TYPE),
        (-(2**63) - 1, BadReason.WRONG_TYPE),
        (math.nan, BadReason.NOT_FINITE),
        ([1.0, math.inf], BadReason.NOT_FINITE),
        ("a\udc80", BadReason.INVALID_UTF8),
        (["\ud800"], BadReason.INVALID_UTF8),
    ],
)
def test_unusable_values_name_record_and_field(value: object, reason: BadReason) -> None:
    bad = refused({"id": 1, "good": "x", "näme": value})
    assert bad.reason == reason
    assert bad.key == ("default", "1")
    assert '"n\\u00e4me"' in bad.detail
    assert bad.detail.isascii()


def test_unusable_field_name() -> None:
    assert refused({"id": 1, "\ud800": "x"}).reason == BadReason.INVALID_UTF8


@pytest.mark.parametrize("value", [2**64 - 1, -(2**63), 0, 1.5, True, None, "", [], "日本"])
def test_every_kept_value_can_be_encoded(value: object) -> None:
    fields = upserted({"id": 1, "a": value}).fields
    assert fields == {"a": value}
    assert orjson.loads(orjson.dumps(fields)) == fields


def test_sizes() -> None:
    config = SourceConfig.model_validate({"max_field_size": "10B", "max_record_size": "20B"})
    assert len(upserted({"id": 1, "a": "x" * 10, "b": ["x" * 5, "y" * 5]}, config).fields) == 2
    for value in ("x" * 11, "é" * 6, ["x" * 6, "y" * 5]):
        bad = refused({"id": 1, "a": value}, config)
        assert bad.reason == BadReason.FIELD_TOO_LARGE
        assert "max_field_size is 10" in bad.detail
    bad = refused({"id": 1}, config, raw=b"x" * 21)
    assert bad.reason == BadReason.RECORD_TOO_LARGE


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (True, BadReason.WRONG_TYPE),
        ([1], BadReason.WRONG_TYPE),
        (2**64, BadReason.WRONG_TYPE),
        (math.nan, BadReason.NOT_FINITE),
        ("\ud800", BadReason.INVALID_UTF8),
        ("9" * (MAX_KEY_BYTES + 1), BadReason.FIELD_TOO_LARGE),
    ],
)
def test_unusable_versions(version: object, reason: BadReason) -> None:
    assert refused({"id": 1, "rev": version}, VERSIONED).reason == reason


def test_empty_version_is_none() -> None:
    assert upserted({"id": 1, "rev": ""}, VERSIONED).version is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (1, 2),
        (1.5, 2),
        ("9", "10"),
        ("9", 10),
        (2**60, 2**60 + 1),
        (2.0**53, "9007199254740993"),
        ("1.5", "1.25e1"),
        ("2024-01-09", "2024-01-10"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00.5Z"),
        ("2024-01-01T10:00:00.0000001Z", "2024-01-01T10:00:00.0000002Z"),
        ("2024-01-01T10:00:00+02:00", "2024-01-01T09:00:00Z"),
        ("2024-01-01", "2024-01-01T00:00:01"),
        ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
        ("a", "b"),
        ("v1", "v2"),
    ],
)
def test_order_of_versions(older: int | float | str, newer: int | float | str) -> None:
    assert compare_versions(older, newer) == -1
    assert compare_versions(newer, older) == 1
    assert compare_versions(newer, newer) == 0


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, "1.0"), ("2024-01-01T10:00:00Z", "2024-01-01T12:00:00+02:00"), (None, 5), ("x", None)],
)
def test_versions_neither_older_nor_newer(a: Any, b: Any) -> None:
    assert compare_versions(a, b) == compare_versions(b, a) == 0


def test_versions_of_different_kinds_never_go_round_in_a_circle() -> None:
    versions: list[int | float | str] = [9, "10", "1e3", "2024", "20240105", "2024-01-02"]
    versions += ["2024-01-02T00:00:01Z", "1a", "v1", "z"]  # oldest first
    for older, newer in itertools.combinations(versions, 2):
        assert compare_versions(older, newer) == -1
        assert compare_versions(newer, older) == 1


def test_content_hash_is_of_the_content_only() -> None:
    a = content_hash({"name": "Ann", "age": 1, "x": None})
    assert len(a) == 16
    assert a == content_hash({"age": 1, "name": "Ann"})
    assert a != content_hash({"age": "1", "name": "Ann"})
    assert a != content_hash({"age": 1, "name": "Ann", "x": ""})
    assert a.hex() == content_hash({"name": "Ann", "age": 1}).hex()


def test_canonical_json() -> None:
    assert (
        canonical_json({"b": None, "é": [None, 1], "a": "x"}) == '{"a":"x","é":[null,1]}'.encode()
    )
