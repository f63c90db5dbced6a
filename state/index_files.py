"""Snapshots of the neighbour index, as files that know when they are damaged.

    index-<sequence, 20 digits>.bin:
    magic 8 | version u32 | dimension u32 | count u64 | sequence u64 | payload length u64
    | xxh3_128 of all before and the payload 16 | payload

Integers are big-endian. The payload is the index library's own and opaque here. `sequence` is the
index log's next number when the snapshot was taken: rows from there on are to be replayed on it. An
index can always be rebuilt from the store, so a caller meets a StoreError from here by rebuilding.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import xxhash

from clustering.errors import StoreError
from state.files import write_atomically

_MAGIC = b"graftdIX"
_VERSION = 1
_HEAD = struct.Struct(">8sIIQQQ")
_DIGEST_BYTES = 16
_KEPT = 2


@dataclass(frozen=True)
class IndexSnapshot:
    """A saved neighbour index."""

    sequence: int
    """index log rows below this are in it"""
    dimension: int
    count: int
    """labels in it"""
    payload: bytes


def save_index(directory: Path, snapshot: IndexSnapshot) -> Path:
    """Write a snapshot atomically and remove all but the newest two; gives its path."""
    path = directory / f"index-{snapshot.sequence:020d}.bin"
    head = _HEAD.pack(
        _MAGIC,
        _VERSION,
        snapshot.dimension,
        snapshot.count,
        snapshot.sequence,
        len(snapshot.payload),
    )
    try:
        write_atomically(path, head, _digest(head, snapshot.payload), snapshot.payload)
        for old in list_indexes(directory)[_KEPT:]:
            old.unlink()
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}; make room or permit it"
        ) from error
    return path


def list_indexes(directory: Path) -> list[Path]:
    """The snapshots in a directory, newest first."""
    return sorted(directory.glob("index-*.bin"), reverse=True)


def load_index(path: Path) -> IndexSnapshot:
    """Read a snapshot back. Raises StoreError when anything about it does not agree."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}; rebuild the index") from error
    start = _HEAD.size + _DIGEST_BYTES
    if len(data) < start:
        raise _damaged(path, f"it has {len(data)} bytes, less than a header")
    magic, version, dimension, count, sequence, length = _HEAD.unpack_from(data)
    payload = data[start:]
    if magic != _MAGIC or version != _VERSION:
        raise _damaged(path, f"it begins with {magic!r} version {version}")
    if len(payload) != length:
        raise _damaged(path, f"its payload has {len(payload)} bytes instead of {length}")
    if _digest(data[: _HEAD.size], payload) != data[_HEAD.size : start]:
        raise _damaged(path, "its checksum differs")
    if path.stem != f"index-{sequence:020d}":
        raise _damaged(path, f"its name is not that of sequence {sequence}")
    return IndexSnapshot(sequence, dimension, count, payload)


def _digest(head: bytes, payload: bytes) -> bytes:
    hashed = xxhash.xxh3_128(head)
    hashed.update(payload)
    return hashed.digest()


def _damaged(path: Path, why: str) -> StoreError:
    return StoreError(
        f"{path} is damaged: {why}; delete it, and the index is rebuilt from the store"
    )
