"""Row values: bytes to tuples and back. Pure functions, no files.

Every value begins with a version byte (now 1). Integers are big-endian and signed unless marked u.
Decoding is strict: an unknown version, short bytes or bytes left over raise StoreError.

    RecordRow   ver u8 | leaf i32 | arrival i64 | content hash 16
                | stamp kind u8 | stamp length u16 | stamp | fields (JSON, to the end)
    NodeRow     ver u8 | parent i32 | left i32 | right i32
    EntityRow   ver u8 | root i32 | size i32 | version i64 | oldest i64 | created i64
                | successors u16 | each: length u16 | id
    Position    ver u8 | consumed i64 | position (JSON, to the end)
    OutboxRow   ver u8 | topic length u16 | key length u32 | topic | key | value (to the end)
    IndexLogRow ver u8 | op u8 | label i32 | vector (float32 little-endian, to the end)
    Counters    ver u8 | entity i64 | arrival i64 | outbox i64 | index log i64 | processed i64
                | model i64
    Settings    ver u8 | fingerprint length u16 | fingerprint | schema (JSON, to the end)
    model       ver u8 | xxh3_64 of the blob u64 | blob
    deletion    ver u8 | stamp kind u8 | stamp (to the end)
    published   ver u8 | each topic's last published sequence (JSON, to the end)
    format      ver u8 | format u32

A stamp is the version that a record's sender gave it, with its type kept: kind 0 none, 1 integer
(decimal digits), 2 float (IEEE 754 double), 3 text.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import orjson
import xxhash
from numpy.typing import NDArray

from clustering.errors import StoreError
from clustering.types import RecordKey
from state import keys

VERSION = 1
NONE = -1
ADD = 1
REMOVE = 2

Stamp = int | float | str | None
_NO_STAMP, _INTEGER, _FLOAT, _TEXT = range(4)


class RecordRow(NamedTuple):
    """One live record."""

    key: RecordKey
    leaf: int
    """its leaf in the tree"""
    arrival: int
    """number of the record's first arrival; kept by upserts"""
    content_hash: bytes
    """16 bytes; equal content has an equal hash"""
    fields: bytes
    """JSON of the fields exactly as received"""
    stamp: Stamp = None
    """the sender's version of the record, None when it gave none"""


class NodeRow(NamedTuple):
    """One tree node; -1 is none, so a leaf has left = right = -1 and a top has parent = -1."""

    parent: int
    left: int
    right: int


class NodeTable(NamedTuple):
    """All nodes as columns, int32[n] each, ascending by id."""

    ids: NDArray[np.int32]
    parent: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]


class EntityRow(NamedTuple):
    """One entity, live or retired (root = -1); retired rows stay for ever."""

    id: str
    root: int
    version: int
    size: int
    """records in it"""
    oldest: int
    """smallest arrival of its records"""
    created: int
    """sequence number at which it came to be"""
    into: tuple[str, ...] = ()
    """a retired entity's successors"""

    @property
    def retired(self) -> bool:
        return self.root == NONE


class Position(NamedTuple):
    """How far one source has been consumed."""

    source: str
    consumed: int
    """records consumed from it so far"""
    position: bytes
    """JSON that only the source understands"""


class OutboxRow(NamedTuple):
    """A message to publish; an empty value is a tombstone."""

    sequence: int
    topic: str
    key: bytes
    value: bytes


class IndexLogRow(NamedTuple):
    """A change of the neighbour index since its last snapshot."""

    sequence: int
    op: int
    """ADD or REMOVE"""
    label: int
    vector: NDArray[np.float32]
    """float32[d]; empty for REMOVE"""


class Counters(NamedTuple):
    """The next number of each kind to give out; `model` is the one in use, -1 for none."""

    entity: int = 0
    arrival: int = 0
    outbox: int = 0
    index_log: int = 0
    processed: int = 0
    """records processed"""
    model: int = NONE


class Settings(NamedTuple):
    """What the stored state was made with; a change of it means the state must be rebuilt."""

    fingerprint: str
    schema: bytes
    """JSON"""


