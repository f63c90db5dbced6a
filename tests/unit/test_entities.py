"""Who keeps an id: each rule of `clustering.entities` by its smallest case."""

from __future__ import annotations

import pytest

from clustering.entities import Change, Entities, Entity


def sets(*parts: str) -> list[frozenset[int]]:
    """Clusters of records named by digits: ``sets("01", "2")``."""
    return [frozenset(int(digit) for digit in part) for part in parts]


def outline(changes: list[Change]) -> list[str]:
    """The changes in short: number, kind, records, and where from or to."""
    return [
        f"{c.number} {c.kind.value} {''.join(map(str, sorted(c.members)))}"
        + "".join(f" <{n}" for n in c.came_from)
        + "".join(f" >{n}" for n in c.went_into)
        for c in changes
    ]


@pytest.fixture
def entities() -> Entities:
    return Entities()


def test_new_records_make_new_entities(entities: Entities) -> None:
    assert outline(entities.update(sets("2", "01"))) == ["0 created 01", "1 created 2"]
    assert len(entities) == 2
    assert entities.of(1).number == 0


def test_a_record_that_joins_changes_the_entity(entities: Entities) -> None:
    entities.update(sets("01"))
    assert outline(entities.update(sets("012"))) == ["0 changed 012"]
    assert entities.get(0) == Entity(0, 2, frozenset({0, 1, 2}))


def test_nothing_changes_when_nothing_changes(entities: Entities) -> None:
    entities.update(sets("01", "2"))
    assert entities.update(sets("2", "01")) == []
    assert entities.of(0).version == 1


def test_the_larger_entity_survives_a_merge(entities: Entities) -> None:
    entities.update(sets("0", "12"))
    assert outline(entities.update(sets("012"))) == ["0 merged  >1", "1 changed 012 <0"]


def test_the_older_entity_survives_a_merge_of_equals(entities: Entities) -> None:
    entities.update(sets("23"))
    entities.update(sets("01"))
    assert outline(entities.update(sets("0123"))) == ["1 merged  >0", "0 changed 0123 <1"]


def test_the_larger_part_keeps_the_id_of_a_split(entities: Entities) -> None:
    entities.update(sets("012"))
    assert outline(entities.update(sets("0", "12"))) == ["0 changed 12 >1", "1 split 0 <0"]


def test_the_part_with_the_oldest_record_keeps_the_id_of_an_even_split(entities: Entities) -> None:
    entities.update(sets("0123"))
    assert outline(entities.update(sets("12", "03"))) == ["0 changed 03 >1", "1 split 12 <0"]


def test_an_entity_without_records_is_retired_and_its_id_never_used_again(
    entities: Entities,
) -> None:
    entities.update(sets("01"))
    assert outline(entities.update([], [0, 1])) == ["0 retired "]
    assert entities.get(0) is None
    with pytest.raises(KeyError):
        entities.of(0)
    assert outline(entities.update(sets("01"))) == ["1 created 01"]


def test_what_is_left_of_an_entity_goes_with_its_records(entities: Entities) -> None:
    entities.update(sets("01", "234"))
    changes = entities.update(sets("1234"), [0])
    assert outline(changes) == ["0 merged  >1", "1 changed 1234 <0"]


def test_records_swapped_between_entities(entities: Entities) -> None:
    entities.update(sets("012", "345"))
    changes = entities.update(sets("015", "234"))
    assert outline(changes) == ["0 changed 015 <1 >1", "1 changed 234 <0 >0"]


def test_a_cluster_made_of_minorities_gets_a_new_id(entities: Entities) -> None:
    entities.update(sets("012", "345"))
    changes = entities.update(sets("12", "34", "05"))
    assert outline(changes) == ["0 changed 12 >2", "1 changed 34 >2", "2 split 05 <0 <1"]


def test_restored_entities_go_on_as_if_never_stopped(entities: Entities) -> None:
    entities.update(sets("0", "12"))
    entities.update(sets("012"))
    restored = Entities()
    restored.restore([Entity(e.number, e.version, e.members) for e in entities.live()], 2)
    for one in (entities, restored):
        assert outline(one.update(sets("0", "12"))) == ["1 changed 12 >2", "2 split 0 <1"]
