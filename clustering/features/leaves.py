"""The weighed bags of all leaves in flat arrays, as linkage kernels read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

LEAVES_TYPE = types.Tuple(  # type: ignore[no-untyped-call]
    (
        types.int64[:, ::1],
        types.int32[::1],
        types.float32[::1],
        types.float32[:, ::1],
        types.int64[:, ::1],
        types.uint64[::1],
        types.float32[::1],
        types.int64[::1],
        types.int64[::1],
        types.float64[::1],
    )
)

# Slots of Leaves' desk state: which leaf lies on it (-1: none), and how many tokens that has.
OWNER, LAID = 0, 1
NOBODY = -1
# What is on the desk where nothing is; and how many slots a token gets, so that hardly any two
# tokens want the same one.
FREE = np.uint64(2**64 - 1)
SLOTS_PER_TOKEN = 16
# Slots of the memo, a power of two, and what is in one that holds no pair.
MEMO_SLOTS = 1 << 14
NO_PAIR = -1


class Weighed(NamedTuple):
    """One record's bags as a model weighs them.

    starts, ids: as in Bags. weights: float32[n_tokens], each field's of unit length.
    rarity: float32[n_fields], nats, NaN where the field is missing.
    values: int64[n_fields], as in Bags: 0 where the field is missing.
    """

    starts: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    rarity: npt.NDArray[np.float32]
    values: npt.NDArray[np.int64]


class Leaves:
    """Growing store of the leaves' tokens, addressed by leaf id.

    ``arrays`` is (starts, ids, weights, rarity, values, desk keys, desk weights, desk state, memo
    pairs, memo scores): int64[n, n_fields + 1], int32[m], float32[m], float32[n, n_fields],
    int64[n, n_fields], the desk and the memo. The desk is a hash table on which kernels lay out one
    leaf's tokens to compare it with many others: uint64[k] keys, float32[k] weights, 0 where free,
    and int64[2 + k] state (see OWNER), the rest of which lists the slots in use. The memo holds the
    last scores of some pairs of leaves: int64[MEMO_SLOTS], NO_PAIR where none, and float64.

    Tokens of removed leaves are garbage until there is more of it than of the rest; then the live
    ones are moved together, so the cost of a removal is constant on average.
    """

    def __init__(self, n_fields: int) -> None:
        self._starts = np.zeros((16, n_fields + 1), np.int64)
        self._rarity = np.full((16, n_fields), np.nan, np.float32)
        self._values = np.zeros((16, n_fields), np.int64)
        self._ids = np.empty(1024, np.int32)
        self._weights = np.empty(1024, np.float32)
        self._memo_pairs = np.full(MEMO_SLOTS, NO_PAIR, np.int64)
        self._memo_scores = np.zeros(MEMO_SLOTS)
        self._set_desk(4096)
        self._used = 0
        self._garbage = 0
        self._live: dict[int, int] = {}

    @property
    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """What a linkage kernel reads (LEAVES_TYPE); valid until the next ``put`` or ``drop``."""
        tokens = self._starts, self._ids, self._weights, self._rarity, self._values
        desk = self._desk_keys, self._desk_weights, self._desk_state
        return *tokens, *desk, self._memo_pairs, self._memo_scores

    def put(self, leaf: int, weighed: Weighed) -> None:
        """Store a leaf's bags; the id must be free."""
        while leaf >= len(self._starts):
            self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
            self._rarity = np.concatenate([self._rarity, np.full_like(self._rarity, np.nan)])
            self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        count = len(weighed.ids)
        wanted = SLOTS_PER_TOKEN * count
        if wanted > len(self._desk_keys):
            self._set_desk(1 << (wanted - 1).bit_length())
        while self._used + count > len(self._ids):
            self._ids = np.concatenate([self._ids, np.empty_like(self._ids)])
            self._weights = np.concatenate([self._weights, np.empty_like(self._weights)])
        self._ids[self._used : self._used + count] = weighed.ids
        self._weights[self._used : self._used + count] = weighed.weights
        self._starts[leaf] = weighed.starts
        self._starts[leaf] += self._used
        self._rarity[leaf] = weighed.rarity
        self._values[leaf] = weighed.values
        self._live[leaf] = count
        self._used += count

    def drop(self, leaf: int) -> None:
        """Forget a leaf's bags."""
        if self._desk_state[OWNER] == leaf:
            self._set_desk(len(self._desk_keys))
        self._memo_pairs.fill(NO_PAIR)  # the id may come back with other bags
        self._garbage += self._live.pop(leaf)
        self._rarity[leaf] = np.nan
        self._values[leaf] = 0
        self._starts[leaf] = 0
        if self._garbage > 1024 and 2 * self._garbage > self._used:
            self._compact()

    def _set_desk(self, size: int) -> None:
        """An empty desk of ``size`` slots, a power of two."""
        self._desk_keys = np.full(size, FREE, np.uint64)
        self._desk_weights = np.zeros(size, np.float32)
        self._desk_state = np.zeros(2 + size, np.int64)
        self._desk_state[OWNER] = NOBODY

    def _compact(self) -> None:
        ids, weights, used = np.empty_like(self._ids), np.empty_like(self._weights), 0
        for leaf, count in self._live.items():
            first = self._starts[leaf, 0]
            ids[used : used + count] = self._ids[first : first + count]
            weights[used : used + count] = self._weights[first : first + count]
            self._starts[leaf] += used - first
            used += count
        self._ids, self._weights, self._used, self._garbage = ids, weights, used, 0


__all__ = ["FREE", "LAID", "LEAVES_TYPE", "NOBODY", "OWNER", "Leaves", "Weighed"]