_RECORD = struct.Struct(">Biq16sBH")
_NODE = struct.Struct(">Biii")
_ENTITY = struct.Struct(">BiiqqqH")
_POSITION = struct.Struct(">Bq")
_OUTBOX = struct.Struct(">BHI")
_INDEX_LOG = struct.Struct(">BBi")
_COUNTERS = struct.Struct(">B6q")
_SETTINGS = struct.Struct(">BH")
_MODEL = struct.Struct(">BQ")
_FORMAT = struct.Struct(">BI")
_LENGTH = struct.Struct(">H")
_DOUBLE = struct.Struct(">d")
_NODE_COLUMNS = np.dtype([("ver", "u1"), ("parent", ">i4"), ("left", ">i4"), ("right", ">i4")])
_VECTOR = np.dtype("<f4")


def _damaged(what: str, value: bytes, why: str) -> StoreError:
    head = value[:16].hex() + ("…" if len(value) > 16 else "")
    return StoreError(
        f"{what} is damaged: {why} ({len(value)} bytes, {head}); "
        "restore the newest checkpoint into an empty data directory"
    )


def _head(layout: struct.Struct, what: str, value: bytes, exact: bool = False) -> tuple[int, ...]:
    """The fixed part of a value, without its version byte; everything about its length checked."""
    if len(value) < layout.size or (exact and len(value) > layout.size):
        bound = "exactly" if exact else "at least"
        raise _damaged(what, value, f"{bound} {layout.size} bytes are needed")
    if value[0] != VERSION:
        raise _damaged(what, value, f"its row version {value[0]} is unknown")
    return layout.unpack_from(value)[1:]


def _text(what: str, value: bytes, start: int, end: int) -> str:
    if end > len(value):
        raise _damaged(what, value, "a text runs past its end")
    try:
        return value[start:end].decode()
    except UnicodeDecodeError as error:
        raise _damaged(what, value, "a text is not UTF-8") from error


def _encode_stamp(stamp: Stamp) -> tuple[int, bytes]:
    if stamp is None:
        return _NO_STAMP, b""
    if isinstance(stamp, str):
        return _TEXT, keys.text_key(stamp)
    if isinstance(stamp, float):
        return _FLOAT, _DOUBLE.pack(stamp)
    return _INTEGER, b"%d" % stamp


def _decode_stamp(what: str, value: bytes, kind: int, start: int, end: int) -> Stamp:
    if kind == _NO_STAMP and start == end:
        return None
    if kind == _FLOAT and end - start == _DOUBLE.size:
        number: float = _DOUBLE.unpack_from(value, start)[0]
        return number
    text = _text(what, value, start, end)
    if kind == _TEXT:
        return text
    if kind == _INTEGER and text.removeprefix("-").isdecimal():
        return int(text)
    raise _damaged(what, value, "its stamp is malformed")


def encode_record(row: RecordRow) -> bytes:
    """Value of a record row; content_hash must be 16 bytes."""
    if len(row.content_hash) != 16:
        raise ValueError(f"content hash of {row.key} has {len(row.content_hash)} bytes, not 16")
    kind, stamp = _encode_stamp(row.stamp)
    head = _RECORD.pack(VERSION, row.leaf, row.arrival, row.content_hash, kind, len(stamp))
    return head + stamp + row.fields


def decode_record(key: bytes, value: bytes) -> RecordRow:
    """Inverse of record_key and encode_record; raises StoreError."""
    name = keys.parse_record_key(key)
    try:
        version, leaf, arrival, content_hash, kind, length = _RECORD.unpack_from(value)
    except struct.error as error:
        raise _damaged(f"record {name}", value, f"{_RECORD.size} bytes are needed") from error
    end = _RECORD.size + length
    if version != VERSION or end > len(value):
        raise _damaged(f"record {name}", value, "its version or the length of its stamp is wrong")
    stamp = None
    if kind or length:
        stamp = _decode_stamp(f"record {name}", value, kind, _RECORD.size, end)
    return RecordRow(name, leaf, arrival, content_hash, value[end:], stamp)


