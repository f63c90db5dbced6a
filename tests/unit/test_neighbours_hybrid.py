from __future__ import annotations

import numpy as np
import pytest

from clustering.errors import ConfigError, DataError, StoreError
from clustering.neighbours.exact import ExactNeighbours
from clustering.neighbours.hnsw import HnswConfig
from clustering.neighbours.hybrid import HybridConfig, HybridNeighbours
from clustering.neighbours.recall import recall_against_exact

GRAPH = HnswConfig(m=8, ef_construction=40, ef_search=60)
ALWAYS_GRAPH = HybridConfig(crossover=0, graph=GRAPH)


def units(n: int, d: int = 16, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def filled(rows: np.ndarray, config: HybridConfig | None = None) -> HybridNeighbours:
    return HybridNeighbours.rebuild(np.arange(len(rows)), rows, rows.shape[1], config)


def same(a: HybridNeighbours, b: HybridNeighbours, queries: np.ndarray, k: int = 10) -> bool:
    return all(
        np.array_equal(left, right)
        for query in queries
        for left, right in zip(a.search(query, k), b.search(query, k), strict=True)
    )


def test_more_neighbours_than_live_vectors_gives_all_of_them() -> None:
    """A graph by itself raises here (known trap 36)."""
    index = filled(units(3), ALWAYS_GRAPH)
    assert len(index.search(units(1)[0], 10)[0]) == 3
    index = filled(units(10), ALWAYS_GRAPH)
    for label in range(9):
        index.remove(label)
    assert index.search(units(1)[0], 10)[0].tolist() == [9]
    index.remove(9)
    assert len(index.search(units(1)[0], 10)[0]) == 0


def test_a_graph_that_came_apart_is_made_up_for_by_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = units(200)
    index = filled(rows, ALWAYS_GRAPH)
    monkeypatch.setattr(index._graph, "search", lambda vector, k: np.empty(0, np.int64))
    labels, _ = index.search(rows[5], 20)
    assert len(labels) == 20
    assert labels[0] == 5


def test_a_removed_label_comes_back() -> None:
    """A graph by itself keeps it deleted or raises (known trap 38)."""
    rows = units(5)
    index = filled(rows, ALWAYS_GRAPH)
    index.remove(1)
    index.remove(1)
    assert 1 not in index
    assert 1 not in index.search(rows[1], 5)[0]
    index.add(1, rows[1])
    assert index.search(rows[1], 1)[0].tolist() == [1]


@pytest.mark.parametrize("config", [ALWAYS_GRAPH, HybridConfig()])
def test_many_copies_of_one_vector_do_not_hide_the_others(config: HybridConfig) -> None:
    """500 identical and 1,000 others: a graph alone loses connections (known trap 39)."""
    others = units(1000)
    copies = np.repeat(units(1, seed=9), 500, axis=0)
    order = np.random.default_rng(1).permutation(1500)
    rows = np.concatenate([copies, others])
    index = HybridNeighbours(16, config)
    for label in order.tolist():
        index.add(label, rows[label])
    assert (len(index), index.distinct) == (1500, 1001)
    exact = ExactNeighbours(16)
    for label in [0, *range(500, 1500)]:
        exact.add(label, rows[label])
    assert recall_against_exact(index, exact, others, 10) >= 0.99
    assert index.search(copies[0], 1)[0].tolist() == [0]
    assert recall_against_exact(index, exact, others[:0], 10) == 1.0


def test_without_a_graph_the_order_of_adding_does_not_matter() -> None:
    rows = np.concatenate([units(80), units(20)])
    index = filled(rows)
    for label in (3, 80, 81, 99):
        index.remove(label)
    again = HybridNeighbours(16)
    for label in np.random.default_rng(0).permutation(100).tolist():
        if label in index:
            again.add(label, rows[label])
    assert not index.needs_log
    assert not index.snapshot_due
    assert same(index, again, units(50, seed=2))


def test_the_graph_is_complete_before_it_is_needed() -> None:
    config = HybridConfig(crossover=100, graph=GRAPH, snapshot_interval=20)
    index = HybridNeighbours(16, config)
    rows = units(130)
    for label, row in enumerate(rows):
        index.add(label, row)
        assert index.needs_log == (label + 1 >= 50)
        assert index.snapshot_due == (label + 1 >= 50)
        assert index.approximate == (label + 1 >= 100)
        if label + 1 >= 75:
            assert index._next is None
    index.roll()
    assert not index.snapshot_due
    for label in range(130):
        index.remove(label)
        assert index.approximate == (129 - label >= 100)
        assert index.needs_log == (129 - label >= 25)
    assert len(index) == 0


def test_a_vector_renamed_while_the_graph_is_made_is_not_left_out() -> None:
    config = HybridConfig(crossover=200, graph=GRAPH)
    rows = units(300)
    index = HybridNeighbours(16, config)
    for label in range(100, 205):
        index.add(label, rows[label])
    # Not in the graph yet; its new representative is smaller than what was added last.
    index.add(5, rows[190])
    index.add(6, rows[191])
    index.remove(191)
    for label in range(205, 300):
        index.add(label, rows[label])
    assert index.approximate
    assert index._graph is not None
    assert len(index._graph) == index.distinct == 200
    assert index.search(rows[190], 1)[0].tolist() == [5]
    assert index.search(rows[191], 1)[0].tolist() == [6]


def test_an_index_that_shrank_and_grew_again_needs_a_new_snapshot() -> None:
    index = filled(units(60), HybridConfig(crossover=100, graph=GRAPH))
    index.roll()
    for label in range(50):
        index.remove(label)
    assert not index.needs_log
    for label, row in enumerate(units(39)):
        index.add(label, row)
        assert not index.needs_log
    index.add(39, units(40)[39])
    assert index.snapshot_due


def test_adding_the_same_vector_again_leaves_no_tombstone() -> None:
    rows = units(30)
    index = filled(rows, ALWAYS_GRAPH)
    for label, row in enumerate(rows):
        index.add(label, row)
    assert index._graph is not None
    assert index._graph.dead == 0


def test_snapshots_fall_due_at_counts_of_changes() -> None:
    index = filled(units(10), HybridConfig(crossover=0, graph=GRAPH, snapshot_interval=5))
    index.roll()
    due = []
    for change in range(12):
        index.remove(change % 3)
        due.append(index.snapshot_due)
        if index.snapshot_due:
            index.roll()
    assert due == ([False] * 4 + [True]) * 2 + [False] * 2


def test_too_many_tombstones_renew_the_graph_little_by_little() -> None:
    config = HybridConfig(crossover=0, graph=GRAPH, tombstones=0.5)
    rows = units(400)
    index = filled(rows[:200], config)
    worst = 0
    for turn in range(800):
        index.add(turn % 200, rows[(turn + turn // 200 * 50) % 400])
        assert index._graph is not None
        worst = max(worst, index._graph.dead)
    assert 100 < worst < 250
    exact = ExactNeighbours(16)
    for label in index._exact.labels().tolist():
        exact.add(label, index._exact.vector(label))
    assert recall_against_exact(index, exact, rows, 10) >= 0.99


def test_a_restored_index_goes_on_as_the_running_one() -> None:
    config = HybridConfig(crossover=60, graph=GRAPH)
    rows = units(300)
    for size in (20, 40, 100):
        running = filled(rows[:size], config)
        restored = HybridNeighbours.restore(running.roll(), 16, config)
        assert (len(restored), restored.distinct) == (size, size)
        for index in (running, restored):
            for label in range(size, 300):
                index.add(label, rows[label])
                index.remove(label // 2)
        assert same(running, restored, rows)
        assert running.roll() == restored.roll()


def test_a_damaged_snapshot_is_refused_and_a_rebuilt_index_is_sound() -> None:
    rows = units(150)
    index = filled(rows, ALWAYS_GRAPH)
    data = bytearray(index.roll())
    data[len(data) // 2] ^= 4
    with pytest.raises(StoreError, match="rebuild"):
        HybridNeighbours.restore(bytes(data), 16, ALWAYS_GRAPH)
    with pytest.raises(StoreError, match="dimension"):
        HybridNeighbours.restore(index.roll(), 12, ALWAYS_GRAPH)
    shuffled = np.random.default_rng(0).permutation(150)
    again = HybridNeighbours.rebuild(shuffled, rows[shuffled], 16, ALWAYS_GRAPH)
    assert again.snapshot_due
    assert same(again, filled(rows, ALWAYS_GRAPH), rows)


def test_a_snapshot_of_a_small_index_checks_the_dimension_as_well() -> None:
    data = filled(units(3)).roll()
    assert len(HybridNeighbours.restore(data, 16)) == 3
    with pytest.raises(StoreError, match="dimension"):
        HybridNeighbours.restore(data, 12)


def test_two_runs_give_the_same_index() -> None:
    """A graph filled by several threads differs from run to run (known trap 40)."""
    rows = units(500)
    assert filled(rows, ALWAYS_GRAPH).roll() == filled(rows, ALWAYS_GRAPH).roll()


def test_unusable_input_is_refused_and_changes_nothing() -> None:
    index = filled(units(20), ALWAYS_GRAPH)
    for bad in (np.zeros(16), np.full(16, np.inf), np.ones(15)):
        with pytest.raises(DataError):
            index.add(3, bad.astype(np.float32))
        with pytest.raises(DataError):
            index.search(bad.astype(np.float32), 3)
    with pytest.raises(DataError):
        index.add(-1, units(1)[0])
    assert index.search(units(20)[3], 1)[0].tolist() == [3]
    assert len(index) == 20


@pytest.mark.parametrize(
    "wrong", [{"crossover": -1}, {"snapshot_interval": 0}, {"tombstones": 0.0}]
)
def test_unusable_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        HybridConfig(**wrong)  # type: ignore[arg-type]
