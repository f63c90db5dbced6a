"""What each operation does to the answer, and what is said of it."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest

from clustering.errors import ConfigError, StoreError
from clustering.types import RecordKey
from state.consistency import find_problems
from stream import restoring
from stream.config import Config
from stream.engine import Engine
from stream.messages import ASSIGNMENTS, DEAD_LETTERS, ENTITY_UPDATES
from stream.records import Bad, BadReason, Delete
from stream.run import Observer, run
from stream.sources import open_source
from tests.support.files import outputs, resolve
from tests.support.people import crowd, person, variant
from tests.support.rig import Rig, replayed, small_config, upsert, upserts

KEY = RecordKey("crm", "1")
BAD = Bad(BadReason.BAD_JSON, "not JSON", b"{", None, {"line": 7})


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(small_config(model={"refit_at": []}), tmp_path)


def kinds(rig: Rig, since: int = 0) -> list[str]:
    return [update["kind"] for update in rig.values(ENTITY_UPDATES)][since:]


def delete(id_: str, version: int | None = None) -> Delete:
    return Delete(RecordKey("crm", id_), version, {"gone": id_})


def test_a_record_makes_an_entity(rig: Rig) -> None:
    rig.feed([upsert("1", person(0))])
    assert rig.values(ENTITY_UPDATES) == [
        {
            "schema": "graftd.entity-update/1",
            "seq": 0,
            "entity_id": "E0",
            "version": 1,
            "kind": "created",
            "members": [{"source": "crm", "id": "1"}],
            "previous_members": [],
            "from_ids": [],
            "into_ids": [],
            "cause": {"kind": "record", "source": "crm", "id": "1", "position": {"id": "1"}},
            "certainty": None,
        }
    ]
    assert rig.values(ASSIGNMENTS) == [
        {
            "schema": "graftd.assignment/1",
            "seq": 1,
            "source": "crm",
            "id": "1",
            "entity_id": "E0",
            "version": 1,
        }
    ]


def test_the_same_content_again_changes_nothing(rig: Rig) -> None:
    rig.feed([upsert("1", person(0)), upsert("2", person(1))])
    before = rig.answer()
    rig.feed([upsert("1", dict(reversed(person(0).items())))])
    after = rig.answer()
    assert rig.engine.counts["duplicate"] == 1
    for name in ("messages", "partition", "tree", "versions"):
        assert after[name] == before[name]


def test_a_changed_record_moves(rig: Rig) -> None:
    rig.feed(upserts([("1", variant(0, 0)), ("2", variant(0, 1)), ("3", variant(1, 0))]))
    rig.feed([upsert("2", variant(1, 1))])
    assert rig.clusters() == {frozenset({"1"}), frozenset({"2", "3"})}
    moved = rig.values(ASSIGNMENTS)[-1]
    assert (moved["id"], moved["entity_id"]) == ("2", "E1")


def test_an_older_version_is_passed_over(rig: Rig) -> None:
    rig.feed([upsert("1", person(0), version=5), upsert("1", person(1), version=4)])
    rig.feed([delete("1", version=3)])
    assert rig.engine.counts["stale"] == 2
    assert kinds(rig) == ["created"]
    assert rig.engine.held(KEY).stamp == 5


@pytest.mark.parametrize("restarts", [False, True])
def test_a_newer_version_with_the_same_content_counts_as_seen(rig: Rig, restarts: bool) -> None:
    rig.feed([upsert("1", person(0), version=1), upsert("1", person(0), version=9)])
    if restarts:
        rig.restart()
    rig.feed([upsert("1", person(1), version=5)])
    assert rig.engine.counts["stale"] == 1
    assert rig.engine.held(KEY).stamp == 9


def test_without_a_version_the_last_one_counts(rig: Rig) -> None:
    rig.feed([upsert("1", person(0), version=5), upsert("1", person(1))])
    assert rig.engine.counts["updated"] == 1
    rig.feed([upsert("1", person(2), version=4)])
    assert rig.engine.counts["stale"] == 1, "the version it had is not forgotten"


def test_a_deleted_record_leaves_its_entity(rig: Rig) -> None:
    rig.feed(upserts([("1", variant(0, 0)), ("2", variant(0, 1))]))
    rig.feed([delete("1")])
    assert rig.clusters() == {frozenset({"2"})}
    update, gone = rig.values(ENTITY_UPDATES)[-1], rig.values(ASSIGNMENTS)[-1]
    assert (update["entity_id"], update["kind"]) == ("E0", "changed")
    assert update["previous_members"] == [
        {"source": "crm", "id": "1"},
        {"source": "crm", "id": "2"},
    ]
    assert (gone["id"], gone["entity_id"], gone["version"]) == ("1", None, None)
    assert rig.engine.held(KEY) is None


@pytest.mark.parametrize("restarts", [False, True])
def test_an_older_version_does_not_bring_a_deleted_record_back(rig: Rig, restarts: bool) -> None:
    rig.feed([upsert("1", person(0), version=5)])
    rig.feed([delete("1", 6)])
    if restarts:
        rig.restart()
    rig.feed([upsert("1", person(0), version=4)])
    assert rig.engine.held(KEY) is None
    rig.feed([upsert("1", person(0), version=7)])
    assert rig.engine.held(KEY) is not None
    rig.feed([delete("2", 9), upsert("2", person(1), version=8)])
    assert rig.engine.held(RecordKey("crm", "2")) is None


def test_the_last_record_takes_its_entity_along_and_its_id_is_not_given_again(rig: Rig) -> None:
    rig.feed([upsert("1", person(0)), delete("1"), upsert("1", person(0))])
    assert kinds(rig) == ["created", "retired", "created"]
    assert set(rig.partition().values()) == {"E1"}
    assert rig.state.get_entity("E0").retired
    assert rig.state.successors("E0") == []


def test_what_is_not_there_cannot_be_deleted(rig: Rig) -> None:
    rig.feed([delete("1")])
    assert rig.messages == []
    assert rig.engine.counts["stale"] == 1
    assert rig.engine.position("input") == {"gone": "1"}


def test_retired_ids_forward(rig: Rig) -> None:
    """Two people become one when the record between them arrives; its id leads to what is left."""
    rig.feed(upserts([("1", person(0)), ("2", person(1)), ("3", person(1))]))
    rig.feed([upsert("1", person(1))])
    assert kinds(rig, 3) == ["merged", "changed"]
    rig.restart()
    assert [row.id for row in rig.state.successors("E0")] == ["E1"]


def test_what_cannot_be_read_is_told_of(rig: Rig) -> None:
    rig.feed([BAD, upsert("1", person(0)), BAD])
    letters = rig.values(DEAD_LETTERS)
    assert [(x["reason"], x["position"], x["seq"]) for x in letters] == [
        ("bad_json", {"line": 7}, 0),
        ("bad_json", {"line": 7}, 3),
    ]
    assert rig.engine.counts["rejected"] == 2
    assert rig.state.counters.processed == 3


@pytest.mark.parametrize("fields", [{}, {"given": None}, {"note": "ignored"}, {"family": "N/A"}])
def test_a_record_with_nothing_to_compare_is_alone(rig: Rig, fields: dict[str, str | None]) -> None:
    rig.feed([upsert("1", fields), upsert("2", fields), upsert("3", person(0))])
    assert len(rig.clusters()) == 3
    rig.restart()
    rig.feed([upsert("1", variant(0, 1)), upsert("3", fields)])
    rig.engine.resolver.check()
    assert len(rig.clusters()) == 3


def test_positions_of_sources_are_kept_apart(rig: Rig) -> None:
    rig.feed([upsert("1", person(0))], "a.jsonl")
    rig.feed([upsert("2", person(1)), BAD], "b.jsonl")
    rig.restart()
    assert rig.engine.position("a.jsonl") == {"id": "1"}
    assert rig.engine.position("b.jsonl") == {"line": 7}
    assert rig.engine.position("c.jsonl") is None
    assert {n: p.consumed for n, p in rig.state.positions().items()} == {"a.jsonl": 1, "b.jsonl": 2}


def test_an_empty_batch_writes_nothing(rig: Rig) -> None:
    before = rig.state.counters
    assert rig.engine.process([], "input") == 0
    assert rig.state.counters is before


class TestRefits:
    def test_they_come_at_their_counts_wherever_batches_end(self, tmp_path: Path) -> None:
        config = small_config(model={"refit_at": [3, 6, 7]})
        records = upserts(crowd(9))
        for size in (1, 2, 9):
            rig = Rig(config, tmp_path / str(size))
            for begin in range(0, 9, size):
                rig.feed(records[begin : begin + size])
            assert rig.engine.counts["refits"] == 3
            assert rig.engine.resolver.model.fitted_at == 7

    def test_bad_items_count_and_nothing_is_enough_to_fit_to(self, tmp_path: Path) -> None:
        rig = Rig(small_config(model={"refit_at": [2]}), tmp_path)
        rig.feed([BAD, BAD, BAD])
        assert rig.engine.resolver.model.version == 1
        rig.feed(upserts(crowd(5)))
        rig.engine.resolver.check()

    def test_one_that_a_crash_prevented_is_made_up_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = small_config(model={"refit_at": [4]})
        expected = Rig(config, tmp_path / "expected")
        expected.feed(upserts(crowd(8)))
        rig = Rig(config, tmp_path / "crashed")
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "refit", lambda self: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                rig.feed(upserts(crowd(8)))
        rig.restart()
        assert rig.engine.resolver.model.fitted_at == 4
        rig.feed(upserts(crowd(8))[4:])
        assert rig.answer() == expected.answer()

    def test_what_they_change_is_published(self, tmp_path: Path) -> None:
        """A value that only later proves common no longer holds two people together."""
        rig = Rig(small_config(model={"refit_at": [120]}), tmp_path)
        phone = {"phone": person(0)["phone"]}
        rig.feed(upserts((str(i), {**person(i), **phone}) for i in range(119)))
        before = len(rig.messages)
        rig.feed([upsert("last", {**person(119), **phone})])
        updates = [v for v in rig.values(ENTITY_UPDATES) if v["seq"] >= before]
        assert {v["cause"]["kind"] for v in updates} == {"record", "refit"}
        assert replayed(rig.values(ENTITY_UPDATES)) == rig.partition()
        assert len(rig.clusters()) == 120

    def test_only_the_model_in_use_is_kept(self, tmp_path: Path) -> None:
        rig = Rig(small_config(), tmp_path)
        rig.feed(upserts(crowd(20)))
        assert rig.state.model_versions() == [rig.engine.resolver.model.version] == [2]


class TestStarting:
    def test_other_settings_are_refused(self, rig: Rig) -> None:
        rig.feed([upsert("1", person(0))])
        rig.config = small_config(model={"refit_at": []}, matching={"evidence_fields": 3})
        with pytest.raises(ConfigError, match=r"matching\.evidence_fields: 2 .* 3 now"):
            rig.restart()

    def test_settings_that_the_state_does_not_depend_on_may_change(self, rig: Rig) -> None:
        rig.feed([upsert("1", person(0))])
        rig.config = small_config(model={"refit_at": []}, state={"batch_records": 9})
        rig.restart()
        assert len(rig.engine) == 1

    def test_a_missing_model_is_an_error(self, rig: Rig) -> None:
        batch = rig.state.batch()
        batch.delete_model(0)
        batch.commit()
        with pytest.raises(StoreError, match="model 0 is missing"):
            rig.restart()

    def test_snapshots_of_batches_never_committed_are_removed(self, tmp_path: Path) -> None:
        rig = Rig(small_config(), tmp_path)
        rig.feed(upserts(crowd(20)))
        kept = sorted(rig.data_dir.index.iterdir())
        for beyond in (1, 2):
            number = rig.state.counters.index_log + beyond
            shutil.copy(kept[-1], rig.data_dir.index / f"index-{number:020d}.bin")
        rig.restart()
        assert sorted(rig.data_dir.index.iterdir()) == kept

    def test_a_lost_index_is_rebuilt_and_told_of(self, tmp_path: Path) -> None:
        rig = Rig(small_config(), tmp_path)
        rig.feed(upserts(crowd(20)))
        for path in rig.data_dir.index.iterdir():
            path.write_bytes(path.read_bytes()[:-1])
        rig.events.clear()
        rig.restart()
        assert "index_damaged" in rig.events
        assert "index_rebuilt" in rig.events
        rig.events.clear()
        rig.feed(upserts(crowd(10, seed=1)))
        rig.restart()
        assert "index_rebuilt" not in rig.events, "its snapshot was stored with the next batch"


class TestOnFiles:
    MALFORMED = (
        b'{"id":',
        b"null",
        b"[]",
        b'{"given":"Ann"}',
        b'{"id":"3","given":NaN}',
        b'{"id":"3","id":"4"}',
        b'{"id":"3","given":{"a":1}}',
        b'{"id":"3","given":"' + b"x" * 5_000_000 + b'"}',
        b"\xff\xfe",
    )

    def test_malformed_lines_are_told_of_and_leave_the_rest_as_it_would_be(
        self, tmp_path: Path
    ) -> None:
        good = [json.dumps({"id": id_, **fields}).encode() for id_, fields in crowd(27)]
        mixed = [line for i in range(27) for line in (self.MALFORMED[i // 3], good[i])]
        config = small_config(model={"refit_at": [], "refit_at_end": True})
        for name, lines in (("good", good), ("mixed", mixed)):
            path = tmp_path / f"{name}.jsonl"
            path.write_bytes(b"".join(line + b"\n" for line in lines))
            resolve(config, tmp_path / name, path)

        lines = outputs(tmp_path / "mixed")["dead-letters.jsonl"].splitlines()
        letters = [json.loads(line) for line in lines]
        assert [x["reason"] for x in letters[::3]] == [
            "bad_json",
            "not_an_object",
            "not_an_object",
            "missing_id",
            "not_finite",
            "duplicate_key",
            "wrong_type",
            "field_too_large",
            "invalid_utf8",
        ]
        assert [x["position"]["line"] for x in letters] == list(range(1, 54, 2))
        for name in ("entity-updates.jsonl", "assignments.jsonl"):
            told = []
            for folder in ("good", "mixed"):
                messages = map(json.loads, outputs(tmp_path / folder)[name].splitlines())
                told.append([{**m, "seq": 0, "cause": 0} for m in messages])
            assert told[0] == told[1]

    def test_running_again_adds_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text("".join(json.dumps({"id": i, **f}) + "\n" for i, f in crowd(20)))
        resolve(small_config(), tmp_path / "data", path)
        before = outputs(tmp_path / "data")
        resolve(small_config(), tmp_path / "data", path)
        assert outputs(tmp_path / "data") == before

    def test_the_fields_found_at_first_are_kept_without_the_marker_of_the_format(
        self, tmp_path: Path
    ) -> None:
        """Without FORMAT the store must not be taken for a new one and the input for unread."""
        path = tmp_path / "a.jsonl"
        lines = [json.dumps({"id": i, **f}) + "\n" for i, f in crowd(20)]
        lines += [json.dumps({"id": "0", **person(7)}) + "\n"]
        path.write_text("".join(lines))
        resolve(Config(), tmp_path / "data", path)
        before = outputs(tmp_path / "data")
        (tmp_path / "data" / "FORMAT").unlink()
        resolve(Config(), tmp_path / "data", path)
        assert outputs(tmp_path / "data") == before

    def test_a_stop_is_in_good_order(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text("".join(json.dumps({"id": i, **f}) + "\n" for i, f in crowd(40)))
        config = small_config(state={"batch_records": 7})
        resolve(config, tmp_path / "expected", path)
        for _ in range(8):
            stop = threading.Event()
            observer = Observer(batch=lambda done, stop=stop: stop.set())
            source = open_source(str(path), config.source)
            partition = run(config, tmp_path / "data", [source], stop, observer)
            assert find_problems(partition.state) == []
            partition.close()
        assert outputs(tmp_path / "data") == outputs(tmp_path / "expected")


def test_entity_ids_have_numbers() -> None:
    assert restoring.entity_number(restoring.entity_id(12)) == 12
    with pytest.raises(ValueError, match="E12"):
        restoring.entity_number("12")
