"""From a record's fields to everything the tree and the neighbour search need of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import xxhash

from clustering.features.bags import Bags, encode
from clustering.features.leaves import Weighed
from clustering.features.schema import ComparisonValue, FieldType
from clustering.features.weighing_kernels import lookup_tokens
from clustering.model import Model

# Tokens of a record that are looked up exactly: those that say most, by weight.
RARE_TOKENS = 8
# Types whose whole value is looked up exactly.
EXACT_TYPES = {FieldType.NAME, FieldType.PHONE, FieldType.EMAIL, FieldType.IDENTIFIER}


class Normalises(Protocol):
    """What turns raw fields into comparison values, in the order of the compared fields."""

    def record(self, fields: Mapping[str, Any]) -> Sequence[ComparisonValue]: ...


class Embedded(NamedTuple):
    """One record as a model sees it.

    vector: float32[dimension], unit length, or zero when nothing in it can be compared.
    tokens: uint64[m], what the exact index knows it by.
    group: non-negative int64, equal for records whose compared content is equal.
    """

    weighed: Weighed
    vector: npt.NDArray[np.float32]
    tokens: npt.NDArray[np.uint64]
    group: int

    @property
    def comparable(self) -> bool:
        """Whether any field can be compared."""
        return len(self.weighed.ids) > 0


class Embedder:
    """Embeds records by one version of the model: the same record always gives the same."""

    def __init__(self, model: Model, normaliser: Normalises) -> None:
        self.model = model
        self._normaliser = normaliser
        self._exact = np.array([spec.type in EXACT_TYPES for spec in model.specs])
        self._spaces = model.spaces.astype(np.uint64) << np.uint64(40)

    def with_model(self, model: Model) -> Embedder:
        """The same by another model of the same fields."""
        return Embedder(model, self._normaliser)

    def bags(self, fields: Mapping[str, Any]) -> Bags:
        """A record's bags, whatever the model."""
        return encode(self.model.specs, self._normaliser.record(fields))

    def embed(self, bags: Bags) -> Embedded:
        """A record's bags as the model sees them."""
        weighed = self.model.weigh(bags)
        return Embedded(weighed, self.model.vector(weighed), self._tokens(weighed), _group(bags))

    def _tokens(self, weighed: Weighed) -> npt.NDArray[np.uint64]:
        return lookup_tokens(
            weighed.starts,
            weighed.ids,
            weighed.weights,
            weighed.values,
            self.model.search_weights,
            self._spaces,
            self._exact,
            RARE_TOKENS,
        )


def _group(bags: Bags) -> int:
    digest = xxhash.xxh3_64()
    digest.update(bags.values.tobytes())
    digest.update(bags.ids.tobytes())
    digest.update(bags.weights.tobytes())
    return digest.intdigest() >> 1


__all__ = ["Embedded", "Embedder"]
