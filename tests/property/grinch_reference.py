"""Grinch in plain Python on linked objects: slow, direct, and independent of the kernels."""

from __future__ import annotations

import math

import numpy as np

from clustering.features.leaves import Leaves
from clustering.grinch import GrinchConfig
from clustering.linkage import Linkage

EPSILON = 1e-6


class Node:
    """A node that knows its leaves; its sum is recomputed from its children when asked for."""

    def __init__(self, leaf=None, row=None, left=None, right=None):
        self.leaf, self.row, self.left, self.right, self.parent = leaf, row, left, right, None
        for child in self.children:
            child.parent = self

    @property
    def children(self):
        return [c for c in (self.left, self.right) if c is not None]

    @property
    def sibling(self):
        if self.parent is None:
            return None
        return self.parent.right if self.parent.left is self else self.parent.left

    @property
    def leaves(self):
        return [self.leaf] if self.left is None else self.left.leaves + self.right.leaves

    @property
    def total(self):
        return self.row if self.left is None else self.left.total + self.right.total

    @property
    def size(self):
        return len(self.leaves)

    @property
    def ancestors(self):
        return [] if self.parent is None else [self.parent, *self.parent.ancestors]

    def replace(self, old, new):
        new.parent = self
        if self.left is old:
            self.left = new
        else:
            self.right = new


class Reference:
    """The same interface as GrinchTree, with leaves named by the caller."""

    def __init__(self, linkage: Linkage, config: GrinchConfig):
        self.linkage, self.config = linkage, config
        self.leaf_nodes: dict[int, Node] = {}

    def f(self, a: Node, b: Node) -> float:
        rows = np.stack([a.total, b.total]).astype(np.float32)
        sizes = np.array([a.size, b.size], np.int32)
        nodes = (rows, np.empty((2, 0), np.int32), sizes)
        return self.linkage.kernel(nodes, Leaves(0).arrays, 0, 1, self.linkage.params)

    def score(self, node: Node) -> float:
        return self.f(node.left, node.right)

    @staticmethod
    def margin(score: float) -> float:
        return EPSILON * min(max(1.0, abs(score)), 1e6)

    def capped(self, *nodes: Node) -> bool:
        return self.config.cap > 0 and any(n.size > self.config.cap for n in nodes)

    def top(self, node: Node) -> Node:
        return node if node.parent is None else self.top(node.parent)

    def structure(self) -> set[frozenset[int]]:
        found: set[frozenset[int]] = set()
        for leaf in self.leaf_nodes.values():
            found.update(frozenset(n.leaves) for n in [leaf, *leaf.ancestors])
        return found

    def insert(self, name: int, row: np.ndarray, candidates: list[int]) -> None:
        x = Node(leaf=name, row=row)
        near = self.looked_at(x, [self.leaf_nodes[c] for c in candidates])
        self.leaf_nodes[name] = x
        place = self.find_place(x, near)
        if place is None:
            return
        near = [c for c in near if self.f(x, c) >= self.config.floor]
        self.join(place, x)
        if self.config.graft:
            v = x.parent
            while v is not None:
                v = self.graft(v, near)
        self.dissolve(self.top(x))

    def looked_at(self, x: Node, near: list[Node]) -> list[Node]:
        missed = 0
        for i, candidate in enumerate(near):
            missed = missed + 1 if self.f(x, candidate) < self.config.floor else 0
            if self.config.patience and missed == self.config.patience:
                return near[: i + 1]
        return near

    def find_place(self, x: Node, near: list[Node]) -> Node | None:
        if not near:
            return None
        place = max(near, key=lambda c: self.f(x, c))
        if self.config.rotate:
            while (
                place.parent is not None
                and not self.capped(place.parent)
                and self.f(x, place) < self.score(place.parent)
            ):
                place = place.parent
            place = self.balance(x, place)
        return None if self.f(x, place) < self.config.floor else place

    def balance(self, x: Node, lowest: Node) -> Node:
        alike = self.f(x, lowest)

        def same(value: float) -> bool:
            return abs(value - alike) <= self.margin(alike)

        place = lowest
        while (
            place.parent is not None
            and same(self.score(place.parent))
            and same(self.f(x, place.parent))
        ):
            place = place.parent
        if place is lowest:
            return lowest
        while place.left is not None and same(self.score(place)):
            lightest_first = sorted(place.children, key=lambda c: c.size)
            below = [c for c in lightest_first if same(self.f(x, c))]
            if not below:
                break
            place = below[0]
        return place

    def join(self, v: Node, other: Node) -> Node:
        above = v.parent
        new = Node(left=v, right=other)
        new.parent = None
        if above is not None:
            above.replace(v, new)
        return new

    def cut(self, node: Node) -> Node:
        parent, beside = node.parent, node.sibling
        beside.parent = None
        if parent.parent is not None:
            parent.parent.replace(parent, beside)
        node.parent = None
        return beside

    def wants(self, node: Node, alike: float) -> bool:
        if alike < self.config.floor:
            return False
        if node.parent is None:
            return True
        score = self.score(node.parent)
        return alike > score + self.margin(score)

    def graft(self, v: Node, near: list[Node]) -> Node | None:
        if self.capped(v):
            return None
        outside = [c for c in near if c.leaf not in v.leaves and c is not v.sibling]
        if not outside:
            return None
        other = max(outside, key=lambda c: self.f(v, c))
        start = v
        meet = next((a for a in v.ancestors if other.leaf in a.leaves), None)
        while v is not meet and other is not meet and v is not None and other is not None:
            if v.sibling is other or self.capped(v, other):
                break
            alike = self.f(v, other)
            v_wants, other_wants = self.wants(v, alike), self.wants(other, alike)
            if v_wants and other_wants:
                return self.move(v, other, meet)
            if self.config.single_elimination and not v_wants and not other_wants:
                return None
            if not other_wants:
                other = other.parent
            if not v_wants:
                v = v.parent
        return meet if v is start else v

    def move(self, v: Node, other: Node, meet: Node | None) -> Node:
        beside = v.sibling
        if other.parent is not None and beside is other.parent:
            beside = None
        left_behind = self.cut(other) if other.parent is not None else None
        new = self.join(v, other)
        if self.config.restruct == "text" and left_behind is not None:
            shared = next((a for a in left_behind.ancestors if a in new.ancestors), None)
            u = left_behind
            while u is not None and u is not shared:
                self.restruct_at(u, shared)
                u = u.parent
        elif self.config.restruct == "code" and beside is not None:
            self.restruct_at(beside, None)
        if meet is None and left_behind is not None:
            self.dissolve(self.top(left_behind))
        return new

    def restruct_at(self, u: Node, stop: Node | None) -> None:
        best, best_score = None, -math.inf
        for a in u.ancestors:
            if a is stop or a.parent is None:
                break
            if self.config.cap > 0 and a.size >= self.config.cap:
                break
            score = self.f(u, a.sibling)
            if score > best_score:
                best, best_score = a.sibling, score
        if best is None:
            return
        now = self.score(u.parent)
        if best_score > now + self.margin(now):
            low, low_parent, high_parent = u.sibling, u.parent, best.parent
            low_parent.replace(low, best)
            high_parent.replace(best, low)

    def dissolve(self, top: Node) -> None:
        if top.left is None or not self.score(top) < self.config.floor:
            return
        for child in top.children:
            child.parent = None
            self.dissolve(child)

    def delete(self, name: int) -> None:
        leaf = self.leaf_nodes.pop(name)
        if leaf.parent is not None:
            self.dissolve(self.top(self.cut(leaf)))
