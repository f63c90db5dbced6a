from __future__ import annotations

import numpy as np
import pytest

from clustering.errors import ConfigError, DataError
from clustering.neighbours.tokens import TokenIndex


def tokens(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def test_a_shared_identifier_gives_a_candidate() -> None:
    index = TokenIndex()
    index.add(3, tokens(10, 11))
    index.add(8, tokens(12))
    assert index.candidates(tokens(11, 99), 5).tolist() == [3]
    assert index.candidates(tokens(99), 5).tolist() == []
    assert index.candidates(tokens(), 5).tolist() == []


def test_rarer_tokens_rank_higher_and_ties_go_to_the_smaller_label() -> None:
    index = TokenIndex()
    index.add(9, tokens(1, 2))
    index.add(4, tokens(1))
    index.add(7, tokens(1))
    index.add(2, tokens(1, 3))
    index.add(6, tokens(3))
    # Token 2 has one label, 3 has two, 1 has four: 9 = 1.25, 2 = 0.75, 6 = 0.5, 4 = 7 = 0.25.
    assert index.candidates(tokens(1, 2, 3), 10).tolist() == [9, 2, 6, 4, 7]
    assert index.candidates(tokens(1, 2, 3), 4).tolist() == [9, 2, 6, 4]
    assert index.candidates(tokens(1, 2, 3), 0).tolist() == []


def test_a_hub_gives_no_candidates_until_it_shrinks() -> None:
    """A call centre's number must not chain strangers (known trap 13)."""
    index = TokenIndex(max_postings=100)
    for label in range(500):
        index.add(label, tokens(7, 1000 + label))
    assert index.candidates(tokens(7), 10).tolist() == []
    assert index.candidates(tokens(7, 1003), 10).tolist() == [3]
    for label in range(400):
        index.remove(label)
    assert index.candidates(tokens(7), 3).tolist() == [400, 401, 402]
    index.add(0, tokens(7))
    assert index.candidates(tokens(7), 3).tolist() == []


def test_a_search_reads_the_rarest_first_and_stops_in_time() -> None:
    index = TokenIndex(max_postings=10, max_work=12)
    for label in range(10):
        index.add(label, tokens(1, 2 if label < 2 else 3))
    # Two labels of token 2 and eight of token 3 are read; the ten of token 1 would be too many.
    assert index.candidates(tokens(1, 2, 3), 100).tolist() == list(range(10))
    assert index.candidates(tokens(1, 2), 100).tolist() == list(range(10))
    index.add(10, tokens(2))
    assert index.candidates(tokens(1, 2), 100).tolist() == [0, 1, 10]


def test_repeated_tokens_count_once() -> None:
    index = TokenIndex()
    index.add(5, tokens(1, 1, 2, 1))
    index.add(3, tokens(2, 4, 2))
    index.add(4, tokens(4))
    assert index.candidates(tokens(2, 2, 2, 4), 5).tolist() == [3, 4, 5]
    index.remove(5)
    assert index.candidates(tokens(1, 2), 5).tolist() == [3]


def test_removing_twice_and_coming_back() -> None:
    index = TokenIndex()
    index.add(1, tokens(5))
    index.remove(1)
    index.remove(1)
    index.remove(10_000)
    index.remove(-1)
    assert len(index) == 0
    assert index.candidates(tokens(5), 5).tolist() == []
    index.add(1, tokens(6))
    index.add(1, tokens(7))
    assert len(index) == 1
    assert index.candidates(tokens(5, 6), 5).tolist() == []
    assert index.candidates(tokens(7), 5).tolist() == [1]


def test_a_label_without_tokens_is_live() -> None:
    index = TokenIndex()
    index.add(2, tokens())
    assert 2 in index
    assert len(index) == 1
    index.remove(2)
    assert 2 not in index


def test_extreme_tokens_and_read_only_arrays_are_fine() -> None:
    given = tokens(0, 2**64 - 1, 2**63)
    given.flags.writeable = False
    index = TokenIndex()
    index.add(1, given)
    for value in given.tolist():
        assert index.candidates(tokens(value), 5).tolist() == [1]
    assert index.candidates(given[::2], 5).tolist() == [1]


def test_churn_does_not_make_it_grow() -> None:
    index = TokenIndex()
    random = np.random.default_rng(0)
    sizes = []
    for turn in range(6_000):
        index.add(turn % 50, random.integers(0, 2**62, 8).astype(np.uint64))
        sizes.append(sum(array.nbytes for array in index._postings))
    assert sizes[-1] == sizes[200]


def test_unusable_input_is_refused() -> None:
    index = TokenIndex()
    with pytest.raises(DataError, match="out of range"):
        index.add(-1, tokens(1))
    with pytest.raises(DataError, match="uint64"):
        index.add(1, np.array([1], np.int64))
    with pytest.raises(DataError, match="uint64"):
        index.candidates(np.array([[1]], np.uint64), 3)
    assert len(index) == 0
    for limits in ((0, 10), (11, 10)):
        with pytest.raises(ConfigError):
            TokenIndex(*limits)
