"""Candidates by shared identifiers and rare tokens, which vectors may miss."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from clustering.errors import ConfigError, DataError
from clustering.neighbours import Labels, token_kernels
from clustering.neighbours.labels import check_label
from clustering.neighbours.token_kernels import NONE, Postings

T = TypeVar("T", bound=np.generic)

Tokens = npt.NDArray[np.uint64]


class TokenIndex:
    """An inverted index from 64-bit tokens to labels (leaf ids, as in ``Neighbours``).

    A token with more than ``max_postings`` labels says little and would chain strangers together,
    so it gives no candidates until it has fewer again. A search reads at most ``max_work`` labels,
    rarest tokens first, and leaves out the tokens that would exceed it.

    What it answers depends on the live (label, tokens) pairs only: after a restart, add them again
    in any order.

    Memory: 12 bytes per label, 20 to 28 per token of a label and 28 to 36 per distinct token; up to
    twice that while the doubling arrays are half full.
    """

    def __init__(self, max_postings: int = 100, max_work: int = 2_000) -> None:
        if not 1 <= max_postings <= max_work:
            raise ConfigError(
                f"max_postings is {max_postings} and max_work is {max_work}; the first must be at "
                "least 1 and at most the second"
            )
        self.max_postings = max_postings
        self.max_work = max_work
        self._live = 0
        self._postings = Postings(
            first_of=np.full(64, NONE, np.int32),
            cells=np.empty((256, 3), np.int32),
            keys=np.empty(128, np.uint64),
            lists=np.zeros((128, 3), np.int32),
            table=np.full(256, NONE, np.int32),
            entries=np.empty((512, 2), np.int32),
            free_blocks=np.full(32, NONE, np.int32),
            counts=np.array([0, NONE, 0, NONE, 0], np.int32),
            sums=np.zeros(64),
        )

    def add(self, label: int, tokens: Tokens) -> None:
        """Put ``label`` under each of ``tokens``, uint64[m]; a live label changes its tokens.

        Repeated tokens count once. Raises DataError when the label is out of range or the tokens
        are not uint64[m].
        """
        check_label(label)
        given = _checked(tokens)
        self.remove(label)
        self._reserve(label, given)
        token_kernels.add_label(self._postings, label, given)
        self._live += 1

    def remove(self, label: int) -> None:
        """Forget ``label``; one that is not live is left alone."""
        if label in self:
            token_kernels.remove_label(self._postings, label)
            self._live -= 1

    def candidates(self, tokens: Tokens, limit: int) -> Labels:
        """At most ``limit`` live labels that share some of ``tokens``, int64[n], best first.

        They are ranked by the sum over the shared tokens of 1 / (labels that have the token), so
        one token of few outweighs several of many; ties by smaller label.
        """
        given = _checked(tokens)
        size = max(0, min(limit, self.max_work))
        best, scores = np.empty(size, np.int64), np.empty(size, np.float64)
        found = token_kernels.find_candidates(
            self._postings, given, self.max_postings, self.max_work, scores, best
        )
        return best[:found]

    def __contains__(self, label: int) -> bool:
        first_of = self._postings.first_of
        return 0 <= label < len(first_of) and first_of[label] != NONE

    def __len__(self) -> int:
        """Number of live labels."""
        return self._live

    def _reserve(self, label: int, tokens: Tokens) -> None:
        """Make room for a label with these tokens, doubling what is too small."""
        old = self._postings
        if label >= len(old.first_of):
            capacity = max(label + 1, 2 * len(old.first_of))
            first_of = np.full(capacity, NONE, np.int32)
            first_of[: len(old.first_of)] = old.first_of
            old = old._replace(first_of=first_of, sums=np.zeros(capacity))
        cells = old.counts.item(token_kernels.HIGH_CELL) + len(tokens)
        if cells > len(old.cells):
            old = old._replace(cells=_grown(old.cells, cells))
        entries = old.counts.item(token_kernels.HIGH_ENTRY)
        entries += token_kernels.entries_wanted(old, tokens)
        if entries > len(old.entries):
            old = old._replace(entries=_grown(old.entries, entries))
        n_keys = old.counts.item(token_kernels.HIGH_TOKEN) + len(tokens)
        if n_keys > len(old.keys):
            keys, lists = _grown(old.keys, n_keys), _grown(old.lists, n_keys)
            table = np.full(2 << (len(keys) - 1).bit_length(), NONE, np.int32)
            token_kernels.fill_table(table, keys, lists)
            old = old._replace(keys=keys, lists=lists, table=table)
        self._postings = old


def _checked(tokens: Tokens) -> Tokens:
    if tokens.dtype != np.uint64 or tokens.ndim != 1:
        raise DataError(f"tokens must be uint64[m], not {tokens.dtype}{list(tokens.shape)}")
    return np.ascontiguousarray(tokens)


def _grown(array: npt.NDArray[T], length: int) -> npt.NDArray[T]:
    grown = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
