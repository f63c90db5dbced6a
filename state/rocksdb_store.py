"""The durable store: RocksDB. The only module that knows it.

Choices, each with its reason:

- Options are made here, the same at every open, never read from the OPTIONS file: a key written
  under other options can become invisible. Column families are always named explicitly.
- Raw mode: keys and values are bytes, nothing is pickled.
- Recovery mode `tolerate_corrupted_tail_records`. A process killed in the middle of a write can
  leave a torn last record, which was never acknowledged: this mode drops it and opens, where
  `absolute_consistency` would refuse to start after a kill -9. A failed checksum, the mark of a
  damaged byte, is an error in this mode, where the default would open as of an earlier moment.
  (Measured: of 40 kills amid 3 MB batches, 12 left a store that `absolute_consistency` refuses.)
  What no mode can see, a committed tail that was cut off, JournalGuard does.
- Iterators are read by valid()/status(): the library's items() ends quietly at a damaged block.
- One atomic flush for all families, so that one log is live and a flush never leaves them apart.
- Block cache, open files, memtables and logs are bounded.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DbClosedError,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    RdictIter,
    WriteOptions,
)
from rocksdict import WriteBatch as RawBatch

from clustering.errors import StoreError, StoreLockedError
from state import codecs, journal_guard, keys
from state.interfaces import WriteBatch

_MIB = 1 << 20
_BLOCK_CACHE_BYTES = 64 * _MIB
_MEMTABLE_BYTES = 32 * _MIB  # of one family
_ALL_MEMTABLES_BYTES = 96 * _MIB
_LOGS_BYTES = 256 * _MIB
_MAX_OPEN_FILES = 256
_FIRST_ROWS, _MOST_ROWS = 8, 1024  # read at a time by a scan, doubling
_READER_ATTEMPTS = 20
_RESTORE = "restore the newest checkpoint into an empty data directory"


class RocksDBReader:
    """A view of a store as it was when opened, beside its owner if it has one. Implements Reader.

    Open with `RocksDBReader.open(path)`. Nothing in the directory is changed.
    """

    def __init__(self, path: Path, db: Rdict) -> None:
        self.path = path
        self._db: Rdict | None = db
        self._families: dict[str, Rdict] = {}
        self._iterators: dict[int, RdictIter] = {}
        self._scans = 0

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open for reading. Raises StoreError if there is no store, or a damaged or newer one.

        The view is consistent: the owner may flush and remove files while they are being opened,
        so it is opened again until the MANIFEST was the same before and after.
        """
        for _ in range(_READER_ATTEMPTS):
            before = _manifest_state(path)
            try:
                reader = cls._open_once(path)
            except StoreError:
                if _manifest_state(path) == before:
                    raise
                continue
            if _manifest_state(path) == before:
                return reader
            reader.close()
        raise StoreError(f"the store at {path} changes faster than it can be opened: try again")

    @classmethod
    def _open_once(cls, path: Path) -> Self:
        note = _checked_note(path)
        options = _options()
        options.set_max_open_files(-1)  # all files are held, so none can vanish while reading
        with tempfile.TemporaryDirectory(prefix="graftd-reader-") as logs:
            options.set_db_log_dir(logs)  # RocksDB's own log, which would go beside the owner's
            reader = cls(path, _open(path, options, AccessType.read_only(False)))
        reader._check(note)
        return reader

    def get(self, family: str, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._family(family).get(key)
        except Exception as error:
            raise _explain(error, self.path, f"reading from {family}") from error
        return value

    def scan(
        self, family: str, start: bytes = b"", end: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        try:
            iterator = self._family(family).iter()
            if not reverse:
                iterator.seek(start)
            elif end is None:
                iterator.seek_to_last()
            else:
                iterator.seek_for_prev(end)
                if iterator.valid() and iterator.key() == end:
                    iterator.prev()
        except Exception as error:
            raise _explain(error, self.path, f"scanning {family}") from error
        self._scans += 1
        self._iterators[self._scans] = iterator
        rows = self._walk(self._scans, family, start if reverse else end, reverse)
        # Given up or never begun, a scan still lets go of its iterator.
        weakref.finalize(rows, self._iterators.pop, self._scans, None).atexit = False
        return rows

    def stats(self) -> dict[str, int]:
        db = self._opened()
        wanted = {
            "live_bytes": "rocksdb.live-sst-files-size",
            "table_bytes": "rocksdb.total-sst-files-size",
            "memtable_bytes": "rocksdb.cur-size-all-mem-tables",
            "cache_bytes": "rocksdb.block-cache-usage",
            "pending_compaction_bytes": "rocksdb.estimate-pending-compaction-bytes",
            "rows_estimate": "rocksdb.estimate-num-keys",
        }
        figures = dict.fromkeys(wanted, 0)
        for name in keys.FAMILIES:
            family = self._family(name)
            for figure, name_in_rocksdb in wanted.items():
                value = family.property_int_value(name_in_rocksdb) or 0
                shared = figure == "cache_bytes"
                figures[figure] = max(figures[figure], value) if shared else figures[figure] + value
        figures["write_stopped"] = db.property_int_value("rocksdb.is-write-stopped") or 0
        figures["sequence"] = db.latest_sequence_number()
        figures["open_scans"] = len(self._iterators)
        return figures

    def close(self) -> None:
        """Close at once: every handle is dropped first, as any of them keeps the LOCK."""
        db, self._db = self._db, None
        self._iterators.clear()
        self._families.clear()
        if db is not None:
            db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> Rdict:
        if self._db is None:
            raise StoreError(f"the store at {self.path} is closed: open it again")
        return self._db

    def _family(self, name: str) -> Rdict:
        family = self._families.get(name)
        if family is None:
            if name not in keys.FAMILIES:
                raise _unknown_family(name)
            family = self._families[name] = self._opened().get_column_family(name)
        return family

    def _walk(
        self, scan: int, family: str, bound: bytes | None, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        more, limit = True, _FIRST_ROWS
        while more:
            rows, more = self._read_rows(scan, family, bound, reverse, limit)
            if not more:
                del self._iterators[scan]
            yield from rows
            limit = min(2 * limit, _MOST_ROWS)

    def _read_rows(
        self, scan: int, family: str, bound: bytes | None, reverse: bool, limit: int
    ) -> tuple[list[tuple[bytes, bytes]], bool]:
        """Up to `limit` next rows of a scan, and whether there may be more."""
        iterator = self._iterators.get(scan)
        if iterator is None:
            raise StoreError(f"the store at {self.path} was closed during a scan of {family}")
        advance = iterator.prev if reverse else iterator.next
        rows: list[tuple[bytes, bytes]] = []
        try:
            while iterator.valid():
                key = iterator.key()
                if bound is not None and (key < bound if reverse else key >= bound):
                    return rows, False
                rows.append((key, iterator.value()))
                advance()
                if len(rows) == limit:
                    return rows, True
            iterator.status()
        except Exception as error:
            raise _explain(error, self.path, f"scanning {family}") from error
        return rows, False

    def _check(self, note: journal_guard.Note | None) -> None:
        """Check a store just opened; closes it before raising."""
        try:
            if note is not None:
                sequence = self._opened().latest_sequence_number()
                journal_guard.check_sequence(self.path, note, sequence)
            value = self.get(keys.META, keys.FORMAT_KEY)
            if value is None:
                raise StoreError(f"{self.path} was not made by graftd: it has no format row")
            version = codecs.decode_format(value)
            if version > keys.FORMAT:
                raise StoreError(
                    f"the store at {self.path} has format {version}, newer than {keys.FORMAT}, the "
                    "newest this graftd knows: upgrade graftd"
                )
        except BaseException:
            self.close()
            raise


class RocksDBStore(RocksDBReader):
    """The owner's access to a store: one process at a time. Implements Store.

    `create(path)` makes a new one, `open(path)` opens it again. With `sync` each write is on disk
    when it returns; without, it survives the death of the process but not of the machine.
    """

    def __init__(self, path: Path, db: Rdict, sync: bool = True) -> None:
        super().__init__(path, db)
        self._write_options = WriteOptions()
        self._write_options.sync = sync
        self._guard: journal_guard.JournalGuard | None = None

    @classmethod
    def create(cls, path: Path) -> None:
        """Make an empty store; it appears at `path` whole or not at all.

        Raises StoreError if something is there already.
        """
        if path.exists():
            raise StoreError(f"{path} exists already: open it, or choose another data directory")
        unfinished = path.with_name(path.name + ".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        options = _options()
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        store = cls(unfinished, _open(unfinished, options, AccessType.read_write()))
        try:
            batch = WriteBatch()
            batch.put(keys.META, keys.FORMAT_KEY, codecs.encode_format(keys.FORMAT))
            store.write(batch)
        finally:
            store.close()
        unfinished.rename(path)

    @classmethod
    def open(cls, path: Path, sync: bool = True) -> Self:
        """Open as its owner.

        Raises StoreLockedError while another process owns it, StoreError if there is no store, or a
        damaged or newer one.
        """
        note = _checked_note(path)
        store = cls(path, _open(path, _options(), AccessType.read_write()), sync)
        store._check(note)
        store._guard = journal_guard.JournalGuard(path)
        store._guard.record(store._opened().latest_sequence_number(), durable=True)
        return store

    def write(self, batch: WriteBatch) -> None:
        db = self._opened()
        raw = RawBatch(raw_mode=True)
        handles = {name: db.get_column_family_handle(name) for name in keys.FAMILIES}
        try:
            for family, key, value in batch.operations:
                if value is None:
                    raw.delete(key, handles[family])
                else:
                    raw.put(key, value, handles[family])
            db.write(raw, self._write_options)
            if self._guard is not None:
                self._guard.record(db.latest_sequence_number())
        except KeyError as error:
            raise _unknown_family(error.args[0]) from error
        except Exception as error:
            raise _explain(error, self.path, "writing") from error

    def flush(self) -> None:
        """Move what is in memory into table files and drop the logs."""
        db = self._opened()
        try:
            db.flush()
            for name in keys.FAMILIES:
                self._family(name).flush()
            if self._guard is not None:
                self._guard.record(db.latest_sequence_number(), durable=True)
        except Exception as error:
            raise _explain(error, self.path, "flushing") from error

    def checkpoint(self, path: Path) -> None:
        """Write a consistent copy to `path`, which must not exist.

        Tables are hard links where the file system allows.
        """
        if path.exists():
            raise StoreError(f"{path} exists already: choose another place for the checkpoint")
        db = self._opened()
        try:
            sequence = db.latest_sequence_number()
            Checkpoint(db).create_checkpoint(str(path))
            guard = journal_guard.JournalGuard(path)
            guard.record(sequence, durable=True)
            guard.close()
        except Exception as error:
            raise _explain(error, self.path, f"taking a checkpoint to {path}") from error

    def close(self) -> None:
        if self._db is None:
            return
        try:
            self.flush()
        finally:
            super().close()
            if self._guard is not None:
                self._guard.close()
                self._guard = None


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(False)
    options.set_paranoid_checks(True)
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    options.set_atomic_flush(True)
    options.set_write_buffer_size(_MEMTABLE_BYTES)
    options.set_db_write_buffer_size(_ALL_MEMTABLES_BYTES)
    options.set_max_total_wal_size(_LOGS_BYTES)
    options.set_max_open_files(_MAX_OPEN_FILES)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_keep_log_file_num(4)
    options.set_max_log_file_size(4 * _MIB)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    return options


def _open(path: Path, options: Options, access: AccessType) -> Rdict:
    tables = BlockBasedOptions()
    tables.set_block_cache(Cache(_BLOCK_CACHE_BYTES))
    tables.set_cache_index_and_filter_blocks(True)
    tables.set_bloom_filter(10, False)
    options.set_block_based_table_factory(tables)
    try:
        return Rdict(str(path), options, dict.fromkeys(keys.FAMILIES, options), access)
    except Exception as error:
        raise _explain(error, path, "opening") from error


def _checked_note(path: Path) -> journal_guard.Note | None:
    """The guard's note of a store about to be opened, its journals checked."""
    if not path.is_dir():
        raise StoreError(f"there is no store at {path}: check the data directory, or {_RESTORE}")
    note = journal_guard.read_note(path)
    if note is not None:
        journal_guard.check_journals(path, note)
    return note


def _manifest_state(path: Path) -> tuple[str, int]:
    name = journal_guard.current_manifest(path)
    try:
        return name, (path / name).stat().st_size
    except OSError:
        return name, 0


def _unknown_family(name: object) -> StoreError:
    return StoreError(f"there is no column family {name!r}: use one of {keys.FAMILIES}")


def _explain(error: Exception, path: Path, doing: str) -> StoreError:
    """The library raises bare Exceptions: what the text says, in our words, with the way out."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, StoreError):
        return error
    if isinstance(error, DbClosedError):
        return StoreError(f"the store at {path} is closed ({doing}): open it again")
    if "/LOCK:" in text:
        return StoreLockedError(
            f"another process owns the store at {path}: stop it (`fuser {path}/LOCK` shows it), "
            f"or use another data directory ({text})"
        )
    if "No space left" in text:
        return StoreError(f"the disk of {path} is full ({doing}): make room, start again ({text})")
    if "Corruption" in text or "No such file" in text or "does not exist" in text:
        return StoreError(f"the store at {path} is damaged ({doing}): {text}; {_RESTORE}")
    return StoreError(f"the store at {path} failed ({doing}): {text}; if it persists, {_RESTORE}")
