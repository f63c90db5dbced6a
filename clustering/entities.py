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
    members: empty once retired. into: what a retired entity was merged into.
    """

    number: int
    version: int
    members: frozenset[int]
    into: tuple[int, ...] = ()

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

    def update(self, clusters: Sequence[frozenset[int]], removed: Iterable[int] = ()) -> list[Change]:
        """Take over new clusters of some records and return what changed, in a fixed order.

        clusters: disjoint; together with ``removed`` they hold every record of each entity that
        lost or gained one. removed: records that are in no cluster any more.
        """
        gone = frozenset(removed)
        touched = {self._of[r] for part in (*clusters, gone) for r in part if r in self._of}
        parts = sorted(
            (c for c in clusters if c not in {self._live[n].members for n in touched}), key=min
        )
        unchanged = {n for n in touched if self._live[n].members in set(clusters)}
        old = [self._live[n] for n in sorted(touched - unchanged)]
        heirs = {entity.number: self._heir(entity, parts) for entity in old}
        keeper = [self._keeper([e for e in old if heirs[e.number] == i]) for i in range(len(parts))]
        for i, kept in enumerate(keeper):
            if kept is None:
                keeper[i] = self.next_number
                self.next_number += 1
        return self._apply(old, parts, heirs, [n for n in keeper if n is not None], gone)

    @staticmethod
    def _heir(entity: Entity, parts: Sequence[frozenset[int]]) -> int | None:
        """Position of the part that an entity passes to, or None."""
        shared = [len(entity.members & part) for part in parts]
        most = max(shared, default=0)
        if most == 0:
            return None
        tied = [i for i, n in enumerate(shared) if n == most]
        return min(tied, key=lambda i: min(entity.members & parts[i]))

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
        heirs: dict[int, int | None],
        keeper: Sequence[int],
        gone: frozenset[int],
    ) -> list[Change]:
        before = {entity.number: entity for entity in old}
        changes = []
        for entity in old:
            into = tuple(sorted(keeper[i] for i, part in enumerate(parts) if part & entity.members))
            if entity.number not in keeper:
                kind = Kind.RETIRED if heirs[entity.number] is None else Kind.MERGED
                changes.append(
                    Change(entity.number, entity.version + 1, kind, entity.members, frozenset(), (), into)
                )
                del self._live[entity.number]
        for record in gone:
            self._of.pop(record, None)
        for number, part in sorted(zip(keeper, parts, strict=True), key=lambda item: item[0]):
            came_from = tuple(e.number for e in old if e.members & part and e.number != number)
            was = before.get(number)
            if was is None:
                kind = Kind.SPLIT if came_from else Kind.CREATED
                version, members, went_into = 1, frozenset[int](), ()
            else:
                kind, version, members = Kind.CHANGED, was.version + 1, was.members
                went_into = tuple(
                    sorted(n for n, p in zip(keeper, parts, strict=True) if p & members and n != number)
                )
            changes.append(Change(number, version, kind, members, part, came_from, went_into))
            self._live[number] = Entity(number, version, part)
            for record in part:
                self._of[record] = number
        return changes


__all__ = ["Change", "Entities", "Entity", "Kind"]
