"""Grinch: insert with rotation, graft, restruct (Monath et al., KDD 2019).

A score is beaten only by a margin (`EPSILON`): ties and rounding never move anything, so no two
subtrees can take a third one from each other for ever.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, types

from clustering.grinch.bound_linkage import BOUND_LINKAGE_TYPE, BoundLinkage
from clustering.grinch.tree_kernels import (
    FORBIDDEN,
    GRAFTS_MADE,
    GRAFTS_TRIED,
    HIGH,
    LEAVES,
    NODE,
    NONE,
    RESTRUCTS,
    ROTATIONS,
    RULES_TYPE,
    TREE_TYPE,
    Kernel,
    Nodes,
    Rules,
    Tree,
    allocate,
    cut,
    dissolve,
    entity_root,
    is_below,
    join,
    link,
    lowest_common_ancestor,
    refresh,
    release,
    sibling,
    swap,
    top_of,
    touch,
)
from clustering.linkage import LINKAGE_TYPE

EPSILON = 1e-6

# What an insert returns in place of an id when it was given something else than leaves.
NOT_LEAVES = -2

# Values of Rules.restruct
RESTRUCT_NONE, RESTRUCT_TEXT, RESTRUCT_CODE = 0, 1, 2

CANDIDATES_TYPE = types.int64[::1]
SCORES_TYPE = types.float64[::1]
ROW_TYPE = types.float32[::1]

Scores = npt.NDArray[np.float64]


@njit(types.float64(types.float64), cache=True)
def margin(score: float) -> float:
    """How much a score must be beaten by."""
    return EPSILON * min(max(1.0, abs(score)), 1e6)


@njit(types.boolean(TREE_TYPE, CANDIDATES_TYPE), cache=True)
def all_leaves(tree: Tree, nodes: Nodes) -> bool:
    """Whether every id is that of a leaf in the tree."""
    for node in nodes:
        if node < 0 or node >= tree.counts[HIGH] or tree.size[node] != 1:
            return False
    return True


@njit(types.boolean(TREE_TYPE, LINKAGE_TYPE, NODE, NODE), cache=True)
def is_kept_out(tree: Tree, linkage: Kernel, node: int, place: int) -> bool:
    """Whether a hard fact keeps ``node`` out of the entity it would join beside ``place``.

    Putting it there would break up an entity whose records belong together.
    """
    entity = entity_root(tree, place)
    if entity == place or is_below(tree, node, entity):
        return False
    return link(tree, linkage, node, entity) <= FORBIDDEN


@njit(NODE(TREE_TYPE, RULES_TYPE, LINKAGE_TYPE, NODE, NODE), cache=True)
def place_by_twin(tree: Tree, rules: Rules, linkage: Kernel, leaf: int, twin: int) -> int:
    """Where to put a leaf that has the same content as the leaf ``twin``, or -1.

    Leaves of one content form a subtree of their own; the new one goes to its lightest side, so
    that n copies are about log2(n) deep where nearest neighbours would make a chain of n.
    """
    group = tree.group[twin]
    place = twin
    while tree.parent[place] != NONE and tree.group[tree.parent[place]] == group:
        place = int(tree.parent[place])
    alike = link(tree, linkage, leaf, place)
    if alike < rules.floor or (alike < rules.threshold and rules.threshold < np.inf):
        return NONE
    if is_kept_out(tree, linkage, leaf, place):
        return NONE
    while tree.left[place] != NONE:
        left, right = int(tree.left[place]), int(tree.right[place])
        place = left if tree.size[left] <= tree.size[right] else right
    return place


@njit(NODE(TREE_TYPE, LINKAGE_TYPE, NODE, NODE, types.float64), cache=True)
def balance_tie(tree: Tree, linkage: Kernel, leaf: int, place: int, alike: float) -> int:
    """Among the places that are all as good as ``place``, one on the lighter side.

    A plateau is a subtree whose inner scores, and whose linkages with the leaf, all equal
    ``alike``: copies and other exact ties. Every place in it is equally good; keeping it balanced
    keeps it from growing into a chain.
    """
    slack = margin(alike)
    lowest = place
    while tree.parent[place] != NONE:
        parent = int(tree.parent[place])
        if abs(tree.score[parent] - alike) > slack:
            break
        if abs(link(tree, linkage, leaf, parent) - alike) > slack:
            break
        place = parent
    if place == lowest:
        return lowest
    while tree.left[place] != NONE and abs(tree.score[place] - alike) <= slack:
        light, heavy = int(tree.left[place]), int(tree.right[place])
        if tree.size[light] > tree.size[heavy]:
            light, heavy = heavy, light
        if abs(link(tree, linkage, leaf, light) - alike) <= slack:
            place = light
        elif abs(link(tree, linkage, leaf, heavy) - alike) <= slack:
            place = heavy
        else:
            break
    return place


@njit(SCORES_TYPE(TREE_TYPE, RULES_TYPE, LINKAGE_TYPE, NODE, CANDIDATES_TYPE), cache=True)
def likenesses(tree: Tree, rules: Rules, linkage: Kernel, node: int, candidates: Nodes) -> Scores:
    """Linkage of a node with each candidate, float64[m]; FORBIDDEN where it was not looked at.

    Candidates come best first, so after ``patience`` in a row below the floor the others are not.
    Those that a hard fact keeps out tell nothing of the others.
    """
    scores = np.full(len(candidates), FORBIDDEN)
    missed = 0
    for i in range(len(candidates)):
        scores[i] = link(tree, linkage, node, candidates[i])
        if scores[i] >= rules.floor:
            missed = 0
        elif scores[i] > FORBIDDEN:
            missed += 1
            if missed == rules.patience:
                break
    return scores


@njit(NODE(TREE_TYPE, RULES_TYPE, LINKAGE_TYPE, NODE, CANDIDATES_TYPE, SCORES_TYPE), cache=True)
def place_by_neighbours(
    tree: Tree, rules: Rules, linkage: Kernel, leaf: int, candidates: Nodes, scores: Scores
) -> int:
    """Where to put a leaf: beside its nearest neighbour, then rotated up; -1: a top of its own.

    Rotation (equation 1): while the place is more like its own sibling than like the new leaf,
    the leaf moves up to be that pair's sibling. Where a hard fact keeps the leaf out of the
    neighbour's entity, the nearest neighbour outside that entity is tried.

    scores: float64[m], linkage of the leaf with each candidate.
    """
    open_scores = scores.copy()
    while True:
        best, alike = NONE, FORBIDDEN
        for i in range(len(candidates)):
            if open_scores[i] > alike:
                best, alike = int(candidates[i]), open_scores[i]
        if best == NONE:
            return NONE
        place = best
        if rules.rotate:
            while tree.parent[place] != NONE:
                parent = int(tree.parent[place])
                capped = rules.cap > 0 and tree.size[parent] > rules.cap
                if capped or not alike < tree.score[parent]:
                    break
                place = parent
                alike = link(tree, linkage, leaf, place)
                tree.work[ROTATIONS] += 1
            place = balance_tie(tree, linkage, leaf, place, alike)
        if alike > FORBIDDEN and not is_kept_out(tree, linkage, leaf, place):
            return NONE if alike < rules.floor else place
        entity = entity_root(tree, best)
        for i in range(len(candidates)):
            if open_scores[i] > FORBIDDEN and is_below(tree, candidates[i], entity):
                open_scores[i] = FORBIDDEN


@njit(NODE(TREE_TYPE, LINKAGE_TYPE, NODE, CANDIDATES_TYPE), cache=True)
def best_outside(tree: Tree, linkage: Kernel, node: int, candidates: Nodes) -> int:
    """The candidate leaf most like ``node`` that is neither below it nor its sibling, or -1."""
    best, best_score = NONE, -np.inf
    beside = sibling(tree, node) if tree.parent[node] != NONE else NONE
    for candidate in candidates:
        if candidate == beside or is_below(tree, candidate, node):
            continue
        score = link(tree, linkage, node, candidate)
        if best == NONE or score > best_score:
            best, best_score = int(candidate), score
    return best


@njit(types.boolean(TREE_TYPE, RULES_TYPE, NODE, types.float64), cache=True)
def would_move(tree: Tree, rules: Rules, node: int, alike: float) -> bool:
    """Whether ``node`` prefers something ``alike`` to its sibling (one side of equation 2).

    A top has no sibling and prefers anything that reaches the floor.
    """
    if alike < rules.floor or alike <= FORBIDDEN:
        return False
    parent = tree.parent[node]
    if parent == NONE:
        return True
    score = float(tree.score[parent])
    return alike > score + margin(score)


@njit(types.void(TREE_TYPE, RULES_TYPE, LINKAGE_TYPE, NODE, NODE), cache=True)
def restruct_at(tree: Tree, rules: Rules, linkage: Kernel, node: int, stop: int) -> None:
    """Swap ``node``'s sibling for the best sibling of its ancestors below ``stop``, if better."""
    if tree.parent[node] == NONE:
        return
    parent = int(tree.parent[node])
    best, best_score = NONE, tree.score[parent] + margin(tree.score[parent])
    ancestor = parent
    while ancestor != stop and tree.parent[ancestor] != NONE:
        if rules.cap > 0 and tree.size[ancestor] >= rules.cap:
            break
        other = sibling(tree, ancestor)
        score = link(tree, linkage, node, other)
        if score > best_score:
            best, best_score = other, score
        ancestor = int(tree.parent[ancestor])
    if best != NONE and not is_kept_out(tree, linkage, best, node):
        swap(tree, rules, linkage, sibling(tree, node), best)
        tree.work[RESTRUCTS] += 1


