"""From a stored state back to the answer in memory, for the engine and for whoever only reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from clustering.errors import ConfigError, StoreError
from clustering.model import Model
from clustering.neighbours.hybrid import HybridNeighbours
from clustering.types import RecordKey
from state.codecs import ADD, NodeTable
from state.index_files import list_indexes, load_index
from state.partition_reader import PartitionReader
from stream.config import Config, to_field_specs
from stream.embedding import Embedder
from stream.normalise import Normaliser
from stream.resolver import Resolver, Stored, hybrid_config

OnEvent = Callable[[str, dict[str, Any]], None]

# Sections of the configuration that a stored state depends on.
STATE_SECTIONS = ("fields", "sources", "normalise", "matching", "model", "tree", "neighbours")


@dataclass(slots=True)
class Held:
    """What is kept in memory of a record."""

    arrival: int
    leaf: int
    content_hash: bytes
    stamp: int | float | str | None


@dataclass(frozen=True)
class Restored:
    """The answer in memory, and which record is which."""

    embedder: Embedder
    resolver: Resolver
    held: dict[RecordKey, Held]
    key_of: dict[int, RecordKey]


def entity_id(number: int) -> str:
    """The public id of an entity."""
    return f"E{number}"


def entity_number(name: str) -> int:
    """The number of a public entity id; raises ValueError for what is not one."""
    if not name.startswith("E"):
        raise ValueError(f"{name!r} is not an entity id; ids look like E12")
    return int(name[1:])


def state_settings(config: Config) -> dict[str, Any]:
    """The settings that a stored state depends on: it cannot go on with others."""
    whole = config.model_dump(mode="json")
    return {name: whole[name] for name in STATE_SECTIONS}


def check_settings(config: Config, stored: bytes) -> None:
    """Raise ConfigError when a state was made with other settings than ``config`` has."""
    before, now = orjson.loads(stored), orjson.loads(orjson.dumps(state_settings(config)))
    changed = [
        f"{section}.{key}: {before[section].get(key)!r} in the data directory, "
        f"{now[section].get(key)!r} now"
        for section in STATE_SECTIONS
        for key in sorted({*before[section], *now[section]})
        if before[section].get(key) != now[section].get(key)
    ]
    if changed:
        raise ConfigError(
            "the data directory was made with other settings:\n  "
            + "\n  ".join(changed)
            + "\nuse those settings again, or start a new data directory and feed it the records"
        )


def stored_embedder(config: Config, reader: PartitionReader) -> Embedder:
    """How the state's records are embedded: by the model in use.

    Raises ConfigError when the state was made with other settings, StoreError when it has none.
    """
    settings = reader.settings()
    if settings is None:
        raise StoreError("the data directory is empty: graftd run fills it")
    check_settings(config, settings.schema)
    version = reader.read_counters().model
    blob = reader.model(version)
    if blob is None:
        raise StoreError(
            f"model {version} is missing from the store: restore the newest checkpoint into an "
            "empty data directory"
        )
    normaliser = Normaliser(to_field_specs(config), config.fields, config.normalise)
    return Embedder(Model.from_bytes(blob), normaliser)


def restore(
    config: Config, reader: PartitionReader, index_dir: Path, on_event: OnEvent
) -> Restored:
    """Everything that a state holds, as it was in memory when it was stored.

    on_event: told when the neighbour index has to be rebuilt. Raises as `stored_embedder`.
    """
    embedder = stored_embedder(config, reader)
    resolver = Resolver(embedder.model, config)
    held: dict[RecordKey, Held] = {}
    key_of: dict[int, RecordKey] = {}
    records = []
    for row in reader.records():
        held[row.key] = Held(row.arrival, row.leaf, row.content_hash, row.stamp)
        key_of[row.arrival] = row.key
        embedded = embedder.embed(embedder.bags(orjson.loads(row.fields)))
        records.append(Stored(row.arrival, row.leaf, row.key.source, embedded))
    contents = reader.load()
    live = [(entity_number(e.id), e.root, e.version) for e in contents.entities if not e.retired]
    index = _stored_index(config, reader, index_dir, embedder.model.dimension, on_event)
    resolver.restore(*_links(contents.nodes), records, live, contents.counters.entity, index)
    return Restored(embedder, resolver, held, key_of)


def drop_uncommitted(index_dir: Path, end: int) -> None:
    """Remove index snapshots of batches that a crash came before the commit of.

    end: the index log's next number. Only snapshots of later batches have a greater one. They would
    crowd out, as newer ones, those that the log begins at.
    """
    for path in list_indexes(index_dir):
        if path.stem > f"index-{end:020d}":
            path.unlink()


def _links(nodes: NodeTable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parent, left and right by node id: int32[n], -1 = none."""
    size = int(nodes.ids.max()) + 1 if len(nodes.ids) else 0
    columns = np.full((3, size), -1, np.int32)
    columns[:, nodes.ids] = nodes.parent, nodes.left, nodes.right
    return columns[0], columns[1], columns[2]


def _stored_index(
    config: Config, reader: PartitionReader, directory: Path, dimension: int, on_event: OnEvent
) -> HybridNeighbours | None:
    """The neighbour index as it was, or None when its live vectors are all there is to it.

    A snapshot is of use only with the whole log from its number on: a snapshot of a batch that was
    never committed has a number beyond the log, one that was given up has a gap behind it.
    """
    end = reader.read_counters().index_log
    log = list(reader.index_log())
    for path in list_indexes(directory):
        try:
            snapshot = load_index(path)
            if snapshot.sequence > end or end - snapshot.sequence != len(log):
                continue
            index = HybridNeighbours.restore(snapshot.payload, dimension, hybrid_config(config))
        except StoreError as error:
            on_event("index_damaged", {"path": str(path), "reason": str(error)})
            continue
        for row in log:
            if row.op == ADD:
                index.add(row.label, row.vector)
            else:
                index.remove(row.label)
        return index
    if log:
        on_event("index_rebuilt", {"reason": "its snapshot is missing or damaged"})
    return None


__all__ = [
    "Held",
    "Restored",
    "check_settings",
    "drop_uncommitted",
    "entity_id",
    "entity_number",
    "restore",
    "state_settings",
    "stored_embedder",
]
