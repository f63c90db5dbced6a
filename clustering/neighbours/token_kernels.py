"""Kernels of the token index: posting lists of labels under 64-bit tokens.

The list of a token is one block of a common array, so that a search reads it straight through;
a full block moves to one of twice the size. Every entry of a list belongs to a cell of its label,
which knows where the entry is, so an entry leaves in constant time however long the list.
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
TOKEN, POSITION, SIBLING = 0, 1, 2

# Columns of Postings.entries
LABEL, CELL = 0, 1

# Columns of Postings.lists
START, SIZE, ROOM = 0, 1, 2

# Slots of Postings.counts: first number never used, and head of the free list.
HIGH_CELL, FREE_CELL, HIGH_TOKEN, FREE_TOKEN, HIGH_ENTRY = 0, 1, 2, 3, 4
N_COUNTS = 5


class Postings(NamedTuple):
    """The arrays of one token index.

    first_of: int32[labels], first cell of each label; NONE = not there, END = without tokens.
    cells: int32[cells, 3], token number, place of its entry in the list, next cell of the label.
        Free cells are linked by SIBLING.
    keys: uint64[tokens], the token of each token number.
    lists: int32[tokens, 3], where its block starts, how many entries are in it, and how many have
        room (a power of two). Free token numbers have SIZE 0 and are linked by START.
    table: int32[2**p], token numbers by hash, NONE where empty; at most half full.
    entries: int32[entries, 2], label and cell. Free blocks are linked by LABEL of their first.
    free_blocks: int32[32], first free block of 2**i entries, NONE where there is none.
    counts: int32[N_COUNTS].
    sums: float64[labels], zero between calls.
    """

    first_of: npt.NDArray[np.int32]
    cells: npt.NDArray[np.int32]
    keys: npt.NDArray[np.uint64]
    lists: npt.NDArray[np.int32]
    table: npt.NDArray[np.int32]
    entries: npt.NDArray[np.int32]
    free_blocks: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    sums: npt.NDArray[np.float64]


ROWS_TYPE = types.int32[:, ::1]
POSTINGS_TYPE = types.NamedTuple(  # type: ignore[no-untyped-call]
    (
        types.int32[::1],
        ROWS_TYPE,
        types.uint64[::1],
        ROWS_TYPE,
        types.int32[::1],
        ROWS_TYPE,
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


@njit(types.void(types.int32[::1], types.uint64[::1], ROWS_TYPE), cache=True)
def fill_table(
    table: npt.NDArray[np.int32], keys: npt.NDArray[np.uint64], lists: npt.NDArray[np.int32]
) -> None:
    """Enter every token in use into an empty table."""
    mask = len(table) - 1
    for token in range(len(keys)):
        if lists[token, SIZE]:
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


@njit(types.int64(types.int64), cache=True)
def kind_of(room: int) -> int:
    """Which slot of ``free_blocks`` holds blocks of ``room`` entries."""
    kind = 0
    while room > 1:
        room >>= 1
        kind += 1
    return kind


@njit(types.int64(POSTINGS_TYPE, types.int64), cache=True)
def take_block(postings: Postings, room: int) -> int:
    """Start of a free block of ``room`` entries, a power of two."""
    free_blocks, counts = postings.free_blocks, postings.counts
    kind = kind_of(room)
    start = int(free_blocks[kind])
    if start == NONE:
        start = int(counts[HIGH_ENTRY])
        counts[HIGH_ENTRY] += room
    else:
        free_blocks[kind] = postings.entries[start, LABEL]
    return start


@njit(types.void(POSTINGS_TYPE, types.int64, types.int64), cache=True)
def free_block(postings: Postings, start: int, room: int) -> None:
    """Give a block back."""
    kind = kind_of(room)
    postings.entries[start, LABEL] = postings.free_blocks[kind]
    postings.free_blocks[kind] = start


@njit(types.int64(POSTINGS_TYPE, TOKENS_TYPE), cache=True)
def entries_wanted(postings: Postings, tokens: npt.NDArray[np.uint64]) -> int:
    """The most entries that adding a label with these tokens can take."""
    wanted = 0
    for key in tokens:
        token = postings.table[place_of(postings, key)]
        if token == NONE:
            wanted += 1
        elif postings.lists[token, SIZE] == postings.lists[token, ROOM]:
            wanted += 2 * postings.lists[token, ROOM]
    return wanted


@njit(types.int64(POSTINGS_TYPE, types.uint64, types.int64), cache=True)
def token_for(postings: Postings, key: np.uint64, place: int) -> int:
    """A new token number, with an empty list, for the token that belongs at ``place``."""
    lists, counts = postings.lists, postings.counts
    token = int(counts[FREE_TOKEN])
    if token == NONE:
        token = int(counts[HIGH_TOKEN])
        counts[HIGH_TOKEN] += 1
    else:
        counts[FREE_TOKEN] = lists[token, START]
    postings.keys[token] = key
    lists[token, START] = take_block(postings, 1)
    lists[token, SIZE], lists[token, ROOM] = 0, 1
    postings.table[place] = token
    return token


@njit(types.void(POSTINGS_TYPE, types.int64), cache=True)
def double_room(postings: Postings, token: int) -> None:
    """Move the list of a token to a block of twice the size."""
    lists, entries = postings.lists, postings.entries
    old, room = lists[token, START], lists[token, ROOM]
    new = take_block(postings, 2 * room)
    for i in range(lists[token, SIZE]):
        entries[new + i, LABEL] = entries[old + i, LABEL]
        entries[new + i, CELL] = entries[old + i, CELL]
    free_block(postings, old, room)
    lists[token, START], lists[token, ROOM] = new, 2 * room


@njit(types.void(POSTINGS_TYPE, types.int64, TOKENS_TYPE), cache=True)
def add_label(postings: Postings, label: int, tokens: npt.NDArray[np.uint64]) -> None:
    """Add a label that is not there; the arrays have room for all it takes."""
    first_of, cells, lists = postings.first_of, postings.cells, postings.lists
    entries, counts = postings.entries, postings.counts
    first_of[label] = END
    for key in tokens:
        place = place_of(postings, key)
        token = int(postings.table[place])
        if token == NONE:
            token = token_for(postings, key, place)
        size = lists[token, SIZE]
        if size and entries[lists[token, START] + size - 1, LABEL] == label:
            # What was just appended is there already: the token is given twice.
            continue
        if size == lists[token, ROOM]:
            double_room(postings, token)
        cell = counts[FREE_CELL]
        if cell == NONE:
            cell = counts[HIGH_CELL]
            counts[HIGH_CELL] += 1
        else:
            counts[FREE_CELL] = cells[cell, SIBLING]
        entry = lists[token, START] + size
        entries[entry, LABEL], entries[entry, CELL] = label, cell
        lists[token, SIZE] = size + 1
        cells[cell, TOKEN], cells[cell, POSITION] = token, size
        cells[cell, SIBLING] = first_of[label]
        first_of[label] = cell


@njit(types.void(POSTINGS_TYPE, types.int64), cache=True)
def remove_label(postings: Postings, label: int) -> None:
    """Remove a label that is there, and the tokens that only it had."""
    first_of, cells, lists = postings.first_of, postings.cells, postings.lists
    entries, counts = postings.entries, postings.counts
    cell = first_of[label]
    first_of[label] = NONE
    while cell != END:
        token, position, sibling = cells[cell, TOKEN], cells[cell, POSITION], cells[cell, SIBLING]
        start, last = lists[token, START], lists[token, SIZE] - 1
        # The last entry of the list fills the hole.
        entries[start + position, LABEL] = entries[start + last, LABEL]
        entries[start + position, CELL] = entries[start + last, CELL]
        cells[entries[start + position, CELL], POSITION] = position
        lists[token, SIZE] = last
        if not last:
            clear_place(postings, place_of(postings, postings.keys[token]))
            free_block(postings, start, lists[token, ROOM])
            lists[token, START] = counts[FREE_TOKEN]
            counts[FREE_TOKEN] = token
        cells[cell, SIBLING] = counts[FREE_CELL]
        counts[FREE_CELL] = cell
        cell = sibling


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
    keys, lists = postings.keys, postings.lists
    count = 0
    for key in tokens:
        token = postings.table[place_of(postings, key)]
        if token == NONE or lists[token, SIZE] > max_postings:
            continue
        size = lists[token, SIZE]
        at = count
        while at:
            other = rare[at - 1]
            if lists[other, SIZE] < size or (lists[other, SIZE] == size and keys[other] <= key):
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
    lists, entries, sums = postings.lists, postings.entries, postings.sums
    touched = np.empty(max_work, np.int32)
    n_touched = 0
    work = 0
    for i in range(n_rare):
        start, size = lists[rare[i], START], lists[rare[i], SIZE]
        work += size
        if work > max_work:
            break
        rarity = 1.0 / size
        for entry in range(start, start + size):
            label = entries[entry, LABEL]
            if sums[label] == 0.0:
                touched[n_touched] = label
                n_touched += 1
            sums[label] += rarity
    held = 0
    for i in range(n_touched):
        held = offer(scores, best, held, sums[touched[i]], touched[i])
        sums[touched[i]] = 0.0
    best_first(scores, best, held)
    return held
