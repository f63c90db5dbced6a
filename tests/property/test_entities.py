"""Entities against their rules, and against a subscriber who only sees the changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clustering.entities import Change, Entities, Entity
from tests.property import entities_reference as reference

N_RECORDS = 9

# Each step says for every record which cluster it is in, or (0) that it is not there.
STEPS = st.lists(
    st.lists(st.integers(0, 5), min_size=N_RECORDS, max_size=N_RECORDS), min_size=1, max_size=8
)


def clusters_of(labels: list[int]) -> list[frozenset[int]]:
    return [
        frozenset(i for i, mine in enumerate(labels) if mine == label)
        for label in sorted({*labels} - {0})
    ]


def live_of(entities: Entities) -> dict[int, frozenset[int]]:
    return {entity.number: entity.members for entity in entities.live()}


def step(entities: Entities, labels: list[int], untouched: bool) -> list[Change]:
    """Update by all clusters, or by no more than `update` asks for."""
    clusters = clusters_of(labels)
    before = live_of(entities)
    here = {record for members in before.values() for record in members}
    gone = here - {record for cluster in clusters for record in cluster}
    if not untouched:
        clusters = [cluster for cluster in clusters if cluster not in before.values()]
    return entities.update(clusters, gone)


@given(STEPS, st.booleans())
def test_the_rules_hold(steps: list[list[int]], untouched: bool) -> None:
    entities = Entities()
    ever: set[int] = set()
    for labels in steps:
        before = live_of(entities)
        expected = reference.step(before, entities.next_number, clusters_of(labels))

        changes = step(entities, labels, untouched)

        assert live_of(entities) == expected.live
        assert entities.next_number == expected.next_number
        assert {c.number: c.kind.value for c in changes} == expected.kinds
        assert len(changes) == len(expected.kinds), "one change of an entity at a time"
        new = {c.number for c in changes if c.version == 1}
        assert not new & ever, "an id is never used again"
        ever |= new
        assert {r for m in live_of(entities).values() for r in m} == {
            i for i, label in enumerate(labels) if label
        }
        assert all(entities.of(r).number == n for n, m in live_of(entities).items() for r in m)


@given(STEPS)
def test_changes_say_where_records_came_from_and_went(steps: list[list[int]]) -> None:
    entities = Entities()
    for labels in steps:
        before = live_of(entities)
        changes = step(entities, labels, untouched=True)
        after = live_of(entities)
        for change in changes:
            number = change.number
            assert change.before == before.get(number, frozenset())
            assert change.members == after.get(number, frozenset())
            shares = {n for n, m in before.items() if m & change.members}
            assert set(change.came_from) == shares - {number}
            into = {n for n, m in after.items() if m & change.before}
            assert set(change.went_into) == into - {number}
            for ids in (change.came_from, change.went_into):
                assert list(ids) == sorted(set(ids))


@given(STEPS, st.integers(0, 7))
def test_subscribers_have_the_same_table(steps: list[list[int]], restored_at: int) -> None:
    entities = Entities()
    table: dict[int, frozenset[int]] = {}
    versions: dict[int, int] = {}
    last: dict[int, Change] = {}
    for at, labels in enumerate(steps):
        if at == restored_at:
            stored = [Entity(e.number, e.version, e.members) for e in entities.live()]
            number, entities = entities.next_number, Entities()
            entities.restore(stored, number)
        for change in step(entities, labels, untouched=False):
            assert change.before == table.get(change.number, frozenset())
            assert change.version == versions.get(change.number, 0) + 1
            versions[change.number] = change.version
            table[change.number] = change.members
            last[change.number] = change
    expected = live_of(entities)
    assert {n: m for n, m in table.items() if m} == expected
    assert {n: c.members for n, c in last.items() if c.members} == expected
    assert all(e.version == versions[e.number] for e in entities.live())


@given(STEPS, st.randoms(use_true_random=False))
def test_the_order_in_which_clusters_are_given_does_not_matter(
    steps: list[list[int]], random: object
) -> None:
    one, other = Entities(), Entities()
    for labels in steps:
        clusters = clusters_of(labels)
        here = {record for members in live_of(one).values() for record in members}
        gone = sorted(here - {record for cluster in clusters for record in cluster})
        shuffled, late = list(clusters), list(gone)
        random.shuffle(shuffled)
        random.shuffle(late)
        assert one.update(clusters, gone) == other.update(shuffled, late)
