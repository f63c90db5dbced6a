"""Evidence that two records describe the same entity, field by field.

The logit of a pair is  bias + sum over fields of (weight of the similarity's level + rarity term).
A field that either record lacks adds nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, types

from clustering.features.leaves import FREE, LAID, LEAVES_TYPE, OWNER

# Upper ends of the agreement levels but the last: a similarity below LEVEL_ENDS[k] and not below
# LEVEL_ENDS[k - 1] has level k.
LEVEL_ENDS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.97)
N_LEVELS = len(LEVEL_ENDS) + 1
_ENDS = np.array(LEVEL_ENDS)

# Two values in each other's field count as a little less alike than in their own.
SWAPPED = 0.9

# The rarity term fades in from the first of these similarities to the second, and is clamped.
RARITY_FROM, RARITY_FULL, MOST_RARITY = 0.7, 0.95, 3.0

# Layout of params: HEADER numbers, then PER_FIELD numbers for each field.
BIAS, N_FIELDS, EVIDENCE_FIELDS, HEADER = 0, 1, 2, 3
RARITY_SLOPE, RARITY_OFFSET, SPACE, MAY_STAND_ALONE = (
    N_LEVELS,
    N_LEVELS + 1,
    N_LEVELS + 2,
    N_LEVELS + 3,
)
PER_FIELD = N_LEVELS + 4

# A pair whose only agreement is one weak field does not match, whatever its weight.
TOO_LITTLE_EVIDENCE = -1.0

_INT = types.int64
_PARAMS = types.float64[::1]
_STARTS = types.int64[:, ::1]
_VALUES = types.int64[:, ::1]
_IDS = types.int32[::1]
_WEIGHTS = types.float32[::1]
_RARITY = types.float32[:, ::1]
_DESK = types.uint64[::1]
_KEY = types.uint64

Arrays = tuple[npt.NDArray[Any], ...]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@njit(types.int64(types.float64), cache=True)
def level_of(similarity: float) -> int:
    """Agreement level of a similarity in [0, 1]: 0 (unlike) to N_LEVELS - 1 (equal)."""
    level = 0
    while level < N_LEVELS - 1 and similarity >= _ENDS[level]:
        level += 1
    return level


@njit(_KEY(_INT, types.int32), cache=True)
def desk_key(field: int, token: int) -> int:
    """What a token of a field is on the desk; never FREE."""
    return (np.uint64(field) << np.uint64(32)) | np.uint64(np.uint32(token))


@njit(_KEY(_DESK, _KEY), cache=True)
def find_slot(desk: npt.NDArray[np.uint64], key: int) -> int:
    """The slot that holds ``key``, or the free one where it belongs."""
    # All unsigned: numba would check whether a signed index counts from the end.
    mask = np.uint64(desk.shape[0] - 1)
    slot = (key ^ (key >> np.uint64(27))) & mask
    while desk[slot] != key and desk[slot] != FREE:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(types.void(LEAVES_TYPE, types.int64), cache=True)
def lay_out(leaves: Arrays, leaf: int) -> None:
    """Put a leaf's tokens on the desk, in place of those of the leaf before."""
    starts, ids, weights, _, _, desk, desk_weights, state, _, _ = leaves
    for i in range(state[LAID]):
        desk[state[2 + i]] = FREE
        desk_weights[state[2 + i]] = 0.0
    laid = 0
    for field in range(starts.shape[1] - 1):
        for at in range(starts[leaf, field], starts[leaf, field + 1]):
            key = desk_key(field, ids[at])
            slot = find_slot(desk, key)
            desk[slot] = key
            desk_weights[slot] = weights[at]
            state[2 + laid] = slot
            laid += 1
    state[LAID] = laid
    state[OWNER] = leaf


@njit(
    types.float64(_STARTS, _IDS, _WEIGHTS, _VALUES, _DESK, _WEIGHTS, _PARAMS, _INT, _INT, _INT),
    cache=True,
)
def field_similarity(
    starts: Ints,
    ids: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    values: Ints,
    desk: npt.NDArray[np.uint64],
    desk_weights: npt.NDArray[np.float32],
    params: Floats,
    a: int,
    b: int,
    field: int,
) -> float:
    """Similarity of one field of two leaves, in [0, 1]; NaN where either lacks it.

    ``a`` is the leaf on the desk. Equal values are 1; a value that stands in another field of the
    same space of the other record (swapped names) counts as SWAPPED; else it is the tokens' cosine.
    """
    if values[a, field] == 0 or values[b, field] == 0:
        return np.nan
    if values[a, field] == values[b, field]:
        return 1.0
    total = 0.0
    for at in range(np.uint64(starts[b, field]), np.uint64(starts[b, field + 1])):
        slot = find_slot(desk, desk_key(field, ids[at]))
        total += float(weights[at]) * float(desk_weights[slot])  # 0 where the slot is free
    space = params[HEADER + field * PER_FIELD + SPACE]
    if space < 0.0 or total >= SWAPPED:
        return min(total, 1.0)
    for other in range(int(params[N_FIELDS])):
        if other == field or params[HEADER + other * PER_FIELD + SPACE] != space:
            continue
        if values[a, field] == values[b, other] or values[a, other] == values[b, field]:
            return SWAPPED
    return total


