"""The online cluster tree: a thin class that owns the arrays and validates for the kernels.

Source: Monath, Kobren, Krishnamurthy, Glass, McCallum, "Scalable Hierarchical Clustering with Tree
Grafting", KDD 2019.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from clustering.errors import ConfigError, DataError, GraftdError
from clustering.features.leaves import Leaves
from clustering.grinch import grinch_kernels, tree_kernels
from clustering.grinch.bound_linkage import bind
from clustering.grinch.config import GrinchConfig
from clustering.grinch.tree_kernels import NONE, Tree
from clustering.linkage import Linkage

Nodes = npt.NDArray[np.int32]

__all__ = ["NONE", "GrinchConfig", "GrinchTree", "NeighbourSearch", "TreeError"]

PER_NODE = Tree._fields[: Tree._fields.index("counts")]
WORK = ("linkages", "rotations", "grafts_tried", "grafts_made", "restructs", "searches")


class NeighbourSearch(Protocol):
    """What grafts need of a neighbour index; its labels are leaf ids."""

    def search(
        self, vector: npt.NDArray[np.float32], k: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Labels and similarities of the ``k`` leaves nearest to ``vector``, best first."""


class TreeError(GraftdError):
    """The tree is not as it must be, or was asked about a node it does not have."""


class GrinchTree:
    """A forest of binary trees over leaves, changed by one insert or delete at a time.

    Leaves and inner nodes share one id space; ids that were given back are used again, lowest
    first, so that the same operations give the same ids whether or not the tree was rebuilt in
    between. Every operation costs what its path and its candidates cost, whatever the number of
    trees. ``touched`` tells what an operation changed.
    """

    def __init__(
        self,
        width: int,
        linkage: Linkage,
        config: GrinchConfig | None = None,
        neighbours: NeighbourSearch | None = None,
        n_unique: int = 0,
        features: Leaves | None = None,
    ) -> None:
        """An empty tree.

        width: length of a leaf's row.
        n_unique: kinds of leaves of which an entity has at most one (records of a clean source).
        features: what the linkage knows of the leaves, for one that asks for samples; its owner
            puts a leaf there before its insert (as ``next_leaf``) and drops it after its delete.
        neighbours: searched by grafts when ``config.single_search`` is off, with the sum of the
            rows below a node as the vector; its labels are leaf ids.
        """
        if width < 0:
            raise ConfigError(f"width is {width}; a row cannot have less than no numbers")
        self.width = width
        self.linkage = linkage
        self.config = config if config is not None else GrinchConfig()
        if not self.config.single_search and neighbours is None:
            raise ConfigError("without single_search the tree needs neighbours to search")
        self._neighbours = None if self.config.single_search else neighbours
        self._rules = self.config.rules()
        self._bound = bind(linkage.kernel)
        self._row = np.empty(width, np.float32)
        self._features = Leaves(0) if features is None else features
        self._tree = _empty(
            width,
            linkage.n_samples,
            n_unique,
            64,
            np.ascontiguousarray(linkage.params, np.float64),
            self._features.arrays,
        )

    @classmethod
    def rebuild(
        cls,
        linkage: Linkage,
        config: GrinchConfig,
        parent: npt.ArrayLike,
        left: npt.ArrayLike,
        right: npt.ArrayLike,
        leaves: npt.ArrayLike,
        rows: npt.ArrayLike,
        groups: npt.ArrayLike | None = None,
        neighbours: NeighbourSearch | None = None,
        kinds: npt.ArrayLike | None = None,
        n_unique: int = 0,
        features: Leaves | None = None,
    ) -> GrinchTree:
        """The tree with a stored topology; equal bit for bit to the one that was stored.

        parent, left, right: int[n], indexed by node id, -1 = none (and where an id is free).
        leaves: int[m], ids of the leaves; rows: float32[m, width]; groups: int64[m], -1 = none.
        kinds: int[m], as ``kind`` of `insert`.
        Nothing is touched afterwards. Raises TreeError when the links are not a forest.
        """
        leaf_rows = np.asarray(rows, np.float32)
        leaf_ids = np.ascontiguousarray(leaves, np.int64)
        tree = cls(leaf_rows.shape[1], linkage, config, neighbours, n_unique, features)
        links: list[Nodes] = [np.asarray(a, np.int32) for a in (parent, left, right)]
        n = len(links[0])
        tree._reserve(n)
        arrays = tree._tree
        for mine, stored in zip((arrays.parent, arrays.left, arrays.right), links, strict=True):
            mine[:n] = stored
        _check_links(links[0], links[1], links[2], leaf_ids)
        arrays.size[leaf_ids] = 1
        arrays.coherent[leaf_ids] = True
        arrays.aggregates[leaf_ids] = leaf_rows + np.float32(0.0)
        if groups is not None:
            arrays.group[leaf_ids] = np.asarray(groups, np.int64)
        arrays.samples[leaf_ids, :1] = leaf_ids[:, None]
        if kinds is not None and n_unique > 0:
            columns = np.asarray(kinds, np.int64)
            counted = columns != NONE
            arrays.unique[leaf_ids[counted], columns[counted]] = 1
        reached = tree_kernels.restore(arrays, tree._rules, linkage.kernel, leaf_ids)
        used = len(leaf_ids) + int(np.count_nonzero(links[1] != NONE))
        if reached != used:
            raise TreeError(f"{used - reached} of {used} stored nodes are not above any leaves")
        in_use = np.flatnonzero(arrays.size)
        high = int(in_use[-1]) + 1 if len(in_use) else 0
        free = np.flatnonzero(arrays.size[:high] == 0)
        arrays.free[: len(free)] = free
        arrays.counts[:] = high, len(free), arrays.counts[tree_kernels.TOUCHED], len(leaf_ids)
        tree.touched()
        arrays.work[:] = 0
        return tree

    @property
    def parent(self) -> Nodes:
        """int32[capacity]: the node above, -1 = none."""
        return self._tree.parent

    @property
    def left(self) -> Nodes:
        """int32[capacity]: the left child, -1 = none."""
        return self._tree.left

    @property
    def right(self) -> Nodes:
        """int32[capacity]: the right child, -1 = none."""
        return self._tree.right

    @property
    def size(self) -> Nodes:
        """int32[capacity]: leaves below, 0 = the id is free."""
        return self._tree.size

    @property
    def aggregates(self) -> npt.NDArray[np.float32]:
        """float32[capacity, width]: sum of the rows of the leaves below."""
        return self._tree.aggregates

    @property
    def score(self) -> npt.NDArray[np.float64]:
        """float64[capacity]: linkage of the two children, nan for a leaf."""
        return self._tree.score

    @property
    def coherent(self) -> npt.NDArray[np.bool_]:
        """bool[capacity]: every linkage at or below the node reaches the threshold."""
        return self._tree.coherent

    @property
    def group(self) -> npt.NDArray[np.int64]:
        """int64[capacity]: content group of all leaves below, -1 = none or more than one."""
        return self._tree.group

    @property
    def work(self) -> dict[str, int]:
        """Operations done so far: linkages, rotations, grafts tried and made, restructs, searches.

        Searches are those that the tree made itself.
        """
        return dict(zip(WORK, self._tree.work.tolist(), strict=True))

    def __len__(self) -> int:
        """Number of leaves."""
        return int(self._tree.counts[tree_kernels.LEAVES])

    @property
    def next_leaf(self) -> int:
        """The id that the next leaf will get."""
        counts = self._tree.counts
        return int(self._tree.free[0] if counts[tree_kernels.FREE] else counts[tree_kernels.HIGH])

    @property
    def n_ids(self) -> int:
        """One more than the highest node id ever used."""
        return int(self._tree.counts[tree_kernels.HIGH])

    def insert(
        self,
        row: npt.ArrayLike,
        candidates: npt.ArrayLike = (),
        twin: int = NONE,
        group: int = NONE,
        kind: int = NONE,
    ) -> int:
        """Add a leaf and return its id.

        row: float32[width], finite.
        candidates: int[m], leaves like the new one, best first; the most alike by the linkage
            becomes its neighbour (ties: the earlier one). Without any, or where a linkage of
            -1e6 or less (a hard fact) keeps it out of all their entities, it is a top of its own.
        twin: a leaf with the same content, whose group is ``group``; then candidates are needed
            only where the two may not be together.
        group: int64, content group of the new leaf, -1 = none.
        kind: which of the kinds that an entity has one leaf of it is, -1 = none.

        Raises DataError for a row that is not finite, TreeError for ids that are not leaves.
        """
        values = np.asarray(row)
        if values.shape != self._row.shape:
            raise DataError(f"a row has shape {values.shape}; this tree needs ({self.width},)")
        self._row[:] = values
        if self.width and not np.isfinite(self._row).all():
            raise DataError("a row has values that are not finite numbers; leave the record out")
        near = np.array(candidates, np.int64).reshape(-1)
        if twin != NONE:
            self._check_leaves(np.array([twin], np.int64))
            if group == NONE or self._tree.group[twin] != group:
                raise TreeError(f"leaf {twin} is of group {self._tree.group[twin]}, not {group}")
        self._reserve(2 * len(self) + 2)
        self._tree = self._tree._replace(leaves=self._features.arrays)
        if self.config.graft and self._neighbours is not None:
            self._check_leaves(near)
            return self._insert_searching(self._neighbours, near, twin, group, kind)
        budget = self._budget() if self.config.graft else 0
        leaf: int = grinch_kernels.insert_leaf(
            self._tree, self._rules, self._bound, self._row, near, twin, group, kind, budget
        )
        if leaf == grinch_kernels.NOT_LEAVES:
            self._check_leaves(near)
        return leaf

    def delete(self, leaf: int) -> None:
        """Take a leaf out. Raises TreeError when it is not a leaf of this tree."""
        self._check_leaves(np.array([leaf], np.int64))
        self._tree = self._tree._replace(leaves=self._features.arrays)
        grinch_kernels.delete_leaf(self._tree, self._rules, self._bound, leaf)

    def touched(self) -> Nodes:
        """Nodes whose leaves, links, score or coherence may have changed since the last call.

        int32[m], each once, ascending; ids that were given back are among them. An entity whose
        leaves changed is one of these nodes or a child of one.
        """
        n = self._tree.counts[tree_kernels.TOUCHED]
        nodes = np.sort(self._tree.touched[:n])
        self._tree.is_touched[nodes] = False
        self._tree.counts[tree_kernels.TOUCHED] = 0
        return nodes

    def entities_near(self, touched: Nodes) -> tuple[list[int], Nodes, list[int]]:
        """The entities that changed, given what ``touched`` returned.

        Returns their roots, ascending; the leaves below, root by root, int32[n]; and where those of
        each root end.
        """
        roots, leaves, ends = tree_kernels.entities_near(self._tree, touched)
        return roots.tolist(), leaves, ends.tolist()

    def leaves(self, node: int) -> Nodes:
        """int32[size[node]]: the leaves at or below a node, left to right."""
        self._check_node(node)
        leaves: Nodes = tree_kernels.leaves_below(self._tree, node)
        return leaves

    def top_of(self, node: int) -> int:
        """The top of the tree that a node is in."""
        self._check_node(node)
        return int(tree_kernels.top_of(self._tree, node))

    def entity_root(self, leaf: int) -> int:
        """The root of the entity that a leaf is in: the highest coherent node at or above it."""
        self._check_node(leaf)
        return int(tree_kernels.entity_root(self._tree, leaf))

    def path(self, node: int) -> list[int]:
        """Node ids from a node up to its top, both included."""
        self._check_node(node)
        path = [node]
        while (node := int(self._tree.parent[node])) != NONE:
            path.append(node)
        return path

    def tops(self) -> Nodes:
        """int32[m]: the nodes that have none above them, ascending."""
        tree = self._tree
        return np.flatnonzero((tree.size > 0) & (tree.parent == NONE)).astype(np.int32)

    def entity_roots(self) -> Nodes:
        """int32[m]: the roots of all entities (the maximal coherent subtrees), ascending."""
        tree = self._tree
        above = np.where(tree.parent == NONE, False, tree.coherent[tree.parent])
        return np.flatnonzero((tree.size > 0) & tree.coherent & ~above).astype(np.int32)

    def _insert_searching(
        self,
        neighbours: NeighbourSearch,
        near: npt.NDArray[np.int64],
        twin: int,
        group: int,
        kind: int,
    ) -> int:
        """Insert with a neighbour search for every graft (the paper's exact variant)."""
        tree, rules, kernel = self._tree, self._rules, self.linkage.kernel
        leaf = int(grinch_kernels.new_leaf(tree, self._row, group, kind))
        scores = grinch_kernels.likenesses(tree, rules, kernel, leaf, near)
        grinch_kernels.place_leaf(tree, rules, kernel, leaf, near, scores, twin)
        limit = tree.work[tree_kernels.GRAFTS_MADE] + self._budget()
        node = int(tree.parent[leaf])
        while node != NONE and tree.work[tree_kernels.GRAFTS_MADE] < limit:
            found = self._search_outside(neighbours, node)
            node = int(grinch_kernels.graft_step(tree, rules, kernel, node, found))
        tree_kernels.dissolve(tree, rules, tree_kernels.top_of(tree, leaf))
        return leaf

    def _search_outside(self, neighbours: NeighbourSearch, node: int) -> npt.NDArray[np.int64]:
        """Neighbours of an inner node, enough that some are outside it unless there are none."""
        size = int(self._tree.size[node])
        vector = self._tree.aggregates[node]
        if size == len(self) or 0 < self.config.cap < size or not vector.any():
            return np.empty(0, np.int64)
        self._tree.work[tree_kernels.SEARCHES] += 1
        found, _ = neighbours.search(vector, size + self.config.neighbours)
        return np.array(found, np.int64)

    def _budget(self) -> int:
        if self.config.graft_budget is not None:
            return self.config.graft_budget
        return 32 + 2 * (len(self) + 1).bit_length()

    def _check_node(self, node: int) -> None:
        if not 0 <= node < self.n_ids or self._tree.size[node] == 0:
            raise TreeError(f"{node} is not a node of this tree")

    def _check_leaves(self, nodes: npt.NDArray[np.int64]) -> None:
        if not grinch_kernels.all_leaves(self._tree, nodes):
            raise TreeError(f"not all leaves of this tree: {nodes.tolist()}")

    def _reserve(self, capacity: int) -> None:
        """Make room for node ids below ``capacity``, doubling so that growth is amortised."""
        old = self._tree
        if capacity <= len(old.parent):
            return
        new = _empty(
            self.width,
            old.samples.shape[1],
            old.unique.shape[1],
            max(capacity, 2 * len(old.parent)),
            old.params,
            old.leaves,
        )
        for name in PER_NODE:
            before = getattr(old, name)
            getattr(new, name)[: len(before)] = before
        self._tree = new._replace(counts=old.counts, work=old.work)


