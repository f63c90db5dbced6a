"""Stable identities for clusters that come and go: which entity keeps its id when they change.

Rules (for ever the same, so that any replay gives the same ids):

- Each entity passes to one heir: the new cluster with most of its records; on a tie the one that
  holds its oldest record.
- A cluster that is heir to several entities keeps the id of the one with more records, then the
  older, then the smaller id; the others are merged into it and retired.
- A cluster that is heir to none gets a new id: *created* when its records are new, *split* when
  they came from other entities.
- An entity all of whose records are gone is retired without an heir.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What happened to an entity."""

    CREATED = "created"
    CHANGED = "changed"
    MERGED = "merged"
    SPLIT = "split"
    RETIRED = "retired"


@dataclass
class Entity:
    """One entity; records are named by their arrival number, smaller is older.

    number: identity, ascending in order of creation. version: number of changes so far.
    members: its records, at least one.
    """

    number: int
    version: int
    members: frozenset[int]

    @property
    def oldest(self) -> int:
        """Arrival number of its oldest record."""
        return min(self.members)


class Change(NamedTuple):
    """One change of one entity.

    before, members: records before and after. came_from: entities whose records (some or all) it
    now has; went_into: entities that now have some of its records.
    """

    number: int
    version: int
    kind: Kind
    before: frozenset[int]
    members: frozenset[int]
    came_from: tuple[int, ...]
    went_into: tuple[int, ...]


class Entities:
    """All entities and which record is in which."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        self._live: dict[int, Entity] = {}
        self.next_number = 0

    def __len__(self) -> int:
        """Number of live entities."""
        return len(self._live)

    def restore(self, entities: Iterable[Entity], next_number: int) -> None:
        """Take over the live entities of a stored state."""
        for entity in entities:
            self._live[entity.number] = entity
            for record in entity.members:
                self._of[record] = entity.number
        self.next_number = next_number

    def of(self, record: int) -> Entity:
        """The entity of a record; KeyError when it has none."""
        return self._live[self._of[record]]

    def get(self, number: int) -> Entity | None:
        """A live entity, or None."""
        return self._live.get(number)

    def live(self) -> Iterable[Entity]:
        """All live entities, in order of creation."""
        return (self._live[number] for number in sorted(self._live))

    def update(
        self, clusters: Sequence[frozenset[int]], removed: Iterable[int] = ()
    ) -> list[Change]:
        """Take over new clusters of some records and return what changed, in a fixed order.

        clusters: disjoint; together with ``removed`` they hold every record of each entity that
        lost or gained one. removed: records that are in no cluster any more.
        """
        gone = frozenset(removed)
        touched = {self._of.get(record) for record in gone}
        parts = []
        for cluster in clusters:
            were = set(map(self._of.get, cluster))
            if not self._is_one_entity(cluster, were):
                parts.append(cluster)
                touched |= were
        parts.sort(key=min)
        old = [self._live[n] for n in sorted(n for n in touched if n is not None)]
        if len(parts) == 1 and len(old) == 1 and old[0].members < parts[0]:
            # By far the commonest change: one entity gains records that are new.
            number = old[0].number
            return [self._take(number, parts[0], [number], {number: [0]}, [number])]
        part_of = {record: i for i, part in enumerate(parts) for record in part}
        passes = {entity.number: self._passes(entity, part_of) for entity in old}
        claimants: list[list[Entity]] = [[] for _ in parts]
        for entity in old:
            if passes[entity.number]:
                claimants[passes[entity.number][0]].append(entity)
        keepers = []
        for claiming in claimants:
            kept = self._keeper(claiming)
            if kept is None:
                kept = self.next_number
                self.next_number += 1
            keepers.append(kept)
        return self._apply(old, parts, passes, keepers, gone)

    def _is_one_entity(self, cluster: frozenset[int], were: set[int | None]) -> bool:
        """Whether a cluster, whose records were in the entities ``were``, is one of them."""
        if len(were) != 1:
            return False
        (number,) = were
        return number is not None and len(self._live[number].members) == len(cluster)

    @staticmethod
    def _passes(entity: Entity, part_of: dict[int, int]) -> list[int]:
        """Positions of the parts that have some of an entity's records, its heir first."""
        shared: dict[int, tuple[int, int]] = {}
        for record in entity.members:
            i = part_of.get(record)
            if i is not None:
                count, oldest = shared.get(i, (0, record))
                shared[i] = (count + 1, min(oldest, record))
        return sorted(shared, key=lambda i: (-shared[i][0], shared[i][1]))

    @staticmethod
    def _keeper(claimants: Sequence[Entity]) -> int | None:
        """Which entity keeps its id in a part that all of them pass to."""
        if not claimants:
            return None
        return min(claimants, key=lambda e: (-len(e.members), e.number)).number

    def _apply(
        self,
        old: Sequence[Entity],
        parts: Sequence[frozenset[int]],
        passes: dict[int, list[int]],
        keepers: Sequence[int],
        gone: frozenset[int],
    ) -> list[Change]:
        changes = []
        kept = set(keepers)
        sources: list[list[int]] = [[] for _ in parts]
        for entity in old:
            for i in passes[entity.number]:
                sources[i].append(entity.number)
            if entity.number not in kept:
                into = tuple(sorted(keepers[i] for i in passes[entity.number]))
                kind = Kind.MERGED if into else Kind.RETIRED
                changes.append(
                    Change(
                        entity.number,
                        entity.version + 1,
                        kind,
                        entity.members,
                        frozenset(),
                        (),
                        into,
                    )
                )
                del self._live[entity.number]
        for record in gone:
            self._of.pop(record, None)
        changes.extend(
            self._take(keepers[i], parts[i], sources[i], passes, keepers)
            for i in sorted(range(len(parts)), key=lambda i: keepers[i])
        )
        return changes

    def _take(
        self,
        number: int,
        part: frozenset[int],
        sources: Sequence[int],
        passes: dict[int, list[int]],
        keepers: Sequence[int],
    ) -> Change:
        """Let an entity, kept or new, have the records of ``part``."""
        came_from = tuple(n for n in sources if n != number)
        was = self._live.get(number)
        if was is None:
            kind = Kind.SPLIT if came_from else Kind.CREATED
            change = Change(number, 1, kind, frozenset(), part, came_from, ())
        else:
            into = tuple(sorted(keepers[i] for i in passes[number] if keepers[i] != number))
            change = Change(
                number, was.version + 1, Kind.CHANGED, was.members, part, came_from, into
            )
        self._live[number] = Entity(number, change.version, part)
        for record in part:
            self._of[record] = number
        return change


__all__ = ["Change", "Entities", "Entity", "Kind"]
