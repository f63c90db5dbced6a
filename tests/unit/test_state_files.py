"""Index snapshots, data directories and checkpoints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import xxhash

from clustering.errors import StoreError
from clustering.types import RecordKey
from state import keys
from state.checkpoints import (
    MANIFEST,
    create_checkpoint,
    read_manifest,
    restore_checkpoint,
    verify_checkpoint,
)
from state.codecs import EntityRow, NodeRow, Position, RecordRow
from state.consistency import find_problems
from state.data_dir import DataDir, open_data_dir
from state.index_files import IndexSnapshot, list_indexes, load_index, save_index
from state.partition_state import PartitionState
from state.rocksdb_store import RocksDBStore


def snapshot(sequence: int) -> IndexSnapshot:
    return IndexSnapshot(sequence, 64, 10, b"payload of %d" % sequence)


class TestIndexFiles:
    def test_what_is_saved_is_loaded(self, tmp_path: Path) -> None:
        path = save_index(tmp_path, snapshot(7))
        assert load_index(path) == snapshot(7)
        assert [file.name for file in tmp_path.iterdir()] == [path.name]

    def test_the_newest_two_are_kept(self, tmp_path: Path) -> None:
        for sequence in (9, 10, 100):
            save_index(tmp_path, snapshot(sequence))
        assert [load_index(path).sequence for path in list_indexes(tmp_path)] == [100, 10]

    def test_every_flipped_byte_and_every_length_is_noticed(self, tmp_path: Path) -> None:
        path = save_index(tmp_path, snapshot(7))
        good = path.read_bytes()
        for at in range(len(good)):
            path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
            with pytest.raises(StoreError, match="rebuilt"):
                load_index(path)
            path.write_bytes(good[:at])
            with pytest.raises(StoreError, match="rebuilt"):
                load_index(path)
        path.write_bytes(good + b"\x00")
        with pytest.raises(StoreError, match="rebuilt"):
            load_index(path)

    def test_a_file_under_another_name_or_none_is_refused(self, tmp_path: Path) -> None:
        path = save_index(tmp_path, snapshot(7))
        path = path.rename(tmp_path / "index-00000000000000000008.bin")
        with pytest.raises(StoreError, match="name"):
            load_index(path)
        with pytest.raises(StoreError, match="cannot read"):
            load_index(tmp_path / "index-1.bin")
        with pytest.raises(StoreError, match="cannot write"):
            save_index(tmp_path / "nowhere", snapshot(7))


class TestDataDir:
    def test_it_is_made_and_found_again(self, tmp_path: Path) -> None:
        data_dir = open_data_dir(tmp_path / "new" / "data")
        with RocksDBStore.open(data_dir.db):
            pass
        assert sorted(path.name for path in data_dir.root.iterdir()) == [
            "FORMAT",
            "db",
            "index",
            "out",
        ]
        assert open_data_dir(data_dir.root) == data_dir

    def test_one_half_made_is_completed(self, tmp_path: Path) -> None:
        data_dir = DataDir(tmp_path)
        (tmp_path / "db.new").mkdir()
        open_data_dir(tmp_path)
        data_dir.format_file.unlink()
        data_dir.index.rmdir()
        open_data_dir(tmp_path)
        assert data_dir.index.is_dir()
        assert data_dir.format_file.is_file()

    def test_a_directory_of_other_things_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.tex").write_text("dear")
        with pytest.raises(StoreError, match=r"thesis\.tex"):
            open_data_dir(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
        with pytest.raises(StoreError, match="cannot use"):
            open_data_dir(tmp_path / "thesis.tex")

    def test_a_lost_store_is_not_silently_replaced(self, tmp_path: Path) -> None:
        data_dir = open_data_dir(tmp_path)
        shutil.rmtree(data_dir.db)
        with pytest.raises(StoreError, match="lost its store"):
            open_data_dir(tmp_path)

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"kind":"x","format":1}', "\x00"])
    def test_a_damaged_format_file_is_refused(self, tmp_path: Path, text: str) -> None:
        open_data_dir(tmp_path)
        (tmp_path / "FORMAT").write_text(text)
        with pytest.raises(StoreError, match="damaged"):
            open_data_dir(tmp_path)

    def test_another_format_is_refused(self, tmp_path: Path) -> None:
        open_data_dir(tmp_path)
        (tmp_path / "FORMAT").write_text('{"kind":"graftd data directory","format":2}')
        with pytest.raises(StoreError, match="format 2"):
            open_data_dir(tmp_path)


@pytest.fixture
def checkpointed(tmp_path: Path) -> tuple[DataDir, Path]:
    """A data directory with two records in one entity, and a checkpoint of it."""
    data_dir = open_data_dir(tmp_path / "data")
    with RocksDBStore.open(data_dir.db, sync=False) as store:
        state = PartitionState(store)
        batch = state.batch()
        for leaf in (0, 1):
            key = RecordKey("crm", str(leaf))
            batch.put_record(RecordRow(key, leaf, batch.new_arrival(), bytes(16), b"{}"))
            batch.put_node(leaf, NodeRow(2, -1, -1))
        batch.put_node(2, NodeRow(-1, 0, 1))
        batch.put_entity(EntityRow("e0", 2, 1, 2, 0, 0))
        batch.put_entity(EntityRow("e1", -1, 1, 0, 1, 1, ("e0",)))
        batch.set_position(Position("crm", 2, b"{}"))
        batch.count_processed(2)
        batch.commit()
        save_index(data_dir.index, snapshot(2))
        made = create_checkpoint(store, data_dir, tmp_path / "checkpoint")
        assert (made.records, made.entities, made.processed) == (2, 1, 2)
        assert made.positions == {"crm": 2}
        batch = state.batch()
        batch.delete_record(RecordKey("crm", "0"))
        batch.commit()
    return data_dir, tmp_path / "checkpoint"


class TestCheckpoints:
    def test_one_verifies_and_restores(
        self, checkpointed: tuple[DataDir, Path], tmp_path: Path
    ) -> None:
        _, path = checkpointed
        assert verify_checkpoint(path) == read_manifest(path)
        for target in (tmp_path / "b" / "data", tmp_path / "empty"):
            (tmp_path / "empty").mkdir(exist_ok=True)
            restored = DataDir(target)
            restore_checkpoint(path, restored)
            assert open_data_dir(restored.root) == restored
            assert load_index(list_indexes(restored.index)[0]) == snapshot(2)
            with RocksDBStore.open(restored.db) as store:
                state = PartitionState(store)
                assert [row.key.id for row in state.records()] == ["0", "1"]
                assert find_problems(state) == []
        verify_checkpoint(path)  # restoring left it as it was
        assert not list(tmp_path.glob(".*unfinished"))

    def test_targets_that_hold_something_are_refused(
        self, checkpointed: tuple[DataDir, Path]
    ) -> None:
        data_dir, path = checkpointed
        with pytest.raises(StoreError, match="not empty"):
            restore_checkpoint(path, data_dir)
        with (
            RocksDBStore.open(data_dir.db) as store,
            pytest.raises(StoreError, match="exists already"),
        ):
            create_checkpoint(store, data_dir, path)

    def test_every_damaged_file_is_noticed(
        self, checkpointed: tuple[DataDir, Path], tmp_path: Path
    ) -> None:
        _, path = checkpointed
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            good = file.read_bytes()
            file.unlink()  # so that hard links keep the good bytes
            damaged = [good + b"x"]
            if good:
                damaged += [good[:-1], bytes([good[0] ^ 1]) + good[1:]]
            for bad in (None, *damaged):
                if bad is not None:
                    file.write_bytes(bad)
                with pytest.raises(StoreError, match="use an older one"):
                    verify_checkpoint(path)
                with pytest.raises(StoreError):
                    restore_checkpoint(path, DataDir(tmp_path / "target"))
                assert not (tmp_path / "target").exists()
            file.write_bytes(good)
        (path / "db" / "extra.sst").write_bytes(b"")
        with pytest.raises(StoreError, match=r"extra\.sst is not part of it"):
            verify_checkpoint(path)

    def test_a_newer_checkpoint_is_refused(self, checkpointed: tuple[DataDir, Path]) -> None:
        _, path = checkpointed
        body = (path / MANIFEST).read_bytes().partition(b"\n")[2].removesuffix(b"\n")
        body = body.replace(b'"format":%d' % keys.FORMAT, b'"format":%d' % (keys.FORMAT + 1))
        text = xxhash.xxh3_64_hexdigest(body).encode() + b"\n" + body + b"\n"
        (path / MANIFEST).write_bytes(text)
        with pytest.raises(StoreError, match="upgrade graftd"):
            verify_checkpoint(path)