def encode_deletion(stamp: Stamp) -> bytes:
    """Value that notes the version at which a record was deleted."""
    kind, data = _encode_stamp(stamp)
    return bytes([VERSION, kind]) + data


def decode_deletion(key: bytes, value: bytes) -> tuple[RecordKey, Stamp]:
    """Inverse of record_key and encode_deletion; raises StoreError."""
    name = keys.parse_record_key(key)
    what = f"deletion of record {name}"
    if len(value) < 2 or value[0] != VERSION:
        raise _damaged(what, value, "its version is wrong or it is too short")
    return name, _decode_stamp(what, value, value[1], 2, len(value))


def encode_published(last: Mapping[str, int]) -> bytes:
    """Value that notes how far each topic was published."""
    return bytes([VERSION]) + orjson.dumps(dict(last), option=orjson.OPT_SORT_KEYS)


def decode_published(value: bytes) -> dict[str, int]:
    """Inverse of encode_published; raises StoreError."""
    try:
        last = orjson.loads(value[1:])
    except orjson.JSONDecodeError:
        last = None
    if value[:1] != bytes([VERSION]) or not isinstance(last, dict):
        raise _damaged("what was published", value, "its version or its content is wrong")
    return last


def encode_node(row: NodeRow) -> bytes:
    """Value of one node row."""
    return _NODE.pack(VERSION, *row)


def decode_node(node: int, value: bytes) -> NodeRow:
    """Inverse of encode_node; raises StoreError."""
    return NodeRow(*_head(_NODE, f"node {node}", value, exact=True))


def encode_nodes(table: NodeTable) -> list[tuple[bytes, bytes]]:
    """Key and value of every row of a table; equal to node_key and encode_node, many at a time."""
    rows = np.empty(len(table.ids), _NODE_COLUMNS)
    rows["ver"] = VERSION
    rows["parent"], rows["left"], rows["right"] = table.parent, table.left, table.right
    names, values = table.ids.astype(">u4").tobytes(), rows.tobytes()
    width = _NODE_COLUMNS.itemsize
    return [
        (names[4 * i : 4 * i + 4], values[width * i : width * i + width]) for i in range(len(rows))
    ]


def decode_nodes(names: list[bytes], values: list[bytes]) -> NodeTable:
    """Inverse of encode_nodes; raises StoreError naming the first damaged row."""
    for name, value in zip(names, values, strict=True):
        if len(name) != 4 or len(value) != _NODE.size or value[0] != VERSION:
            raise _damaged(f"node with key {name.hex()}", value, "its length or version is wrong")
    rows = np.frombuffer(b"".join(values), _NODE_COLUMNS)
    return NodeTable(
        np.frombuffer(b"".join(names), ">u4").astype(np.int32),
        *(rows[column].astype(np.int32) for column in ("parent", "left", "right")),
    )


def encode_entity(row: EntityRow) -> bytes:
    """Value of an entity row. Only a retired entity may have successors."""
    if row.into and not row.retired:
        raise ValueError(f"entity {row.id} is live and cannot have successors")
    head = _ENTITY.pack(
        VERSION, row.root, row.size, row.version, row.oldest, row.created, len(row.into)
    )
    names = [keys.text_key(name) for name in row.into]
    return head + b"".join(_LENGTH.pack(len(name)) + name for name in names)


def decode_entity(key: bytes, value: bytes) -> EntityRow:
    """Inverse of text_key and encode_entity; raises StoreError."""
    name = keys.parse_text_key(key)
    what = f"entity {name}"
    root, size, version, oldest, created, successors = _head(_ENTITY, what, value)
    into, at = [], _ENTITY.size
    for _ in range(successors):
        end = at + 2 + int.from_bytes(value[at : at + 2], "big")
        into.append(_text(what, value, at + 2, end))
        at = end
    if at != len(value):
        raise _damaged(what, value, f"{len(value) - at} bytes are left over")
    return EntityRow(name, root, version, size, oldest, created, tuple(into))


