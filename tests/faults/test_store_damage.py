"""Damage every file of a store, kill its owner at any moment: an error or the same content.

A store is written by a process that dies without closing it, so that tables, logs and the MANIFEST
all hold something. Each case damages a copy, opens it and reads everything. Allowed are a
StoreError and exactly the content committed; anything else is a silently different answer.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from clustering.errors import StoreError
from state import journal_guard, keys
from state.consistency import find_problems
from state.partition_state import PartitionState
from state.rocksdb_store import RocksDBReader, RocksDBStore

Content = dict[str, list[tuple[bytes, bytes]]]

# Commits batches for ever; prints each batch's number once it is committed. Batch i holds `rows`
# records of their own leaf and entity, a message for each, and the position, so that a batch that
# was applied in part shows.
WRITER = """
import os, sys
from pathlib import Path
from clustering.types import RecordKey
from state.codecs import EntityRow, NodeRow, Position, RecordRow
from state.partition_state import PartitionState
from state.rocksdb_store import RocksDBStore

path, rows, padding, flush_at, stop_at = Path(sys.argv[1]), *map(int, sys.argv[2:])
store = RocksDBStore.open(path, sync=False)
state = PartitionState(store)
while True:
    batch = state.batch()
    for _ in range(rows):
        n = batch.new_arrival()
        fields = b'{"n":%d,"pad":"%s"}' % (n, os.urandom(padding // 2).hex().encode())
        batch.put_record(RecordRow(RecordKey("crm", str(n)), n, n, n.to_bytes(16, "big"), fields))
        batch.put_node(n, NodeRow(-1, -1, -1))
        batch.put_entity(EntityRow(f"e{n}", n, 1, 1, n, n))
        batch.append_outbox("assignments", str(n).encode(), b"{}")
    batch.set_next_entity(n + 1)
    batch.count_processed(rows)
    batch.set_position(Position("crm", n + 1, b"{}"))
    batch.commit()
    print(n // rows, flush=True)
    if n // rows == flush_at:
        store.flush()
    if n // rows == stop_at:
        os._exit(9)
"""


def writer(path: Path, rows: int, padding: int, flush_at: int = -1, stop_at: int = -1) -> list[str]:
    arguments = map(str, (path, rows, padding, flush_at, stop_at))
    return [sys.executable, "-c", WRITER, *arguments]


def content(path: Path) -> Content:
    """Everything in the store, read by its owner."""
    with RocksDBStore.open(path, sync=False) as store:
        return {family: list(store.scan(family)) for family in keys.FAMILIES}


def read_all(path: Path) -> None:
    """Everything in the store, read beside its owner."""
    with RocksDBReader.open(path) as reader:
        for family in keys.FAMILIES:
            list(reader.scan(family))


@pytest.fixture(scope="module")
def dead_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with tables and a log that an owner left by dying after batch 9."""
    path = tmp_path_factory.mktemp("dead") / "db"
    RocksDBStore.create(path)
    ended = subprocess.run(writer(path, 20, 100, 5, 9), capture_output=True, check=False)
    assert ended.returncode == 9, ended.stderr
    return path


@pytest.fixture(scope="module")
def committed(dead_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Content:
    copy = tmp_path_factory.mktemp("committed") / "db"
    shutil.copytree(dead_store, copy)
    whole = content(copy)
    assert len(whole[keys.RECORDS]) == 200
    return whole


def outcome(dead_store: Path, copy: Path, name: str, damaged: bytes, committed: Content) -> str:
    """Open and read a copy whose file `name` holds `damaged`; "error", or "same" content."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(dead_store, copy)
    (copy / name).write_bytes(damaged)
    try:
        found = content(copy)
    except StoreError as error:
        says = str(error)
    else:
        assert found == committed, f"{name}: silently different content"
        return "same"
    assert str(copy) in says, "where"
    assert "estore the newest checkpoint" in says, "how to mend it"
    return "error"


KINDS = ["*.sst", "*.log", "MANIFEST-*", "CURRENT", "GUARD", "OPTIONS-*", "rocksdict-config.json"]
NEVER_UNNOTICED = ["*.log", "MANIFEST-*", "GUARD"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_byte_or_a_cut_is_an_error_or_changes_nothing(
    kind: str, dead_store: Path, tmp_path: Path, committed: Content
) -> None:
    random_places = random.Random(kind)
    outcomes: Counter[str] = Counter()
    paths = sorted(dead_store.glob(kind), key=lambda path: path.stat().st_size)[-2:]
    for good, path in ((path.read_bytes(), path) for path in paths if path.stat().st_size):
        places = {0, len(good) - 1, *(random_places.randrange(len(good)) for _ in range(3))}
        for at in places:
            flipped = good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :]
            for damaged in (flipped, good[:at]):
                outcomes[outcome(dead_store, tmp_path / "db", path.name, damaged, committed)] += 1
    assert outcomes, f"no {kind} to damage"
    if kind in NEVER_UNNOTICED:
        assert outcomes.keys() == {"error"}
    if kind == "*.sst":
        assert outcomes["error"] > outcomes["same"]


@pytest.mark.parametrize("kind", ["*.sst", "*.log", "MANIFEST-*", "CURRENT"])
def test_a_missing_file_is_an_error(
    kind: str, dead_store: Path, tmp_path: Path, committed: Content
) -> None:
    for path in dead_store.glob(kind):
        copy = tmp_path / "db"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(dead_store, copy)
        (copy / path.name).unlink()
        with pytest.raises(StoreError):
            content(copy)


def test_a_reader_notices_damage_too(dead_store: Path, tmp_path: Path) -> None:
    for kind in ("*.sst", "*.log", "MANIFEST-*"):
        copy = tmp_path / "db"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(dead_store, copy)
        path = max(copy.glob(kind), key=lambda path: path.stat().st_size)
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 0x40
        path.write_bytes(data)
        with pytest.raises(StoreError):
            read_all(copy)


def test_a_record_that_only_looks_cut_short_is_noticed(dead_store: Path, tmp_path: Path) -> None:
    for kind in ("*.log", "MANIFEST-*"):
        copy = tmp_path / "db"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(dead_store, copy)
        path = max(copy.glob(kind), key=lambda path: path.stat().st_size)
        data = bytearray(path.read_bytes())
        data[5] ^= 0x40  # the length of the first record, now past the file's end
        path.write_bytes(data)
        with pytest.raises(StoreError, match="no longer begins with"):
            content(copy)


def test_a_refused_store_stays_refused(dead_store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "db"
    shutil.copytree(dead_store, copy)
    (log,) = (path for path in copy.glob("*.log") if path.stat().st_size)
    log.write_bytes(b"")  # reads like a log in which nothing was written yet
    for _ in range(2):
        with pytest.raises(StoreError, match="lost writes that were committed"):
            content(copy)
    (copy / journal_guard.NAME).unlink()
    assert len(content(copy)[keys.RECORDS]) == 120, "accepted as it is: what was flushed"


def test_a_batch_torn_by_a_kill_is_dropped_and_the_store_opens(
    dead_store: Path, tmp_path: Path, committed: Content
) -> None:
    longer = tmp_path / "longer"
    shutil.copytree(dead_store, longer)
    (log,) = (path.name for path in dead_store.glob("*.log") if path.stat().st_size)
    before = (dead_store / log).read_bytes()
    torn = before + before[: len(before) // 3]  # a record's beginning, its end never written
    for length in (len(before) + 1, len(before) + 6, len(before) + 100):
        shutil.rmtree(longer)
        shutil.copytree(dead_store, longer)
        (longer / log).write_bytes(torn[:length])
        assert content(longer) == committed


@pytest.mark.parametrize(("rows", "padding"), [(1, 10), (20, 100), (50, 60_000)])
def test_kill_9_loses_no_committed_batch_and_leaves_no_part_of_one(
    tmp_path: Path, rows: int, padding: int
) -> None:
    """Batches of 1 KB to 3 MB; the large ones take many writes, which a kill can tear."""
    path = tmp_path / "db"
    RocksDBStore.create(path)
    for attempt in range(3):
        process = subprocess.Popen(writer(path, rows, padding), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        acknowledged = [process.stdout.readline() for _ in range(1 + 3 * attempt)]
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        last = int([line for line in acknowledged if line.endswith("\n")][-1])
        with RocksDBStore.open(path, sync=False) as store:
            state = PartitionState(store)
            assert find_problems(state) == []
            records = [row.arrival for row in state.records()]
            assert sorted(records) == list(range(state.counters.processed))
            assert state.positions()["crm"].consumed == state.counters.processed
            assert [row.sequence for row in state.outbox()] == sorted(records)
            assert len(records) % rows == 0
            assert len(records) // rows >= last + 1