@njit(types.float64(_RARITY, _PARAMS, _INT, _INT, _INT, types.float64), cache=True)
def rarity_term(
    rarity: npt.NDArray[np.float32], params: Floats, a: int, b: int, field: int, similarity: float
) -> float:
    """How much rarer than usual in this field is what two leaves agree on, in nats.

    Negative for a common value; monotone in the rarity; in [-MOST_RARITY, MOST_RARITY]; 0 where
    they do not agree.
    """
    if not similarity > RARITY_FROM:  # nor missing
        return 0.0
    at = HEADER + field * PER_FIELD
    fade = min((similarity - RARITY_FROM) / (RARITY_FULL - RARITY_FROM), 1.0)
    rarer = float(min(rarity[a, field], rarity[b, field])) + params[at + RARITY_OFFSET]
    return fade * min(max(rarer, -MOST_RARITY), MOST_RARITY)


@njit(types.float64(_RARITY, _PARAMS, _INT, _INT, _INT, types.float64), cache=True)
def rarity_evidence(
    rarity: npt.NDArray[np.float32], params: Floats, a: int, b: int, field: int, similarity: float
) -> float:
    """Extra nats for agreeing on a rare value, or fewer for a common one: slope times term."""
    slope = params[HEADER + field * PER_FIELD + RARITY_SLOPE]
    return slope * rarity_term(rarity, params, a, b, field, similarity)


@njit(types.UniTuple(_INT, 2)(LEAVES_TYPE, _INT, _INT), cache=True)
def on_desk(leaves: Arrays, a: int, b: int) -> tuple[int, int]:
    """The two leaves, the one on the desk first; ``a`` is laid out if neither is."""
    owner = leaves[7][OWNER]
    if owner == b:
        return b, a
    if owner != a:
        lay_out(leaves, a)
    return a, b


@njit(types.float64(LEAVES_TYPE, _PARAMS, _INT, _INT), cache=True)
def pair_logit(leaves: Arrays, params: Floats, a: int, b: int) -> float:
    """Logit of the probability that two leaves describe the same entity; symmetric.

    Leaves one of the two on the desk: comparing one leaf with many lays out that one only.
    """
    a, b = on_desk(leaves, a, b)
    # Taken apart once: every unpacking of the tuple counts references to all of its arrays.
    starts, ids, weights, rarity, values, desk, desk_weights, _, _, _ = leaves
    logit = params[BIAS]
    agreeing = 0
    alone = False
    for field in range(int(params[N_FIELDS])):
        similarity = field_similarity(
            starts, ids, weights, values, desk, desk_weights, params, a, b, field
        )
        if math.isnan(similarity):
            continue
        at = HEADER + field * PER_FIELD
        evidence = params[at + level_of(similarity)]
        evidence += rarity_evidence(rarity, params, a, b, field, similarity)
        logit += evidence
        if evidence > 0.0:
            agreeing += 1
            alone = alone or params[at + MAY_STAND_ALONE] > 0.0
    if agreeing < params[EVIDENCE_FIELDS] and not alone:
        return min(logit, TOO_LITTLE_EVIDENCE)
    return logit


@njit(types.float64(LEAVES_TYPE, _PARAMS, _INT, _INT), cache=True)
def known_logit(leaves: Arrays, params: Floats, a: int, b: int) -> float:
    """`pair_logit`, from the memo where it is there; ``params`` are always the same.

    An insert looks at many of its pairs again as parts of larger nodes.
    """
    pairs, scores = leaves[8], leaves[9]
    pair = (min(a, b) << 32) | max(a, b)
    slot = np.uint64((pair ^ (pair >> 25)) * 0x9E3779B1) >> np.uint64(7)
    slot &= np.uint64(pairs.shape[0] - 1)
    if pairs[slot] != pair:
        scores[slot] = pair_logit(leaves, params, a, b)
        pairs[slot] = pair
    return scores[slot]


@njit(types.float64[:, ::1](LEAVES_TYPE, _PARAMS, types.int64[:, ::1]), cache=True)
def pair_similarities(leaves: Arrays, params: Floats, pairs: Ints) -> Floats:
    """Similarity of every field for every pair: float64[n_pairs, n_fields], NaN where missing."""
    starts, ids, weights, _, values, desk, desk_weights, _, _, _ = leaves
    n_fields = int(params[N_FIELDS])
    out = np.empty((pairs.shape[0], n_fields))
    for i in range(pairs.shape[0]):
        a, b = on_desk(leaves, pairs[i, 0], pairs[i, 1])
        for field in range(n_fields):
            out[i, field] = field_similarity(
                starts, ids, weights, values, desk, desk_weights, params, a, b, field
            )
    return out


@njit(
    types.float64[:, ::1](LEAVES_TYPE, _PARAMS, types.int64[:, ::1], types.float64[:, ::1]),
    cache=True,
)
def pair_rarity_terms(leaves: Arrays, params: Floats, pairs: Ints, similarities: Floats) -> Floats:
    """Rarity term of every field for every pair: float64[n_pairs, n_fields].

    similarities: as `pair_similarities` gives them.
    """
    rarity = leaves[3]
    out = np.empty_like(similarities)
    for i in range(pairs.shape[0]):
        for field in range(int(params[N_FIELDS])):
            out[i, field] = rarity_term(
                rarity, params, pairs[i, 0], pairs[i, 1], field, similarities[i, field]
            )
    return out
