"""Trains a model from labelled clusters, and says how good it is on clusters it has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Event

import numpy as np
import xxhash

from clustering.errors import DataError
from clustering.features.bags import Bags
from clustering.fitting import fit_model, train_model
from clustering.model import Model, first_model
from clustering.types import RecordKey
from eval.report import Report, evaluate
from stream.config import Config, to_field_specs
from stream.embedding import Embedder
from stream.engine import scatter
from stream.normalise import Normaliser
from stream.records import Delete, Upsert
from stream.resolver import Resolver
from stream.sources import Source

# One cluster in so many is held out to measure on.
HELD_OUT = 5


@dataclass(frozen=True)
class Training:
    """A trained model, and what it was trained on.

    labelled: records with a known cluster. held_out: how well a model trained on four fifths of
    the clusters resolves the records of the others; None when there are too few of either.
    """

    model: Model
    records: int
    labelled: int
    clusters: int
    held_out: Report | None


def read_records(source: Source) -> dict[RecordKey, Upsert]:
    """The last version of every record in an input."""
    records: dict[RecordKey, Upsert] = {}
    for operation in source.read(None, Event()):
        if isinstance(operation, Upsert):
            records[operation.key] = operation
        elif isinstance(operation, Delete):
            records.pop(operation.key, None)
    return records


def train(
    config: Config, records: Mapping[RecordKey, Upsert], truth: Mapping[RecordKey, str]
) -> Training:
    """Fit the weights of all fields to records whose true cluster is known.

    config: with the fields that are compared. The trained model is fitted to all labelled records;
    what is measured is one fitted without the clusters that it is measured on. Raises DataError
    when no cluster has two of the records.
    """
    specs = to_field_specs(config)
    dimension, evidence_fields = config.neighbours.dimension, config.matching.evidence_fields
    normaliser = Normaliser(specs, config.fields, config.normalise)
    embedder = Embedder(first_model(specs, dimension, evidence_fields), normaliser)
    order = sorted(records)
    bags = {key: embedder.bags(records[key].fields) for key in order}
    labelled = [key for key in order if key in truth]
    if not _has_pairs(labelled, truth):
        raise DataError(
            "no cluster of the truth has two of these records, so there is nothing to learn from; "
            "check that its ids (and sources) are those of the records"
        )
    seed = config.model.seed
    fitted = fit_model(specs, list(bags.values()), dimension, evidence_fields, seed)

    def trained(keys: Sequence[RecordKey]) -> Model:
        numbers = {name: i for i, name in enumerate(sorted({truth[key] for key in keys}))}
        labels = np.array([numbers[truth[key]] for key in keys], np.int64)
        return train_model(fitted, [bags[key] for key in keys], labels, seed)

    learning = [key for key in labelled if not _held_out(truth[key])]
    testing = [key for key in labelled if _held_out(truth[key])]
    report = None
    if _has_pairs(learning, truth) and _has_pairs(testing, truth):
        found = _resolve(config, embedder.with_model(trained(learning)), bags, testing)
        report = evaluate(found, {key: truth[key] for key in testing})
    clusters = len({truth[key] for key in labelled})
    return Training(trained(labelled), len(records), len(labelled), clusters, report)


def _held_out(cluster: str) -> bool:
    return xxhash.xxh3_64_intdigest(cluster.encode()) % HELD_OUT == 0


def _has_pairs(keys: Sequence[RecordKey], truth: Mapping[RecordKey, str]) -> bool:
    return len({truth[key] for key in keys}) < len(keys)


def _resolve(
    config: Config,
    embedder: Embedder,
    bags: Mapping[RecordKey, Bags],
    keys: Sequence[RecordKey],
) -> dict[RecordKey, str]:
    """The entity of each of some records by a model, resolved in memory."""
    resolver = Resolver(embedder.model, config)
    order = sorted(keys, key=scatter)
    for arrival, key in enumerate(order):
        resolver.add(arrival, key.source, embedder.embed(bags[key]))
    resolver.settle()
    return {key: str(resolver.entities.of(i).number) for i, key in enumerate(order)}


__all__ = ["HELD_OUT", "Training", "read_records", "train"]
