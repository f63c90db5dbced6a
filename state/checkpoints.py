"""Checkpoints: a consistent copy of a data directory's state that another machine can start from.

    <checkpoint>/
      MANIFEST.json   checksum of the line below it; format, counters, positions, and every file's
                      size and digest
      db/             the store, a RocksDB checkpoint
      index/          the neighbour index snapshots

Tables and index files are hard links to the living ones (they never change), so a checkpoint is
quick and small, but to outlive the disk it must be copied to another.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import xxhash

from clustering.errors import StoreError
from state import index_files, keys
from state.data_dir import DataDir, write_format
from state.files import digest, sync_directory, write_atomically
from state.partition_reader import PartitionReader
from state.rocksdb_store import RocksDBReader, RocksDBStore

MANIFEST = "MANIFEST.json"


@dataclass(frozen=True)
class CheckpointManifest:
    """What a checkpoint holds."""

    format: int
    processed: int
    """records processed when it was taken"""
    records: int
    """live records"""
    entities: int
    """live entities"""
    positions: dict[str, int]
    """records consumed of each source"""
    files: dict[str, tuple[int, str]]
    """path within the checkpoint: size in bytes, xxh3_128"""


def create_checkpoint(store: RocksDBStore, data_dir: DataDir, dest: Path) -> CheckpointManifest:
    """Take a checkpoint of an open store to `dest`, which appears whole or not at all.

    Only step 1 needs the store to stand still; the rest reads what that step made. Every byte is
    read once for its digest. Raises StoreError if `dest` exists or cannot be written.

    1. RocksDB checkpoint. 2. Link the index snapshots. 3. Count and digest. 4. Write the manifest.
    5. Rename to `dest`.
    """
    if dest.exists():
        raise StoreError(f"{dest} exists already: choose another place for the checkpoint")
    with _unfinished(dest) as path:
        (path / "index").mkdir(parents=True)
        store.checkpoint(path / "db")
        for index in index_files.list_indexes(data_dir.index):
            _link(index, path / "index" / index.name)
        manifest = _describe(path, _digest_files(path))
        body = orjson.dumps(asdict(manifest))
        checksum = xxhash.xxh3_64_hexdigest(body).encode()
        write_atomically(path / MANIFEST, checksum, b"\n", body, b"\n")
        path.rename(dest)
        sync_directory(dest.parent)
    return manifest


def verify_checkpoint(path: Path) -> CheckpointManifest:
    """Read a checkpoint completely and give its manifest.

    Raises StoreError if a file is missing, extra, or differs from the manifest in size or digest,
    or if the store in it does not hold what the manifest says.
    """
    manifest = read_manifest(path)
    _check_files(path, manifest)
    if _describe(path, manifest.files) != manifest:
        raise _damaged(path, "its store does not hold what its manifest says")
    return manifest


def read_manifest(path: Path) -> CheckpointManifest:
    """The manifest of a checkpoint, itself checked. Raises StoreError."""
    try:
        data = (path / MANIFEST).read_bytes()
    except OSError as error:
        raise _damaged(path, f"{MANIFEST} cannot be read: {error.strerror}") from error
    checksum, _, rest = data.partition(b"\n")
    body = rest.removesuffix(b"\n")
    if len(rest) != len(body) + 1 or xxhash.xxh3_64_hexdigest(body).encode() != checksum:
        raise _damaged(path, f"{MANIFEST} does not agree with its checksum")
    fields = orjson.loads(body)
    if fields["format"] > keys.FORMAT:
        raise StoreError(f"the checkpoint {path} is of a newer graftd: upgrade graftd")
    fields["files"] = {name: (size, value) for name, (size, value) in fields["files"].items()}
    return CheckpointManifest(**fields)


def restore_checkpoint(path: Path, data_dir: DataDir) -> CheckpointManifest:
    """Make a data directory from a checkpoint; it appears whole or not at all.

    Raises StoreError if the checkpoint is damaged or the data directory is there and not empty.
    """
    root = data_dir.root
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise StoreError(f"{root} is not empty: restore into a new or an empty directory")
    manifest = verify_checkpoint(path)
    with _unfinished(root) as copy:
        shutil.copytree(path, copy)
        _check_files(copy, manifest)
        for name in manifest.files:
            with open(copy / name, "rb") as file:
                os.fsync(file.fileno())
        (copy / MANIFEST).unlink()
        for folder in (copy / "db", copy / "index"):
            sync_directory(folder)
        (copy / "out").mkdir()
        write_format(DataDir(copy))
        copy.rename(root)
        sync_directory(root.parent)
    return manifest


@contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """A free path beside `path` to build at and rename from; nothing is left there on failure."""
    building = path.with_name(f".{path.name}.unfinished")
    try:
        shutil.rmtree(building, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        yield building
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _describe(path: Path, files: dict[str, tuple[int, str]]) -> CheckpointManifest:
    """The manifest that the store in a checkpoint's folder deserves."""
    with RocksDBReader.open(path / "db") as reader:
        partition = PartitionReader(reader)
        return CheckpointManifest(
            format=keys.FORMAT,
            processed=partition.read_counters().processed,
            records=sum(1 for _ in reader.scan(keys.RECORDS)),
            entities=sum(not entity.retired for entity in partition.entities()),
            positions={name: row.consumed for name, row in partition.positions().items()},
            files=files,
        )


def _digest_files(path: Path) -> dict[str, tuple[int, str]]:
    """Size and digest of each file of a checkpoint but its manifest, by path within it."""
    paths = sorted(file for file in path.rglob("*") if file.is_file())
    names = {file.relative_to(path).as_posix(): file for file in paths}
    names.pop(MANIFEST, None)
    return {name: (file.stat().st_size, digest(file)) for name, file in names.items()}


def _check_files(path: Path, manifest: CheckpointManifest) -> None:
    found = _digest_files(path)
    for name in sorted(found.keys() | manifest.files.keys()):
        if name not in found:
            raise _damaged(path, f"the file {name} is missing")
        if name not in manifest.files:
            raise _damaged(path, f"the file {name} is not part of it")
        if found[name] != manifest.files[name]:
            raise _damaged(path, f"{name} is not the file that was written")


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _damaged(path: Path, why: str) -> StoreError:
    return StoreError(f"the checkpoint {path} is damaged: {why}; use an older one")
