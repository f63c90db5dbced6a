"""Column families, key layouts and the format version: everything that names a row, in one place.

All integers in keys are unsigned big-endian, so that the byte order of keys is their numeric order.

    family      key                                         value (see codecs)
    meta        fixed ASCII names, below                    format, Counters, Settings
    records     u16 length of source | source | id          RecordRow
    nodes       u32 node id                                 parent, left, right
    entities    entity id, UTF-8                            EntityRow
    positions   source name, UTF-8                          Position
    outbox      u64 sequence                                OutboxRow
    models      u64 model version                           model bytes
    index_log   u64 sequence                                IndexLogRow

Texts are UTF-8. The length before the source makes record keys free of delimiters: ("a:b", "c")
and ("a", "b:c") never meet, and all records of one source lie together.
"""

from __future__ import annotations

import struct

from clustering.errors import DataError, StoreError
from clustering.types import RecordKey

FORMAT = 1
"""Version of everything in this module and in codecs; a store with a higher one is refused."""

META = "meta"
RECORDS = "records"
NODES = "nodes"
ENTITIES = "entities"
POSITIONS = "positions"
OUTBOX = "outbox"
MODELS = "models"
INDEX_LOG = "index_log"
DELETED = "deleted"
FAMILIES = (META, RECORDS, NODES, ENTITIES, POSITIONS, OUTBOX, MODELS, INDEX_LOG, DELETED)

FORMAT_KEY = b"format"
COUNTERS_KEY = b"counters"
SETTINGS_KEY = b"settings"
PUBLISHED_KEY = b"published"

_LENGTH = struct.Struct(">H")
_NODE = struct.Struct(">I")
_SEQUENCE = struct.Struct(">Q")
_LONGEST = 0xFFFF


def text_key(text: str) -> bytes:
    """A text as a key. Raises DataError for texts that are not Unicode or over 65,535 bytes."""
    try:
        key = text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{text!r} has surrogates: send valid Unicode") from error
    if len(key) > _LONGEST:
        raise DataError(
            f"a name of {len(key)} bytes is over {_LONGEST}: {text[:40]!r}…; shorten it"
        )
    return key


def parse_text_key(key: bytes) -> str:
    """The text of a key; raises StoreError when it is not UTF-8."""
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise StoreError(f"key {key.hex()} is not UTF-8: restore a checkpoint") from error


def source_prefix(source: str) -> bytes:
    """What the keys of all records of one source begin with."""
    name = text_key(source)
    return _LENGTH.pack(len(name)) + name


def record_key(key: RecordKey) -> bytes:
    """Key of a record. Raises DataError as text_key does."""
    return source_prefix(key.source) + text_key(key.id)


def parse_record_key(key: bytes) -> RecordKey:
    """Inverse of record_key; raises StoreError for bytes that no record has."""
    end = 2 + int.from_bytes(key[:2], "big")
    if len(key) < 2 or len(key) < end:
        raise StoreError(f"record key {key.hex()} is cut short: restore a checkpoint")
    return RecordKey(parse_text_key(key[2:end]), parse_text_key(key[end:]))


def node_key(node: int) -> bytes:
    """Key of a tree node, 0 <= node < 2**31."""
    return _NODE.pack(node)


def sequence_key(sequence: int) -> bytes:
    """Key of a numbered row (outbox, models, index_log), 0 <= sequence < 2**63."""
    return _SEQUENCE.pack(sequence)


def parse_sequence_key(key: bytes) -> int:
    """Inverse of sequence_key; raises StoreError for a wrong length."""
    if len(key) != _SEQUENCE.size:
        raise StoreError(f"sequence key {key.hex()} is not 8 bytes: restore a checkpoint")
    return int.from_bytes(key, "big")


def prefix_end(prefix: bytes) -> bytes | None:
    """The smallest key after every key with this prefix; None when there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
