"""What a record would join, were it to come in now: tried out in memory, stored nowhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from clustering.errors import DataError, UsageError
from clustering.grinch import NONE
from clustering.types import RecordKey
from stream.explain import LEARNED, PairEvidence, pair_evidence, probability
from stream.restoring import entity_id
from stream.view import View


@dataclass(frozen=True)
class Candidate:
    """A record like the one searched for."""

    key: RecordKey
    entity_id: str
    evidence: PairEvidence


@dataclass(frozen=True)
class Search:
    """What a record would join.

    joins: the entities whose records it would be together with; several would become one; none
    when it would be an entity of its own. linkage: with the records it is put beside first, None
    on its own; probability: the same as one, for the learned linkage. candidates: best first.
    """

    joins: tuple[str, ...]
    linkage: float | None
    probability: float | None
    candidates: tuple[Candidate, ...]

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        candidates = [
            {**c.key._asdict(), "entity_id": c.entity_id, **asdict(c.evidence)}
            for c in self.candidates
        ]
        return {
            "joins": list(self.joins),
            "linkage": self.linkage,
            "probability": self.probability,
            "candidates": candidates,
        }


def search(view: View, fields: Mapping[str, Any], source: str, limit: int) -> Search:
    """What a record with these fields from a source would join.

    limit: most candidates told of. Raises UsageError for a field that no record is compared by,
    DataError when nothing in the record can be compared.
    """
    known = list(view.config.fields)
    for name in fields:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"no field {name} ({', '.join(known)}){hint}")
    restored = view.restored()
    resolver, embedder = restored.resolver, restored.embedder
    embedded = embedder.embed(embedder.bags(fields))
    if not embedded.comparable:
        raise DataError("nothing in this record can be compared: all its fields read as missing")
    near = resolver.candidates(embedded).tolist()
    key_at = {held.leaf: key for key, held in restored.held.items()}
    entity_at = {
        leaf: entity_id(resolver.entities.of(restored.held[key_at[leaf]].arrival).number)
        for leaf in near
    }
    leaf = resolver.add(1 + max(restored.key_of, default=0), source, embedded)
    model, kind = embedder.model, view.config.matching.linkage
    candidates = []
    for other in near:
        key = key_at[other]
        row = view.record(key)
        stored = view.fields(row)
        cosine = float(np.dot(embedded.vector, embedder.embed(embedder.bags(stored)).vector))
        evidence = pair_evidence(
            model, resolver.leaves.arrays, leaf, other, (fields, stored), kind, cosine
        )
        candidates.append(Candidate(key, entity_at[other], evidence))
    candidates.sort(key=lambda c: (-c.evidence.score, c.key))
    tree = resolver.tree
    together = tree.leaves(tree.entity_root(leaf))
    arrivals = resolver.arrivals(together[together != leaf]).tolist()
    joins = sorted({resolver.entities.of(arrival).number for arrival in arrivals})
    beside = int(tree.parent[leaf])
    score = float(tree.score[beside]) if joins and beside != NONE else math.nan
    return Search(
        tuple(map(entity_id, joins)),
        None if math.isnan(score) else score,
        probability(score) if kind == LEARNED and not math.isnan(score) else None,
        tuple(candidates[:limit]),
    )


__all__ = ["Candidate", "Search", "search"]
