"""The engine of one topic partition: operations in, stored state and messages out.

The order of things, for each batch of operations:

1. each operation changes the answer in memory (`Resolver`);
2. its messages get their numbers and go to the outbox;
3. one atomic write holds records, nodes, entities, positions, index log and outbox;
4. the caller publishes the outbox, which may be repeated after a crash: every message has a number.

What comes out depends on the operations and their order alone, not on how they are batched or on
restarts. A refit of the model happens at fixed counts of processed records, as an operation of its
own: records are embedded again, clustered anew in an order that does not depend on arrival, and
what changed in the entities is published like any other change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import xxhash

from clustering.entities import Change
from clustering.errors import ConfigError
from clustering.features.bags import Bags
from clustering.features.schema import FieldSpec
from clustering.fitting import fit_model
from clustering.model import Model, first_model, with_evidence
from clustering.types import RecordKey
from state.codecs import EntityRow, NodeTable, OutboxRow, Position, RecordRow, Settings
from state.data_dir import DataDir
from state.index_files import IndexSnapshot, save_index
from state.partition_state import Batch, PartitionState
from stream import messages
from stream.config import Config, fingerprint, to_field_specs
from stream.embedding import Embedder
from stream.records import (
    Bad,
    Delete,
    Operation,
    Upsert,
    canonical_json,
    compare_versions,
    content_hash,
)
from stream.resolver import Resolver, Settled
from stream.restoring import Held, drop_uncommitted, entity_id, restore


def scatter(key: RecordKey) -> int:
    """An order of records that has nothing to do with arrival, source or id."""
    return xxhash.xxh3_64_intdigest(messages.record_key_bytes(key))


class Engine:
    """See this module. Not safe for more than one thread."""

    def __init__(
        self,
        config: Config,
        state: PartitionState,
        data_dir: DataDir,
        on_event: Callable[[str, dict[str, Any]], None] = lambda *_: None,
    ) -> None:
        """Take over what the state holds.

        config: with the fields that are compared. on_event: told of refits and rebuilds.
        Raises ConfigError when the state was made with other settings, StoreError when it is
        damaged.
        """
        self.config = config
        self.counts: Counter[str] = Counter()
        self._state = state
        self._data_dir = data_dir
        self._on_event = on_event
        self._specs = to_field_specs(config)
        self._embedder: Embedder
        self._resolver: Resolver
        self._held: dict[RecordKey, Held]
        self._key_of: dict[int, RecordKey]
        self._load()

    # -- operations -----------------------------------------------------------------------------

    def process(self, operations: Iterable[Operation], source: str) -> int:
        """Apply operations that were read from ``source``; returns how many.

        All of them are stored, in one write unless a refit falls between them.
        """
        batch = self._state.batch()
        position: dict[str, Any] | None = None
        stored = self._positions.get(source)
        consumed = 0 if stored is None else stored.consumed
        done = 0
        for operation in operations:
            self._apply(batch, operation)
            position = operation.position
            consumed += 1
            done += 1
            if self.refit_due():
                self._commit(batch, source, consumed, position)
                self.refit()
                batch = self._state.batch()
                position = None
        if position is not None:
            self._commit(batch, source, consumed, position)
        return done

    def refit(self) -> None:
        """Fit the next version of the model to all records held, and cluster them anew by it."""
        records = sorted(self._state.records(), key=lambda row: scatter(row.key))
        bags = [self._embedder.bags(orjson.loads(row.fields)) for row in records]
        by_key = sorted(range(len(records)), key=lambda i: records[i].key)
        old = self._resolver
        model = self._fitted([bags[i] for i in by_key])
        self._on_event("refit", {"model_version": model.version, "records": len(records)})
        embedder = self._embedder.with_model(model)
        resolver = Resolver(model, self.config)
        for row, record_bags in zip(records, bags, strict=True):
            held = self._held[row.key]
            held.leaf = resolver.add(held.arrival, row.key.source, embedder.embed(record_bags))
        resolver.entities = old.entities
        self._embedder, self._resolver = embedder, resolver
        batch = self._state.batch()
        self._settle(batch, messages.refit_cause(model.version))
        resolver.roll_index()
        for row in records:
            batch.put_record(row._replace(leaf=self._held[row.key].leaf))
        resolver.mark_dirty(range(old.tree.n_ids))
        batch.put_model(model.version, model.to_bytes())
        batch.delete_model(old.model.version)
        self._store_tree(batch)
        self._close(batch)
        self.counts["refits"] += 1

    def note_published(self, rows: Iterable[OutboxRow]) -> None:
        """Take note that messages, ascending, are in their files and may leave the outbox."""
        for row in rows:
            self._published[row.topic] = self.published = row.sequence

    # -- reading --------------------------------------------------------------------------------

    @property
    def resolver(self) -> Resolver:
        """The answer in memory, for reading."""
        return self._resolver

    @property
    def embedder(self) -> Embedder:
        """How records are embedded now."""
        return self._embedder

    def position(self, source: str) -> dict[str, Any] | None:
        """Where to read on in a source, or None to begin."""
        stored = self._positions.get(source)
        return None if stored is None else orjson.loads(stored.position)

    def held(self, key: RecordKey) -> Held | None:
        """What is known of a record, or None."""
        return self._held.get(key)

    def key_of(self, arrival: int) -> RecordKey:
        """The key of the record with an arrival number."""
        return self._key_of[arrival]

    def __len__(self) -> int:
        """Number of records held."""
        return len(self._held)

    # -- one operation --------------------------------------------------------------------------

    def _apply(self, batch: Batch, operation: Operation) -> None:
        if isinstance(operation, Upsert):
            self._upsert(batch, operation)
        elif isinstance(operation, Delete):
            self._delete(batch, operation)
        else:
            self._reject(batch, operation)
        batch.count_processed(1)
        self._processed += 1

    def _upsert(self, batch: Batch, record: Upsert) -> None:
        held = self._held.get(record.key)
        digest = content_hash(record.fields)
        stamp = self._gone.get(record.key) if held is None else held.stamp
        if compare_versions(record.version, stamp) < 0:
            self.counts["stale"] += 1
            return
        if held is not None and digest == held.content_hash:
            if record.version is not None and record.version != held.stamp:
                held.stamp = record.version
                self._put_record(batch, record.key, held, record.fields)
            self.counts["duplicate"] += 1
            return
        embedded = self._embedder.embed(self._embedder.bags(record.fields))
        if held is None:
            held = Held(batch.new_arrival(), -1, digest, record.version)
            self._held[record.key] = held
            self._key_of[held.arrival] = record.key
            if self._gone.pop(record.key, None) is not None:
                batch.delete_deletion(record.key)
            self.counts["created"] += 1
        else:
            self._resolver.remove(held.leaf)
            held.content_hash = digest
            held.stamp = record.version if record.version is not None else held.stamp
            self.counts["updated"] += 1
        held.leaf = self._resolver.add(held.arrival, record.key.source, embedded)
        self._put_record(batch, record.key, held, record.fields)
        self._settle(batch, messages.record_cause(record.key, record.position))

    def _delete(self, batch: Batch, record: Delete) -> None:
        held = self._held.get(record.key)
        stamp = self._gone.get(record.key) if held is None else held.stamp
        if compare_versions(record.version, stamp) < 0:
            self.counts["stale"] += 1
            return
        stamp = stamp if record.version is None else record.version
        if stamp is not None:
            # An older version that comes late must not bring the record back.
            self._gone[record.key] = stamp
            batch.put_deletion(record.key, stamp)
        if held is None:
            self.counts["stale"] += 1
            return
        self._resolver.remove(held.leaf)
        self._settle(batch, messages.record_cause(record.key, record.position), [held.arrival])
        gone = messages.assignment(batch.next_outbox, record.key, None, None)
        batch.append_outbox(messages.ASSIGNMENTS, messages.record_key_bytes(record.key), gone)
        batch.delete_record(record.key)
        del self._held[record.key], self._key_of[held.arrival]
        self.counts["deleted"] += 1

    def _reject(self, batch: Batch, bad: Bad) -> None:
        key = b"" if bad.key is None else messages.record_key_bytes(bad.key)
        value = messages.dead_letter(batch.next_outbox, bad)
        batch.append_outbox(messages.DEAD_LETTERS, key, value)
        self.counts["rejected"] += 1

    # -- storing --------------------------------------------------------------------------------

    def _put_record(
        self, batch: Batch, key: RecordKey, held: Held, fields: Mapping[str, Any]
    ) -> None:
        row = RecordRow(
            key, held.leaf, held.arrival, held.content_hash, canonical_json(fields), held.stamp
        )
        batch.put_record(row)

    def _settle(self, batch: Batch, cause: dict[str, Any], removed: Iterable[int] = ()) -> None:
        """Publish and store what changed in the entities since the last time."""
        settled = self._resolver.settle(removed)
        self._publish(batch, settled.changes, cause)
        self._store_entities(batch, settled)

    def _publish(self, batch: Batch, changes: Iterable[Change], cause: dict[str, Any]) -> None:
        for change in changes:
            self.counts[f"entities_{change.kind}"] += 1
            name = entity_id(change.number)
            value = messages.entity_update(
                batch.next_outbox, change, entity_id, self._key_of, cause
            )
            batch.append_outbox(messages.ENTITY_UPDATES, messages.entity_key_bytes(name), value)
            for arrival in sorted(change.members - change.before):
                self._assign(batch, arrival, name, change.version)

    def _assign(self, batch: Batch, arrival: int, name: str, version: int) -> None:
        key = self._key_of[arrival]
        value = messages.assignment(batch.next_outbox, key, name, version)
        batch.append_outbox(messages.ASSIGNMENTS, messages.record_key_bytes(key), value)

    def _store_entities(self, batch: Batch, settled: Settled) -> None:
        for change in settled.changes:
            if not change.members:
                into = tuple(entity_id(n) for n in change.went_into)
                name = entity_id(change.number)
                batch.put_entity(EntityRow(name, -1, change.version, 0, -1, change.number, into))
        for number, root in settled.roots.items():
            entity = self._resolver.entities.get(number)
            if entity is not None:
                size = len(entity.members)
                row = EntityRow(
                    entity_id(number), root, entity.version, size, entity.oldest, number
                )
                batch.put_entity(row)

    def _store_tree(self, batch: Batch) -> None:
        tree = self._resolver.tree
        dirty = np.array(self._resolver.take_dirty_nodes(), np.int64)
        known = dirty[dirty < tree.n_ids]
        used = known[tree.size[known] > 0].astype(np.int32)
        if len(used):
            batch.put_nodes(NodeTable(used, tree.parent[used], tree.left[used], tree.right[used]))
        for node in np.setdiff1d(dirty, used).tolist():
            batch.delete_node(node)
        for event in self._resolver.take_index_events():
            if event.label < 0:
                # A row of its own, so that a snapshot of a batch that is never committed has a
                # number beyond every committed one.
                begin = batch.append_index_remove(0) + 1
                if event.snapshot is not None:
                    dimension = self._resolver.model.dimension
                    snapshot = IndexSnapshot(begin, dimension, len(self), event.snapshot)
                    save_index(self._data_dir.index, snapshot)
                batch.trim_index_log(begin)
            elif event.vector is None:
                batch.append_index_remove(event.label)
            else:
                batch.append_index_add(event.label, event.vector)

    def _commit(self, batch: Batch, source: str, consumed: int, position: dict[str, Any]) -> None:
        self._store_tree(batch)
        row = Position(source, consumed, orjson.dumps(position))
        batch.set_position(row)
        self._close(batch)
        self._positions[source] = row

    def _close(self, batch: Batch) -> None:
        batch.set_next_entity(self._resolver.entities.next_number)
        batch.trim_outbox(self.published, self._published)
        batch.commit()

    # -- fitting --------------------------------------------------------------------------------

    def refit_due(self, at_end: bool = False) -> bool:
        """Whether the model must be fitted now; at the end of an input, when it saw anything."""
        fitted = self._resolver.model.fitted_at
        if at_end:
            return self.config.model.refit_at_end and self._processed > fitted
        return any(fitted < count <= self._processed for count in self.config.model.refit_at)

    def _fitted(self, bags: list[Bags]) -> Model:
        model, matching = self._resolver.model, self.config.matching
        fitted = fit_model(
            self._specs,
            bags,
            self.config.neighbours.dimension,
            matching.evidence_fields,
            self.config.model.seed,
        )
        if matching.model_file is not None:
            # Labels have said more than the records can; only frequencies are counted again.
            fitted = with_evidence(fitted, model.evidence)
        return replace(fitted, version=model.version + 1, fitted_at=self._processed)

    # -- starting -------------------------------------------------------------------------------

    def _load(self) -> None:
        counters = self._state.counters
        if self._state.settings() is None:
            model = self._initial_model()
            batch = self._state.batch()
            settings = orjson.dumps(self.config.model_dump(mode="json"))
            batch.set_settings(Settings(fingerprint(self.config), settings))
            batch.put_model(model.version, model.to_bytes())
            batch.commit()
        drop_uncommitted(self._data_dir.index, counters.index_log)
        restored = restore(self.config, self._state, self._data_dir.index, self._on_event)
        self._embedder, self._resolver = restored.embedder, restored.resolver
        self._held, self._key_of = restored.held, restored.key_of
        self._gone = dict(self._state.deletions())
        self._positions = self._state.positions()
        self._processed = counters.processed
        self.published = -1
        self._published = self._state.published()
        if self.refit_due():
            self.refit()

    def _initial_model(self) -> Model:
        matching = self.config.matching
        if matching.model_file is None:
            return first_model(
                self._specs, self.config.neighbours.dimension, matching.evidence_fields
            )
        return read_model(matching.model_file, self._specs)


def read_model(path: Path, specs: Sequence[FieldSpec]) -> Model:
    """A trained model from a file. Raises ConfigError unless it fits the compared fields."""
    try:
        model = Model.from_bytes(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"matching.model_file: cannot read {path}: {error.strerror}") from error
    mine = [(spec.name, spec.type) for spec in specs]
    if mine != [(spec.name, spec.type) for spec in model.specs]:
        raise ConfigError(
            f"matching.model_file: {path} was trained for other fields "
            f"({', '.join(s.name for s in model.specs)}); train it with this configuration"
        )
    return replace(model, specs=tuple(specs), version=0, fitted_at=0)


__all__ = ["Engine", "scatter"]
