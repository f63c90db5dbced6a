from __future__ import annotations

import numpy as np
import pytest

from clustering.errors import DataError
from clustering.neighbours.exact import ExactNeighbours
from clustering.neighbours.labels import LARGEST, unit_vector


def units(n: int, d: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def filled(rows: np.ndarray) -> ExactNeighbours:
    index = ExactNeighbours(rows.shape[1])
    for label, row in enumerate(rows):
        index.add(label, row)
    return index


def test_finds_what_a_sort_of_all_similarities_finds() -> None:
    rows = units(500, 24)
    index = filled(rows)
    for query in units(20, 24, seed=1):
        labels, similarities = index.search(query, 10)
        truth = rows.astype(np.float64) @ query.astype(np.float64)
        np.testing.assert_array_equal(labels, np.argsort(-truth)[:10])
        np.testing.assert_allclose(similarities, truth[labels], atol=1e-6)
        assert labels.dtype == np.int64
        assert similarities.dtype == np.float32


def test_ties_go_to_the_smaller_label_whatever_the_order() -> None:
    row = units(1, 8)[0]
    index = ExactNeighbours(8)
    for label in (7, 3, 9, 1, 5):
        index.add(label, row)
    assert index.search(row, 3)[0].tolist() == [1, 3, 5]


def test_a_similarity_does_not_depend_on_where_the_row_lies_or_on_how_many_there_are() -> None:
    rows = units(1001, 37)
    index = filled(rows)
    by_label = dict(zip(*(a.tolist() for a in index.search(rows[0], 1001)), strict=True))
    for label in (1, 63, 64, 1000):
        alone = ExactNeighbours(37)
        alone.add(label, rows[label])
        assert alone.search(rows[0], 1)[1].item() == by_label[label]


def test_ranking_some_labels_gives_the_bits_of_the_search() -> None:
    index = filled(units(300, 40))
    query = units(1, 40, seed=2)[0]
    labels, similarities = index.search(query, 30)
    ranked, again = index.rank(query, np.sort(labels))
    np.testing.assert_array_equal(ranked, labels)
    np.testing.assert_array_equal(again, similarities)


def test_asking_for_more_than_there_are_gives_all() -> None:
    index = filled(units(3, 4))
    assert len(index.search(units(1, 4)[0], 10)[0]) == 3
    assert len(index.search(units(1, 4)[0], 0)[0]) == 0
    assert len(ExactNeighbours(4).search(units(1, 4)[0], 10)[0]) == 0


def test_removed_labels_are_not_found_and_may_come_back() -> None:
    rows = units(10, 6)
    index = filled(rows)
    index.remove(4)
    index.remove(4)
    index.remove(99)
    assert len(index) == 9
    assert 4 not in index.search(rows[4], 10)[0]
    index.add(4, rows[4])
    assert index.search(rows[4], 1)[0].tolist() == [4]


def test_adding_a_live_label_moves_it() -> None:
    rows = units(5, 6)
    index = filled(rows[:3])
    index.add(1, rows[4])
    assert len(index) == 3
    labels, similarities = index.search(rows[4], 1)
    assert labels.tolist() == [1]
    assert similarities[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(4, np.float32),
        np.array([1, np.nan, 0, 0], np.float32),
        np.array([1, np.inf, 0, 0], np.float32),
        np.ones(5, np.float32),
        np.ones((1, 4), np.float32),
        np.float32(1.0),
    ],
)
def test_unusable_vectors_are_refused_and_change_nothing(vector: np.ndarray) -> None:
    index = filled(units(2, 4))
    with pytest.raises(DataError):
        index.add(1, vector)
    with pytest.raises(DataError):
        index.search(vector, 1)
    assert len(index) == 2


@pytest.mark.parametrize("label", [-1, LARGEST + 1])
def test_labels_out_of_range_are_refused(label: int) -> None:
    index = filled(units(2, 4))
    with pytest.raises(DataError, match="out of range"):
        index.add(label, units(1, 4)[0])
    assert len(index) == 2


def test_only_the_direction_counts_and_normalising_twice_changes_nothing() -> None:
    rows = np.random.default_rng(0).normal(size=(2000, 33)).astype(np.float32) * 100
    for row in rows:
        once = unit_vector(row, 33)
        np.testing.assert_array_equal(unit_vector(once, 33), once)
        assert np.linalg.norm(once.astype(np.float64)) == pytest.approx(1.0, abs=1e-6)


def test_negative_zero_is_zero() -> None:
    minus = unit_vector(np.array([-0.0, 1.0], np.float32), 2)
    assert minus.tobytes() == np.array([0.0, 1.0], np.float32).tobytes()


def test_the_given_vector_is_not_changed_and_may_be_read_only() -> None:
    row = np.array([3.0, 4.0], np.float32)
    row.flags.writeable = False
    index = ExactNeighbours(2)
    index.add(0, row)
    assert row.tolist() == [3.0, 4.0]
    np.testing.assert_allclose(index.vector(0), [0.6, 0.8], atol=1e-7)
