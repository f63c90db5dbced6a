"""The model: everything learned from records that turns one into a vector and a pair into a score.

A vector is a function of the record and the model version. Models are immutable; a refit makes the
next version.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from clustering.errors import DataError
from clustering.features.bags import Bags
from clustering.features.leaves import Weighed
from clustering.features.schema import FieldSpec, FieldType
from clustering.features.weighing_kernels import fold, weigh_tokens, weigh_values
from clustering.frequencies import Frequencies
from clustering.linkage.learned_kernels import (
    BIAS,
    EVIDENCE_FIELDS,
    HEADER,
    MAY_STAND_ALONE,
    N_FIELDS,
    N_LEVELS,
    PER_FIELD,
    RARITY_OFFSET,
    RARITY_SLOPE,
    SPACE,
)
from clustering.linkage.logistic import Evidence

FORMAT = 1

# What a model's bytes begin with; a digest of the rest follows.
_MAGIC = b"graftd model\n"
_DIGEST_BYTES = 16


# Weights before any fit, in nats: a type's strongest agreement and disagreement.
_FIRST_BIAS = -6.0
_FIRST = {
    FieldType.NAME: (-3.0, 4.5),
    FieldType.TEXT: (-3.0, 6.0),
    FieldType.DATE: (-2.5, 5.0),
    FieldType.NUMBER: (-1.5, 2.0),
    FieldType.CATEGORY: (-1.5, 2.0),
    FieldType.PHONE: (-1.0, 6.0),
    FieldType.EMAIL: (-1.5, 6.5),
    FieldType.IDENTIFIER: (-1.5, 6.5),
}
# The cosine at which a match is as likely as not, before pairs have been seen.
FIRST_COSINE_THRESHOLD = 0.75
# Where a level lies between a type's strongest disagreement (0) and agreement (1).
_FIRST_SHAPE = np.array([0.0, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 1.0])

# A birthday, a price, a category or a shared phone alone never makes two records one entity.
_STANDS_ALONE = {FieldType.NAME, FieldType.TEXT, FieldType.EMAIL, FieldType.IDENTIFIER}

# Dates are compared by their parts, of which none is rarer than another in a way that matters.
_WITHOUT_IDF = {FieldType.DATE}


def sealed(archive: bytes) -> bytes:
    """A model's arrays with what tells that they are a model, and whole."""
    return _MAGIC + _digest(archive) + archive


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


