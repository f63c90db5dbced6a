"""A data directory for reading, as it was at one moment, also while a daemon runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import orjson

from clustering.errors import GraftdError, StoreError
from clustering.grinch import GrinchTree
from clustering.types import RecordKey
from state import keys
from state.codecs import NONE, EntityRow, NodeTable, RecordRow
from state.data_dir import DataDir, check_format
from state.partition_reader import PartitionReader
from state.rocksdb_store import RocksDBReader
from stream.config import Config
from stream.embedding import Embedder
from stream.resolver import Resolver, Stored
from stream.restoring import Restored, restore, stored_embedder
from stream.run import stored_config

Nodes = npt.NDArray[np.int32]


class NotFoundError(GraftdError):
    """Nothing in the data directory has that name; check the name."""

    exit_code = 1


@dataclass(frozen=True)
class Grove:
    """A part of the tree in memory, with the node ids that it has in the store."""

    tree: GrinchTree
    records: dict[int, RecordRow]
    """the record at each leaf"""


class View:
    """What a data directory holds. Open with `View.open`; nothing in it is changed."""

    def __init__(self, root: Path, reader: RocksDBReader) -> None:
        self.data_dir = DataDir(root)
        self._store = reader
        self.rows = PartitionReader(reader)
        settings = self.rows.settings()
        if settings is None:
            raise StoreError(f"{root} is empty: graftd run fills it")
        self.config: Config = stored_config(settings)
        self._embedder: Embedder | None = None
        self._nodes: tuple[Nodes, Nodes, Nodes] | None = None

    @classmethod
    def open(cls, root: Path) -> Self:
        """Open for reading. Raises StoreError for what is not a data directory, or damaged."""
        if not root.is_dir():
            raise StoreError(
                f"there is no data directory {root}: check the path, or fill it with graftd run"
            )
        data_dir = DataDir(root)
        check_format(data_dir)
        reader = RocksDBReader.open(data_dir.db)
        try:
            return cls(root, reader)
        except BaseException:
            reader.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    # -- names ----------------------------------------------------------------------------------

    def sources(self) -> list[str]:
        """The sources that have records, in key order; reads one row of each."""
        found: list[str] = []
        start: bytes | None = b""
        while start is not None:
            first = next(self._store.scan(keys.RECORDS, start), None)
            if first is None:
                break
            found.append(keys.parse_record_key(first[0]).source)
            start = keys.prefix_end(keys.source_prefix(found[-1]))
        return found

    def find(self, name: str) -> RecordKey:
        """The record that a name stands for: ``source:id``, or an id that one source has.

        Raises NotFoundError when there is none, or more than one.
        """
        parts = name.split(":")
        named = [RecordKey(":".join(parts[:i]), ":".join(parts[i:])) for i in range(1, len(parts))]
        keyed = [*named, *(RecordKey(source, name) for source in self.sources())]
        found = [key for key in keyed if key.source and self.rows.get_record(key) is not None]
        if not found:
            raise NotFoundError(
                f"no record {name} in {self.data_dir.root}; name it as SOURCE:ID, or ID alone "
                f"(sources: {', '.join(self.sources()) or 'none'})"
            )
        if len(found) > 1:
            raise NotFoundError(f"{name} could be any of {', '.join(map(str, found))}; name one")
        return found[0]

    def record(self, key: RecordKey) -> RecordRow:
        """One record. Raises NotFoundError."""
        row = self.rows.get_record(key)
        if row is None:
            raise NotFoundError(f"no record {key} in {self.data_dir.root}")
        return row

    def entities_named(self, name: str) -> list[EntityRow]:
        """The live entities that a name stands for, by id.

        An entity's id stands for itself or, once retired, for what its records went into; a
        record's name (as for `find`) for its entity. Raises NotFoundError when nothing is left.
        """
        row = self.rows.get_entity(name)
        if row is None:
            return [self.entity_of(self.record(self.find(name)))]
        found = self.rows.successors(name)
        if not found:
            raise NotFoundError(f"{name} is retired: its records were all deleted")
        return found

    # -- entities -------------------------------------------------------------------------------

    def assignments(self) -> Iterator[tuple[RecordKey, str]]:
        """Every record with the id of its entity, in key order."""
        entities, of_node = self._entities_of_nodes()
        for row in self.rows.records():
            yield row.key, entities[int(of_node[row.leaf])].id

    def entity_of(self, row: RecordRow) -> EntityRow:
        """The entity that a record is in."""
        entities, of_node = self._entities_of_nodes()
        return entities[int(of_node[row.leaf])]

    def members(self, entity: EntityRow) -> list[RecordRow]:
        """The records of a live entity, in order of arrival."""
        return [self.record(key) for key in self.rows.members(entity)]

    def _entities_of_nodes(self) -> tuple[list[EntityRow], npt.NDArray[np.int64]]:
        """All live entities, and the index of each node's one among them, -1 for none."""
        entities = [row for row in self.rows.entities() if not row.retired]
        parent, _, _ = self.links()
        of_node = np.full(len(parent), NONE, np.int64)
        of_node[[row.root for row in entities]] = np.arange(len(entities))
        jump = np.where((of_node != NONE) | (parent == NONE), np.arange(len(parent)), parent)
        for _ in range(len(parent).bit_length()):
            jump = jump[jump]
        return entities, of_node[jump]

    # -- tree -----------------------------------------------------------------------------------

    def links(self) -> tuple[Nodes, Nodes, Nodes]:
        """Parent, left and right of each node id: int32[n], -1 = none."""
        if self._nodes is None:
            table: NodeTable = self.rows.nodes()
            size = int(table.ids.max()) + 1 if len(table.ids) else 0
            links = np.full((3, size), NONE, np.int32)
            links[:, table.ids] = table.parent, table.left, table.right
            self._nodes = links[0], links[1], links[2]
        return self._nodes

    def path(self, node: int) -> list[int]:
        """Node ids from a node up to its top, both included."""
        parent, _, _ = self.links()
        path = [node]
        while (above := int(parent[path[-1]])) != NONE:
            path.append(above)
        return path

    @property
    def embedder(self) -> Embedder:
        """How the records are embedded: by the model in use."""
        if self._embedder is None:
            self._embedder = stored_embedder(self.config, self.rows)
        return self._embedder

    def fields(self, row: RecordRow) -> dict[str, Any]:
        """A record's fields as received, those of the configuration first."""
        fields: dict[str, Any] = orjson.loads(row.fields)
        known = {name: fields[name] for name in self.config.fields if name in fields}
        return known | fields

    def grove(self, root: int) -> Grove:
        """The tree at and below a node, with linkages computed as they were."""
        links = self.links()
        inside = np.zeros(len(links[0]), np.bool_)
        waiting = [root]
        while waiting:
            node = waiting.pop()
            inside[node] = True
            waiting += [int(side[node]) for side in links[1:] if side[node] != NONE]
        parent, left, right = (np.where(inside, side, NONE).astype(np.int32) for side in links)
        parent[root] = NONE
        rows = {row.leaf: row for row in self.rows.records() if inside[row.leaf]}
        embedder = self.embedder
        stored = [
            Stored(
                row.arrival, leaf, row.key.source, embedder.embed(embedder.bags(self.fields(row)))
            )
            for leaf, row in rows.items()
        ]
        resolver = Resolver(embedder.model, self.config)
        resolver.restore(parent, left, right, stored, [], 0, None)
        return Grove(resolver.tree, rows)

    def restored(self) -> Restored:
        """Everything, as a daemon would have it in memory."""
        return restore(self.config, self.rows, self.data_dir.index, lambda *_: None)


__all__ = ["Grove", "NotFoundError", "View"]
