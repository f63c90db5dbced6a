"""Stopped dead at any moment, a run goes on without a lost or a repeated message."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from state.index_files import IndexSnapshot, save_index
from state.partition_state import PartitionState
from state.rocksdb_store import RocksDBStore
from stream import engine, resolver
from stream.config import Config
from tests.support.crashing import CrashError, Crashes
from tests.support.files import mixed_input, outputs, resolve
from tests.support.rig import small_config

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="module")
def _frequent_snapshots() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolver, "SNAPSHOT_INTERVAL", 5)
        yield


def config(batch_records: int = 5) -> Config:
    return small_config(state={"batch_records": batch_records})


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mixed_input(tmp_path_factory.mktemp("input") / "records.jsonl", 22, seed=10)


@pytest.fixture(scope="module")
def expected(records: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The output files of a run that nothing stopped."""
    root = tmp_path_factory.mktemp("expected")
    resolve(config(), root, records)
    files = outputs(root)
    assert all(files.values()), "each file has messages"
    return files


def crash(root: Path, records: Path, at: int, torn: bool = False, batch_records: int = 5) -> bool:
    """Run up to a durable step; returns whether that came before the end."""
    with pytest.MonkeyPatch.context() as patch:
        Crashes(patch, at, torn)
        try:
            resolve(config(batch_records), root, records)
        except CrashError:
            return True
    return False


@pytest.mark.parametrize("torn", [False, True], ids=["before", "within"])
def test_a_crash_at_any_durable_step(
    torn: bool, records: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    """Also half way through a write of an output file."""
    with pytest.MonkeyPatch.context() as patch:
        counting = Crashes(patch)
        resolve(config(), tmp_path / "counted", records)
    assert counting.names.count("store") > 8
    assert {"write", "fsync", "replace"} <= set(counting.names)
    for at, name in enumerate(counting.names):
        if torn and name != "write":
            continue
        root = tmp_path / "data"
        shutil.rmtree(root, ignore_errors=True)
        assert crash(root, records, at, torn), name

        events: list[str] = []
        resolve(config(), root, records, events)

        assert outputs(root) == expected, f"step {at}, {name}"
        assert "index_rebuilt" not in events


@pytest.mark.parametrize("seed", range(12))
def test_crash_after_crash(
    seed: int, records: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    """Each attempt in batches of another size, so that no two write the same."""
    draw = random.Random(seed)
    events: list[str] = []
    while crash(tmp_path, records, draw.randrange(12, 50), draw.random() < 0.3, draw.randint(1, 9)):
        pass
    resolve(config(), tmp_path, records, events)
    assert outputs(tmp_path) == expected
    assert "index_rebuilt" not in events


def dying(saves: int) -> Callable[[Path, IndexSnapshot], Path]:
    """Saves so many snapshots of the index, then dies."""
    left = iter(range(saves - 1))

    def save(directory: Path, snapshot: IndexSnapshot) -> Path:
        path = save_index(directory, snapshot)
        if next(left, None) is None:
            raise CrashError(path)
        return path

    return save


def test_snapshots_of_batches_that_were_never_committed_leave_no_trace(
    records: Path, tmp_path: Path
) -> None:
    """Killed between index file and commit, twice: neither file may crowd out the one in use."""
    root = tmp_path / "data"
    few = {"model": {"refit_at": [], "refit_at_end": False}}
    resolve(small_config(**few), tmp_path / "expected", records)
    for size, saves in ((9, 2), (1, 1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "save_index", dying(saves))
            with pytest.raises(CrashError):
                resolve(small_config(**few, state={"batch_records": size}), root, records)
    events: list[str] = []
    resolve(small_config(**few), root, records, events)
    assert "index_rebuilt" not in events
    assert outputs(root) == outputs(tmp_path / "expected")


def test_kill_9_at_50_moments(tmp_path: Path) -> None:
    path = mixed_input(tmp_path / "records.jsonl", 1700, seed=7)
    assert path.read_bytes().count(b"\n") > 2000
    command = [sys.executable, "-m", "tests.support.killing", tmp_path, path, "50", "1"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    expected = outputs(tmp_path / "alone")
    for number in range(int(ended.stdout)):
        root = tmp_path / f"killed-{number}"
        assert outputs(root) == expected
        with RocksDBStore.open(root / "db", sync=False) as store:
            state = PartitionState(store)
            assert state.counters.processed == path.read_bytes().count(b"\n")
            assert state.positions()[str(path)].consumed == state.counters.processed
