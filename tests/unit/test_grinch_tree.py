"""The cluster tree on small cases worked out by hand."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from clustering.errors import ConfigError, DataError
from clustering.grinch import GrinchConfig, GrinchTree, TreeError
from clustering.grinch.invariants import check_invariants
from clustering.linkage import LINKAGE_SIGNATURE, Linkage
from clustering.linkage.average import average
from clustering.linkage.cosine import cosine
from tests.property.grinch_reference import Reference


def unit(*angles: float) -> list[np.ndarray]:
    """Unit vectors at angles in degrees."""
    return [np.array([math.cos(math.radians(a)), math.sin(math.radians(a))]) for a in angles]


def grown(rows: list[np.ndarray], config: GrinchConfig) -> tuple[GrinchTree, list[int]]:
    """A tree with every earlier leaf offered as a candidate, most alike first."""
    tree = GrinchTree(len(rows[0]), cosine(), config)
    leaves: list[int] = []
    for i, row in enumerate(rows):
        order = sorted(range(i), key=lambda j: -float(row @ rows[j]))
        leaves.append(tree.insert(row, [leaves[j] for j in order]))
        check_invariants(tree)
    return tree, leaves


def below(tree: GrinchTree, leaves: list[int]) -> set[frozenset[int]]:
    """Leaf sets of the inner nodes, leaves named by order of arrival."""
    names = {leaf: i for i, leaf in enumerate(leaves)}
    inner = np.flatnonzero(tree.left != -1).tolist()
    return {frozenset(names[x] for x in tree.leaves(node).tolist()) for node in inner}


def test_an_empty_tree_has_nothing():
    tree = GrinchTree(3, cosine())
    assert len(tree) == 0
    assert tree.n_ids == 0
    assert tree.tops().tolist() == []
    assert tree.entity_roots().tolist() == []
    assert tree.touched().tolist() == []
    check_invariants(tree)


def test_one_leaf_is_its_own_top_and_entity():
    tree = GrinchTree(2, cosine())
    leaf = tree.insert([1.0, 0.0])
    assert (leaf, tree.top_of(leaf), tree.entity_root(leaf), tree.path(leaf)) == (0, 0, 0, [0])
    assert tree.leaves(leaf).tolist() == [0]
    assert tree.touched().tolist() == [0]
    assert tree.touched().tolist() == []


def test_without_rotation_a_leaf_stays_at_its_nearest_neighbour():
    rows = unit(0, 2, 30)
    tree, leaves = grown(rows, GrinchConfig(rotate=False, graft=False))
    assert below(tree, leaves) == {frozenset({1, 2}), frozenset({0, 1, 2})}


def test_rotation_moves_a_leaf_above_a_closer_pair():
    rows = unit(0, 2, 30)
    tree, leaves = grown(rows, GrinchConfig(graft=False))
    assert below(tree, leaves) == {frozenset({0, 1}), frozenset({0, 1, 2})}
    assert tree.work["rotations"] == 1


def test_rotation_stops_at_the_cap():
    rows = unit(0, 2, 4, 6, 60)
    free, leaves = grown(rows, GrinchConfig(graft=False, cap=0))
    assert frozenset({0, 1, 2, 3}) in below(free, leaves)
    capped, leaves = grown(rows, GrinchConfig(graft=False, cap=2))
    assert frozenset({0, 1, 2, 3}) not in below(capped, leaves)


def test_grafting_brings_together_what_arrived_apart():
    """A and B arrive as strangers below one node; C, between them, lets B's tree take A's in."""
    rows = [
        np.array(r, float) for r in ([1, 0, 0, 0.9], [0, 1, 0, 0.9], [1, 0, 0, 1], [0, 1, 0, 1])
    ]
    tree, leaves = grown(rows, GrinchConfig(restruct="none"))
    assert {frozenset({0, 2}), frozenset({1, 3})} <= below(tree, leaves)


def test_below_the_floor_a_leaf_is_a_top_of_its_own():
    tree, leaves = grown(unit(0, 5, 90), GrinchConfig(floor=0.5, threshold=0.9))
    assert below(tree, leaves) == {frozenset({0, 1})}
    assert len(tree.tops()) == 2
    assert tree.entity_root(leaves[0]) == tree.parent[leaves[0]]


def test_a_top_that_falls_below_the_floor_comes_apart():
    tree, leaves = grown(unit(0, 58, 30), GrinchConfig(floor=0.5, graft=False))
    assert len(tree.tops()) == 1
    tree.touched()
    tree.delete(leaves[2])
    assert sorted(tree.tops().tolist()) == sorted(leaves[:2]) or len(tree.tops()) == 1
    tree, leaves = grown(unit(0, 40, 80), GrinchConfig(floor=0.6, graft=False))
    top = tree.top_of(leaves[0])
    tree.delete(leaves[1])
    assert sorted(tree.tops().tolist()) == [leaves[0], leaves[2]]
    assert {top, leaves[0], leaves[2]} <= set(tree.touched().tolist())
    check_invariants(tree)


def test_the_threshold_cuts_entities_and_the_floor_does_not():
    tree, leaves = grown(unit(0, 1, 40, 41), GrinchConfig(threshold=0.99))
    roots = tree.entity_roots().tolist()
    assert [sorted(tree.leaves(root).tolist()) for root in roots] == [
        sorted(leaves[:2]),
        sorted(leaves[2:]),
    ]
    assert {tree.entity_root(leaf) for leaf in leaves} == set(roots)


def test_ids_are_used_again_lowest_first():
    tree, leaves = grown(unit(0, 10, 20, 30), GrinchConfig())
    tree.delete(leaves[2])
    tree.delete(leaves[1])
    free = sorted(set(range(tree.n_ids)) - set(np.flatnonzero(tree.size).tolist()))
    assert tree.insert(unit(15)[0], [leaves[0]]) == free[0]
    check_invariants(tree)


def test_deleting_everything_leaves_an_empty_tree():
    tree, leaves = grown(unit(0, 10, 20, 30, 90, 95), GrinchConfig())
    for leaf in leaves:
        tree.delete(leaf)
        check_invariants(tree)
    assert len(tree) == 0
    assert not tree.size.any()


def test_equal_vectors_without_a_twin_form_no_chain():
    rows = [np.array([1.0, 2.0, 3.0])] * 64
    tree, leaves = grown(rows, GrinchConfig())
    assert max(len(tree.path(leaf)) for leaf in leaves) <= 8


def test_a_twin_that_may_not_be_joined_goes_the_ordinary_way():
    """Here the linkage of copies is below the threshold, as a hard fact makes it."""
    tree = GrinchTree(2, average(), GrinchConfig(threshold=0.9, floor=0.9))
    short = np.array([0.5, 0.0])
    first = tree.insert(short, group=7)
    second = tree.insert(short, twin=first, group=7)
    assert tree.tops().tolist() == [first, second]


@njit(LINKAGE_SIGNATURE)
def one_clean_record(nodes, leaves, a, b, params):
    """Average linkage; the last column counts records of which an entity holds at most one."""
    aggregates, _, sizes = nodes
    if aggregates[a, -1] + aggregates[b, -1] > 1:
        return -1e9
    return (aggregates[a, :-1] * aggregates[b, :-1]).sum() / (sizes[a] * sizes[b])


@pytest.mark.parametrize("floor", [-math.inf, 0.5])
def test_a_newcomer_does_not_break_up_an_entity_that_a_hard_fact_keeps_it_out_of(floor):
    linkage = Linkage("clean", one_clean_record, np.empty(0))
    tree = GrinchTree(3, linkage, GrinchConfig(floor=floor, threshold=0.7))
    clean, open_ = np.array([1.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    first = tree.insert(clean)
    second = tree.insert(open_, [first])
    tree.insert(clean, [first, second])
    assert tree.entity_root(first) == tree.entity_root(second)
    assert len(tree.entity_roots()) == 2
    third = tree.insert(open_, [second])
    assert tree.entity_root(third) == tree.entity_root(first)
    check_invariants(tree)


def test_memory_grows_and_keeps_its_contents():
    rng = np.random.default_rng(3)
    tree = GrinchTree(5, cosine(), GrinchConfig(floor=0.3))
    leaves = [tree.insert(rng.normal(size=5)) for _ in range(200)]
    assert leaves == list(range(200))
    check_invariants(tree)


@pytest.mark.parametrize("restruct", ["none", "text", "code"])
def test_a_long_run_agrees_with_the_reference(restruct):
    rng = np.random.default_rng(11)
    config = GrinchConfig(restruct=restruct, floor=0.1, threshold=0.6, graft_budget=10**6)
    tree, reference = GrinchTree(6, cosine(), config), Reference(cosine(), config)
    rows: dict[int, np.ndarray] = {}
    for _ in range(120):
        row = rng.integers(-3, 4, 6).astype(np.float32)
        labels = np.array(sorted(rows), np.int64)
        alike = [-float(row @ rows[i]) / (1e-9 + np.linalg.norm(rows[i])) for i in labels.tolist()]
        near = labels[np.argsort(np.round(alike, 9), kind="stable")[:10]]
        leaf = tree.insert(row, near)
        reference.insert(leaf, row, near.tolist())
        rows[leaf] = row
    check_invariants(tree)
    nodes = np.flatnonzero(tree.size).tolist()
    assert {frozenset(tree.leaves(n).tolist()) for n in nodes} == reference.structure()
    assert tree.work["grafts_made"] > 20
    assert (tree.work["restructs"] > 0) == (restruct != "none")


def test_refuses_rows_that_are_not_finite_or_of_another_width():
    tree = GrinchTree(2, cosine())
    for row in ([1.0], [1.0, math.nan], [math.inf, 0.0], 1.0):
        with pytest.raises(DataError):
            tree.insert(row)
    assert len(tree) == 0
    assert tree.touched().tolist() == []


def test_refuses_ids_that_are_not_leaves():
    tree, leaves = grown(unit(0, 10), GrinchConfig())
    inner = tree.top_of(leaves[0])
    for candidates in ([inner], [-1], [999]):
        with pytest.raises(TreeError):
            tree.insert(unit(5)[0], candidates)
    with pytest.raises(TreeError):
        tree.insert(unit(5)[0], twin=leaves[0], group=3)
    for node in (inner, -1, 999):
        with pytest.raises(TreeError):
            tree.delete(node)
    with pytest.raises(TreeError):
        tree.leaves(999)
    check_invariants(tree)


@pytest.mark.parametrize(
    "wrong",
    [
        {"restruct": "swap"},
        {"cap": -1},
        {"neighbours": 0},
        {"floor": math.nan},
        {"graft_budget": -1},
    ],
)
def test_refuses_settings_that_make_no_sense(wrong):
    with pytest.raises(ConfigError):
        GrinchConfig(**wrong)


def test_refuses_exact_grafts_without_something_to_search():
    with pytest.raises(ConfigError):
        GrinchTree(2, cosine(), GrinchConfig(single_search=False))
    with pytest.raises(ConfigError):
        GrinchTree(-1, cosine())


def test_rebuilding_refuses_links_that_are_not_a_forest():
    good = {"parent": [2, 2, -1], "left": [-1, -1, 0], "right": [-1, -1, 1]}
    rows = np.eye(2)
    tree = GrinchTree.rebuild(cosine(), GrinchConfig(), **good, leaves=[0, 1], rows=rows)
    check_invariants(tree)
    for name, links in {
        "parent": [2, -1, -1],
        "left": [-1, -1, 1],
        "right": [-1, -1, 7],
    }.items():
        with pytest.raises(TreeError):
            GrinchTree.rebuild(
                cosine(), GrinchConfig(), **(good | {name: links}), leaves=[0, 1], rows=rows
            )
    with pytest.raises(TreeError):  # two inner nodes above each other in a ring
        GrinchTree.rebuild(
            cosine(),
            GrinchConfig(),
            parent=[2, 3, 3, 2],
            left=[-1, -1, 0, 1],
            right=[-1, -1, 3, 2],
            leaves=[0, 1],
            rows=rows,
        )


def test_invariants_notice_damage():
    def damaged() -> GrinchTree:
        return grown(unit(0, 10, 20, 30), GrinchConfig())[0]

    for name in ("size", "score", "coherent", "group"):
        tree = damaged()
        getattr(tree, name)[tree.top_of(0)] += 1
        with pytest.raises(TreeError, match=name):
            check_invariants(tree)
    tree = damaged()
    tree.aggregates[tree.top_of(0), 0] += 1e-3
    with pytest.raises(TreeError, match="aggregates"):
        check_invariants(tree)
    tree = damaged()
    tree.delete(0)
    tree._tree.free[0] += 1
    with pytest.raises(TreeError, match="free"):
        check_invariants(tree)


def test_kernels_are_compiled_once_for_all_processes():
    """A second process finds every kernel of the tree in the cache."""
    program = (
        "from clustering.grinch import bound_linkage, grinch_kernels, hac_kernels, tree_kernels;"
        "from numba.core.dispatcher import Dispatcher;"
        "modules = (bound_linkage, grinch_kernels, hac_kernels, tree_kernels);"
        "ks = [k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)];"
        "print(len(ks), sum(sum(k.stats.cache_misses.values()) for k in ks))"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert int(out[0]) > 20
    assert int(out[1]) == 0
