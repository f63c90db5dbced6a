"""Approximate search: a hierarchical navigable small world graph, by hnswlib.

Malkov & Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical
Navigable Small World graphs", IEEE TPAMI 2020 (arXiv 1603.09320).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import hnswlib
import numpy as np
import numpy.typing as npt

from clustering.errors import ConfigError, StoreError
from clustering.neighbours import Labels
from clustering.neighbours.labels import NONE, LabelMap, unit_vector
from clustering.neighbours.packing import State, pack, unpack

ARRAYS = ("element_levels", "data_level0", "link_lists")


@dataclass(frozen=True)
class HnswConfig:
    """How the graph is made and searched.

    m: links of an element in each layer (twice as many in the lowest), 2 or more; memory.
    ef_construction: candidates kept while linking a new element; quality against time.
    ef_search: candidates kept in a search; recall against time.
    seed: of the elements' layers.
    """

    m: int = 16
    ef_construction: int = 100
    ef_search: int = 100
    seed: int = 1

    def __post_init__(self) -> None:
        if self.m < 2:
            raise ConfigError(f"m is {self.m}; a graph needs at least 2 links per element")
        if self.ef_construction < 1 or self.ef_search < 1:
            raise ConfigError("ef_construction and ef_search must be at least 1")


class HnswGraph:
    """A graph over labelled unit vectors that finds most of the most alike.

    Every element gets a number of its own, never used again: a removed element stays as a
    tombstone that searches walk through but never return, so hnswlib's trouble with labels that
    come back does not arise, and which labels are live is known here, not there. ``dead`` counts
    the tombstones; when there are many, make a new graph. All work is done in one thread, as the
    graph would otherwise depend on chance.

    hnswlib keeps no track of where its random generator stands, so a graph that was saved and
    loaded goes on differently from one that was not. Both go on alike when the running one is
    loaded as well: save with ``state`` and go on with ``from_state`` of that.
    """

    def __init__(self, dimension: int, config: HnswConfig | None = None) -> None:
        self.dimension = dimension
        self.config = config or HnswConfig()
        self._index = hnswlib.Index("ip", dimension)
        self._index.init_index(
            max_elements=64,
            M=self.config.m,
            ef_construction=self.config.ef_construction,
            random_seed=self.config.seed,
        )
        self._index.set_num_threads(1)
        self._index.set_ef(self.config.ef_search)
        self._numbers = LabelMap()
        self._labels = np.full(64, NONE, np.int64)
        self._live = 0

    def add(self, label: int, vector: npt.NDArray[np.float32]) -> None:
        """Add a vector as ``Neighbours.add`` does."""
        unit = unit_vector(vector, self.dimension)
        self.remove(label)
        number = self._index.get_current_count()
        self._numbers.put(label, number)
        if number == len(self._labels):
            self._labels = np.concatenate([self._labels, np.full(number, NONE, np.int64)])
            self._index.resize_index(2 * number)
        self._labels[number] = label
        self._index.add_items(unit, number)
        self._live += 1

    def remove(self, label: int) -> None:
        """Forget ``label``; one that is not live is left alone."""
        number = self._numbers.pop(label)
        if number != NONE:
            self._labels[number] = NONE
            self._index.mark_deleted(number)
            self._live -= 1

    def relabel(self, old: int, new: int) -> None:
        """Give the vector of ``old``, which is live, the label ``new``, which is not."""
        number = self._numbers.pop(old)
        self._numbers.put(new, number)
        self._labels[number] = new

    def search(self, vector: npt.NDArray[np.float32], k: int) -> Labels:
        """Labels of most of the ``k`` live vectors most alike to ``vector``, int64[m], best first.

        m is less than min(k, live) only when even the widest search does not reach enough of
        them, as parts of the graph can come apart; scan the vectors then.
        """
        unit = unit_vector(vector, self.dimension)
        wanted = min(k, self._live)
        if wanted <= 0:
            return np.empty(0, np.int64)
        ef = self.config.ef_search
        try:
            while True:
                found = self._query(unit, wanted)
                if len(found) or ef >= self._index.get_current_count():
                    return found
                ef *= 8
                self._index.set_ef(ef)
        finally:
            self._index.set_ef(self.config.ef_search)

    @property
    def dead(self) -> int:
        """Number of tombstones."""
        return int(self._index.get_current_count()) - self._live

    @property
    def number_of(self) -> npt.NDArray[np.int32]:
        """The element of each label, int32[capacity], negative where the label is not live."""
        return self._numbers.values

    def vectors(self) -> tuple[Labels, npt.NDArray[np.float32]]:
        """The live labels, increasing, and their unit vectors: int64[n], float32[n, d]."""
        labels = self._numbers.labels()
        numbers = self._numbers.values[labels]
        if not len(labels):
            return labels, np.empty((0, self.dimension), np.float32)
        return labels, np.asarray(self._index.get_items(numbers), np.float32)

    def __contains__(self, label: int) -> bool:
        return self._numbers.get(label) != NONE

    def __len__(self) -> int:
        return self._live

    def state(self) -> State:
        """All there is to it but the settings of searches."""
        (inner,) = self._index.__getstate__()
        arrays = {name: inner.pop(name) for name in ARRAYS}
        # Its map from our numbers to its own, which are the same: we count as it does.
        del inner["label_lookup_external"], inner["label_lookup_internal"]
        # Without a new seed the elements added after each loading would get the same layers again.
        inner["seed"] += 1
        return State(inner, {**arrays, "labels": self._labels[: inner["cur_element_count"]]})

    @classmethod
    def from_state(
        cls, state: State, dimension: int, config: HnswConfig | None = None
    ) -> HnswGraph:
        """The graph that ``state`` was taken of, with the searches of ``config``.

        Raises StoreError when it was made with other settings than ``config``, or by an hnswlib
        that keeps graphs in another way.
        """
        graph = cls(dimension, config)
        made = [state.scalars.get(name) for name in ("dim", "M", "ef_construction")]
        asked = [dimension, graph.config.m, max(graph.config.ef_construction, graph.config.m)]
        if made != asked:
            raise StoreError(
                f"the neighbour graph was made with dimension, m, ef_construction = {made}, "
                f"now they are {asked}; rebuild it from the live vectors"
            )
        inner: dict[str, Any] = {**state.scalars, **{name: state.arrays[name] for name in ARRAYS}}
        count = inner["cur_element_count"]
        inner["label_lookup_external"] = np.arange(count, dtype=np.uint64)
        inner["label_lookup_internal"] = np.arange(count, dtype=np.uint32)
        graph._index = hnswlib.Index.__new__(hnswlib.Index)
        try:
            graph._index.__setstate__((inner,))
        except RuntimeError as error:
            raise StoreError(
                f"the neighbour graph cannot be loaded ({error}); rebuild it from the live vectors"
            ) from error
        graph._index.set_ef(graph.config.ef_search)
        labels = state.arrays["labels"]
        graph._labels = np.full(graph._index.get_max_elements(), NONE, np.int64)
        graph._labels[: len(labels)] = labels
        numbers = np.flatnonzero(labels != NONE)
        graph._numbers.put_all(labels[numbers], numbers)
        graph._live = len(numbers)
        return graph

    def to_bytes(self) -> bytes:
        """The state as bytes, with a checksum."""
        return pack(self.state())

    @classmethod
    def from_bytes(cls, data: bytes, dimension: int, config: HnswConfig | None = None) -> HnswGraph:
        """The graph of ``to_bytes``; StoreError when the bytes or the settings do not match."""
        return cls.from_state(unpack(data), dimension, config)

    def _query(self, unit: npt.NDArray[np.float32], k: int) -> Labels:
        try:
            numbers, _ = self._index.knn_query(unit, k)
        except RuntimeError as error:
            if "contiguous" not in str(error):
                raise
            return np.empty(0, np.int64)
        labels: Labels = self._labels[numbers[0].astype(np.int64)]
        return labels
