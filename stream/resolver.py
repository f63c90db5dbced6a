"""The online answer in memory: tree, neighbour indexes and entities, kept in step.

One record at a time goes in or out; ``settle`` then says what that did to the entities. Nothing
here reads or writes anything: the engine stores what `Settled` and ``take_index_events`` tell it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise, zip_longest
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clustering.entities import Change, Entities, Entity
from clustering.features.leaves import Leaves
from clustering.grinch import NONE, GrinchConfig, GrinchTree
from clustering.grinch.invariants import check_invariants
from clustering.linkage import Linkage
from clustering.linkage.average import average
from clustering.linkage.cosine import cosine
from clustering.linkage.learned import learned
from clustering.model import Model
from clustering.neighbours.hnsw import HnswConfig
from clustering.neighbours.hybrid import HybridConfig, HybridNeighbours
from clustering.neighbours.tokens import TokenIndex
from stream.config import Config
from stream.embedding import Embedded

# Candidates that the exact index of rare tokens may add to those of the neighbour search.
TOKEN_CANDIDATES = 10

# Subtrees less alike than this much below the threshold hang apart: nats for the learned linkage,
# a share of the threshold for the others, whose scale ends at 1.
FLOOR_NATS = 4.0
FLOOR_SHARE = 0.6

# Candidates in a row below that after which an insert looks at no more.
PATIENCE = 8

# Least number of changes of the neighbour index between two snapshots of it.
SNAPSHOT_INTERVAL = 10_000


class IndexEvent(NamedTuple):
    """Something that happened to the neighbour index and must survive a restart.

    A vector was added under ``label``; or ``label`` was removed (vector None); or, with label -1,
    a snapshot was taken, which makes the events before it unneeded, or (snapshot None) the index
    became one that its live vectors alone determine, which makes all of them unneeded.
    """

    label: int
    vector: npt.NDArray[np.float32] | None = None
    snapshot: bytes | None = None


class Settled(NamedTuple):
    """What changed since the last ``settle``.

    changes: of entities, in a fixed order. roots: entity number and root node, for each entity that
    changed or whose root moved.
    """

    changes: list[Change]
    roots: dict[int, int]


class Stored(NamedTuple):
    """One record of a stored state, embedded."""

    arrival: int
    leaf: int
    source: str
    embedded: Embedded


def threshold_of(config: Config, model: Model) -> float:
    """Least linkage within an entity; by default that of a match as likely as not."""
    if config.matching.threshold != "auto":
        return float(config.matching.threshold)
    return 0.0 if config.matching.linkage == "learned" else model.cosine_threshold


def _tree_config(config: Config, model: Model) -> GrinchConfig:
    threshold = threshold_of(config, model)
    learned_linkage = config.matching.linkage == "learned"
    tree = config.tree
    return GrinchConfig(
        rotate=tree.rotate,
        graft=tree.graft,
        restruct=tree.restruct,
        cap=tree.cap,
        single_elimination=tree.single_elimination,
        single_search=tree.single_search,
        neighbours=tree.neighbours,
        patience=PATIENCE,
        floor=threshold - FLOOR_NATS if learned_linkage else threshold * FLOOR_SHARE,
        threshold=threshold,
    )


def hybrid_config(config: Config) -> HybridConfig:
    """Settings of the neighbour index."""
    n = config.neighbours
    graph = HnswConfig(m=n.m, ef_construction=n.ef_construction, ef_search=n.ef_search)
    return HybridConfig(n.exact_below, graph, SNAPSHOT_INTERVAL)


class Resolver:
    """The online clustering of the records of one topic partition by one version of the model."""

    def __init__(self, model: Model, config: Config) -> None:
        self.model = model
        self.config = config
        self.entities = Entities()
        self._unique = {
            source: column
            for column, source in enumerate(
                sorted(name for name, known in config.sources.items() if known.no_duplicates)
            )
        }
        self._leaves = Leaves(len(model.specs))
        self._index = HybridNeighbours(model.dimension, hybrid_config(config))
        self._tokens = TokenIndex()
        self._tree = self._empty_tree()
        self._arrival_of = np.empty(64, np.int64)
        self._root_of: dict[int, int] = {}
        self._events: list[IndexEvent] = []
        self._logged = False
        self._dirty_nodes: set[int] = set()

    # -- changing -------------------------------------------------------------------------------

    def add(self, arrival: int, source: str, embedded: Embedded) -> int:
        """Put a record in; returns its leaf."""
        near = self.candidates(embedded)
        twin = NONE
        if len(near) and self._tree.group[near[0]] == embedded.group:
            twin = int(near[0])
        leaf = self._tree.next_leaf
        self._leaves.put(leaf, embedded.weighed)
        self._tree.insert(
            self._row(embedded),
            near,
            twin,
            embedded.group,
            self._unique.get(source, NONE),
        )
        self._register(arrival, leaf)
        if embedded.comparable:
            self._index.add(leaf, embedded.vector)
            self._tokens.add(leaf, embedded.tokens)
            self._log(IndexEvent(leaf, embedded.vector))
        return leaf

    def remove(self, leaf: int) -> None:
        """Take a record out."""
        self._tree.delete(leaf)
        self._leaves.drop(leaf)
        if leaf in self._index:
            self._index.remove(leaf)
            self._tokens.remove(leaf)
            self._log(IndexEvent(leaf))

    def settle(self, removed: Iterable[int] = ()) -> Settled:
        """What the adds and removes since the last call did to the entities.

        removed: arrival numbers of records that are gone for good.
        """
        touched = self._tree.touched()
        self._dirty_nodes.update(touched.tolist())
        roots, leaves, ends = self._tree.entities_near(touched)
        arrivals = self._arrival_of[leaves].tolist()
        clusters = [frozenset(arrivals[a:b]) for a, b in pairwise([0, *ends])]
        changes = self.entities.update(clusters, removed)
        moved = {}
        for root, cluster in zip(roots, clusters, strict=True):
            number = self.entities.of(next(iter(cluster))).number
            if self._root_of.get(number) != root:
                self._root_of[number] = root
                moved[number] = root
        for change in changes:
            if change.members:
                moved[change.number] = self._root_of[change.number]
            else:
                self._root_of.pop(change.number, None)
        return Settled(changes, moved)

    # -- reading --------------------------------------------------------------------------------

    @property
    def tree(self) -> GrinchTree:
        """The tree, for reading."""
        return self._tree

    @property
    def leaves(self) -> Leaves:
        """The leaves' weighed bags, for reading."""
        return self._leaves

    def arrivals(self, leaves: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Arrival numbers of the records at some leaves."""
        return self._arrival_of[leaves]

    def candidates(self, embedded: Embedded) -> npt.NDArray[np.int64]:
        """Leaves that may match a record, the best of each search in turn, the nearest first."""
        if not embedded.comparable or len(self._index) == 0:
            return np.empty(0, np.int64)
        near, _ = self._index.search(embedded.vector, self.config.tree.neighbours)
        exact = self._tokens.candidates(embedded.tokens, TOKEN_CANDIDATES)
        ranked = zip_longest(near.tolist(), exact.tolist(), fillvalue=NONE)
        merged = dict.fromkeys(chain.from_iterable(ranked))
        merged.pop(NONE, None)
        return np.array(list(merged), np.int64)

    def take_dirty_nodes(self) -> list[int]:
        """Nodes that changed since the last call, ascending; ids now free are among them."""
        nodes = sorted(self._dirty_nodes)
        self._dirty_nodes.clear()
        return nodes

    def mark_dirty(self, nodes: Iterable[int]) -> None:
        """Have nodes stored again although they did not change."""
        self._dirty_nodes.update(nodes)

    def take_index_events(self) -> list[IndexEvent]:
        """What happened to the neighbour index since the last call and must be stored."""
        events, self._events = self._events, []
        return events

    # -- restoring ------------------------------------------------------------------------------

    def restore(
        self,
        parent: npt.NDArray[np.int32],
        left: npt.NDArray[np.int32],
        right: npt.NDArray[np.int32],
        records: Sequence[Stored],
        entities: Iterable[tuple[int, int, int]],
        next_entity: int,
        index: HybridNeighbours | None,
    ) -> None:
        """Take over a stored state.

        parent, left, right: int32[n] by node id. entities: (number, root node, version) of each
        live one. index: the neighbour index brought up to date, or None to add every record to an
        empty one, which is the same while it is exact.
        """
        for record in records:
            self._leaves.put(record.leaf, record.embedded.weighed)
            self._register(record.arrival, record.leaf)
        if index is not None:
            self._index = index
            self._logged = True
        for record in records:
            if record.embedded.comparable:
                if index is None:
                    self._index.add(record.leaf, record.embedded.vector)
                self._tokens.add(record.leaf, record.embedded.tokens)
        tree = self._tree
        self._tree = GrinchTree.rebuild(
            tree.linkage,
            tree.config,
            parent,
            left,
            right,
            leaves=[record.leaf for record in records],
            rows=np.array([self._row(record.embedded) for record in records], np.float32).reshape(
                len(records), tree.width
            ),
            groups=[record.embedded.group for record in records],
            kinds=[self._unique.get(record.source, NONE) for record in records],
            n_unique=len(self._unique),
            features=self._leaves,
        )
        live = []
        for number, root, version in entities:
            members = frozenset(self._arrival_of[self._tree.leaves(root)].tolist())
            live.append(Entity(number, version, members))
            self._root_of[number] = root
        self.entities.restore(live, next_entity)
        if index is None and self._index.needs_log:
            self.roll_index()

    def roll_index(self) -> None:
        """Take a snapshot of the neighbour index now, if it is one that needs any."""
        self._logged = self._index.needs_log
        snapshot = self._index.roll() if self._logged else None
        self._events = [IndexEvent(NONE, snapshot=snapshot)]

    def check(self) -> None:
        """Raise TreeError or AssertionError unless everything here agrees."""
        check_invariants(self._tree)
        roots = self._tree.entity_roots().tolist()
        clusters = {frozenset(self._arrival_of[self._tree.leaves(r)].tolist()): r for r in roots}
        held = {entity.members: entity.number for entity in self.entities.live()}
        if clusters.keys() != held.keys():
            raise AssertionError("entities are not the maximal coherent subtrees")
        for members, number in held.items():
            if self._root_of[number] != clusters[members]:
                raise AssertionError(f"entity {number} has a stale root")

    def _register(self, arrival: int, leaf: int) -> None:
        while leaf >= len(self._arrival_of):
            self._arrival_of = np.concatenate([self._arrival_of, np.empty_like(self._arrival_of)])
        self._arrival_of[leaf] = arrival

    def _log(self, event: IndexEvent) -> None:
        if self._index.needs_log and not self._index.snapshot_due:
            self._events.append(event)
        elif self._index.needs_log or self._logged:
            self.roll_index()

    def _row(self, embedded: Embedded) -> npt.NDArray[np.float32]:
        if self.config.matching.linkage == "learned":
            return np.empty(0, np.float32)
        return embedded.vector

    def _empty_tree(self) -> GrinchTree:
        kind = self.config.matching.linkage
        width = 0 if kind == "learned" else self.model.dimension
        linkage: Linkage
        if kind == "learned":
            linkage = learned(self.model.params())
        else:
            linkage = cosine() if kind == "cosine" else average()
        return GrinchTree(
            width,
            linkage,
            _tree_config(self.config, self.model),
            n_unique=len(self._unique),
            features=self._leaves,
        )


__all__ = ["IndexEvent", "Resolver", "Settled", "Stored", "threshold_of"]
