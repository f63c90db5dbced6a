"""An engine as the daemon drives it, in memory or on disk, for tests to stop and start."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from clustering.types import RecordKey
from state import keys
from state.codecs import OutboxRow
from state.data_dir import DataDir
from state.interfaces import Store
from state.memory_store import MemoryStore
from state.partition_state import PartitionState
from state.rocksdb_store import RocksDBStore
from stream.config import Config
from stream.engine import Engine
from stream.records import Operation, Upsert, Version
from tests.support.people import FIELDS, Fields

CLEAN = ("clean", "pure")
"""Sources without duplicates in `small_config`."""


def small_config(**sections: dict[str, Any]) -> Config:
    """A configuration in which few records reach everything: refits, graph search, snapshots."""
    settings: dict[str, dict[str, Any]] = {
        "fields": FIELDS,
        "sources": {name: {"no_duplicates": True} for name in CLEAN},
        "model": {"refit_at": [5, 12]},
        "neighbours": {
            "exact_below": 6,
            "m": 4,
            "ef_construction": 12,
            "ef_search": 12,
            "dimension": 16,
        },
        "tree": {"neighbours": 5},
        "state": {"sync": False},
    }
    for name, section in sections.items():
        settings[name] = {**settings.get(name, {}), **section}
    return Config.model_validate_json(json.dumps(settings))


class Rig:
    """An engine whose messages are collected as a sink would: each once, in order."""

    def __init__(self, config: Config, root: Path, store: Store | None = None) -> None:
        """store: in memory when None. root: a folder, made if missing, for index snapshots."""
        self.config = config
        self.data_dir = DataDir(root)
        self.data_dir.index.mkdir(parents=True, exist_ok=True)
        self.store = MemoryStore() if store is None else store
        self.messages: list[OutboxRow] = []
        self.events: list[str] = []
        self.start()

    @classmethod
    def on_disk(cls, config: Config, root: Path) -> Rig:
        """A rig whose store is RocksDB in ``root``, as it was left there or a new one."""
        root.mkdir(parents=True, exist_ok=True)
        if not (root / "db").exists():
            RocksDBStore.create(root / "db")
        return cls(config, root, RocksDBStore.open(root / "db", sync=False))

    def start(self) -> None:
        """Open the engine on what the store holds, and publish what it left."""
        self.state = PartitionState(self.store)
        self.engine = Engine(
            self.config, self.state, self.data_dir, lambda name, details: self.events.append(name)
        )
        self.publish()

    def restart(self) -> None:
        """Stop without a word and start again."""
        if isinstance(self.store, RocksDBStore):
            self.store.close()
            self.store = RocksDBStore.open(self.data_dir.db, sync=False)
        self.start()

    def feed(self, operations: Iterable[Operation], source: str = "input") -> None:
        """Process a batch and publish what it says."""
        self.engine.process(operations, source)
        self.publish()

    def publish(self) -> None:
        """Collect the messages that were not collected before."""
        last = self.messages[-1].sequence if self.messages else -1
        rows = list(self.state.outbox(self.engine.published))
        self.messages += [row for row in rows if row.sequence > last]
        self.engine.note_published(rows)

    def values(self, topic: str) -> list[dict[str, Any]]:
        """The messages of one topic, decoded."""
        return [orjson.loads(row.value) for row in self.messages if row.topic == topic]

    def partition(self) -> dict[frozenset[RecordKey], str]:
        """The entities now: their records and ids."""
        engine = self.engine
        return {
            frozenset(engine.key_of(a) for a in entity.members): f"E{entity.number}"
            for entity in engine.resolver.entities.live()
        }

    def clusters(self) -> set[frozenset[str]]:
        """The entities now as sets of record ids, for tests with one source."""
        return {frozenset(key.id for key in members) for members in self.partition()}

    def answer(self) -> dict[str, Any]:
        """All that must not depend on batching and restarts."""
        engine = self.engine
        tree = engine.resolver.tree
        used = [node for node in range(tree.n_ids) if tree.size[node] > 0]
        families = {
            name: list(self.store.scan(name))
            for name in (keys.RECORDS, keys.NODES, keys.ENTITIES, keys.POSITIONS, keys.MODELS)
        }
        return {
            "messages": self.messages,
            "partition": self.partition(),
            "versions": [(e.number, e.version) for e in engine.resolver.entities.live()],
            "next_entity": engine.resolver.entities.next_number,
            "tree": [(n, int(tree.parent[n]), int(tree.left[n]), int(tree.right[n])) for n in used],
            "scores": tree.score[used].tobytes(),
            "aggregates": tree.aggregates[used].tobytes(),
            **families,
        }

    def close(self) -> None:
        """Give the store back."""
        self.store.close()


def upsert(id_: str, fields: Fields, source: str = "crm", version: Version = None) -> Upsert:
    """An upsert at the position of its id."""
    return Upsert(RecordKey(source, id_), fields, version, {"id": id_})


def upserts(records: Iterable[tuple[str, Fields]], source: str = "crm") -> list[Operation]:
    """Upserts of records of one source."""
    return [upsert(id_, fields, source) for id_, fields in records]


def replayed(values: Sequence[dict[str, Any]]) -> dict[frozenset[RecordKey], str]:
    """The table that a subscriber to entity updates has after these messages."""
    table: dict[str, frozenset[RecordKey]] = {}
    for value in values:
        members = frozenset(RecordKey(m["source"], m["id"]) for m in value["members"])
        if members:
            table[value["entity_id"]] = members
        else:
            table.pop(value["entity_id"], None)
    return {members: name for name, members in table.items()}


def assigned(values: Sequence[dict[str, Any]]) -> dict[frozenset[RecordKey], str]:
    """The table that a subscriber to assignments has after these messages."""
    of = {RecordKey(v["source"], v["id"]): v["entity_id"] for v in values}
    table: dict[str, set[RecordKey]] = {}
    for key, name in of.items():
        if name is not None:
            table.setdefault(name, set()).add(key)
    return {frozenset(members): name for name, members in table.items()}


__all__ = ["CLEAN", "Rig", "assigned", "replayed", "small_config", "upsert", "upserts"]
