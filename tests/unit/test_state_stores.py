"""The contract of a store, on both of them; then what only the durable one owes."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clustering.errors import StoreError, StoreLockedError
from state import codecs, keys
from state.interfaces import Store, WriteBatch
from state.journal_guard import NAME as GUARD
from state.memory_store import MemoryStore
from state.rocksdb_store import RocksDBReader, RocksDBStore


def fill(store: Store, rows: dict[bytes, bytes], family: str = keys.RECORDS) -> None:
    batch = WriteBatch()
    for key, value in rows.items():
        batch.put(family, key, value)
    store.write(batch)


@pytest.fixture
def rocksdb(tmp_path: Path) -> Iterator[RocksDBStore]:
    RocksDBStore.create(tmp_path / "db")
    store = RocksDBStore.open(tmp_path / "db", sync=False)
    yield store
    store.close()


@pytest.fixture(params=["memory", "rocksdb"])
def store(request: pytest.FixtureRequest) -> Store:
    return MemoryStore() if request.param == "memory" else request.getfixturevalue("rocksdb")


class TestContract:
    def test_what_is_put_is_got(self, store: Store) -> None:
        fill(store, {b"a": b"1", b"": b"empty key", b"\x00\xff": b""})
        assert store.get(keys.RECORDS, b"a") == b"1"
        assert store.get(keys.RECORDS, b"") == b"empty key"
        assert store.get(keys.RECORDS, b"\x00\xff") == b""
        assert store.get(keys.RECORDS, b"b") is None
        assert store.get(keys.NODES, b"a") is None, "families are apart"

    def test_a_batch_applies_in_order(self, store: Store) -> None:
        fill(store, {b"a": b"old", b"b": b"old"})
        batch = WriteBatch()
        batch.put(keys.RECORDS, b"a", b"new")
        batch.delete(keys.RECORDS, b"a")
        batch.delete(keys.RECORDS, b"b")
        batch.put(keys.RECORDS, b"b", b"new")
        batch.delete(keys.RECORDS, b"never there")
        assert len(batch) == 5
        store.write(batch)
        assert list(store.scan(keys.RECORDS)) == [(b"b", b"new")]

    def test_a_batch_with_an_unknown_family_changes_nothing(self, store: Store) -> None:
        batch = WriteBatch()
        batch.put(keys.RECORDS, b"a", b"1")
        batch.put("recrods", b"a", b"1")
        with pytest.raises(StoreError, match="recrods"):
            store.write(batch)
        assert store.get(keys.RECORDS, b"a") is None
        with pytest.raises(StoreError, match="recrods"):
            store.get("recrods", b"a")
        with pytest.raises(StoreError, match="recrods"):
            store.scan("recrods")

    @pytest.mark.parametrize(
        ("start", "end", "expected"),
        [
            (b"", None, [0, 1, 2, 3]),
            (b"b", None, [1, 2, 3]),
            (b"b", b"d", [1, 2]),
            (b"aa", b"cc", [1, 2]),
            (b"", b"a", []),
            (b"e", None, []),
            (b"", b"zz", [0, 1, 2, 3]),
        ],
    )
    def test_scan_bounds(
        self, store: Store, start: bytes, end: bytes | None, expected: list[int]
    ) -> None:
        rows = [(bytes([key]), bytes([key, key])) for key in b"abcd"]
        fill(store, dict(rows))
        wanted = [rows[i] for i in expected]
        assert list(store.scan(keys.RECORDS, start, end)) == wanted
        assert list(store.scan(keys.RECORDS, start, end, reverse=True)) == wanted[::-1]

    def test_long_scans_in_both_directions(self, store: Store) -> None:
        rows = {keys.node_key(i): b"%d" % i for i in range(3000)}
        fill(store, rows)
        assert list(store.scan(keys.RECORDS)) == list(rows.items())
        assert list(store.scan(keys.RECORDS, reverse=True)) == list(rows.items())[::-1]

    def test_a_scan_sees_the_rows_as_they_were(self, store: Store) -> None:
        fill(store, {b"a": b"1", b"b": b"1"})
        rows = store.scan(keys.RECORDS)
        fill(store, {b"a": b"2", b"c": b"2"})
        assert list(rows) == [(b"a", b"1"), (b"b", b"1")]

    def test_use_after_close_is_refused(self, store: Store) -> None:
        fill(store, {b"a": b"1", b"b": b"2"})
        rows = store.scan(keys.RECORDS)
        store.close()
        store.close()
        with pytest.raises(StoreError, match="closed"):
            list(rows)
        with pytest.raises(StoreError, match="closed"):
            store.get(keys.RECORDS, b"a")
        with pytest.raises(StoreError, match="closed"):
            fill(store, {b"a": b"2"})
        with pytest.raises(StoreError, match="closed"):
            store.stats()

    def test_stats_are_numbers(self, store: Store) -> None:
        assert all(isinstance(value, int) for value in store.stats().values())


class TestDurable:
    def test_rows_are_there_after_reopening(self, rocksdb: RocksDBStore) -> None:
        fill(rocksdb, {b"a": b"1"}, keys.ENTITIES)
        rocksdb.close()
        with RocksDBStore.open(rocksdb.path) as again:
            assert again.get(keys.ENTITIES, b"a") == b"1"

    def test_close_releases_the_lock_whatever_is_still_held(self, rocksdb: RocksDBStore) -> None:
        fill(rocksdb, {b"a": b"1", b"b": b"1"})
        rows = rocksdb.scan(keys.RECORDS)
        next(rows)
        rocksdb.close()
        RocksDBStore.open(rocksdb.path).close()

    def test_scans_given_up_leave_no_iterator(self, rocksdb: RocksDBStore) -> None:
        fill(rocksdb, {b"a": b"1", b"b": b"1"})
        for _ in range(10):
            next(rocksdb.scan(keys.RECORDS))
            rocksdb.scan(keys.RECORDS)
        assert rocksdb.stats()["open_scans"] == 0

    def test_many_look_ups_do_not_grow_memory(self, rocksdb: RocksDBStore) -> None:
        fill(rocksdb, {keys.node_key(i): bytes(100) for i in range(1000)})
        rocksdb.flush()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for i in range(20_000):
            next(rocksdb.scan(keys.RECORDS, keys.node_key(i % 1000)))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000, "20 MB, in KiB"

    def test_a_second_owner_is_refused(self, rocksdb: RocksDBStore) -> None:
        script = (
            "import sys; from pathlib import Path; from state.rocksdb_store import RocksDBStore\n"
            "from clustering.errors import StoreLockedError\n"
            "try: RocksDBStore.open(Path(sys.argv[1]))\n"
            "except StoreLockedError as error: print(error); sys.exit(error.exit_code)\n"
        )
        command = [sys.executable, "-c", script, str(rocksdb.path)]
        other = subprocess.run(command, capture_output=True, text=True, check=False)
        assert other.returncode == 73
        assert "another process owns" in other.stdout
        assert "another data directory" in other.stdout
        with pytest.raises(StoreLockedError):
            RocksDBStore.open(rocksdb.path)

    def test_a_reader_beside_the_owner_sees_what_was_committed(self, rocksdb: RocksDBStore) -> None:
        fill(rocksdb, {b"a": b"1"})
        rocksdb.flush()
        fill(rocksdb, {b"b": b"1"})
        before = sorted(path.name for path in rocksdb.path.iterdir())
        with RocksDBReader.open(rocksdb.path) as reader:
            fill(rocksdb, {b"a": b"2", b"c": b"2"})
            rocksdb.flush()
            assert list(reader.scan(keys.RECORDS)) == [(b"a", b"1"), (b"b", b"1")]
            assert not hasattr(reader, "write")
        with RocksDBReader.open(rocksdb.path) as reader:
            assert len(list(reader.scan(keys.RECORDS))) == 3
        logs = [name for name in before if name.startswith("LOG")]
        assert logs == sorted(path.name for path in rocksdb.path.glob("LOG*")), "it left no trace"

    def test_a_checkpoint_is_a_store(self, rocksdb: RocksDBStore, tmp_path: Path) -> None:
        fill(rocksdb, {b"a": b"1"})
        rocksdb.checkpoint(tmp_path / "copy")
        fill(rocksdb, {b"a": b"2"})
        with RocksDBStore.open(tmp_path / "copy") as copy:
            assert copy.get(keys.RECORDS, b"a") == b"1"
        with pytest.raises(StoreError, match="exists already"):
            rocksdb.checkpoint(tmp_path / "copy")

    def test_no_store_is_made_by_opening(self, tmp_path: Path) -> None:
        openers: list[Callable[[Path], RocksDBReader]] = [RocksDBStore.open, RocksDBReader.open]
        for opener in openers:
            with pytest.raises(StoreError, match=r"no store|CURRENT"):
                opener(tmp_path / "nowhere")
        (tmp_path / "empty").mkdir()
        for opener in openers:
            with pytest.raises(StoreError):
                opener(tmp_path / "empty")

    def test_an_existing_store_is_not_made_again(self, rocksdb: RocksDBStore) -> None:
        with pytest.raises(StoreError, match="exists already"):
            RocksDBStore.create(rocksdb.path)

    def test_a_newer_format_is_refused(self, rocksdb: RocksDBStore) -> None:
        newer = codecs.encode_format(keys.FORMAT + 1)
        fill(rocksdb, {keys.FORMAT_KEY: newer}, keys.META)
        rocksdb.close()
        with pytest.raises(StoreError, match="upgrade graftd"):
            RocksDBStore.open(rocksdb.path)
        with pytest.raises(StoreError, match="upgrade graftd"):
            RocksDBReader.open(rocksdb.path)

    def test_a_store_of_something_else_is_refused(self, rocksdb: RocksDBStore) -> None:
        batch = WriteBatch()
        batch.delete(keys.META, keys.FORMAT_KEY)
        rocksdb.write(batch)
        rocksdb.close()
        with pytest.raises(StoreError, match="not made by graftd"):
            RocksDBStore.open(rocksdb.path)

    def test_a_store_without_the_guards_note_is_taken_as_it_is(self, rocksdb: RocksDBStore) -> None:
        fill(rocksdb, {b"a": b"1"})
        rocksdb.close()
        (rocksdb.path / GUARD).unlink()
        with RocksDBStore.open(rocksdb.path) as again:
            assert again.get(keys.RECORDS, b"a") == b"1"
        assert (rocksdb.path / GUARD).exists()
