"""Exact duplicates: many labels, one vector.

Graphs of neighbours come apart at vectors that occur many times, and a search that answers with
copies of one vector tells less than one that answers with different ones. So an index holds every
distinct vector once, under its representative: the smallest of the labels that share it.
"""

from __future__ import annotations

from hashlib import blake2b
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clustering.neighbours import Labels
from clustering.neighbours.labels import NONE, LabelMap


class Change(NamedTuple):
    """The representative of one vector before and after a change, -1 where there is none."""

    before: int
    after: int


class DistinctVectors:
    """Which labels share a vector, and who represents them.

    Vectors are compared by their bytes, through a digest of 128 bits. Everything answered depends
    on the live (label, vector) pairs only.
    """

    def __init__(self) -> None:
        # A group is one distinct vector; group numbers are used again once free.
        self._group_of = LabelMap()
        self._group_with: dict[bytes, int] = {}
        self._digest: list[bytes] = []
        self._first: list[int] = []
        self._size: list[int] = []
        # Heaps of the labels of groups that ever had several; they may hold labels that have left.
        self._heaps: dict[int, list[int]] = {}
        self._free: list[int] = []
        self._live = 0

    def join(self, label: int, unit: npt.NDArray[np.float32]) -> Change:
        """Put ``label``, which is not live, with the others of the same unit vector."""
        digest = _digest(unit)
        group = self._group_with.get(digest, NONE)
        if group == NONE:
            group = self._new_group(digest)
        self._group_of.put(label, group)
        self._live += 1
        self._size[group] += 1
        before = self._first[group]
        if before == NONE:
            self._first[group] = label
        else:
            heappush(self._heaps.setdefault(group, [before]), label)
            self._first[group] = min(before, label)
        return Change(before, self._first[group])

    def leave(self, label: int) -> Change:
        """Take a live label away from the others of its vector."""
        group = self._group_of.pop(label)
        self._live -= 1
        self._size[group] -= 1
        before = self._first[group]
        if not self._size[group]:
            self._free_group(group)
            return Change(before, NONE)
        if label == before:
            self._first[group] = self._next_in(group)
        elif len(self._heaps[group]) > 2 * self._size[group] + 16:
            self._heaps[group] = sorted(
                {one for one in self._heaps[group] if self._group_of.get(one) == group}
            )
        return Change(before, self._first[group])

    def shares(self, label: int, unit: npt.NDArray[np.float32]) -> bool:
        """Whether ``label`` is live and has this very vector."""
        group = self._group_of.get(label)
        return group != NONE and self._digest[group] == _digest(unit)

    def pairs(self) -> tuple[Labels, Labels]:
        """The live labels, increasing, and the representative of each: int64[n] both."""
        labels = self._group_of.labels()
        firsts = np.array(self._first, np.int64)
        return labels, firsts[self._group_of.values[labels]]

    def __contains__(self, label: int) -> bool:
        return self._group_of.get(label) != NONE

    def __len__(self) -> int:
        """Number of live labels."""
        return self._live

    def _new_group(self, digest: bytes) -> int:
        if self._free:
            group = self._free.pop()
            self._digest[group] = digest
        else:
            group = len(self._digest)
            self._digest.append(digest)
            self._first.append(NONE)
            self._size.append(0)
        self._group_with[digest] = group
        return group

    def _free_group(self, group: int) -> None:
        del self._group_with[self._digest[group]]
        self._first[group] = NONE
        self._heaps.pop(group, None)
        self._free.append(group)

    def _next_in(self, group: int) -> int:
        heap = self._heaps[group]
        while self._group_of.get(heap[0]) != group:
            heappop(heap)
        return heap[0]


def _digest(unit: npt.NDArray[np.float32]) -> bytes:
    return blake2b(unit.data, digest_size=16).digest()
