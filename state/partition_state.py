"""The state of one topic partition as its engine changes it: one atomic batch at a time.

A batch holds everything that a batch of input changed: records, nodes, entities, consumed
positions, and the messages that tell of it. So after a crash either all of it is there or none.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from clustering.errors import StoreError
from clustering.types import RecordKey
from state import codecs, keys
from state.codecs import (
    Counters,
    EntityRow,
    IndexLogRow,
    NodeRow,
    NodeTable,
    OutboxRow,
    Position,
    RecordRow,
    Settings,
    Stamp,
)
from state.interfaces import Store, WriteBatch
from state.partition_reader import PartitionReader

_NO_VECTOR: NDArray[np.float32] = np.empty(0, np.float32)


class PartitionState(PartitionReader):
    """Read and write access for the engine, the only writer."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._store = store
        self.counters = self.read_counters()
        """as of the last commit"""
        self._oldest = {
            keys.OUTBOX: self._first(keys.OUTBOX, self.counters.outbox),
            keys.INDEX_LOG: self._first(keys.INDEX_LOG, self.counters.index_log),
        }

    def batch(self) -> Batch:
        """Begin a batch. One at a time: a batch begun before another's commit cannot commit."""
        return Batch(self)

    def _first(self, family: str, otherwise: int) -> int:
        for name, _ in self._store.scan(family):
            return keys.parse_sequence_key(name)
        return otherwise

    def _commit(self, batch: Batch, after: Counters) -> None:
        if self.counters is not batch.before:
            raise StoreError("another batch was committed since this one began: begin it again")
        self._store.write(batch.changes)
        self.counters = after
        self._oldest = batch.oldest


class Batch:
    """Changes to commit together. Numbers it gives out count only once it is committed."""

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self.before = state.counters
        self.oldest = state._oldest.copy()
        self.changes = WriteBatch()
        self._entity, self._arrival, self._outbox, self._index_log, self._processed, self._model = (
            state.counters
        )

    @property
    def next_outbox(self) -> int:
        """The sequence that the next message gets."""
        return self._outbox

    def set_next_entity(self, number: int) -> None:
        """Say which entity number comes next; never less than before."""
        self._entity = max(self._entity, number)

    def new_arrival(self) -> int:
        """The next arrival number, for a record not seen before."""
        self._arrival += 1
        return self._arrival - 1

    def count_processed(self, records: int) -> None:
        """Add to the number of records processed."""
        self._processed += records

    def put_record(self, row: RecordRow) -> None:
        """Set a record."""
        self.changes.put(keys.RECORDS, keys.record_key(row.key), codecs.encode_record(row))

    def delete_record(self, key: RecordKey) -> None:
        """Remove a record."""
        self.changes.delete(keys.RECORDS, keys.record_key(key))

    def put_deletion(self, key: RecordKey, stamp: Stamp) -> None:
        """Remember the version at which a record was deleted."""
        self.changes.put(keys.DELETED, keys.record_key(key), codecs.encode_deletion(stamp))

    def delete_deletion(self, key: RecordKey) -> None:
        """Forget that a record was ever deleted."""
        self.changes.delete(keys.DELETED, keys.record_key(key))

    def put_node(self, node: int, row: NodeRow) -> None:
        """Set a tree node."""
        self.changes.put(keys.NODES, keys.node_key(node), codecs.encode_node(row))

    def put_nodes(self, table: NodeTable) -> None:
        """Set many tree nodes: columns int32[n]; any order, each id once."""
        for key, value in codecs.encode_nodes(table):
            self.changes.put(keys.NODES, key, value)

    def delete_node(self, node: int) -> None:
        """Remove a tree node."""
        self.changes.delete(keys.NODES, keys.node_key(node))

    def put_entity(self, row: EntityRow) -> None:
        """Set an entity, live or retired."""
        self.changes.put(keys.ENTITIES, keys.text_key(row.id), codecs.encode_entity(row))

    def set_position(self, row: Position) -> None:
        """Set how far a source is consumed."""
        self.changes.put(keys.POSITIONS, keys.text_key(row.source), codecs.encode_position(row))

    def set_settings(self, row: Settings) -> None:
        """Set what the state is made with."""
        self.changes.put(keys.META, keys.SETTINGS_KEY, codecs.encode_settings(row))

    def append_outbox(self, topic: str, key: bytes, value: bytes) -> int:
        """Add a message to publish, an empty value for a tombstone; gives its sequence."""
        row = OutboxRow(self._outbox, topic, key, value)
        self.changes.put(keys.OUTBOX, keys.sequence_key(row.sequence), codecs.encode_outbox(row))
        self._outbox += 1
        return row.sequence

    def trim_outbox(self, up_to: int, last: Mapping[str, int]) -> None:
        """Remove the messages up to and including sequence `up_to`, once they are published.

        last: the sequence of each topic's last published message.
        """
        self._trim(keys.OUTBOX, up_to + 1)
        if last:
            value = codecs.encode_published(last)
            self.changes.put(keys.META, keys.PUBLISHED_KEY, value)

    def put_model(self, version: int, blob: bytes) -> None:
        """Keep a model and make it the one in use."""
        self.changes.put(keys.MODELS, keys.sequence_key(version), codecs.encode_model(blob))
        self._model = version

    def delete_model(self, version: int) -> None:
        """Remove a model that nothing needs any more."""
        self.changes.delete(keys.MODELS, keys.sequence_key(version))

    def append_index_add(self, label: int, vector: NDArray[np.float32]) -> int:
        """Log that a vector float32[d] was added to the neighbour index; gives its sequence."""
        return self._append_index_log(codecs.ADD, label, vector)

    def append_index_remove(self, label: int) -> int:
        """Log that a label was removed from the neighbour index; gives its sequence."""
        return self._append_index_log(codecs.REMOVE, label, _NO_VECTOR)

    def trim_index_log(self, start: int) -> None:
        """Remove the rows below sequence `start`, once a snapshot of the index holds them."""
        self._trim(keys.INDEX_LOG, start)

    def commit(self) -> None:
        """Write all of it atomically. Raises StoreError, also for a second commit."""
        after = Counters(
            self._entity,
            self._arrival,
            self._outbox,
            self._index_log,
            self._processed,
            self._model,
        )
        self.changes.put(keys.META, keys.COUNTERS_KEY, codecs.encode_counters(after))
        self._state._commit(self, after)

    def _append_index_log(self, op: int, label: int, vector: NDArray[np.float32]) -> int:
        row = IndexLogRow(self._index_log, op, label, vector)
        name = keys.sequence_key(row.sequence)
        self.changes.put(keys.INDEX_LOG, name, codecs.encode_index_log(row))
        self._index_log += 1
        return row.sequence

    def _trim(self, family: str, end: int) -> None:
        """Remove numbered rows below `end`: one by one, as each range deletion slows every scan."""
        for sequence in range(self.oldest[family], end):
            self.changes.delete(family, keys.sequence_key(sequence))
        self.oldest[family] = max(self.oldest[family], end)
