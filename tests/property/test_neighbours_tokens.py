"""The token index against one made of dictionaries and sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clustering.neighbours.tokens import TokenIndex

MAX_POSTINGS, MAX_WORK, LIMIT = 4, 12, 6

TOKENS = st.lists(st.one_of(st.integers(0, 12), st.integers(0, 2**64 - 1)), max_size=8)
CHANGES = st.lists(
    st.tuples(st.integers(0, 30), st.one_of(st.none(), TOKENS, TOKENS)), min_size=5, max_size=120
)


def expected(live: dict[int, list[int]], query: list[int]) -> list[int]:
    postings: dict[int, list[int]] = {}
    for label, tokens in live.items():
        for token in set(tokens):
            postings.setdefault(token, []).append(label)
    rare = [t for t in set(query) if 0 < len(postings.get(t, ())) <= MAX_POSTINGS]
    sums: dict[int, float] = {}
    work = 0
    for token in sorted(rare, key=lambda t: (len(postings[t]), t)):
        work += len(postings[token])
        if work > MAX_WORK:
            break
        for label in postings[token]:
            sums[label] = sums.get(label, 0.0) + 1.0 / len(postings[token])
    return sorted(sums, key=lambda label: (-sums[label], label))[:LIMIT]


@settings(max_examples=100, deadline=None)
@given(CHANGES, TOKENS, st.integers(0, 2**32 - 1))
def test_candidates_are_those_of_the_definition_in_any_order_of_adding(
    changes: list[tuple[int, list[int] | None]], query: list[int], seed: int
) -> None:
    index = TokenIndex(MAX_POSTINGS, MAX_WORK)
    live: dict[int, list[int]] = {}
    for label, tokens in changes:
        if tokens is None:
            index.remove(label)
            live.pop(label, None)
        else:
            index.add(label, np.array(tokens, np.uint64))
            live[label] = tokens
    again = TokenIndex(MAX_POSTINGS, MAX_WORK)
    for label in np.random.default_rng(seed).permutation(sorted(live)).tolist():
        again.add(label, np.array(live[label], np.uint64))
    assert len(index) == len(again) == len(live)
    for asked in [query, *live.values()]:
        found = index.candidates(np.array(asked, np.uint64), LIMIT)
        assert found.tolist() == expected(live, asked)
        np.testing.assert_array_equal(again.candidates(np.array(asked, np.uint64), LIMIT), found)
