"""Kernels that weigh tokens by a model and fold them into one short search vector."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit, types

from clustering.features.token_kernels import mix

_I32 = types.int32[::1]
_I64 = types.int64[::1]
_F32 = types.float32[::1]
_F64 = types.float64[::1]
_U64 = types.uint64[::1]

# Even a token that nearly every record has keeps this much, so that two records that share
# only such tokens are not as different as two that share nothing.
LEAST_IDF = 0.05


@njit(types.int64(_I64, types.int64), cache=True)
def find(keys: npt.NDArray[np.int64], key: int) -> int:
    """Position of ``key`` in ascending ``keys``, or -1."""
    low, high = 0, keys.shape[0]
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < keys.shape[0] and keys[low] == key else -1


@njit(types.int64(types.int64, types.int64), cache=True)
def field_key(field: int, token: int) -> int:
    """One integer for a token (or the low bits of a value's hash) of one field."""
    return (field << 40) | (token & 0xFFFFFFFF)


@njit(
    types.void(_I32, _I32, _F32, _I64, types.boolean[::1], _I64, _I64, _F32),
    cache=True,
)
def weigh_tokens(
    starts: npt.NDArray[np.int32],
    ids: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    present: npt.NDArray[np.int64],
    uses_idf: npt.NDArray[np.bool_],
    frequency_keys: npt.NDArray[np.int64],
    frequencies: npt.NDArray[np.int64],
    out: npt.NDArray[np.float32],
) -> None:
    """Write the unit-length, idf-weighted token weights of every field into ``out``.

    present: int64[n_fields], how many of the model's records have the field; 0 before any fit.
    frequency_keys, frequencies: ascending ``field_key`` and document frequency; a token that is
        not there counts as seen in one record.
    idf of a token: log((present + 1) / (frequency + 0.5)), at least LEAST_IDF.
    """
    for field in range(starts.shape[0] - 1):
        total = 0.0
        for at in range(starts[field], starts[field + 1]):
            weight = float(weights[at])
            if uses_idf[field] and present[field] > 0:
                found = find(frequency_keys, field_key(field, ids[at]))
                seen = frequencies[found] if found >= 0 else 1
                weight *= max(math.log((present[field] + 1.0) / (seen + 0.5)), LEAST_IDF)
            out[at] = weight
            total += weight * weight
        if total > 0.0:
            norm = math.sqrt(total)
            for at in range(starts[field], starts[field + 1]):
                out[at] = out[at] / norm


@njit(types.void(_I64, _I64, _I64, _I64, _F32), cache=True)
def weigh_values(
    values: npt.NDArray[np.int64],
    present: npt.NDArray[np.int64],
    value_keys: npt.NDArray[np.int64],
    value_counts: npt.NDArray[np.int64],
    out: npt.NDArray[np.float32],
) -> None:
    """Write the rarity of every field's value into ``out``: nats, NaN where it is missing.

    The rarity of a value is -log of the share of records (that have the field) with it.
    """
    for field in range(values.shape[0]):
        if values[field] == 0:
            out[field] = np.nan
        elif present[field] == 0:
            out[field] = 0.0
        else:
            found = find(value_keys, field_key(field, values[field]))
            count = value_counts[found] if found >= 0 else 1
            out[field] = -math.log(min(count / present[field], 1.0))


@njit(types.void(_I32, _I32, _F32, _I32, _F64, _F32), cache=True)
def fold(
    starts: npt.NDArray[np.int32],
    ids: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    spaces: npt.NDArray[np.int32],
    field_weights: npt.NDArray[np.float64],
    out: npt.NDArray[np.float32],
) -> None:
    """Add every token to one signed, hashed place of ``out``, then scale that to unit length.

    Dot products of folded vectors estimate the field-weighted sum of the fields' cosines without
    bias (feature hashing: Weinberger et al., ICML 2009). Fields of one space share their tokens'
    places, so swapped values still meet. All zero where a record has no token at all.
    """
    out[:] = 0.0
    for field in range(starts.shape[0] - 1):
        scale = math.sqrt(field_weights[field])
        salt = np.uint32((spaces[field] + 1) * 0x9E3779B1)
        for at in range(starts[field], starts[field + 1]):
            hashed = mix(np.uint32(ids[at]) ^ salt)
            place = (hashed >> np.uint32(1)) % np.uint32(out.shape[0])
            sign = 1.0 if hashed & np.uint32(1) else -1.0
            out[place] += np.float32(sign * scale * weights[at])
    total = 0.0
    for i in range(out.shape[0]):
        total += float(out[i]) * float(out[i])
    if total > 0.0:
        norm = np.float32(math.sqrt(total))
        for i in range(out.shape[0]):
            out[i] /= norm


@njit(
    _U64(_I32, _I32, _F32, _I64, _F64, _U64, types.boolean[::1], types.int64),
    cache=True,
)
def lookup_tokens(
    starts: npt.NDArray[np.int32],
    ids: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    values: npt.NDArray[np.int64],
    field_weights: npt.NDArray[np.float64],
    spaces: npt.NDArray[np.uint64],
    whole: npt.NDArray[np.bool_],
    most: int,
) -> npt.NDArray[np.uint64]:
    """What a record is looked up by exactly: its weightiest tokens, then its whole values.

    spaces: uint64[n_fields], what tells the tokens of one space from those of the others.
    whole: bool[n_fields], whether a field's whole value is looked up. most: tokens at most.
    Returns uint64[m]; tokens by weight, ties by place.
    """
    n_fields = values.shape[0]
    tokens = np.empty(most + n_fields, np.uint64)
    heavy = np.empty(most)
    n = 0
    for field in range(n_fields):
        for at in range(starts[field], starts[field + 1]):
            weight = weights[at] * field_weights[field]
            if n == most and weight <= heavy[n - 1]:
                continue
            n = min(n + 1, most)
            place = n - 1
            while place > 0 and heavy[place - 1] < weight:
                heavy[place] = heavy[place - 1]
                tokens[place] = tokens[place - 1]
                place -= 1
            heavy[place] = weight
            tokens[place] = np.uint64(np.uint32(ids[at])) | spaces[field]
    for field in range(n_fields):
        if whole[field] and values[field] != 0:
            tokens[n] = (np.uint64(values[field]) | np.uint64(1 << 63)) ^ spaces[field]
            n += 1
    return tokens[:n].copy()
