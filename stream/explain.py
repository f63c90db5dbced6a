"""Why two records are (not) one entity, and how an entity came about: as data, for any reader."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clustering.features.leaves import Leaves
from clustering.grinch import GrinchTree
from clustering.linkage.learned_kernels import (
    BIAS,
    HEADER,
    N_LEVELS,
    PER_FIELD,
    field_similarity,
    level_of,
    on_desk,
    pair_logit,
    rarity_evidence,
)
from clustering.model import Model
from clustering.types import RecordKey
from state.codecs import NONE, EntityRow
from stream.view import View

MOST_AGREEMENT = N_LEVELS - 1
"""Level of equal values; 0 is the level of values that have nothing in common."""

LEARNED = "learned"


@dataclass(frozen=True)
class FieldEvidence:
    """What one field says of two records.

    a, b: the values as received. similarity: in [0, 1], with level its agreement level in
    0..MOST_AGREEMENT; None when either record lacks the field, which is then no evidence.
    weight, rarity: nats for that level, and for how rare the agreed value is. total: their sum.
    """

    field: str
    type: str
    a: Any
    b: Any
    similarity: float | None
    level: int | None
    weight: float
    rarity: float
    total: float


@dataclass(frozen=True)
class PairEvidence:
    """What all fields say of two records.

    linkage: what the score is. For the learned one, score is the logit: bias + the fields' totals +
    limit, added in that order; limit is negative when too few fields agree to decide for a match.
    Otherwise it is the cosine of the records' vectors, and fields' weights are 0.
    probability: that they are one entity, for the learned linkage.
    """

    linkage: str
    fields: tuple[FieldEvidence, ...]
    bias: float
    limit: float
    score: float
    probability: float | None


@dataclass(frozen=True)
class Merge:
    """An inner node of the tree: two groups of records put together, and how alike they are."""

    node: int
    left: int
    right: int
    records: int
    linkage: float
    probability: float | None


@dataclass(frozen=True)
class Why:
    """Two records side by side.

    meet: the node of the tree where they come together; None when they are in no common tree.
    """

    a: RecordKey
    b: RecordKey
    entity_a: str
    entity_b: str
    evidence: PairEvidence
    meet: Merge | None

    @property
    def together(self) -> bool:
        """Whether they are in one entity."""
        return self.entity_a == self.entity_b

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        plain = asdict(self)
        plain["a"], plain["b"] = self.a._asdict(), self.b._asdict()
        return plain | {"together": self.together}


@dataclass(frozen=True)
class How:
    """An entity as the merges that formed it.

    records: key and fields of the record at each leaf, by node. merges: children before parents,
    the last one is the whole entity; none when it has one record.
    """

    entity_id: str
    version: int
    root: int
    records: Mapping[int, tuple[RecordKey, dict[str, Any]]]
    merges: Sequence[Merge]

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        records = [
            {"node": node, "source": key.source, "id": key.id, "fields": fields}
            for node, (key, fields) in self.records.items()
        ]
        return {
            "entity_id": self.entity_id,
            "version": self.version,
            "root": self.root,
            "records": records,
            "merges": [asdict(merge) for merge in self.merges],
        }


def probability(logit: float) -> float:
    """Of a match with that logit."""
    return 0.5 * (1.0 + math.tanh(0.5 * logit))


def pair_evidence(
    model: Model,
    arrays: tuple[npt.NDArray[Any], ...],
    a: int,
    b: int,
    fields: tuple[Mapping[str, Any], Mapping[str, Any]],
    linkage: str,
    cosine: float = math.nan,
) -> PairEvidence:
    """The evidence on two leaves.

    arrays: of the Leaves that hold both. fields: their values as received, of a and of b.
    linkage: learned, cosine or average. cosine: of their vectors, the score of the last two.
    """
    params = model.params()
    x, y = on_desk(arrays, a, b)
    starts, ids, weights, rarities, values, desk, desk_weights = arrays[:7]
    learned = linkage == LEARNED
    found = []
    bias = float(params[BIAS]) if learned else 0.0
    logit = bias
    for i, spec in enumerate(model.specs):
        alike = field_similarity(starts, ids, weights, values, desk, desk_weights, params, x, y, i)
        known = not math.isnan(alike)
        level = int(level_of(alike)) if known else None
        weight = rarity = 0.0
        if learned and level is not None:
            weight = float(params[HEADER + i * PER_FIELD + level])
            rarity = float(rarity_evidence(rarities, params, x, y, i, alike))
        total = weight + rarity
        logit += total
        found.append(
            FieldEvidence(
                spec.name,
                spec.type.value,
                fields[0].get(spec.name),
                fields[1].get(spec.name),
                float(alike) if known else None,
                level,
                weight,
                rarity,
                total,
            )
        )
    if not learned:
        return PairEvidence(linkage, tuple(found), 0.0, 0.0, cosine, None)
    score = float(pair_logit(arrays, params, a, b))
    return PairEvidence(linkage, tuple(found), bias, score - logit, score, probability(score))


def why(view: View, a: RecordKey, b: RecordKey) -> Why:
    """What makes two records one entity, or keeps them apart. Raises NotFoundError."""
    rows = view.record(a), view.record(b)
    fields = view.fields(rows[0]), view.fields(rows[1])
    embedder = view.embedder
    first, second = (embedder.embed(embedder.bags(given)) for given in fields)
    leaves = Leaves(len(embedder.model.specs))
    leaves.put(0, first.weighed)
    leaves.put(1, second.weighed)
    evidence = pair_evidence(
        embedder.model,
        leaves.arrays,
        0,
        1,
        fields,
        view.config.matching.linkage,
        float(np.dot(first.vector, second.vector)),
    )
    learned = evidence.linkage == LEARNED
    above = set(view.path(rows[1].leaf))
    meet = next((node for node in view.path(rows[0].leaf) if node in above), NONE)
    return Why(
        a,
        b,
        view.entity_of(rows[0]).id,
        view.entity_of(rows[1]).id,
        evidence,
        None if meet == NONE or a == b else _merge(view.grove(meet).tree, meet, learned),
    )


def how(view: View, entity: EntityRow) -> How:
    """The merges that formed a live entity."""
    grove = view.grove(entity.root)
    records = {
        leaf: (grove.records[leaf].key, view.fields(grove.records[leaf]))
        for leaf in grove.tree.leaves(entity.root).tolist()
    }
    learned = view.config.matching.linkage == LEARNED
    merges = [_merge(grove.tree, node, learned) for node in _inner_nodes(grove.tree, entity.root)]
    return How(entity.id, entity.version, entity.root, records, merges)


def _merge(tree: GrinchTree, node: int, learned: bool) -> Merge:
    score = float(tree.score[node])
    return Merge(
        node,
        int(tree.left[node]),
        int(tree.right[node]),
        int(tree.size[node]),
        score,
        probability(score) if learned else None,
    )


def _inner_nodes(tree: GrinchTree, root: int) -> list[int]:
    """Inner nodes at and below a node, children before parents."""
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        if tree.left[node] != NONE:
            found.append(node)
            waiting += [int(tree.left[node]), int(tree.right[node])]
    return found[::-1]


__all__ = [
    "LEARNED",
    "MOST_AGREEMENT",
    "FieldEvidence",
    "How",
    "Merge",
    "PairEvidence",
    "Why",
    "how",
    "pair_evidence",
    "probability",
    "why",
]
