"""The typed face of the state: batches, numbers, outbox, forwards, and what find_problems finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from clustering.errors import StoreError
from clustering.types import RecordKey
from state.codecs import (
    ADD,
    REMOVE,
    Counters,
    EntityRow,
    NodeRow,
    NodeTable,
    Position,
    RecordRow,
    Settings,
)
from state.consistency import find_problems
from state.interfaces import Store
from state.memory_store import MemoryStore
from state.partition_state import Batch, PartitionState
from state.rocksdb_store import RocksDBStore


@pytest.fixture(params=["memory", "rocksdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    RocksDBStore.create(tmp_path / "db")
    store = RocksDBStore.open(tmp_path / "db", sync=False)
    yield store
    store.close()


@pytest.fixture
def state(store: Store) -> PartitionState:
    return PartitionState(store)


def record(number: int, leaf: int, source: str = "crm") -> RecordRow:
    key = RecordKey(source, str(number))
    return RecordRow(key, leaf, number, number.to_bytes(16, "big"), b'{"n":%d}' % number)


def put_sound_state(batch: Batch) -> None:
    """Records 0..2; a pair under node 3 and a single one; an older entity merged into the pair."""
    for number in range(3):
        batch.put_record(record(batch.new_arrival(), leaf=number))
    batch.put_nodes(
        NodeTable(
            np.array([0, 1, 2, 3], np.int32),
            np.array([3, 3, -1, -1], np.int32),
            np.array([-1, -1, -1, 0], np.int32),
            np.array([-1, -1, -1, 1], np.int32),
        )
    )
    batch.put_entity(EntityRow("a", root=3, version=2, size=2, oldest=0, created=0))
    batch.put_entity(EntityRow("b", root=-1, version=2, size=0, oldest=1, created=1, into=("a",)))
    batch.put_entity(EntityRow("c", root=2, version=1, size=1, oldest=2, created=2))


def test_a_new_state_is_empty(state: PartitionState) -> None:
    contents = state.load()
    assert contents.counters == Counters()
    assert contents.settings is None
    assert len(contents.nodes.ids) == 0
    assert (contents.entities, contents.positions, contents.outbox) == ([], {}, [])
    assert find_problems(state) == []


def test_everything_committed_is_loaded_again(state: PartitionState, store: Store) -> None:
    batch = state.batch()
    put_sound_state(batch)
    batch.set_next_entity(3)
    batch.count_processed(3)
    batch.set_position(Position("crm", 3, b'{"offset":30}'))
    batch.set_settings(Settings("f00d", b'{"fields":[]}'))
    batch.put_model(1, b"weights")
    assert batch.append_outbox("assignments", b"k0", b"{}") == 0
    assert batch.append_outbox("assignments", b"k1", b"") == 1
    assert batch.append_index_add(0, np.array([1.0, 0.0], np.float32)) == 0
    assert batch.append_index_remove(0) == 1
    batch.commit()

    again = PartitionState(store)
    contents = again.load()
    assert again.counters == contents.counters == Counters(3, 3, 2, 2, 3, 1)
    assert contents.settings == Settings("f00d", b'{"fields":[]}')
    assert contents.positions == {"crm": Position("crm", 3, b'{"offset":30}')}
    assert [entity.id for entity in contents.entities] == ["a", "b", "c"]
    assert contents.nodes.parent.tolist() == [3, 3, -1, -1]
    assert [(m.topic, m.key, m.value) for m in contents.outbox] == [
        ("assignments", b"k0", b"{}"),
        ("assignments", b"k1", b""),
    ]
    log = list(again.index_log())
    assert [(row.op, row.label) for row in log] == [(ADD, 0), (REMOVE, 0)]
    assert log[0].vector.tolist() == [1.0, 0.0]
    assert list(again.records()) == [record(number, number) for number in range(3)]
    assert again.get_record(RecordKey("crm", "1")) == record(1, 1)
    assert again.get_record(RecordKey("erp", "1")) is None
    assert again.get_node(3) == NodeRow(-1, 0, 1)
    assert again.get_node(4) is None
    assert (again.model(1), again.model(2), again.model_versions()) == (b"weights", None, [1])
    assert find_problems(again) == []


def test_rows_are_removed(state: PartitionState) -> None:
    batch = state.batch()
    put_sound_state(batch)
    batch.put_model(1, b"weights")
    batch.commit()
    batch = state.batch()
    batch.delete_record(RecordKey("crm", "2"))
    batch.delete_node(2)
    batch.put_node(3, NodeRow(-1, 1, 0))
    batch.put_model(2, b"better")
    batch.delete_model(1)
    batch.commit()
    assert len(list(state.records())) == 2
    assert state.get_node(2) is None
    assert state.get_node(3) == NodeRow(-1, 1, 0)
    assert state.model_versions() == [2]
    assert state.counters.model == 2


def test_records_of_one_source(state: PartitionState) -> None:
    batch = state.batch()
    for source in ("crm", "cr", "erp", "crmx"):
        batch.put_record(record(1, 1, source))
    batch.commit()
    assert [row.key.source for row in state.records("crm")] == ["crm"]
    assert list(state.records("nobody")) == []


def test_numbers_of_a_batch_given_up_are_given_again(state: PartitionState) -> None:
    for _ in range(2):
        batch = state.batch()
        assert batch.next_outbox == 0
        assert (batch.new_arrival(), batch.append_outbox("t", b"", b"")) == (0, 0)
        assert batch.next_outbox == 1
    batch.commit()
    batch = state.batch()
    assert (batch.new_arrival(), batch.append_outbox("t", b"", b"")) == (1, 1)


def test_entity_numbers_never_go_back(state: PartitionState) -> None:
    batch = state.batch()
    batch.set_next_entity(5)
    batch.set_next_entity(3)
    batch.commit()
    assert state.counters.entity == 5


def test_a_batch_commits_once_and_not_after_another(state: PartitionState) -> None:
    first, second = state.batch(), state.batch()
    first.new_arrival()
    first.commit()
    for late in (first, second):
        with pytest.raises(StoreError, match="begin it again"):
            late.commit()
    assert state.counters.arrival == 1


def test_the_outbox_is_trimmed_from_its_oldest_end(state: PartitionState, store: Store) -> None:
    def sequences() -> list[int]:
        return [message.sequence for message in state.outbox()]

    batch = state.batch()
    for _ in range(6):
        batch.append_outbox("t", b"", b"{}")
    batch.commit()
    batch = state.batch()
    batch.trim_outbox(2, {})
    batch.trim_outbox(1, {})
    batch.commit()
    assert sequences() == [3, 4, 5]
    assert [message.sequence for message in state.outbox(after=4)] == [5]

    state = PartitionState(store)
    batch = state.batch()
    batch.trim_outbox(5, {})
    batch.append_outbox("t", b"", b"{}")
    batch.commit()
    assert sequences() == [6], "numbers go on although the outbox was empty"
    batch = PartitionState(store).batch()
    batch.trim_outbox(6, {})
    batch.commit()
    assert PartitionState(store).batch().append_outbox("t", b"", b"{}") == 7


def test_the_index_log_is_trimmed_below_a_snapshot(state: PartitionState) -> None:
    batch = state.batch()
    for label in range(5):
        batch.append_index_add(label, np.ones(2, np.float32))
    batch.trim_index_log(3)
    batch.commit()
    assert [row.label for row in state.index_log()] == [3, 4]
    assert [row.label for row in state.index_log(start=4)] == [4]


def test_retired_ids_lead_to_what_is_live(state: PartitionState) -> None:
    into = {"a": ("b", "c"), "b": ("d",), "c": ("d", "e"), "x": ("y",), "y": ("x",), "gone": ()}
    batch = state.batch()
    for name, names in into.items():
        batch.put_entity(EntityRow(name, -1, 1, 0, 0, 0, names))
    for root, name in enumerate(("d", "e")):
        batch.put_entity(EntityRow(name, root, 1, 1, 0, 0))
    batch.commit()

    def live(name: str) -> list[str]:
        return [entity.id for entity in state.successors(name)]

    assert live("a") == ["d", "e"]
    assert live("b") == live("d") == ["d"]
    assert live("gone") == live("nobody") == live("x") == []
    assert "retired entities in a cycle: x, y" in find_problems(state)


def test_members_are_the_records_below_the_root(state: PartitionState) -> None:
    batch = state.batch()
    put_sound_state(batch)
    batch.commit()
    (live,) = state.successors("b")
    assert state.members(live) == [RecordKey("crm", "0"), RecordKey("crm", "1")]
    retired = state.get_entity("b")
    assert retired is not None
    assert state.members(retired) == []
    batch = state.batch()
    batch.delete_node(1)
    batch.commit()
    with pytest.raises(StoreError, match="node 1, which is missing"):
        state.members(live)


def go_round(batch: Batch) -> None:
    batch.put_node(3, NodeRow(4, 0, 1))
    batch.put_node(4, NodeRow(5, 3, 2))
    batch.put_node(5, NodeRow(4, 4, 2))


SPOILS: dict[str, tuple[Callable[[Batch], None], str]] = {
    "a node's link leads nowhere": (
        lambda batch: batch.delete_node(0),
        "nodes with a link to no node: 3",
    ),
    "a node has one child": (
        lambda batch: batch.put_node(3, NodeRow(-1, 0, -1)),
        "nodes with only one child: 3",
    ),
    "a child has another parent": (
        lambda batch: batch.put_node(0, NodeRow(-1, -1, -1)),
        "nodes whose child names another parent: 3",
    ),
    "a parent has other children": (
        lambda batch: batch.put_node(2, NodeRow(3, -1, -1)),
        "nodes that their parent does not name: 2",
    ),
    "nodes go round": (
        go_round,
        "nodes in a cycle: 0, 1, 3, 4, 5",
    ),
    "a record's leaf is inner": (
        lambda batch: batch.put_record(record(0, leaf=3)),
        "records whose leaf is not a leaf: 3",
    ),
    "two records on one leaf": (
        lambda batch: batch.put_record(record(0, leaf=1)),
        "leaves shared by records: 1",
    ),
    "a leaf without a record": (
        lambda batch: batch.delete_record(RecordKey("crm", "2")),
        "leaves without a record: 2",
    ),
    "a root that is not": (
        lambda batch: batch.put_entity(EntityRow("c", 9, 1, 1, 2, 2)),
        "entities whose root is no node: c",
    ),
    "one entity within another": (
        lambda batch: batch.put_entity(EntityRow("d", 0, 1, 1, 0, 3)),
        "entities within an entity: 0",
    ),
    "two entities on one root": (
        lambda batch: batch.put_entity(EntityRow("d", 3, 1, 2, 0, 3)),
        "entities that share a root",
    ),
    "a record in no entity": (
        lambda batch: batch.put_entity(EntityRow("c", -1, 2, 0, 2, 2, ())),
        "records in no entity: crm:2",
    ),
    "a wrong size": (
        lambda batch: batch.put_entity(EntityRow("c", 2, 2, 4, 2, 2)),
        "entity c has size 4",
    ),
    "a successor that is not": (
        lambda batch: batch.put_entity(EntityRow("b", -1, 2, 0, 1, 1, ("z",))),
        "successors that do not exist: z",
    ),
    "an arrival not yet given": (
        lambda batch: batch.put_record(record(2, leaf=2)._replace(arrival=3)),
        "a record's arrival is not below",
    ),
}


@pytest.mark.parametrize("name", SPOILS)
def test_what_does_not_fit_together_is_found(name: str) -> None:
    state = PartitionState(MemoryStore())
    batch = state.batch()
    put_sound_state(batch)
    batch.commit()
    assert find_problems(state) == []
    spoil, expected = SPOILS[name]
    batch = state.batch()
    spoil(batch)
    batch.commit()
    assert any(expected in problem for problem in find_problems(state)), find_problems(state)
