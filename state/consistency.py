"""Do the rows of a partition agree with each other? For `verify`, and for tests."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from state.codecs import NONE, Counters, EntityRow, NodeTable, RecordRow
from state.partition_reader import PartitionReader

_SHOWN = 5
_DANGLING = -2

Ints = NDArray[np.int64]


def find_problems(partition: PartitionReader) -> list[str]:
    """What does not fit together, in words; empty for a sound state.

    Reads everything, so a damaged row raises StoreError. Checked: the tree's links agree both ways
    and have no cycle; each record has its own leaf and each leaf its record; each record lies below
    exactly one live entity, whose size and oldest arrival are right; retired entities lead on
    without a cycle; and no number in use is one that the counters would give out again.
    """
    contents = partition.load()
    records = list(partition.records())
    links = _Links(contents.nodes)
    problems = links.problems()
    if not problems:
        problems = _record_problems(records, links)
    if not problems:
        problems = _entity_problems(contents.entities, records, links)
    problems += _retired_problems(contents.entities)
    outbox = [row.sequence for row in contents.outbox]
    index_log = [row.sequence for row in partition.index_log()]
    problems += _number_problems(contents.counters, records, outbox, index_log)
    model = contents.counters.model
    if model != NONE and partition.model(model) is None:
        problems.append(f"model {model} is in use but missing")
    return problems


class _Links:
    """The tree as dense rows: row i is the node ids[i]; links are rows, -1 none, -2 dangling."""

    def __init__(self, nodes: NodeTable) -> None:
        self.ids = nodes.ids.astype(np.int64)
        self.parent, self.left, self.right = (
            self.rows_of(column) for column in (nodes.parent, nodes.left, nodes.right)
        )
        self.leaf = self.left == NONE

    def rows_of(self, nodes: NDArray[np.integer]) -> Ints:
        """Row of each node id; -1 for -1, -2 for an id that is not there."""
        if not len(self.ids):
            return np.where(nodes == NONE, NONE, _DANGLING).astype(np.int64)
        rows = np.minimum(np.searchsorted(self.ids, nodes), len(self.ids) - 1)
        return np.where(nodes == NONE, NONE, np.where(self.ids[rows] == nodes, rows, _DANGLING))

    def problems(self) -> list[str]:
        rows = np.arange(len(self.ids))
        dangling = (self.parent == _DANGLING) | (self.left == _DANGLING) | (self.right == _DANGLING)
        half = (self.left == NONE) != (self.right == NONE)
        problems = _listed("nodes with a link to no node", self.ids[dangling])
        problems += _listed("nodes with only one child", self.ids[half])
        if problems:
            return problems
        inner = rows[~self.leaf]
        astray = (self.parent[self.left[inner]] != inner) | (
            self.parent[self.right[inner]] != inner
        )
        problems += _listed("nodes whose child names another parent", self.ids[inner[astray]])
        below = rows[self.parent != NONE]
        above = self.parent[below]
        unknown = (self.left[above] != below) & (self.right[above] != below)
        problems += _listed("nodes that their parent does not name", self.ids[below[unknown]])
        top = self.climb(rows, self.parent == NONE)
        problems += _listed("nodes in a cycle", self.ids[top == NONE])
        return problems

    def climb(self, start: Ints, stop: NDArray[np.bool_]) -> Ints:
        """The first row at or above each start where `stop` holds; -1 where there is none."""
        jump = np.where(stop | (self.parent == NONE), np.arange(len(self.ids)), self.parent)
        for _ in range(len(self.ids).bit_length()):
            jump = jump[jump]
        reached = jump[start]
        return np.where(stop[reached], reached, NONE)


def _record_problems(records: list[RecordRow], links: _Links) -> list[str]:
    leaves = np.array([record.leaf for record in records], np.int64)
    rows = links.rows_of(leaves)
    astray = (rows < 0) | ~links.leaf[rows] if len(links.ids) else np.ones(len(rows), bool)
    problems = _listed("records whose leaf is not a leaf", leaves[astray])
    values, counts = np.unique(leaves, return_counts=True)
    problems += _listed("leaves shared by records", values[counts > 1])
    problems += _listed("leaves without a record", np.setdiff1d(links.ids[links.leaf], leaves))
    return problems


def _entity_problems(
    entities: list[EntityRow], records: list[RecordRow], links: _Links
) -> list[str]:
    live = [entity for entity in entities if not entity.retired]
    roots = links.rows_of(np.array([entity.root for entity in live], np.int64))
    lost = [entity.id for entity, row in zip(live, roots, strict=True) if row < 0]
    if lost:
        return _listed("entities whose root is no node", lost)
    is_root = np.zeros(len(links.ids), bool)
    is_root[roots] = True
    if is_root.sum() < len(roots):
        return ["entities that share a root"]
    above = links.parent[roots]
    nested = links.climb(above[above != NONE], is_root) != NONE
    problems = _listed("entities within an entity", links.ids[roots[above != NONE][nested]])
    home = links.climb(links.rows_of(np.array([r.leaf for r in records], np.int64)), is_root)
    problems += _listed(
        "records in no entity", [str(records[i].key) for i in np.flatnonzero(home == NONE)]
    )
    if problems:
        return problems
    size = np.bincount(home, minlength=len(links.ids))
    oldest = np.full(len(links.ids), np.iinfo(np.int64).max)
    np.minimum.at(oldest, home, np.array([record.arrival for record in records], np.int64))
    for entity, row in zip(live, roots, strict=True):
        if (entity.size, entity.oldest) != (size[row], oldest[row]):
            problems.append(
                f"entity {entity.id} has size {entity.size} and oldest arrival {entity.oldest}, "
                f"but its records make that {size[row]} and {oldest[row]}"
            )
    return problems


def _retired_problems(entities: list[EntityRow]) -> list[str]:
    into = {entity.id: entity.into for entity in entities}
    unknown = sorted({name for names in into.values() for name in names if name not in into})
    problems = _listed("successors that do not exist", unknown)
    waiting_for = {name: sum(to in into for to in names) for name, names in into.items()}
    sources: dict[str, list[str]] = {}
    for name, names in into.items():
        for to in names:
            sources.setdefault(to, []).append(name)
    settled = [name for name, count in waiting_for.items() if count == 0]
    for name in settled:
        for source in sources.get(name, ()):
            waiting_for[source] -= 1
            if waiting_for[source] == 0:
                settled.append(source)
    problems += _listed("retired entities in a cycle", sorted(into.keys() - set(settled)))
    return problems


def _number_problems(
    counters: Counters, records: list[RecordRow], outbox: list[int], index_log: list[int]
) -> list[str]:
    problems = []
    if any(record.arrival >= counters.arrival for record in records):
        problems.append(f"a record's arrival is not below the next one, {counters.arrival}")
    for what, sequences, following in (
        ("outbox", outbox, counters.outbox),
        ("index log", index_log, counters.index_log),
    ):
        if sequences and sequences != list(range(sequences[0], following)):
            problems.append(f"the {what} does not run without a gap up to {following - 1}")
    return problems


def _listed(what: str, which: Iterable[object]) -> list[str]:
    names = [str(name) for name in which]
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [f"{what}: {', '.join(names[:_SHOWN])}{more}"]
