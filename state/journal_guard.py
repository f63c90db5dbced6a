"""Notices when a store's journals lost something that had been committed.

RocksDB checks its table files block by block, but its append-only journals (the write-ahead logs
and the MANIFEST) have a weak spot: a file cut short at a record's end, or a damaged length that
makes a record look cut short, reads like a clean end, and the store silently opens as it once was,
or with a hole in the middle; and some damaged bytes of a MANIFEST send RocksDB (9.8) into an
endless loop. So after each commit this guard notes the store's sequence number and, of every live
journal, its size and digest; on opening, each must still begin with those bytes.

The note is one page, rewritten in place by a single write, so a killed process leaves the old or
the new one. It is not synced: after a power cut it may be older than the store (harmless, journals
only grow) but with synced commits not newer. A store without a note is taken as it is: that is how
an operator accepts a store that the guard refuses.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import orjson
import xxhash

from clustering.errors import StoreError
from state.files import write_atomically

NAME = "GUARD"
_PAGE = 4096
_MOST_LOGS = 40  # what fits the page; RocksDB keeps one or two
_CHUNK = 1 << 20


class Journal(NamedTuple):
    """The first `size` bytes of a file, by their xxh3_128."""

    name: str
    size: int
    digest: str


class Note(NamedTuple):
    """What was committed: RocksDB's sequence number and its live journals."""

    sequence: int
    manifest: Journal
    logs: list[Journal]


class JournalGuard:
    """Keeps the note of one open store up to date: record() after each commit, then close()."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._digests: dict[str, tuple[int, xxhash.xxh3_128]] = {}
        self._page = -1

    def record(self, sequence: int, durable: bool = False) -> None:
        """Note that everything up to `sequence` is committed; durable syncs the note itself."""
        logs = sorted(name for name in os.listdir(self._directory) if name.endswith(".log"))
        names = [current_manifest(self._directory), *logs[-_MOST_LOGS:]]
        self._digests = {name: self._digest(name) for name in names}
        journals = [
            (name, size, hashed.hexdigest()) for name, (size, hashed) in self._digests.items()
        ]
        body = orjson.dumps([sequence, *journals])
        text = b"%s %s\n" % (xxhash.xxh3_64_hexdigest(body).encode(), body)
        self._write(text.ljust(_PAGE))
        if durable:
            os.fsync(self._page)

    def close(self) -> None:
        """Close the note's file."""
        if self._page >= 0:
            os.close(self._page)

    def _write(self, page: bytes) -> None:
        """Rewrite the page; the first one appears whole, as an empty one would look damaged."""
        if self._page < 0:
            path = self._directory / NAME
            if not path.exists():
                write_atomically(path, page)
            self._page = os.open(path, os.O_RDWR)
        os.pwrite(self._page, page, 0)

    def _digest(self, name: str) -> tuple[int, xxhash.xxh3_128]:
        """Size and digest of a journal as it is now, reading only what it grew by."""
        size, digest = self._digests.get(name) or (0, xxhash.xxh3_128())
        try:
            with open(self._directory / name, "rb", buffering=0) as file:
                file.seek(size)
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
        except FileNotFoundError:
            pass  # a log that RocksDB has flushed and removed since it was listed
        return size, digest


def current_manifest(directory: Path) -> str:
    """Name of the MANIFEST in use. Raises StoreError when the store does not say."""
    try:
        return (directory / "CURRENT").read_text(errors="replace").strip()
    except FileNotFoundError as error:
        raise lost(directory, "its file CURRENT is missing") from error


def read_note(directory: Path) -> Note | None:
    """The note of the store in `directory`, None when it has none. Raises StoreError if damaged."""
    try:
        page = (directory / NAME).read_bytes()
    except FileNotFoundError:
        return None
    checksum, _, body = page.rstrip().partition(b" ")
    if len(page) != _PAGE or xxhash.xxh3_64_hexdigest(body).encode() != checksum:
        raise StoreError(
            f"{directory / NAME} is damaged, so nothing says if the store still holds all that "
            "was committed; restore the newest checkpoint, or delete this file to accept the "
            "store as it is"
        )
    sequence, manifest, *logs = orjson.loads(body)
    return Note(sequence, Journal(*manifest), [Journal(*log) for log in logs])


def check_journals(directory: Path, note: Note) -> None:
    """Raise StoreError unless the noted journals still begin with what was noted.

    An older MANIFEST may be gone, when CURRENT names a newer one, and so may a log, once it is
    flushed; whether one that was still needed is missing, check_sequence tells.
    """
    current = current_manifest(directory)
    if current < note.manifest.name:
        raise lost(directory, f"CURRENT names {current!r} instead of {note.manifest.name}")
    journals = [note.manifest] if current == note.manifest.name else []
    for journal in [*journals, *note.logs]:
        try:
            same = _begins_as_noted(directory, journal)
        except FileNotFoundError:
            same = journal in note.logs
        if not same:
            raise lost(directory, f"{journal.name} no longer begins with its {journal.size} bytes")


def check_sequence(directory: Path, note: Note, sequence: int) -> None:
    """Raise StoreError if the opened store is older than the note."""
    if sequence < note.sequence:
        raise lost(directory, f"it opened at write {sequence} of {note.sequence}")


def lost(directory: Path, why: str) -> StoreError:
    """The error for a store that lost committed writes."""
    return StoreError(
        f"the store at {directory} lost writes that were committed: {why}. A file was damaged, cut "
        "short or removed, or power failed with synced writes off. Restore the newest checkpoint "
        f"into an empty data directory, or delete {directory / NAME} to accept what is left"
    )


def _begins_as_noted(directory: Path, journal: Journal) -> bool:
    digest, left = xxhash.xxh3_128(), journal.size
    with open(directory / journal.name, "rb") as file:
        while left and (chunk := file.read(min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    return not left and digest.hexdigest() == journal.digest