@dataclass(frozen=True)
class Model:
    """One version of the model.

    version: 0 before any fit. fitted_at: how many operations had been processed at the fit.
    search_weights: float64[n_fields] > 0, each field's share in the search vector.
    dimension: length of the search vector.
    evidence_fields: how many fields must agree unless one that may stand alone does.
    cosine_threshold: cosine of two search vectors at which a match is as likely as not.
    """

    specs: tuple[FieldSpec, ...]
    version: int
    fitted_at: int
    frequencies: Frequencies
    evidence: Evidence
    search_weights: npt.NDArray[np.float64]
    dimension: int
    evidence_fields: int
    cosine_threshold: float = FIRST_COSINE_THRESHOLD

    @cached_property
    def spaces(self) -> npt.NDArray[np.int32]:
        """int32[n_fields]: fields with an equal number may hold each other's values (all names)."""
        names = [spec.type is FieldType.NAME for spec in self.specs]
        return np.array([0 if n else i + 1 for i, n in enumerate(names)], np.int32)

    def params(self) -> npt.NDArray[np.float64]:
        """What the learned linkage's kernels read; layout in `learned_kernels`."""
        n = len(self.specs)
        out = np.zeros(HEADER + n * PER_FIELD)
        out[BIAS], out[N_FIELDS] = self.evidence.bias, n
        out[EVIDENCE_FIELDS] = min(self.evidence_fields, n)
        rows = out[HEADER:].reshape(n, PER_FIELD)
        counts = np.array([spec.weight for spec in self.specs])
        rows[:, :N_LEVELS] = self.evidence.weights * counts[:, None]
        rows[:, RARITY_SLOPE] = self.evidence.slopes * counts
        rows[:, RARITY_OFFSET] = np.log(self.frequencies.clash)
        rows[:, SPACE] = np.where(self.spaces == 0, 0, -1)
        rows[:, MAY_STAND_ALONE] = [spec.type in _STANDS_ALONE for spec in self.specs]
        return out

    @cached_property
    def _uses_idf(self) -> npt.NDArray[np.bool_]:
        return np.array([spec.type not in _WITHOUT_IDF for spec in self.specs])

    def weigh(self, bags: Bags) -> Weighed:
        """A record's bags with idf weights and rarities."""
        weights = np.empty(len(bags.ids), np.float32)
        rarity = np.empty(len(self.specs), np.float32)
        f = self.frequencies
        weigh_tokens(
            bags.starts,
            bags.ids,
            bags.weights,
            f.present,
            self._uses_idf,
            f.token_keys,
            f.token_counts,
            weights,
        )
        weigh_values(bags.values, f.present, f.value_keys, f.value_counts, rarity)
        return Weighed(bags.starts, bags.ids, weights, rarity, bags.values)

    def vector(self, weighed: Weighed) -> npt.NDArray[np.float32]:
        """The search vector: float32[dimension], unit length; zero if the record has no token."""
        out = np.empty(self.dimension, np.float32)
        fold(weighed.starts, weighed.ids, weighed.weights, self.spaces, self.search_weights, out)
        return out

    def to_bytes(self) -> bytes:
        """The model as bytes that `from_bytes` reads; equal models give equal bytes."""
        head = {
            "format": FORMAT,
            "specs": [[s.name, s.type.value, s.weight] for s in self.specs],
            "version": self.version,
            "fitted_at": self.fitted_at,
            "dimension": self.dimension,
            "evidence_fields": self.evidence_fields,
            "bias": self.evidence.bias,
            "cosine_threshold": self.cosine_threshold,
        }
        file = io.BytesIO()
        np.savez(
            file,
            head=np.frombuffer(json.dumps(head).encode(), np.uint8),
            **{field.name: getattr(self.frequencies, field.name) for field in fields(Frequencies)},
            weights=self.evidence.weights,
            slopes=self.evidence.slopes,
            search_weights=self.search_weights,
        )
        return sealed(file.getvalue())

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """Raises DataError when the bytes are damaged or not a model of a format known here."""
        start = len(_MAGIC) + _DIGEST_BYTES
        if not data.startswith(_MAGIC) or data[len(_MAGIC) : start] != _digest(data[start:]):
            raise DataError("this is not a graftd model, or it is damaged; train or copy it again")
        try:
            with np.load(io.BytesIO(data[start:]), allow_pickle=False) as arrays:
                head = json.loads(arrays["head"].tobytes())
                if head["format"] != FORMAT:
                    raise DataError(
                        f"the model has format {head['format']}, but this graftd reads {FORMAT}; "
                        "use the graftd that wrote it, or train it again"
                    )
                return cls(
                    tuple(FieldSpec(n, FieldType(t), w) for n, t, w in head["specs"]),
                    head["version"],
                    head["fitted_at"],
                    Frequencies(
                        **{field.name: arrays[field.name] for field in fields(Frequencies)}
                    ),
                    Evidence(head["bias"], arrays["weights"], arrays["slopes"]),
                    arrays["search_weights"],
                    head["dimension"],
                    head["evidence_fields"],
                    head["cosine_threshold"],
                )
        except (ValueError, KeyError, OSError, EOFError) as error:
            raise DataError(f"this is not a graftd model, or it is damaged: {error}") from error


def first_evidence(specs: Sequence[FieldSpec]) -> Evidence:
    """Sensible weights by field type, for before the first fit."""
    weights = np.array(
        [_FIRST[s.type][0] + (_FIRST[s.type][1] - _FIRST[s.type][0]) * _FIRST_SHAPE for s in specs]
    )
    # A schema of few fields can show less agreement, so less of it is asked for.
    bias = max(_FIRST_BIAS, -0.75 * float(weights[:, -1].sum()))
    return Evidence(bias, weights.reshape(len(specs), N_LEVELS), np.zeros(len(specs)))


def search_weights(specs: Sequence[FieldSpec], evidence: Evidence) -> npt.NDArray[np.float64]:
    """Each field's share in the search vector: the span of its evidence, at least a little."""
    span = evidence.weights[:, -1] - evidence.weights[:, 0]
    counts = np.array([spec.weight for spec in specs])
    share = np.maximum(span, 0.5) * counts
    return np.asarray(share / share.sum())


def first_model(specs: Sequence[FieldSpec], dimension: int, evidence_fields: int) -> Model:
    """Version 0: no data seen.

    Raises DataError when there is no field to compare.
    """
    if not specs:
        raise DataError("no field to compare: name at least one under `fields` in the config")
    evidence = first_evidence(specs)
    weights = search_weights(specs, evidence)
    none = Frequencies.none(len(specs))
    return Model(tuple(specs), 0, 0, none, evidence, weights, dimension, evidence_fields)


def with_evidence(model: Model, evidence: Evidence) -> Model:
    """The same model with other weights, and the search vector's shares that follow from them."""
    return replace(model, evidence=evidence, search_weights=search_weights(model.specs, evidence))


__all__ = ["Model", "first_model", "with_evidence"]
