"""The layout of a data directory.

<root>/
  FORMAT     one line of JSON: what this directory is, and its format version
  db/        the store
  index/     snapshots of the neighbour index
  out/       the file sinks' own
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from clustering.errors import StoreError
from state import keys
from state.files import write_atomically
from state.rocksdb_store import RocksDBStore

_KIND = "graftd data directory"
_OURS = {"FORMAT", "FORMAT.new", "db", "db.new", "index", "out"}


@dataclass(frozen=True)
class DataDir:
    """Paths within one data directory."""

    root: Path

    @property
    def format_file(self) -> Path:
        return self.root / "FORMAT"

    @property
    def db(self) -> Path:
        return self.root / "db"

    @property
    def index(self) -> Path:
        return self.root / "index"

    @property
    def out(self) -> Path:
        return self.root / "out"


def open_data_dir(root: Path) -> DataDir:
    """The data directory at `root`, made first if there is none.

    A process killed while making one leaves what the next call completes. Raises StoreError for a
    directory that holds other things, that lost its store, or whose format is newer.
    """
    data_dir = DataDir(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        others = sorted(set(os.listdir(root)) - _OURS)
        if data_dir.format_file.exists():
            check_format(data_dir)
        elif others:
            raise StoreError(
                f"{root} is not a data directory and holds other files ({', '.join(others[:3])}): "
                "choose an empty or a new directory"
            )
        elif not data_dir.db.exists():
            RocksDBStore.create(data_dir.db)
        data_dir.index.mkdir(exist_ok=True)
        data_dir.out.mkdir(exist_ok=True)
        if not data_dir.format_file.exists():
            write_format(data_dir)
    except OSError as error:
        raise StoreError(f"cannot use {root} as a data directory: {error.strerror}") from error
    return data_dir


def write_format(data_dir: DataDir) -> None:
    """Mark the directory as complete."""
    text = orjson.dumps({"kind": _KIND, "format": keys.FORMAT}) + b"\n"
    write_atomically(data_dir.format_file, text)


def check_format(data_dir: DataDir) -> None:
    """Raise StoreError unless this is a data directory that this graftd can use."""
    path = data_dir.format_file
    try:
        found = orjson.loads(path.read_bytes())
        kind, version = found["kind"], found["format"]
    except FileNotFoundError as error:
        raise StoreError(f"{data_dir.root} is not a data directory: it has no FORMAT") from error
    except (OSError, ValueError, KeyError, TypeError):
        kind, version = None, None
    if kind != _KIND or type(version) is not int:
        raise StoreError(
            f"{path} is damaged: delete it to have it written again (the store checks itself)"
        )
    if version != keys.FORMAT:
        raise StoreError(
            f"{data_dir.root} has format {version} and this graftd knows {keys.FORMAT}: use the "
            "graftd that made it or a newer one"
        )
    if not data_dir.db.is_dir():
        raise StoreError(
            f"{data_dir.root} has lost its store, {data_dir.db.name}/: restore the newest "
            "checkpoint into an empty data directory"
        )
