"""Strategies for what may come in, over few records so that they meet again and again."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from clustering.types import RecordKey
from stream.records import Bad, BadReason, Delete, Operation, Upsert
from tests.support.people import variant
from tests.support.rig import CLEAN

SOURCES = ("crm", "shop", *CLEAN)

_keys = st.builds(RecordKey, st.sampled_from(SOURCES), st.integers(0, 4).map(str))
_fields = st.one_of(
    st.builds(variant, st.integers(0, 3), st.integers(0, 3)),
    st.builds(variant, st.integers(0, 3), st.integers(0, 3)),
    st.just({}),
    st.just({"given": None, "note": "nothing to compare"}),
)
_versions = st.one_of(st.none(), st.integers(0, 3))
_upserts = st.builds(Upsert, _keys, _fields, _versions, st.just({}))
_deletes = st.builds(Delete, _keys, _versions, st.just({}))
_bad = st.builds(
    Bad,
    st.sampled_from(BadReason),
    st.just("unreadable"),
    st.binary(max_size=4),
    st.none() | _keys,
    st.just({}),
)


def _placed(operations: list[Operation]) -> list[Operation]:
    """The operations with a position each."""
    placed: list[Operation] = []
    for at, operation in enumerate(operations):
        values = {name: getattr(operation, name) for name in type(operation).__slots__}
        placed.append(type(operation)(**{**values, "position": {"line": at + 1}}))
    return placed


def _shuffled(seed: int, length: int) -> list[Operation]:
    """Operations spread evenly: more records, and more of them alike, than one at a time gives."""
    draw = random.Random(seed)
    found: list[Operation] = []
    for _ in range(length):
        key = RecordKey(draw.choice(SOURCES), str(draw.randrange(6)))
        version = draw.choice([None, None, draw.randrange(4)])
        kind = draw.random()
        if kind < 0.85:
            fields = variant(draw.randrange(4), draw.randrange(4))
            found.append(Upsert(key, fields, version, {}))
        elif kind < 0.97:
            found.append(Delete(key, version, {}))
        else:
            found.append(Bad(BadReason.BAD_JSON, "unreadable", b"{", None, {}))
    return found


def operations(least: int = 0, most: int = 80) -> st.SearchStrategy[list[Operation]]:
    """Sequences of upserts (new, changed, identical, of older versions), deletes and bad items."""
    one = st.one_of(_upserts, _upserts, _upserts, _upserts, _deletes, _bad)
    drawn = st.lists(one, min_size=least, max_size=most)
    spread = st.builds(_shuffled, st.integers(0, 2**32 - 1), st.integers(least, most))
    return st.one_of(spread, spread, drawn).map(_placed)


def cuts(most: int = 80) -> st.SearchStrategy[dict[int, bool]]:
    """Where to cut a sequence into batches, each with whether to restart there."""
    return st.dictionaries(st.integers(1, most), st.booleans(), max_size=8)


__all__ = ["SOURCES", "cuts", "operations"]
