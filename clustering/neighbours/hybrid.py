"""The neighbour index of the daemon: exact while it is small, a graph once it is large.

A scan over n vectors costs time in proportion to n; a search of a graph hardly grows, but costs
more to begin with and misses some. So up to ``crossover`` distinct vectors are scanned and more
than that are searched through a graph. Neither the change nor the renewal of a graph that has too
many tombstones makes anyone wait: from half the crossover on, every change also adds two of the
older vectors to the graph in the making, so that it is complete long before it is needed.

Restarts
--------
Without a graph, what the index answers depends on the live (label, vector) pairs only: after a
restart, add them again in any order. A graph depends on all that happened to it, so while
``needs_log`` is true the owner must be able to repeat that:

1. after each ``add`` and ``remove``, look at ``snapshot_due``; if it is true, call ``roll``, keep
   the bytes it returns, and drop the log of what came before;
2. then log each further ``add(label, vector)`` and ``remove(label)`` in order;
3. after a restart, ``restore`` the bytes and repeat the log.

The restarted index then answers with the same bits as one that was never stopped, because snapshots
fall due at counts of changes only, and ``roll`` loads its own snapshot. (Processors of another kind
may round differently.) If the bytes are lost or damaged, ``rebuild`` makes a sound index that may
answer differently; so does changing the settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from clustering.errors import ConfigError, StoreError
from clustering.neighbours import Labels, Similarities, exact_kernels
from clustering.neighbours.distinct import Change, DistinctVectors
from clustering.neighbours.exact import ExactNeighbours
from clustering.neighbours.hnsw import HnswConfig, HnswGraph
from clustering.neighbours.labels import NONE, check_label, unit_vector
from clustering.neighbours.packing import State, pack, unpack

# Older vectors added to the graph in the making at each change.
FEED = 2


@dataclass(frozen=True)
class HybridConfig:
    """When to use which search.

    crossover: distinct vectors from which on the graph is searched; 0 means always. A graph is
        made from half of it on and dropped below a quarter. A search and an add together were
        measured to be as fast by graph as by scan at 29,000 vectors of 64 numbers and at 24,000
        of 96, with the default graph (``tests/benchmarks/neighbours_bench.py``).
    graph: settings of the graph.
    snapshot_interval: least number of changes between two snapshots; large indexes wait longer, a
        quarter of their size, so that a change costs the same however large the index is.
    tombstones: a graph is renewed when it holds this many times more removed vectors than live.
    """

    crossover: int = 25_000
    graph: HnswConfig = field(default_factory=HnswConfig)
    snapshot_interval: int = 10_000
    tombstones: float = 0.5

    def __post_init__(self) -> None:
        if self.crossover < 0:
            raise ConfigError(f"crossover is {self.crossover}; use 0 or more")
        if self.snapshot_interval < 1:
            raise ConfigError(f"snapshot_interval is {self.snapshot_interval}; use at least 1")
        if not self.tombstones > 0:
            raise ConfigError(f"tombstones is {self.tombstones}; use more than 0")


class HybridNeighbours:
    """k-NN over distinct vectors, exact when small (see ``Neighbours`` and this module)."""

    def __init__(self, dimension: int, config: HybridConfig | None = None) -> None:
        self.dimension = dimension
        self.config = config or HybridConfig()
        self._groups = DistinctVectors()
        self._exact = ExactNeighbours(dimension)
        self._graph: HnswGraph | None = None
        # The graph in the making; no label below the cursor is missing from it.
        self._next: HnswGraph | None = None
        self._cursor = 0
        self._changes = 0
        self._never_rolled = True

    def add(self, label: int, vector: npt.NDArray[np.float32]) -> None:
        check_label(label)
        unit = unit_vector(vector, self.dimension)
        if not self._groups.shares(label, unit):
            self._leave(label)
            change = self._groups.join(label, unit)
            if change.before == NONE:
                for index in self._indexes():
                    index.add(label, unit)
            else:
                self._follow(change)
        self._changed()

    def remove(self, label: int) -> None:
        self._leave(label)
        self._changed()

    def search(self, vector: npt.NDArray[np.float32], k: int) -> tuple[Labels, Similarities]:
        if self._graph is not None and self.approximate:
            found = self._graph.search(vector, k)
            if len(found) == min(k, self.distinct):
                return self._exact.rank(vector, found)
        return self._exact.search(vector, k)

    @property
    def distinct(self) -> int:
        """Number of distinct live vectors."""
        return len(self._exact)

    @property
    def approximate(self) -> bool:
        """Whether a search now goes through the graph."""
        return self._graph is not None and self.distinct >= self.config.crossover

    @property
    def needs_log(self) -> bool:
        """Whether answers depend on more than the live pairs, so that changes must be logged."""
        return self._graph is not None or self._next is not None

    @property
    def snapshot_due(self) -> bool:
        """Whether ``roll`` must be called before the next change."""
        wait = max(self.config.snapshot_interval, self.distinct // 4)
        return self.needs_log and (self._never_rolled or self._changes >= wait)

    def roll(self) -> bytes:
        """A snapshot, from which this very index also goes on.

        Time and memory are in proportion to the size: about a second for a million vectors.
        """
        state = self._state()
        self._load_graphs(state)
        return pack(state)

    @classmethod
    def restore(
        cls, data: bytes, dimension: int, config: HybridConfig | None = None
    ) -> HybridNeighbours:
        """The index as it was right after ``roll`` returned ``data``.

        Raises StoreError when the bytes are damaged or were made with another dimension, m or
        ef_construction; ``rebuild`` then. Other settings may change, but then the answers differ
        from those of an index that was never stopped.
        """
        index = cls(dimension, config)
        state = unpack(data)
        made = state.scalars.get("dimension")
        if made != dimension:
            raise StoreError(
                f"the neighbour snapshot is of dimension {made}, now it is {dimension}; rebuild it "
                "from the live vectors"
            )
        index._load_graphs(state)
        index._load_vectors(state)
        return index

    @classmethod
    def rebuild(
        cls,
        labels: Labels,
        vectors: npt.NDArray[np.float32],
        dimension: int,
        config: HybridConfig | None = None,
    ) -> HybridNeighbours:
        """An index of these pairs, added by increasing label: int64[n] and float32[n, d]."""
        index = cls(dimension, config)
        for place in np.argsort(labels, kind="stable").tolist():
            index.add(int(labels[place]), vectors[place])
        return index

    def __contains__(self, label: int) -> bool:
        return label in self._groups

    def __len__(self) -> int:
        return len(self._groups)

    def _leave(self, label: int) -> None:
        if label not in self._groups:
            return
        change = self._groups.leave(label)
        if change.after == NONE:
            for index in self._indexes():
                index.remove(label)
        else:
            self._follow(change)

    def _follow(self, change: Change) -> None:
        """Let every index know a vector by its new representative."""
        before, after = change
        if before == after:
            return
        for index in self._indexes():
            if before in index:
                index.relabel(before, after)
        self._cursor = min(self._cursor, after)

    def _indexes(self) -> Iterator[ExactNeighbours | HnswGraph]:
        yield self._exact
        if self._graph is not None:
            yield self._graph
        if self._next is not None:
            yield self._next

    def _changed(self) -> None:
        """Count a change; begin, go on with, or drop the graphs as the size asks for."""
        self._changes += 1
        size, crossover = self.distinct, self.config.crossover
        if size < crossover // 4:
            self._graph = self._next = None
        elif self._next is None:
            if self._graph is None:
                if size >= crossover // 2:
                    self._begin_graph()
                    self._never_rolled = True
            elif self._graph.dead > self.config.tombstones * max(size, 64):
                self._begin_graph()
        if self._next is not None:
            self._feed(self._next)

    def _begin_graph(self) -> None:
        self._next = HnswGraph(self.dimension, self.config.graph)
        self._cursor = 0

    def _feed(self, graph: HnswGraph) -> None:
        for _ in range(FEED):
            label = exact_kernels.next_missing(self._exact.row_of, graph.number_of, self._cursor)
            if label == NONE:
                self._graph, self._next = graph, None
                return
            graph.add(label, self._exact.vector(label))
            self._cursor = label + 1

    def _state(self) -> State:
        labels, firsts = self._groups.pairs()
        scalars: dict[str, Any] = {"dimension": self.dimension}
        arrays: dict[str, npt.NDArray[Any]] = {"labels": labels, "firsts": firsts}
        if self._graph is None:
            # A complete graph holds every vector itself.
            arrays["vector_labels"] = self._exact.labels()
            arrays["vectors"] = self._exact.vectors(arrays["vector_labels"])
        for prefix, graph in (("graph.", self._graph), ("next.", self._next)):
            if graph is not None:
                part = graph.state().under(prefix)
                scalars.update(part.scalars)
                arrays.update(part.arrays)
        return State(scalars, arrays)

    def _load_graphs(self, state: State) -> None:
        self._graph = self._load_graph(state.part("graph."))
        self._next = self._load_graph(state.part("next."))
        self._cursor = 0
        self._changes = 0
        self._never_rolled = False

    def _load_graph(self, state: State) -> HnswGraph | None:
        if not state.arrays:
            return None
        return HnswGraph.from_state(state, self.dimension, self.config.graph)

    def _load_vectors(self, state: State) -> None:
        if self._graph is None:
            labels, vectors = state.arrays["vector_labels"], state.arrays["vectors"]
        else:
            labels, vectors = self._graph.vectors()
        for label, vector in zip(labels.tolist(), vectors, strict=True):
            self._exact.add(label, vector)
        pairs = zip(state.arrays["labels"].tolist(), state.arrays["firsts"].tolist(), strict=True)
        for label, first in pairs:
            self._groups.join(label, self._exact.vector(first))
