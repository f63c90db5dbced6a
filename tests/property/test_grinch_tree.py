"""Random inserts and deletes: invariants, rebuilding, what is touched, and a slow reference."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from clustering.grinch import GrinchConfig, GrinchTree
from clustering.grinch.invariants import check_invariants
from clustering.linkage import LINKAGE_SIGNATURE, Linkage
from clustering.linkage.average import average
from clustering.linkage.cosine import cosine
from tests.property.grinch_reference import Reference

WIDTH = 4
LINKAGES = {"cosine": cosine(), "average": average()}

rows = st.lists(st.integers(-3, 3), min_size=WIDTH, max_size=WIDTH).filter(any)
steps = st.lists(st.one_of(rows, st.integers(0, 10**6)), min_size=1, max_size=40)
configs = st.builds(
    GrinchConfig,
    rotate=st.booleans(),
    graft=st.booleans(),
    restruct=st.sampled_from(["none", "text", "code"]),
    cap=st.sampled_from([0, 4, 100]),
    single_elimination=st.booleans(),
    floor=st.sampled_from([-math.inf, 0.1, 0.5]),
    patience=st.sampled_from([0, 1, 3]),
    threshold=st.sampled_from([0.5, 0.9, math.inf]),
    neighbours=st.sampled_from([1, 3, 25]),
    graft_budget=st.just(10**6),
)


class BruteForce:
    """Exact neighbours by cosine, ties by the smaller label."""

    def __init__(self) -> None:
        self.rows: dict[int, np.ndarray] = {}

    def search(self, vector: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        labels = sorted(self.rows)
        norm = max(float(np.linalg.norm(vector)), 1e-12)
        alike = [
            round(float(vector @ self.rows[i]) / norm / float(np.linalg.norm(self.rows[i])), 12)
            for i in labels
        ]
        order = np.argsort(-np.array(alike), kind="stable")[:k]
        return np.array(labels, np.int64)[order], np.array(alike, np.float32)[order]


def entities(tree: GrinchTree) -> set[frozenset[int]]:
    return {frozenset(tree.leaves(root).tolist()) for root in tree.entity_roots().tolist()}


def structure(tree: GrinchTree) -> set[frozenset[int]]:
    nodes = np.flatnonzero(tree.size)
    return {frozenset(tree.leaves(node).tolist()) for node in nodes.tolist()}


def entities_near(tree: GrinchTree, touched: list[int]) -> set[frozenset[int]]:
    """Entities that a reader finds by looking only at touched nodes and their children."""
    looked_at = set(touched)
    for node in touched:
        looked_at.update({int(tree.left[node]), int(tree.right[node])} - {-1})
    roots = set(tree.entity_roots().tolist())
    return {frozenset(tree.leaves(node).tolist()) for node in looked_at & roots}


def snapshot(tree: GrinchTree) -> list[tuple]:
    n = tree.n_ids
    below = [frozenset(tree.leaves(i).tolist()) if tree.size[i] else None for i in range(n)]
    columns = (tree.parent, tree.left, tree.right, tree.score, tree.coherent)
    return list(zip(below, *(column[:n].tolist() for column in columns), strict=True))


def changed(before: list[tuple], after: list[tuple]) -> set[int]:
    """Ids at which two snapshots differ (nan equals nan)."""
    rows = itertools.zip_longest(map(repr, before), map(repr, after))
    return {node for node, (a, b) in enumerate(rows) if a != b}


def rebuilt(tree: GrinchTree) -> GrinchTree:
    n = tree.n_ids
    leaves = np.flatnonzero(tree.size[:n] == 1)
    return GrinchTree.rebuild(
        tree.linkage,
        tree.config,
        tree.parent[:n],
        tree.left[:n],
        tree.right[:n],
        leaves,
        tree.aggregates[leaves].reshape(-1, tree.width),
        tree.group[leaves],
    )


def arrays_equal(a: GrinchTree, b: GrinchTree) -> bool:
    n = a.n_ids
    used = np.flatnonzero(a.size[:n])
    return (
        all(
            np.array_equal(getattr(a, name)[:n], getattr(b, name)[:n])
            for name in ("parent", "left", "right", "size", "coherent", "group")
        )
        and np.array_equal(a.score[:n], b.score[:n], equal_nan=True)
        and a.aggregates[used].tobytes() == b.aggregates[used].tobytes()
    )


@pytest.mark.parametrize("linkage", sorted(LINKAGES))
@settings(max_examples=40, deadline=None)
@given(steps=steps, config=configs)
def test_every_step_keeps_the_invariants_and_agrees_with_the_reference(linkage, steps, config):
    tree = GrinchTree(WIDTH, LINKAGES[linkage], config)
    reference = Reference(LINKAGES[linkage], config)
    index = BruteForce()
    for step in steps:
        before, arrays_before = entities(tree), snapshot(tree)
        if isinstance(step, int):
            if not index.rows:
                continue
            leaf = sorted(index.rows)[step % len(index.rows)]
            tree.delete(leaf)
            reference.delete(leaf)
            del index.rows[leaf]
        else:
            row = np.array(step, np.float32)
            near, _ = index.search(row, config.neighbours)
            leaf = tree.insert(row, near)
            reference.insert(leaf, row, near.tolist())
            index.rows[leaf] = row
        check_invariants(tree)
        assert structure(tree) == reference.structure()
        touched = tree.touched().tolist()
        assert touched == sorted(set(touched))
        assert changed(arrays_before, snapshot(tree)) <= set(touched)
        assert entities(tree) - before <= entities_near(tree, touched)


@settings(max_examples=25, deadline=None)
@given(steps=steps, config=configs, cut=st.integers(0, 40))
def test_a_rebuilt_tree_goes_on_as_the_running_one(steps, config, cut):
    running = GrinchTree(WIDTH, cosine(), config)
    again = running
    index = BruteForce()
    for number, step in enumerate(steps):
        if number == min(cut, len(steps) - 1):
            again = rebuilt(running)
            assert arrays_equal(running, again)
        trees = [running] if again is running else [running, again]
        if isinstance(step, int):
            if not index.rows:
                continue
            leaf = sorted(index.rows)[step % len(index.rows)]
            for tree in trees:
                tree.delete(leaf)
            del index.rows[leaf]
        else:
            row = np.array(step, np.float32)
            near, _ = index.search(row, config.neighbours)
            assert len({tree.insert(row, near, group=sum(step)) for tree in trees}) == 1
            index.rows[
                int(np.setdiff1d(np.flatnonzero(running.size == 1), list(index.rows))[0])
            ] = row
    assert arrays_equal(running, again)


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(rows, min_size=1, max_size=25), config=configs)
def test_searching_for_every_graft_keeps_the_invariants(steps, config):
    index = BruteForce()
    every = GrinchConfig(
        rotate=config.rotate,
        restruct=config.restruct,
        cap=0,
        single_search=False,
        neighbours=config.neighbours,
        floor=config.floor,
    )
    tree = GrinchTree(WIDTH, cosine(), every, index)
    for step in steps:
        row = np.array(step, np.float32)
        near, _ = index.search(row, every.neighbours)
        index.rows[tree.insert(row, near)] = row
        check_invariants(tree)
    assert len(tree) == len(steps)


@njit(LINKAGE_SIGNATURE)
def one_clean_record(nodes, leaves, a, b, params):
    """Average linkage; the last column counts records of which an entity holds at most one."""
    aggregates, _, sizes = nodes
    if aggregates[a, -1] + aggregates[b, -1] > 1:
        return -1e9
    return (aggregates[a, :-1] * aggregates[b, :-1]).sum() / (sizes[a] * sizes[b])


@settings(max_examples=40, deadline=None)
@given(
    records=st.lists(st.tuples(st.sampled_from(range(6)), st.booleans()), max_size=40),
    restruct=st.sampled_from(["none", "text", "code"]),
    floor=st.sampled_from([-math.inf, 0.5]),
)
def test_no_entity_holds_what_a_hard_fact_keeps_apart(records, restruct, floor):
    directions = np.array(
        [[1, 0, 0], [0.96, 0.28, 0], [0.8, 0.6, 0], [0, 0, 1], [0, 0.6, 0.8], [0, 1, 0]]
    )
    linkage = Linkage("clean", one_clean_record, np.empty(0))
    tree = GrinchTree(4, linkage, GrinchConfig(restruct=restruct, floor=floor, threshold=0.7))
    index = BruteForce()
    clean: dict[int, bool] = {}
    twins: dict[tuple[int, bool], int] = {}
    for content, is_clean in records:
        row = np.append(directions[content], is_clean).astype(np.float32)
        near, _ = index.search(np.append(directions[content], 0), 25)
        twin = twins.get((content, is_clean), -1)
        leaf = tree.insert(row, near, twin=twin, group=2 * content + is_clean)
        twins.setdefault((content, is_clean), leaf)
        index.rows[leaf] = np.append(directions[content], 0)
        clean[leaf] = is_clean
        check_invariants(tree)
        for members in entities(tree):
            assert sum(clean[member] for member in members) <= 1


@settings(max_examples=25, deadline=None)
@given(contents=st.lists(st.integers(0, 3), min_size=1, max_size=60), deletes=st.integers(0, 20))
def test_copies_stay_together_and_shallow(contents, deletes):
    vectors = np.eye(WIDTH, dtype=np.float32)
    tree = GrinchTree(WIDTH, cosine(), GrinchConfig(floor=0.5, threshold=0.5))
    first: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    for content in contents:
        leaf = tree.insert(vectors[content], twin=first.get(content, -1), group=content)
        first.setdefault(content, leaf)
        members.setdefault(content, []).append(leaf)
        check_invariants(tree)
    assert entities(tree) == {frozenset(leaves) for leaves in members.values()}
    for leaves in members.values():
        for leaf in leaves:
            assert len(tree.path(leaf)) <= 2 + math.ceil(math.log2(len(leaves)))
    for leaf in [leaf for leaves in members.values() for leaf in leaves][:deletes]:
        tree.delete(leaf)
        check_invariants(tree)
