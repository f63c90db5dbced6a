"""Any sequence of changes, with restarts anywhere, gives the searches of one that never stopped."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clustering.neighbours.hnsw import HnswConfig
from clustering.neighbours.hybrid import HybridConfig, HybridNeighbours

DIMENSION = 6
CONFIG = HybridConfig(
    crossover=20,
    graph=HnswConfig(m=3, ef_construction=6, ef_search=8),
    snapshot_interval=7,
    tombstones=0.3,
)
VECTORS = np.random.default_rng(5).normal(size=(60, DIMENSION)).astype(np.float32)
QUERIES = np.random.default_rng(6).normal(size=(6, DIMENSION)).astype(np.float32)

LABELS = st.integers(0, 50)
ADD = st.tuples(LABELS, st.integers(0, len(VECTORS) - 1))
REMOVE = st.tuples(LABELS, st.just(-1))
CHANGES = st.lists(st.one_of(ADD, ADD, ADD, REMOVE), min_size=30, max_size=200)

Change = tuple[int, int]


class Keeper:
    """Keeps an index as the daemon does, with what it needs to start again."""

    def __init__(self) -> None:
        self.index = HybridNeighbours(DIMENSION, CONFIG)
        self.live: dict[int, int] = {}
        self.snapshot = b""
        self.log: list[Change] = []

    def apply(self, change: Change) -> None:
        self._change(change)
        label, vector = change
        if vector < 0:
            self.live.pop(label, None)
        else:
            self.live[label] = vector
        if self.index.snapshot_due:
            self.snapshot, self.log = self.index.roll(), []
        elif self.index.needs_log:
            self.log.append(change)

    def restart(self, order: np.random.Generator) -> None:
        if self.index.needs_log:
            self.index = HybridNeighbours.restore(self.snapshot, DIMENSION, CONFIG)
            for change in self.log:
                assert not self.index.snapshot_due
                self._change(change)
            return
        self.index = HybridNeighbours(DIMENSION, CONFIG)
        for label in order.permutation(sorted(self.live)).tolist():
            self._change((label, self.live[label]))

    def _change(self, change: Change) -> None:
        label, vector = change
        if vector < 0:
            self.index.remove(label)
        else:
            self.index.add(label, VECTORS[vector])


@settings(max_examples=60, deadline=None)
@given(CHANGES, st.sets(st.integers(0, 199), max_size=5), st.integers(0, 2**32 - 1))
def test_restarts_leave_no_trace(changes: list[Change], stops: set[int], seed: int) -> None:
    running, stopped = Keeper(), Keeper()
    order = np.random.default_rng(seed)
    for at, change in enumerate(changes):
        running.apply(change)
        stopped.apply(change)
        if at in stops:
            stopped.restart(order)
        query = QUERIES[at % len(QUERIES)]
        found, again = running.index.search(query, 5), stopped.index.search(query, 5)
        np.testing.assert_array_equal(found[0], again[0])
        np.testing.assert_array_equal(found[1], again[1])
        assert running.index.needs_log == stopped.index.needs_log
        distinct = {VECTORS[vector].tobytes() for vector in running.live.values()}
        assert len(running.index) == len(running.live)
        assert len(found[0]) == min(5, len(distinct))
        assert set(found[0].tolist()) <= set(running.live)
        graph = running.index._graph
        assert graph is None or len(graph) == running.index.distinct


@settings(max_examples=40, deadline=None)
@given(CHANGES)
def test_below_the_crossover_the_answer_is_exact(changes: list[Change]) -> None:
    keeper = Keeper()
    for change in changes:
        keeper.apply(change)
        if keeper.index.approximate:
            continue
        first: dict[int, int] = {}
        for label, vector in sorted(keeper.live.items()):
            first.setdefault(vector, label)
        query = QUERIES[change[0] % len(QUERIES)]
        cosine = VECTORS @ query / np.linalg.norm(VECTORS, axis=1)
        truth = sorted(first, key=lambda vector: -cosine[vector])[:5]
        assert keeper.index.search(query, 5)[0].tolist() == [first[vector] for vector in truth]