def encode_position(row: Position) -> bytes:
    """Value of a source's position."""
    return _POSITION.pack(VERSION, row.consumed) + row.position


def decode_position(key: bytes, value: bytes) -> Position:
    """Inverse of text_key and encode_position; raises StoreError."""
    source = keys.parse_text_key(key)
    (consumed,) = _head(_POSITION, f"position of {source}", value)
    return Position(source, consumed, value[_POSITION.size :])


def encode_outbox(row: OutboxRow) -> bytes:
    """Value of an outbox row."""
    topic = keys.text_key(row.topic)
    return _OUTBOX.pack(VERSION, len(topic), len(row.key)) + topic + row.key + row.value


def decode_outbox(key: bytes, value: bytes) -> OutboxRow:
    """Inverse of sequence_key and encode_outbox; raises StoreError."""
    sequence = keys.parse_sequence_key(key)
    what = f"outbox message {sequence}"
    topic_length, key_length = _head(_OUTBOX, what, value)
    key_at = _OUTBOX.size + topic_length
    value_at = key_at + key_length
    if value_at > len(value):
        raise _damaged(what, value, "its topic or key runs past its end")
    topic = _text(what, value, _OUTBOX.size, key_at)
    return OutboxRow(sequence, topic, value[key_at:value_at], value[value_at:])


def encode_index_log(row: IndexLogRow) -> bytes:
    """Value of an index log row."""
    if row.op not in (ADD, REMOVE) or (row.op == ADD) != (len(row.vector) > 0):
        raise ValueError(f"index log op {row.op} with a vector of {len(row.vector)} numbers")
    return _INDEX_LOG.pack(VERSION, row.op, row.label) + row.vector.astype(_VECTOR).tobytes()


def decode_index_log(key: bytes, value: bytes) -> IndexLogRow:
    """Inverse of sequence_key and encode_index_log; raises StoreError."""
    sequence = keys.parse_sequence_key(key)
    what = f"index log row {sequence}"
    op, label = _head(_INDEX_LOG, what, value)
    raw = value[_INDEX_LOG.size :]
    if op not in (ADD, REMOVE) or (op == ADD) != bool(raw) or len(raw) % _VECTOR.itemsize:
        raise _damaged(what, value, "its op or vector is malformed")
    return IndexLogRow(sequence, op, label, np.frombuffer(raw, _VECTOR).astype(np.float32))


def encode_counters(row: Counters) -> bytes:
    """Value of the counters."""
    return _COUNTERS.pack(VERSION, *row)


def decode_counters(value: bytes) -> Counters:
    """Inverse of encode_counters; raises StoreError."""
    return Counters(*_head(_COUNTERS, "the counters row", value, exact=True))


def encode_settings(row: Settings) -> bytes:
    """Value of the settings."""
    fingerprint = keys.text_key(row.fingerprint)
    return _SETTINGS.pack(VERSION, len(fingerprint)) + fingerprint + row.schema


def decode_settings(value: bytes) -> Settings:
    """Inverse of encode_settings; raises StoreError."""
    (length,) = _head(_SETTINGS, "the settings row", value)
    end = _SETTINGS.size + length
    return Settings(_text("the settings row", value, _SETTINGS.size, end), value[end:])


def encode_model(blob: bytes) -> bytes:
    """Value of a model: the blob, opaque here, with its checksum."""
    return _MODEL.pack(VERSION, xxhash.xxh3_64_intdigest(blob)) + blob


def decode_model(version: int, value: bytes) -> bytes:
    """Inverse of encode_model; raises StoreError when the checksum differs."""
    what = f"model {version}"
    (checksum,) = _head(_MODEL, what, value)
    blob = value[_MODEL.size :]
    if xxhash.xxh3_64_intdigest(blob) != checksum:
        raise _damaged(what, value, "its checksum differs")
    return blob


def encode_format(version: int) -> bytes:
    """Value of the format row."""
    return _FORMAT.pack(VERSION, version)


def decode_format(value: bytes) -> int:
    """Inverse of encode_format; raises StoreError."""
    return _head(_FORMAT, "the format row", value, exact=True)[0]