@njit(types.void(TREE_TYPE, RULES_TYPE, LINKAGE_TYPE, NODE, NODE), cache=True)
def restruct(tree: Tree, rules: Rules, linkage: Kernel, node: int, stop: int) -> None:
    """Restruct every level from ``node`` up to below ``stop`` (-1: to the top)."""
    while node != NONE and node != stop:
        restruct_at(tree, rules, linkage, node, stop)
        node = int(tree.parent[node])


@njit(NODE(TREE_TYPE, RULES_TYPE, LINKAGE_TYPE, NODE, NODE, NODE), cache=True)
def move(tree: Tree, rules: Rules, linkage: Kernel, node: int, other: int, ancestor: int) -> int:
    """Cut ``other`` out and make it ``node``'s sibling; ``ancestor`` is their lowest common one.

    Restructs what was disturbed. Returns the new parent of the two.
    """
    beside = sibling(tree, node) if tree.parent[node] != NONE else NONE
    left_behind = NONE
    if tree.parent[other] != NONE:
        parent = int(tree.parent[other])
        if beside == parent:
            beside = NONE
        left_behind = cut(tree, other)
        if parent != ancestor:
            refresh(tree, rules, linkage, int(tree.parent[left_behind]), ancestor)
    new = join(tree, node, other)
    refresh(tree, rules, linkage, new, NONE)
    tree.work[GRAFTS_MADE] += 1
    if rules.restruct == RESTRUCT_TEXT and left_behind != NONE:
        shared = lowest_common_ancestor(tree, left_behind, new)
        restruct(tree, rules, linkage, left_behind, shared)
    elif rules.restruct == RESTRUCT_CODE and beside != NONE:
        restruct_at(tree, rules, linkage, beside, NONE)
    if ancestor == NONE and left_behind != NONE:
        dissolve(tree, rules, top_of(tree, left_behind))
    return new


