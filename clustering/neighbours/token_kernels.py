"""Kernels of the token index: posting lists of labels under 64-bit tokens.

One cell stands for one token of one label. It hangs in two lists: the cells of its token (doubly
linked, so that a cell leaves in constant time however long the list) and the cells of its label.
Tokens are found by open addressing with linear probing (Knuth, The Art of Computer Programming,
volume 3, section 6.4, algorithms L and R).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types

from clustering.neighbours.topk_kernels import LABELS_TYPE, SCORES_TYPE, best_first, offer

# No such thing, and the end of the list of cells of a label that is there.
NONE, END = -1, -2

# Columns of Postings.cells
LABEL, TOKEN, NEXT, BEFORE, SIBLING = 0, 1, 2, 3, 4
N_COLUMNS = 5

# Slots of Postings.counts: first number never used, and head of the free list, of both kinds.
HIGH_CELL, FREE_CELL, HIGH_TOKEN, FREE_TOKEN = 0, 1, 2, 3
N_COUNTS = 4


class Postings(NamedTuple):
    """The arrays of one token index.

    first_of: int32[labels], first cell of each label; NONE = not there, END = without tokens.
    cells: int32[cells, N_COLUMNS], label, token number, next and previous cell of the token, next
        cell of the label. Free cells are linked by NEXT.
    keys: uint64[tokens], the token of each token number.
    heads: int32[tokens], its first cell. Free token numbers are linked by it.
    sizes: int32[tokens], how many cells it has.
    table: int32[2**p], token numbers by hash, NONE where empty; at most half full.
    counts: int32[N_COUNTS].
    sums: float64[labels], zero between calls.
    """

    first_of: npt.NDArray[np.int32]
    cells: npt.NDArray[np.int32]
    keys: npt.NDArray[np.uint64]
    heads: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int32]
    table: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    sums: npt.NDArray[np.float64]


POSTINGS_TYPE = types.NamedTuple(  # type: ignore[no-untyped-call]
    (
        types.int32[::1],
        types.int32[:, ::1],
        types.uint64[::1],
        types.int32[::1],
        types.int32[::1],
        types.int32[::1],
        types.int32[::1],
        types.float64[::1],
    ),
    Postings,
)
TOKENS_TYPE = types.Array(types.uint64, 1, "C", readonly=True)


@njit(types.int64(types.int32[::1], types.uint64), cache=True)
def home(table: npt.NDArray[np.int32], key: np.uint64) -> int:
    """Where in ``table`` a token belongs (Fibonacci hashing, Knuth 6.4)."""
    mixed = (key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return int((mixed >> np.uint64(32)) & np.uint64(len(table) - 1))


@njit(types.int64(POSTINGS_TYPE, types.uint64), cache=True)
def place_of(postings: Postings, key: np.uint64) -> int:
    """Where in the table a token is, or the empty place where it would be."""
    mask = len(postings.table) - 1
    place = home(postings.table, key)
    while postings.table[place] != NONE and postings.keys[postings.table[place]] != key:
        place = (place + 1) & mask
    return place


@njit(types.void(types.int32[::1], types.uint64[::1], types.int32[::1]), cache=True)
def fill_table(
    table: npt.NDArray[np.int32], keys: npt.NDArray[np.uint64], sizes: npt.NDArray[np.int32]
) -> None:
    """Enter every token in use into an empty table."""
    mask = len(table) - 1
    for token in range(len(keys)):
        if sizes[token]:
            place = home(table, keys[token])
            while table[place] != NONE:
                place = (place + 1) & mask
            table[place] = token


@njit(types.void(POSTINGS_TYPE, types.int64), cache=True)
def clear_place(postings: Postings, place: int) -> None:
    """Empty a place of the table, and move up what had to probe past it."""
    table = postings.table
    mask = len(table) - 1
    probe = place
    while True:
        table[place] = NONE
        while True:
            probe = (probe + 1) & mask
            if table[probe] == NONE:
                return
            wanted = home(table, postings.keys[table[probe]])
            # It may move to ``place`` unless its home lies between the two.
            if (probe - wanted) & mask >= (probe - place) & mask:
                break
        table[place] = table[probe]
        place = probe


@njit(types.void(POSTINGS_TYPE, types.int64, TOKENS_TYPE), cache=True)
def add_label(postings: Postings, label: int, tokens: npt.NDArray[np.uint64]) -> None:
    """Add a label that is not there; the arrays have room for all its tokens."""
    first_of, cells, keys, heads, sizes, table, counts, _ = postings
    first_of[label] = END
    for key in tokens:
        place = place_of(postings, key)
        token = table[place]
        if token == NONE:
            token = counts[FREE_TOKEN]
            if token == NONE:
                token = counts[HIGH_TOKEN]
                counts[HIGH_TOKEN] += 1
            else:
                counts[FREE_TOKEN] = heads[token]
            keys[token], heads[token], sizes[token] = key, NONE, 0
            table[place] = token
        elif cells[heads[token], LABEL] == label:
            # The label was just put in front, so this token is given twice.
            continue
        cell = counts[FREE_CELL]
        if cell == NONE:
            cell = counts[HIGH_CELL]
            counts[HIGH_CELL] += 1
        else:
            counts[FREE_CELL] = cells[cell, NEXT]
        following = heads[token]
        cells[cell, LABEL], cells[cell, TOKEN] = label, token
        cells[cell, NEXT], cells[cell, BEFORE] = following, NONE
        cells[cell, SIBLING] = first_of[label]
        if following != NONE:
            cells[following, BEFORE] = cell
        heads[token] = cell
        sizes[token] += 1
        first_of[label] = cell


@njit(types.void(POSTINGS_TYPE, types.int64), cache=True)
def remove_label(postings: Postings, label: int) -> None:
    """Remove a label that is there, and the tokens that only it had."""
    first_of, cells, keys, heads, sizes, _, counts, _ = postings
    cell = first_of[label]
    first_of[label] = NONE
    while cell != END:
        token, following, before = cells[cell, TOKEN], cells[cell, NEXT], cells[cell, BEFORE]
        if before == NONE:
            heads[token] = following
        else:
            cells[before, NEXT] = following
        if following != NONE:
            cells[following, BEFORE] = before
        sizes[token] -= 1
        if not sizes[token]:
            clear_place(postings, place_of(postings, keys[token]))
            heads[token] = counts[FREE_TOKEN]
            counts[FREE_TOKEN] = token
        cells[cell, NEXT] = counts[FREE_CELL]
        counts[FREE_CELL] = cell
        cell = cells[cell, SIBLING]


@njit(types.int64(POSTINGS_TYPE, TOKENS_TYPE, types.int64, types.int32[::1]), cache=True)
def rare_tokens(
    postings: Postings,
    tokens: npt.NDArray[np.uint64],
    max_postings: int,
    rare: npt.NDArray[np.int32],
) -> int:
    """Numbers of the given tokens with 1 .. max_postings labels, once each, into ``rare``.

    They are ordered by size, then by token. Returns how many there are.
    """
    count = 0
    for key in tokens:
        token = postings.table[place_of(postings, key)]
        if token == NONE or postings.sizes[token] > max_postings:
            continue
        size = postings.sizes[token]
        at = count
        while at:
            other = rare[at - 1]
            if postings.sizes[other] < size or (
                postings.sizes[other] == size and postings.keys[other] <= key
            ):
                break
            at -= 1
        if at and rare[at - 1] == token:
            continue
        for i in range(count, at, -1):
            rare[i] = rare[i - 1]
        rare[at] = token
        count += 1
    return count


@njit(
    types.int64(POSTINGS_TYPE, TOKENS_TYPE, types.int64, types.int64, SCORES_TYPE, LABELS_TYPE),
    cache=True,
)
def find_candidates(
    postings: Postings,
    tokens: npt.NDArray[np.uint64],
    max_postings: int,
    max_work: int,
    scores: npt.NDArray[np.float64],
    best: npt.NDArray[np.int64],
) -> int:
    """The len(best) labels that share the rarest of ``tokens``; see ``TokenIndex.candidates``.

    Returns how many were filled in, best first.
    """
    rare = np.empty(len(tokens), np.int32)
    n_rare = rare_tokens(postings, tokens, max_postings, rare)
    cells, sums = postings.cells, postings.sums
    touched = np.empty(max_work, np.int32)
    n_touched = 0
    work = 0
    for i in range(n_rare):
        size = postings.sizes[rare[i]]
        work += size
        if work > max_work:
            break
        cell = postings.heads[rare[i]]
        while cell != NONE:
            label = cells[cell, LABEL]
            if sums[label] == 0.0:
                touched[n_touched] = label
                n_touched += 1
            sums[label] += 1.0 / size
            cell = cells[cell, NEXT]
    held = 0
    for i in range(n_touched):
        held = offer(scores, best, held, sums[touched[i]], touched[i])
        sums[touched[i]] = 0.0
    best_first(scores, best, held)
    return held