def _empty(
    width: int,
    n_samples: int,
    n_unique: int,
    capacity: int,
    params: npt.NDArray[np.float64],
    leaves: tuple[npt.NDArray[Any], ...],
) -> Tree:
    return Tree(
        parent=np.full(capacity, NONE, np.int32),
        left=np.full(capacity, NONE, np.int32),
        right=np.full(capacity, NONE, np.int32),
        size=np.zeros(capacity, np.int32),
        aggregates=np.empty((capacity, width), np.float32),
        samples=np.full((capacity, n_samples), NONE, np.int32),
        unique=np.zeros((capacity, n_unique), np.int32),
        score=np.full(capacity, np.nan),
        coherent=np.zeros(capacity, np.bool_),
        group=np.full(capacity, NONE, np.int64),
        free=np.empty(capacity, np.int32),
        touched=np.empty(capacity, np.int32),
        is_touched=np.zeros(capacity, np.bool_),
        counts=np.zeros(tree_kernels.N_COUNTS, np.int64),
        work=np.zeros(tree_kernels.N_WORK, np.int64),
        params=params,
        leaves=leaves,
    )


def _check_links(parent: Nodes, left: Nodes, right: Nodes, leaves: npt.NDArray[np.int64]) -> None:
    """Raise TreeError unless every link has its counterpart and leaves have no children."""
    n = len(parent)
    if not len(left) == len(right) == n:
        raise TreeError("parent, left and right differ in length")
    for name, links in (("parent", parent), ("left", left), ("right", right)):
        if len(links) and (links.min() < NONE or links.max() >= n):
            raise TreeError(f"{name} points at nodes that do not exist")
    if len(leaves) and (leaves.min() < 0 or leaves.max() >= n):
        raise TreeError("leaves names nodes that do not exist")
    if len(np.unique(leaves)) != len(leaves):
        raise TreeError("leaves names a node twice")
    if (left[leaves] != NONE).any() or ((left == NONE) != (right == NONE)).any():
        raise TreeError("a leaf has a child, or an inner node has only one")
    inner = np.flatnonzero(left != NONE)
    if (parent[left[inner]] != inner).any() or (parent[right[inner]] != inner).any():
        raise TreeError("a child does not point back at its parent")
    below = np.flatnonzero(parent != NONE)
    above = parent[below]
    if ((left[above] != below) & (right[above] != below)).any():
        raise TreeError("a parent does not point back at its child")
    if (left[inner] == right[inner]).any():
        raise TreeError("a node has one child twice")
    used = np.zeros(n, np.bool_)
    used[leaves] = True
    used[inner] = True
    if not used[below].all():
        raise TreeError("a node that is neither leaf nor inner node has a parent")