@njit(NODE(TREE_TYPE, RULES_TYPE, LINKAGE_TYPE, NODE, CANDIDATES_TYPE), cache=True)
def graft_step(tree: Tree, rules: Rules, linkage: Kernel, node: int, candidates: Nodes) -> int:
    """Try to graft something onto ``node`` or an ancestor of it (algorithm 1).

    Of the pair (node, leaf most like it outside), whichever does not want the other climbs, until
    both want each other (equation 2: the other's subtree is cut and joined here) or they meet.
    Returns the node to go on from, -1 to stop.
    """
    if rules.cap > 0 and tree.size[node] > rules.cap:
        return NONE
    other = best_outside(tree, linkage, node, candidates)
    if other == NONE:
        return NONE
    tree.work[GRAFTS_TRIED] += 1
    start = node
    meet = lowest_common_ancestor(tree, node, other)
    while node != meet and other != meet and node != NONE and other != NONE:
        if tree.parent[node] != NONE and tree.parent[node] == tree.parent[other]:
            break
        if rules.cap > 0 and max(tree.size[node], tree.size[other]) > rules.cap:
            break
        alike = link(tree, linkage, node, other)
        node_would = would_move(tree, rules, node, alike)
        other_would = would_move(tree, rules, other, alike)
        if node_would and other_would:
            if is_kept_out(tree, linkage, other, node):
                break
            return move(tree, rules, linkage, node, other, meet)
        if rules.single_elimination and not node_would and not other_would:
            return NONE
        if not other_would:
            other = int(tree.parent[other])
        if not node_would:
            node = int(tree.parent[node])
    return meet if node == start else node


