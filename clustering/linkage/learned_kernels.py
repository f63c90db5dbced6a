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

from clustering.features.leaves import LEAVES_TYPE

# Upper ends of the agreement levels but the last: a similarity below LEVEL_ENDS[k] and not below
# LEVEL_ENDS[k - 1] has level k.
LEVEL_ENDS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.97)
N_LEVELS = len(LEVEL_ENDS) + 1

# Two values in each other's field count as a little less alike than in their own.
SWAPPED = 0.9

# The rarity term fades in from the first of these similarities to the second, and is clamped.
RARITY_FROM, RARITY_FULL, MOST_RARITY = 0.7, 0.95, 3.0

# Layout of params: HEADER numbers, then PER_FIELD numbers for each field.
BIAS, N_FIELDS, EVIDENCE_FIELDS, HEADER = 0, 1, 2, 3
RARITY_SLOPE, RARITY_OFFSET, SPACE, MAY_STAND_ALONE = N_LEVELS, N_LEVELS + 1, N_LEVELS + 2, N_LEVELS + 3
PER_FIELD = N_LEVELS + 4

# A pair whose only agreement is one weak field does not match, whatever its weight.
TOO_LITTLE_EVIDENCE = -1.0

_PARAMS = types.float64[::1]

Arrays = tuple[npt.NDArray[Any], ...]
Floats = npt.NDArray[np.float64]


@njit(types.int64(types.float64), cache=True)
def level_of(similarity: float) -> int:
    """Agreement level of a similarity in [0, 1]: 0 (unlike) to N_LEVELS - 1 (equal)."""
    level = 0
    for end in LEVEL_ENDS:
        if similarity >= end:
            level += 1
    return level


@njit(types.float64(LEAVES_TYPE, types.int64, types.int64, types.int64), cache=True)
def field_cosine(leaves: Arrays, a: int, b: int, field: int) -> float:
    """Cosine of one field's tokens of two leaves, in [0, 1]."""
    starts, ids, weights, _, _ = leaves
    i, i_end = starts[a, field], starts[a, field + 1]
    j, j_end = starts[b, field], starts[b, field + 1]
    total = np.float64(0.0)
    while i < i_end and j < j_end:
        x, y = ids[i], ids[j]
        if x == y:
            total += float(weights[i]) * float(weights[j])
        i += x <= y
        j += y <= x
    return min(total, 1.0)


@njit(types.boolean(LEAVES_TYPE, _PARAMS, types.int64, types.int64, types.int64), cache=True)
def is_swapped(leaves: Arrays, params: Floats, a: int, b: int, field: int) -> bool:
    """Whether either leaf has its value of ``field`` in another field of the same space."""
    values = leaves[4]
    space = params[HEADER + field * PER_FIELD + SPACE]
    if space < 0.0:
        return False
    for other in range(int(params[N_FIELDS])):
        if other != field and params[HEADER + other * PER_FIELD + SPACE] == space:
            if values[a, field] == values[b, other] or values[a, other] == values[b, field]:
                return True
    return False


@njit(types.float64(LEAVES_TYPE, _PARAMS, types.int64, types.int64, types.int64), cache=True)
def field_similarity(leaves: Arrays, params: Floats, a: int, b: int, field: int) -> float:
    """Similarity of one field of two leaves, in [0, 1]; NaN where either lacks it.

    A value that stands in another name field of the other record counts as SWAPPED.
    """
    values = leaves[4]
    if values[a, field] == 0 or values[b, field] == 0:
        return np.nan
    if values[a, field] == values[b, field]:
        return 1.0
    similarity = field_cosine(leaves, a, b, field)
    if similarity < SWAPPED and is_swapped(leaves, params, a, b, field):
        return SWAPPED
    return similarity


@njit(types.float64(LEAVES_TYPE, _PARAMS, types.int64, types.int64, types.int64, types.float64), cache=True)
def rarity_evidence(
    leaves: Arrays,
    params: Floats,
    a: int,
    b: int,
    field: int,
    similarity: float,
) -> float:
    """Extra nats for agreeing on a value rarer than agreements of this field usually are.

    Negative for a common value; monotone in the rarity; in [-MOST_RARITY, MOST_RARITY].
    """
    at = HEADER + field * PER_FIELD
    fade = min(max((similarity - RARITY_FROM) / (RARITY_FULL - RARITY_FROM), 0.0), 1.0)
    rarity = float(min(leaves[3][a, field], leaves[3][b, field])) + params[at + RARITY_OFFSET]
    return params[at + RARITY_SLOPE] * fade * min(max(rarity, -MOST_RARITY), MOST_RARITY)


@njit(types.float64(LEAVES_TYPE, _PARAMS, types.int64, types.int64, types.int64), cache=True)
def field_evidence(
    leaves: Arrays,
    params: Floats,
    a: int,
    b: int,
    field: int,
) -> float:
    """Nats that one field adds to the logit of a pair of leaves."""
    similarity = field_similarity(leaves, params, a, b, field)
    if math.isnan(similarity):
        return 0.0
    weight = params[HEADER + field * PER_FIELD + level_of(similarity)]
    return float(weight) + rarity_evidence(leaves, params, a, b, field, similarity)


@njit(types.float64(LEAVES_TYPE, _PARAMS, types.int64, types.int64), cache=True)
def pair_logit(
    leaves: Arrays,
    params: Floats,
    a: int,
    b: int,
) -> float:
    """Logit of the probability that two leaves describe the same entity."""
    logit = params[BIAS]
    agreeing = 0
    alone = False
    for field in range(int(params[N_FIELDS])):
        evidence = field_evidence(leaves, params, a, b, field)
        logit += evidence
        if evidence > 0.0:
            agreeing += 1
            alone = alone or params[HEADER + field * PER_FIELD + MAY_STAND_ALONE] > 0.0
    if agreeing < params[EVIDENCE_FIELDS] and not alone:
        return min(logit, TOO_LITTLE_EVIDENCE)
    return logit


@njit(types.float64[:, ::1](LEAVES_TYPE, _PARAMS, types.int64[:, ::1]), cache=True)
def pair_similarities(
    leaves: Arrays,
    params: Floats,
    pairs: npt.NDArray[np.int64],
) -> Floats:
    """Similarity of every field for every pair: float64[n_pairs, n_fields], NaN where missing."""
    n_fields = int(params[N_FIELDS])
    out = np.empty((pairs.shape[0], n_fields))
    for i in range(pairs.shape[0]):
        for field in range(n_fields):
            out[i, field] = field_similarity(leaves, params, pairs[i, 0], pairs[i, 1], field)
    return out
