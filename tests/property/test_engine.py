"""Whatever comes in, however it is cut into batches and stopped, the engine says the same."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state.consistency import find_problems
from stream import resolver
from stream.config import Config
from stream.messages import ASSIGNMENTS, DEAD_LETTERS, ENTITY_UPDATES
from stream.records import Bad, Operation
from tests.support.operations import cuts, operations
from tests.support.rig import CLEAN, Rig, assigned, replayed, small_config

LINKAGES = st.sampled_from(["learned", "cosine", "average"])


@pytest.fixture(autouse=True, scope="module")
def _frequent_snapshots() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolver, "SNAPSHOT_INTERVAL", 5)
        yield


def batches(of: list[Operation], at: dict[int, bool]) -> Iterator[tuple[list[Operation], bool]]:
    """The batches, each with whether a restart follows it."""
    begin = 0
    for cut in sorted(cut for cut in at if cut < len(of)):
        yield of[begin:cut], at[cut]
        begin = cut
    yield of[begin:], True


def check(rig: Rig) -> None:
    """What holds after every batch."""
    rig.engine.resolver.check()
    assert find_problems(rig.state) == []
    updates, assignments = rig.values(ENTITY_UPDATES), rig.values(ASSIGNMENTS)
    table = rig.partition()
    assert replayed(updates) == table
    assert replayed(list({u["entity_id"]: u for u in updates}.values())) == table
    assert assigned(assignments) == table
    for members in table:
        for source in CLEAN:
            assert sum(key.source == source for key in members) <= 1


def uninterrupted(config: Config, of: list[Operation]) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(config, Path(folder))
        rig.feed(of)
        check(rig)
        assert len(rig.values(DEAD_LETTERS)) == sum(isinstance(o, Bad) for o in of)
        return rig.answer()


@given(operations(), cuts(), LINKAGES, st.booleans())
def test_batches_and_restarts_leave_no_trace(
    of: list[Operation], at: dict[int, bool], linkage: str, exact: bool
) -> None:
    neighbours = {"exact_below": 1000} if exact else {}
    config = small_config(matching={"linkage": linkage}, neighbours=neighbours)
    expected = uninterrupted(config, of)
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(config, Path(folder))
        for batch, stops in batches(of, at):
            rig.feed(batch)
            check(rig)
            if stops:
                rig.restart()
                check(rig)
        assert rig.answer() == expected
        assert "index_rebuilt" not in rig.events


@settings(max_examples=8)
@given(operations(), cuts(), LINKAGES)
def test_a_store_on_disk_leaves_no_trace_either(
    of: list[Operation], at: dict[int, bool], linkage: str
) -> None:
    config = small_config(matching={"linkage": linkage})
    expected = uninterrupted(config, of)
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig.on_disk(config, Path(folder))
        for batch, stops in batches(of, at):
            rig.feed(batch)
            if stops:
                rig.restart()
        check(rig)
        assert rig.answer() == expected
        rig.close()