@njit(NODE(TREE_TYPE, ROW_TYPE, types.int64, types.int64), cache=True)
def new_leaf(tree: Tree, row: npt.NDArray[np.float32], group: int, kind: int) -> int:
    """A new leaf that is a top of its own; returns its id.

    kind: column of ``Tree.unique`` that counts it, or -1.
    """
    leaf = allocate(tree)
    tree.counts[LEAVES] += 1
    tree.parent[leaf] = NONE
    tree.left[leaf] = NONE
    tree.right[leaf] = NONE
    tree.size[leaf] = 1
    for i in range(row.shape[0]):
        tree.aggregates[leaf, i] = row[i] + np.float32(0.0)  # no negative zeros in sums
    tree.samples[leaf] = NONE
    if tree.samples.shape[1] > 0:
        tree.samples[leaf, 0] = leaf
    tree.unique[leaf] = 0
    if kind != NONE:
        tree.unique[leaf, kind] = 1
    tree.score[leaf] = np.nan
    tree.coherent[leaf] = True
    tree.group[leaf] = group
    touch(tree, leaf)
    return leaf


@njit(
    types.void(TREE_TYPE, RULES_TYPE, LINKAGE_TYPE, NODE, CANDIDATES_TYPE, SCORES_TYPE, NODE),
    cache=True,
)
def place_leaf(
    tree: Tree,
    rules: Rules,
    linkage: Kernel,
    leaf: int,
    candidates: Nodes,
    scores: Scores,
    twin: int,
) -> None:
    """Join a new leaf to what it is most like, without grafting. See `place_by_neighbours`."""
    place = NONE
    if twin != NONE:
        place = place_by_twin(tree, rules, linkage, leaf, twin)
    if place == NONE:
        place = place_by_neighbours(tree, rules, linkage, leaf, candidates, scores)
    if place != NONE:
        refresh(tree, rules, linkage, join(tree, place, leaf), NONE)


@njit(
    NODE(
        TREE_TYPE,
        RULES_TYPE,
        BOUND_LINKAGE_TYPE,
        ROW_TYPE,
        CANDIDATES_TYPE,
        NODE,
        types.int64,
        types.int64,
        types.int64,
    ),
    cache=True,
)
def insert_leaf(
    tree: Tree,
    rules: Rules,
    bound: BoundLinkage,
    row: npt.NDArray[np.float32],
    candidates: Nodes,
    twin: int,
    group: int,
    kind: int,
    budget: int,
) -> int:
    """Put in a new leaf, then graft from it upwards with the same list of candidates.

    Candidates below the floor take no part in the grafts: of how alike they are to others, the
    new leaf tells nothing new.

    budget: how many grafts may be made. Returns the leaf's id, or NOT_LEAVES, having done nothing,
    when some candidate is not a leaf.
    """
    if not all_leaves(tree, candidates):
        return NOT_LEAVES
    linkage = bound.linkage
    leaf = new_leaf(tree, row, group, kind)
    scores = likenesses(tree, rules, linkage, leaf, candidates)
    place_leaf(tree, rules, linkage, leaf, candidates, scores, twin)
    near = candidates[scores >= rules.floor]
    node = int(tree.parent[leaf])
    limit = tree.work[GRAFTS_MADE] + budget
    while node != NONE and tree.work[GRAFTS_MADE] < limit:
        node = graft_step(tree, rules, linkage, node, near)
    dissolve(tree, rules, top_of(tree, leaf))
    return leaf


@njit(types.void(TREE_TYPE, RULES_TYPE, BOUND_LINKAGE_TYPE, NODE), cache=True)
def delete_leaf(tree: Tree, rules: Rules, bound: BoundLinkage, leaf: int) -> None:
    """Take a leaf out; its sibling takes its parent's place."""
    linkage = bound.linkage
    tree.counts[LEAVES] -= 1
    if tree.parent[leaf] != NONE:
        left_behind = cut(tree, leaf)
        refresh(tree, rules, linkage, int(tree.parent[left_behind]), NONE)
        dissolve(tree, rules, top_of(tree, left_behind))
    release(tree, leaf)
