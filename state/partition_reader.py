"""The rows of one topic partition's state, typed: what the command line and a snapshot read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
from state.interfaces import Reader


@dataclass(frozen=True)
class PartitionContents:
    """What an engine needs at once when it starts; records and the index log are iterated."""

    nodes: NodeTable
    entities: list[EntityRow]
    """live and retired, by id"""
    positions: dict[str, Position]
    counters: Counters
    settings: Settings | None
    """None for a state that nothing was written to yet"""
    outbox: list[OutboxRow]
    """messages not trimmed yet, oldest first"""


class PartitionReader:
    """Read access to the state in a store. Every method raises StoreError for damaged rows."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def load(self) -> PartitionContents:
        """Everything an engine needs at once when it starts."""
        return PartitionContents(
            nodes=self.nodes(),
            entities=list(self.entities()),
            positions=self.positions(),
            counters=self.read_counters(),
            settings=self.settings(),
            outbox=list(self.outbox()),
        )

    def get_record(self, key: RecordKey) -> RecordRow | None:
        """One record; None if it is not there."""
        name = keys.record_key(key)
        value = self._reader.get(keys.RECORDS, name)
        return None if value is None else codecs.decode_record(name, value)

    def records(self, source: str | None = None) -> Iterator[RecordRow]:
        """All records, or those of one source, in key order."""
        prefix = b"" if source is None else keys.source_prefix(source)
        for name, value in self._reader.scan(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            yield codecs.decode_record(name, value)

    def deletions(self) -> Iterator[tuple[RecordKey, Stamp]]:
        """Records that were deleted at a version, and that version."""
        for name, value in self._reader.scan(keys.DELETED):
            yield codecs.decode_deletion(name, value)

    def get_node(self, node: int) -> NodeRow | None:
        """One tree node; None if it is not there."""
        value = self._reader.get(keys.NODES, keys.node_key(node))
        return None if value is None else codecs.decode_node(node, value)

    def nodes(self) -> NodeTable:
        """All tree nodes."""
        rows = list(self._reader.scan(keys.NODES))
        return codecs.decode_nodes([key for key, _ in rows], [value for _, value in rows])

    def get_entity(self, entity: str) -> EntityRow | None:
        """One entity, live or retired; None if there never was one of that id."""
        name = keys.text_key(entity)
        value = self._reader.get(keys.ENTITIES, name)
        return None if value is None else codecs.decode_entity(name, value)

    def entities(self) -> Iterator[EntityRow]:
        """All entities, live and retired, by id."""
        for name, value in self._reader.scan(keys.ENTITIES):
            yield codecs.decode_entity(name, value)

    def successors(self, entity: str) -> list[EntityRow]:
        """The live entities that an id stands for now, by id.

        A live entity stands for itself; a retired one for whatever its successors, and theirs,
        have become. Empty for an unknown id and for one whose records were all deleted.
        """
        live, seen, waiting = [], {entity}, [entity]
        while waiting:
            row = self.get_entity(waiting.pop())
            if row is None:
                continue
            if not row.retired:
                live.append(row)
            fresh = [name for name in row.into if name not in seen]
            seen.update(fresh)
            waiting.extend(fresh)
        return sorted(live, key=lambda row: row.id)

    def members(self, entity: EntityRow) -> list[RecordKey]:
        """Keys of an entity's records, in key order; scans all records."""
        leaves, waiting = set(), [] if entity.retired else [entity.root]
        while waiting:
            node = waiting.pop()
            row = self.get_node(node)
            if row is None:
                raise StoreError(
                    f"entity {entity.id} reaches node {node}, which is missing: restore the newest "
                    "checkpoint into an empty data directory"
                )
            if row.left == codecs.NONE:
                leaves.add(node)
            else:
                waiting += [row.left, row.right]
        return [record.key for record in self.records() if record.leaf in leaves]

    def positions(self) -> dict[str, Position]:
        """How far each source has been consumed."""
        rows = self._reader.scan(keys.POSITIONS)
        positions = [codecs.decode_position(key, value) for key, value in rows]
        return {position.source: position for position in positions}

    def outbox(self, after: int = codecs.NONE) -> Iterator[OutboxRow]:
        """Messages with a sequence above `after`, oldest first."""
        for name, value in self._reader.scan(keys.OUTBOX, keys.sequence_key(after + 1)):
            yield codecs.decode_outbox(name, value)

    def index_log(self, start: int = 0) -> Iterator[IndexLogRow]:
        """Changes of the neighbour index from sequence `start` on, oldest first."""
        for name, value in self._reader.scan(keys.INDEX_LOG, keys.sequence_key(start)):
            yield codecs.decode_index_log(name, value)

    def model(self, version: int) -> bytes | None:
        """A model's bytes; None if there is no such version."""
        value = self._reader.get(keys.MODELS, keys.sequence_key(version))
        return None if value is None else codecs.decode_model(version, value)

    def model_versions(self) -> list[int]:
        """Versions of the models kept, ascending."""
        return [keys.parse_sequence_key(name) for name, _ in self._reader.scan(keys.MODELS)]

    def read_counters(self) -> Counters:
        """The counters; all at their start for a new state."""
        value = self._reader.get(keys.META, keys.COUNTERS_KEY)
        return Counters() if value is None else codecs.decode_counters(value)

    def published(self) -> dict[str, int]:
        """The last sequence of each topic that has left the outbox; published, so not lost."""
        value = self._reader.get(keys.META, keys.PUBLISHED_KEY)
        return {} if value is None else codecs.decode_published(value)

    def settings(self) -> Settings | None:
        """What the state was made with; None for a new state."""
        value = self._reader.get(keys.META, keys.SETTINGS_KEY)
        return None if value is None else codecs.decode_settings(value)
