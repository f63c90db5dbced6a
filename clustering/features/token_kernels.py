"""Kernels that turn bytes and numbers into weighted tokens.

A token is a 32-bit hash (int32) with a weight (float32). Hashes are FNV-1a with a final mix; two
different tokens of one field collide with probability 2**-32.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit, types

Bytes = npt.NDArray[np.uint8]
Tokens = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]

_TOKENS = types.Tuple((types.int32[::1], types.float32[::1]))
_BYTES = types.Array(types.uint8, 1, "C", readonly=True)

# Tokens of different kinds never meet: each kind starts its hash from its own seed.
WHOLE, WORD, GRAM, HEAD = 1, 2, 3, 4

# What stands before and after a word, so that its first and last letters count as such.
_START, _END, _SPACE = 2, 3, 32


@njit(types.uint32(types.uint32), cache=True)
def mix(hashed: int) -> int:
    """Spread every bit of a 32-bit hash over all 32 (the finaliser of MurmurHash3)."""
    h = np.uint32(hashed)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> np.uint32(16)
    return h


@njit(types.uint32(types.uint32, types.uint32), cache=True)
def _absorb(hashed: int, byte: int) -> int:
    return np.uint32((np.uint32(hashed) ^ np.uint32(byte)) * np.uint32(16777619))


@njit(types.uint32(_BYTES, types.int64, types.int64, types.int64), cache=True)
def hash_bytes(data: Bytes, start: int, stop: int, kind: int) -> int:
    """Hash of ``data[start:stop]`` as a token of the given kind."""
    h = np.uint32(2166136261) ^ np.uint32(kind * 0x9E3779B1)
    for i in range(start, stop):
        h = _absorb(h, np.uint32(data[i]))
    return mix(h)


@njit(types.uint32(_BYTES, types.int64, types.int64, types.int64, types.int64), cache=True)
def _hash_gram(data: Bytes, start: int, stop: int, at: int, n: int) -> int:
    """Hash of the n-gram at position ``at`` of the word, which is padded at both ends."""
    h = np.uint32(2166136261) ^ np.uint32((GRAM + n * 16) * 0x9E3779B1)
    for i in range(at, at + n):
        if i < 0:
            h = _absorb(h, np.uint32(_START))
        elif i >= stop - start:
            h = _absorb(h, np.uint32(_END))
        else:
            h = _absorb(h, np.uint32(data[start + i]))
    return mix(h)


@njit(_TOKENS(types.int32[::1], types.float32[::1], types.int64), cache=True)
def merged(ids: npt.NDArray[np.int32], weights: npt.NDArray[np.float32], count: int) -> Tokens:
    """The first ``count`` tokens sorted by id, equal ids made one with the sum of their weights."""
    order = np.argsort(ids[:count], kind="mergesort")
    out_ids = np.empty(count, np.int32)
    out_weights = np.empty(count, np.float32)
    n = 0
    for position in order:
        if n > 0 and out_ids[n - 1] == ids[position]:
            out_weights[n - 1] += weights[position]
        else:
            out_ids[n] = ids[position]
            out_weights[n] = weights[position]
            n += 1
    return out_ids[:n].copy(), out_weights[:n].copy()


@njit(
    _TOKENS(
        _BYTES, types.int64, types.int64, types.float64, types.boolean, types.float64, types.float64
    ),
    cache=True,
)
def string_tokens(
    data: Bytes,
    shortest: int,
    longest: int,
    gram_weight: float,
    per_word: bool,
    word_weight: float,
    whole_weight: float,
) -> Tokens:
    """Tokens of one normalised string.

    data: uint8[n], UTF-8 bytes; words are separated by one space.
    shortest, longest: lengths of the character n-grams; longest < shortest means none.
    gram_weight: weight of one n-gram, divided by the root of the word's number of n-grams when
        ``per_word`` (so that long words do not drown short ones).
    word_weight, whole_weight: weights of each word and of the whole string; 0 means none.
    """
    room = data.shape[0] * max(0, longest - shortest + 1) + 4 * (data.shape[0] + 2) + 4
    ids = np.empty(room, np.int32)
    weights = np.empty(room, np.float32)
    count = 0
    start = 0
    n = data.shape[0]
    while start < n:
        stop = start
        while stop < n and data[stop] != _SPACE:
            stop += 1
        length = stop - start
        if length > 0:
            for size in range(shortest, longest + 1):
                grams = length + 2 - size + 1
                if grams < 1:
                    continue
                weight = gram_weight / math.sqrt(grams) if per_word else gram_weight
                for at in range(-1, length + 2 - size):
                    ids[count] = np.int32(_hash_gram(data, start, stop, at, size))
                    weights[count] = weight
                    count += 1
            if word_weight > 0.0:
                ids[count] = np.int32(hash_bytes(data, start, stop, WORD))
                weights[count] = word_weight
                count += 1
        start = stop + 1
    if whole_weight > 0.0 and n > 0:
        ids[count] = np.int32(hash_bytes(data, 0, n, WHOLE))
        weights[count] = whole_weight
        count += 1
    return merged(ids, weights, count)


@njit(types.int32(types.int64, types.int64), cache=True)
def number_token(kind: int, value: int) -> int:
    """Token of an integer as seen by one kind of part (a year, a tile at one scale ...)."""
    h = np.uint32(2166136261) ^ np.uint32(kind * 0x9E3779B1)
    for shift in range(0, 64, 8):
        h = _absorb(h, np.uint32((value >> shift) & 0xFF))
    return np.int32(mix(h))


# Tiles of width 2**k for k in this range: from a thousandth to several thousand units.
_FINEST, _COARSEST = -10, 14


@njit(_TOKENS(types.float64), cache=True)
def tile_tokens(value: float) -> Tokens:
    """Tokens of a number: the tiles it lies in at every scale, on two grids shifted by half.

    Two numbers share the tiles wider than about their difference, so their similarity falls
    smoothly with the logarithm of it, and document frequencies decide which scales say something.
    """
    count = 2 * (_COARSEST - _FINEST)
    ids = np.empty(count, np.int32)
    weights = np.ones(count, np.float32)
    for k in range(_FINEST, _COARSEST):
        scaled = min(max(value / 2.0**k, -9e15), 9e15)
        at = 2 * (k - _FINEST)
        ids[at] = number_token(100 + at, math.floor(scaled))
        ids[at + 1] = number_token(101 + at, math.floor(scaled + 0.5))
    return merged(ids, weights, count)


@njit(_TOKENS(types.int64, types.int64, types.int64), cache=True)
def date_tokens(year: int, month: int, day: int) -> Tokens:
    """Tokens of a date whose unknown parts are 0.

    Besides the parts themselves: the year's last digit (a wrong decade), pairs of neighbouring
    years, months and days (a slip of one), month and day in either order (a swap), and the whole.
    """
    ids = np.empty(16, np.int32)
    weights = np.empty(16, np.float32)
    parts = [
        (1, year, 1.0),
        (2, year % 10, 0.35),
        (3, year // 2, 0.3),
        (4, (year + 1) // 2, 0.3),
    ]
    if month > 0:
        parts += [(5, month, 0.7), (6, month // 2, 0.35), (7, (month + 1) // 2, 0.35)]
    if day > 0:
        parts += [(8, day, 0.9), (9, day // 4, 0.35), (10, (day + 2) // 4, 0.35)]
        if month > 0:
            low, high = min(month, day), max(month, day)
            parts += [
                (11, (year * 16 + month) * 32 + day, 0.8),
                (12, (year * 32 + low) * 32 + high, 0.6),
                (13, month * 32 + day, 0.6),
            ]
    count = 0
    for kind, value, weight in parts:
        ids[count] = number_token(kind, value)
        weights[count] = weight
        count += 1
    return merged(ids, weights, count)
