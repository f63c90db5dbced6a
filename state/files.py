"""Writing files so that a crash leaves the old or the new one, and digests of files."""

from __future__ import annotations

import os
from pathlib import Path

import xxhash

_CHUNK = 1 << 20


def write_atomically(path: Path, *parts: bytes) -> None:
    """Write the parts one after another to a file that appears whole, on disk, at `path`."""
    unfinished = path.with_name(path.name + ".new")
    with open(unfinished, "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Put a directory's entries on disk."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def digest(path: Path) -> str:
    """xxh3_128 of a file's bytes, hexadecimal."""
    hashed = xxhash.xxh3_128()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            hashed.update(chunk)
    return hashed.hexdigest()
