"""How many records have a token or a value: what makes it rare or common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from clustering.features.bags import Bags

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Frequencies:
    """Document frequencies of the records that a model was fitted to.

    present: int64[n_fields], records that have the field.
    token_keys, token_counts: ascending `field_key` of each token found in at least two records.
    value_keys, value_counts: the same for whole values.
    clash: float64[n_fields], probability that two values drawn with replacement are equal.
    """

    present: Ints
    token_keys: Ints
    token_counts: Ints
    value_keys: Ints
    value_counts: Ints
    clash: npt.NDArray[np.float64]

    @classmethod
    def none(cls, n_fields: int) -> Frequencies:
        """Nothing seen yet: every token and value weighs the same."""
        empty = np.empty(0, np.int64)
        return cls(np.zeros(n_fields, np.int64), empty, empty, empty, empty, np.ones(n_fields))


def _repeated(keys: Ints) -> tuple[Ints, Ints]:
    found, counts = np.unique(keys, return_counts=True)
    return found[counts > 1], counts[counts > 1].astype(np.int64)


def count(bags: Sequence[Bags], n_fields: int) -> Frequencies:
    """Frequencies over records; their order does not matter."""
    values = np.array([b.values for b in bags], np.int64).reshape(len(bags), n_fields)
    present = (values != 0).sum(axis=0).astype(np.int64)
    fields = np.arange(n_fields, dtype=np.int64)
    lengths = np.array([np.diff(b.starts) for b in bags], np.int64).reshape(len(bags), n_fields)
    ids = np.concatenate([b.ids for b in bags]) if bags else np.empty(0, np.int32)
    token_fields = np.repeat(np.tile(fields, len(bags)), lengths.ravel())
    token_keys, token_counts = _repeated((token_fields << 40) | (ids.astype(np.int64) & 0xFFFFFFFF))
    known = values != 0
    all_value_keys = ((fields << 40) | (values & 0xFFFFFFFF))[known]
    value_keys, value_counts = _repeated(all_value_keys)
    squares = present.astype(np.float64)
    np.add.at(squares, value_keys >> 40, value_counts * (value_counts - 1.0))
    clash = np.maximum(squares, 1.0) / np.maximum(present, 1.0) ** 2
    return Frequencies(present, token_keys, token_counts, value_keys, value_counts, clash)


__all__ = ["Frequencies", "count"]
