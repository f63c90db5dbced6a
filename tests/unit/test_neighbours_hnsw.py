from __future__ import annotations

import numpy as np
import pytest

from clustering.errors import ConfigError, DataError, StoreError
from clustering.neighbours.hnsw import HnswConfig, HnswGraph
from clustering.neighbours.packing import State, pack, unpack

SMALL = HnswConfig(m=4, ef_construction=20, ef_search=20)


def units(n: int, d: int = 8, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def filled(n: int) -> HnswGraph:
    graph = HnswGraph(8, SMALL)
    for label, row in enumerate(units(n)):
        graph.add(label, row)
    return graph


def test_asking_for_more_than_there_are_gives_all() -> None:
    graph = filled(3)
    assert sorted(graph.search(units(1)[0], 10).tolist()) == [0, 1, 2]
    assert len(HnswGraph(8).search(units(1)[0], 10)) == 0


def test_when_nearly_all_are_removed_the_rest_is_found() -> None:
    graph = filled(500)
    for label in range(490):
        graph.remove(label)
    assert sorted(graph.search(units(1)[0], 25).tolist()) == list(range(490, 500))
    assert (len(graph), graph.dead) == (10, 490)


def test_it_grows_beyond_its_first_capacity_and_keeps_what_it_has() -> None:
    graph = filled(300)
    rows = units(300)
    assert [graph.search(row, 1).item() for row in rows] == list(range(300))


def test_a_removed_label_may_be_removed_again_and_come_back() -> None:
    graph = filled(50)
    row = units(50)[7]
    graph.remove(7)
    graph.remove(7)
    graph.remove(1000)
    assert 7 not in graph
    assert 7 not in graph.search(row, 49)
    graph.add(7, row)
    assert graph.search(row, 1).tolist() == [7]
    assert len(graph) == 50


def test_a_moved_label_is_found_at_its_new_place_only() -> None:
    graph = filled(50)
    elsewhere = units(51)[50]
    graph.add(7, elsewhere)
    assert graph.search(elsewhere, 1).tolist() == [7]
    assert graph.search(units(50)[7], 1).tolist() != [7]
    assert len(graph) == 50


def test_a_relabelled_vector_is_found_under_its_new_label() -> None:
    graph = filled(20)
    graph.relabel(3, 200)
    assert graph.search(units(20)[3], 1).tolist() == [200]
    graph.remove(3)
    assert len(graph) == 20


@pytest.mark.parametrize("bad", [np.zeros(8), np.full(8, np.nan), np.ones(7)])
def test_unusable_vectors_are_refused(bad: np.ndarray) -> None:
    graph = filled(2)
    with pytest.raises(DataError):
        graph.add(1, bad.astype(np.float32))
    with pytest.raises(DataError):
        graph.search(bad.astype(np.float32), 1)
    assert graph.search(units(2)[1], 1).tolist() == [1]


def test_unusable_settings_are_refused() -> None:
    with pytest.raises(ConfigError):
        HnswConfig(m=1)
    with pytest.raises(ConfigError):
        HnswConfig(ef_search=0)


def test_a_loaded_graph_goes_on_as_the_running_one_that_is_loaded_too() -> None:
    graph = filled(200)
    for label in range(0, 200, 5):
        graph.remove(label)
    state = graph.state()
    running = HnswGraph.from_state(state, 8, SMALL)
    loaded = HnswGraph.from_bytes(pack(state), 8, SMALL)
    assert (len(loaded), loaded.dead) == (len(graph), graph.dead)
    for label, row in enumerate(units(400)[200:], 200):
        running.add(label, row)
        loaded.add(label, row)
    assert running.to_bytes() == loaded.to_bytes()
    for query in units(50, seed=1):
        np.testing.assert_array_equal(running.search(query, 10), loaded.search(query, 10))


def test_elements_added_after_each_loading_get_new_layers() -> None:
    graph = filled(5)
    seeds = set()
    for _ in range(3):
        state = graph.state()
        seeds.add(state.scalars["seed"])
        graph = HnswGraph.from_state(state, 8, SMALL)
    assert len(seeds) == 3


def test_a_loaded_graph_still_holds_the_very_vectors() -> None:
    graph = filled(30)
    graph.remove(4)
    labels, vectors = HnswGraph.from_bytes(graph.to_bytes(), 8, SMALL).vectors()
    assert labels.tolist() == [label for label in range(30) if label != 4]
    np.testing.assert_array_equal(vectors, graph.vectors()[1])
    assert HnswGraph(8).vectors()[1].shape == (0, 8)


def test_an_empty_graph_can_be_saved() -> None:
    graph = HnswGraph.from_bytes(HnswGraph(8, SMALL).to_bytes(), 8, SMALL)
    graph.add(3, units(1)[0])
    assert graph.search(units(1)[0], 1).tolist() == [3]


def test_any_damage_to_the_bytes_is_found() -> None:
    data = filled(30).to_bytes()
    flips = np.random.default_rng(0).integers(0, len(data), 50).tolist()
    for place in [0, 8, 15, 16, len(data) - 1, *flips]:
        damaged = bytearray(data)
        damaged[place] ^= 1
        with pytest.raises(StoreError, match="rebuild"):
            HnswGraph.from_bytes(bytes(damaged), 8, SMALL)
    for length in (0, 5, 20, len(data) - 1):
        with pytest.raises(StoreError, match="rebuild"):
            HnswGraph.from_bytes(data[:length], 8, SMALL)


@pytest.mark.parametrize(
    ("dimension", "config"),
    [(9, SMALL), (8, HnswConfig(m=5, ef_construction=20)), (8, HnswConfig(m=4))],
)
def test_a_graph_made_with_other_settings_is_refused(dimension: int, config: HnswConfig) -> None:
    with pytest.raises(StoreError, match="was made with"):
        HnswGraph.from_bytes(filled(5).to_bytes(), dimension, config)


def test_a_graph_that_hnswlib_will_not_load_is_refused() -> None:
    state = filled(5).state()
    newer = State({**state.scalars, "ser_version": 99}, state.arrays)
    with pytest.raises(StoreError, match="cannot be loaded"):
        HnswGraph.from_state(newer, 8, SMALL)


def test_searches_may_be_set_otherwise_than_when_saved() -> None:
    wider = HnswConfig(m=4, ef_construction=20, ef_search=200)
    graph = HnswGraph.from_bytes(filled(100).to_bytes(), 8, wider)
    assert len(graph.search(units(1)[0], 100)) == 100


def test_packing_keeps_numbers_types_and_shapes() -> None:
    state = State(
        {"n": 3, "x": 0.1, "name": "ip", "yes": True},
        {"a": np.arange(6, dtype=np.int32).reshape(2, 3), "none": np.empty((0, 4), np.float32)},
    )
    again = unpack(pack(state))
    assert again.scalars == state.scalars
    for name, array in state.arrays.items():
        assert again.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(again.arrays[name], array)
