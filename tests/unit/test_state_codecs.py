"""Row codecs and keys: golden bytes, round trips, and strictness about every damaged length."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustering.errors import DataError, StoreError
from clustering.types import RecordKey
from state import codecs, keys
from state.codecs import (
    Counters,
    EntityRow,
    IndexLogRow,
    NodeRow,
    NodeTable,
    OutboxRow,
    Position,
    RecordRow,
    Settings,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "state_codecs.json").read_text())

HASH = bytes(range(16))
RECORD = RecordRow(RecordKey("crm", "é/1?x"), 7, 2**40, HASH, b'{"name":"Ann"}', "v2")
RETIRED = EntityRow("e1", -1, 9, 0, 5, 0, ("e2", "e3"))

# name: (key, value, decode(key, value), row)
ROWS: dict[str, tuple[bytes, bytes, Callable[[bytes, bytes], Any], Any]] = {
    "record": (
        keys.record_key(RECORD.key),
        codecs.encode_record(RECORD),
        codecs.decode_record,
        RECORD,
    ),
    "record_integer_stamp": (
        keys.record_key(RECORD.key),
        codecs.encode_record(RECORD._replace(stamp=-(2**70), fields=b"")),
        codecs.decode_record,
        RECORD._replace(stamp=-(2**70), fields=b""),
    ),
    "record_float_stamp": (
        keys.record_key(RECORD.key),
        codecs.encode_record(RECORD._replace(stamp=1.0)),
        codecs.decode_record,
        RECORD._replace(stamp=1.0),
    ),
    "record_no_stamp": (
        keys.record_key(RECORD.key),
        codecs.encode_record(RECORD._replace(stamp=None)),
        codecs.decode_record,
        RECORD._replace(stamp=None),
    ),
    "node": (
        keys.node_key(258),
        codecs.encode_node(NodeRow(-1, 3, 2**31 - 1)),
        lambda key, value: codecs.decode_node(int.from_bytes(key, "big"), value),
        NodeRow(-1, 3, 2**31 - 1),
    ),
    "entity": (
        keys.text_key("e1"),
        codecs.encode_entity(EntityRow("e1", 12, 3, 2, 5, 4)),
        codecs.decode_entity,
        EntityRow("e1", 12, 3, 2, 5, 4),
    ),
    "entity_retired": (
        keys.text_key("e1"),
        codecs.encode_entity(RETIRED),
        codecs.decode_entity,
        RETIRED,
    ),
    "position": (
        keys.text_key("crm"),
        codecs.encode_position(Position("crm", 12, b'{"offset":99}')),
        codecs.decode_position,
        Position("crm", 12, b'{"offset":99}'),
    ),
    "outbox": (
        keys.sequence_key(3),
        codecs.encode_outbox(OutboxRow(3, "assignments", b"\x00k", b'{"e":1}')),
        codecs.decode_outbox,
        OutboxRow(3, "assignments", b"\x00k", b'{"e":1}'),
    ),
    "outbox_tombstone": (
        keys.sequence_key(4),
        codecs.encode_outbox(OutboxRow(4, "assignments", b"k", b"")),
        codecs.decode_outbox,
        OutboxRow(4, "assignments", b"k", b""),
    ),
    "counters": (
        keys.COUNTERS_KEY,
        codecs.encode_counters(Counters(1, 2, 3, 4, 5, 6)),
        lambda _, value: codecs.decode_counters(value),
        Counters(1, 2, 3, 4, 5, 6),
    ),
    "settings": (
        keys.SETTINGS_KEY,
        codecs.encode_settings(Settings("ab12", b"{}")),
        lambda _, value: codecs.decode_settings(value),
        Settings("ab12", b"{}"),
    ),
    "model": (
        keys.sequence_key(2),
        codecs.encode_model(b"\x01\x02\x03"),
        lambda key, value: codecs.decode_model(keys.parse_sequence_key(key), value),
        b"\x01\x02\x03",
    ),
    "format": (
        keys.FORMAT_KEY,
        codecs.encode_format(1),
        lambda _, value: codecs.decode_format(value),
        1,
    ),
}
INDEX_ADD = IndexLogRow(5, codecs.ADD, 7, np.array([0.6, -0.8], np.float32))
INDEX_REMOVE = IndexLogRow(6, codecs.REMOVE, 7, np.empty(0, np.float32))


def same_index_row(a: IndexLogRow, b: IndexLogRow) -> bool:
    return a[:3] == b[:3] and np.array_equal(a.vector, b.vector)


@pytest.mark.parametrize("name", ROWS)
def test_bytes_are_golden_and_decode_to_the_row(name: str) -> None:
    key, value, decode, row = ROWS[name]
    assert {"key": key.hex(), "value": value.hex()} == GOLDEN[name]
    decoded = decode(key, value)
    assert decoded == row
    if isinstance(row, RecordRow):
        assert type(decoded.stamp) is type(row.stamp)


def test_index_log_bytes_are_golden_and_decode_to_the_row() -> None:
    for name, row in (("index_add", INDEX_ADD), ("index_remove", INDEX_REMOVE)):
        key, value = keys.sequence_key(row.sequence), codecs.encode_index_log(row)
        assert {"key": key.hex(), "value": value.hex()} == GOLDEN[name]
        decoded = codecs.decode_index_log(key, value)
        assert same_index_row(decoded, row)
        assert decoded.vector.dtype == np.float32


def test_there_is_no_golden_row_without_a_test() -> None:
    assert GOLDEN.keys() == ROWS.keys() | {"index_add", "index_remove"}


@pytest.mark.parametrize("name", ROWS)
def test_an_unknown_row_version_is_refused(name: str) -> None:
    key, value, decode, _ = ROWS[name]
    with pytest.raises(StoreError):
        decode(key, b"\x02" + value[1:])


# Rows that end in free bytes cannot know how long those are; all lengths before them are checked.
FREE_TAIL = {
    "record": 14, "record_integer_stamp": 0, "record_float_stamp": 14, "record_no_stamp": 14,
    "position": 13, "outbox": 7, "outbox_tombstone": 0, "settings": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_short_values_are_refused(name: str) -> None:
    key, value, decode, _ = ROWS[name]
    for length in range(len(value) - FREE_TAIL.get(name, 0)):
        with pytest.raises(StoreError):
            decode(key, value[:length])


@pytest.mark.parametrize("name", sorted(ROWS.keys() - FREE_TAIL.keys()))
def test_bytes_left_over_are_refused(name: str) -> None:
    key, value, decode, _ = ROWS[name]
    with pytest.raises(StoreError):
        decode(key, value + b"\x00")


def test_malformed_index_rows_are_refused() -> None:
    key, value = keys.sequence_key(5), codecs.encode_index_log(INDEX_ADD)
    for bad in (value[:-1], value[:6], value[:1] + b"\x02" + value[2:], value[:1] + b"\x09"):
        with pytest.raises(StoreError, match="index log row 5"):
            codecs.decode_index_log(key, bad)


def test_errors_name_the_row() -> None:
    with pytest.raises(StoreError, match=r"record crm:é/1\?x .* restore"):
        codecs.decode_record(keys.record_key(RECORD.key), b"\x01")
    with pytest.raises(StoreError, match=r"entity e1 .*left over"):
        codecs.decode_entity(b"e1", codecs.encode_entity(RETIRED) + b"x")
    with pytest.raises(StoreError, match=r"model 2 .*checksum"):
        codecs.decode_model(2, codecs.encode_model(b"abc")[:-1] + b"d")


def test_rows_that_cannot_be_are_not_encoded() -> None:
    with pytest.raises(ValueError, match="16"):
        codecs.encode_record(RECORD._replace(content_hash=b"short"))
    with pytest.raises(ValueError, match="live"):
        codecs.encode_entity(EntityRow("e1", 3, 1, 1, 0, 0, ("e2",)))
    with pytest.raises(ValueError, match="index log"):
        codecs.encode_index_log(INDEX_REMOVE._replace(op=codecs.ADD))


def test_node_tables_equal_single_rows() -> None:
    table = NodeTable(
        np.array([0, 1, 300], np.int32),
        np.array([300, 300, -1], np.int32),
        np.array([-1, -1, 0], np.int32),
        np.array([-1, -1, 1], np.int32),
    )
    rows = codecs.encode_nodes(table)
    single = [NodeRow(*map(int, row)) for row in zip(*table[1:], strict=True)]
    assert rows == [
        (keys.node_key(int(node)), codecs.encode_node(row))
        for node, row in zip(table.ids, single, strict=True)
    ]
    decoded = codecs.decode_nodes([key for key, _ in rows], [value for _, value in rows])
    for column, expected in zip(decoded, table, strict=True):
        assert column.dtype == np.int32
        assert np.array_equal(column, expected)
    with pytest.raises(StoreError, match="0000012c"):
        codecs.decode_nodes([keys.node_key(300)], [rows[2][1][:-1]])
    assert [len(column) for column in codecs.decode_nodes([], [])] == [0, 0, 0, 0]


texts = st.text(max_size=8)


@given(st.lists(st.tuples(texts, texts), min_size=2, max_size=2, unique=True))
@settings(max_examples=100, deadline=None)
def test_record_keys_are_distinct_and_reversible(pair: list[tuple[str, str]]) -> None:
    a, b = (RecordKey(*parts) for parts in pair)
    assert keys.parse_record_key(keys.record_key(a)) == a
    assert keys.record_key(a) != keys.record_key(b)
    prefix = keys.source_prefix(a.source)
    end = keys.prefix_end(prefix)
    assert end is not None
    assert (prefix <= keys.record_key(b) < end) == (a.source == b.source)


def test_keys_order_as_numbers() -> None:
    numbers = [0, 1, 255, 256, 2**31 - 1]
    assert sorted(map(keys.node_key, numbers)) == [keys.node_key(n) for n in numbers]
    numbers.append(2**62)
    assert sorted(map(keys.sequence_key, numbers)) == [keys.sequence_key(n) for n in numbers]


def test_keys_refuse_what_they_cannot_hold() -> None:
    with pytest.raises(DataError, match="surrogates"):
        keys.text_key("\ud800")
    with pytest.raises(DataError, match="70000"):
        keys.text_key("x" * 70_000)
    for bad in (b"", b"\x00", b"\x00\x05ab", b"\x00\x01a\xff"):
        with pytest.raises(StoreError):
            keys.parse_record_key(bad)
    with pytest.raises(StoreError):
        keys.parse_sequence_key(b"\x00")


def test_prefix_end() -> None:
    assert keys.prefix_end(b"a") == b"b"
    assert keys.prefix_end(b"a\xff") == b"b"
    assert keys.prefix_end(b"\xff\xff") is None
    assert keys.prefix_end(b"") is None
