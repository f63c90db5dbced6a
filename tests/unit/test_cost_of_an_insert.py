"""What an insert costs, counted: it must not grow with what it has nothing to do with."""

from __future__ import annotations

import json

import numpy as np

from clustering.features.leaves import Weighed
from clustering.model import first_model
from stream.config import Config, to_field_specs
from stream.embedding import Embedded
from stream.resolver import Resolver

# So many that no two random directions are alike.
DIMENSION = 256


def config() -> Config:
    settings = {
        "fields": {"vector": "text"},
        "matching": {"linkage": "average", "threshold": 0.9},
        "neighbours": {"dimension": DIMENSION},
    }
    return Config.model_validate_json(json.dumps(settings))


def embedded(vector: np.ndarray, number: int) -> Embedded:
    weighed = Weighed(
        np.array([0, 1], np.int32),
        np.ones(1, np.int32),
        np.ones(1, np.float32),
        np.zeros(1, np.float32),
        np.ones(1, np.int64),
    )
    unit = (vector / np.linalg.norm(vector)).astype(np.float32)
    return Embedded(weighed, unit, np.empty(0, np.uint64), number)


def work_of_a_pair(singletons: int) -> tuple[list[int], int, int]:
    """Steps, touched nodes and entity changes of two alike records among many strangers.

    The strangers lie in the half of the space where the two do not.
    """
    settings = config()
    resolver = Resolver(first_model(to_field_specs(settings), DIMENSION, 1), settings)
    draw = np.random.default_rng(0)
    for number in range(singletons):
        vector = np.append(np.zeros(DIMENSION // 2), draw.normal(size=DIMENSION // 2))
        resolver.add(number, "crm", embedded(vector, number))
        resolver.settle()
    assert len(resolver.tree.tops()) == singletons
    resolver.take_dirty_nodes()
    before = list(resolver.tree.work.values())
    changes = 0
    for number in (singletons, singletons + 1):
        near = np.zeros(DIMENSION)
        near[:2] = 1.0, 0.01 * (number - singletons)
        resolver.add(number, "crm", embedded(near, number))
        changes += len(resolver.settle().changes)
    after = list(resolver.tree.work.values())
    steps = [b - a for a, b in zip(before, after, strict=True)]
    return steps, len(resolver.take_dirty_nodes()), changes


def test_an_insert_costs_the_same_among_few_and_many_singletons():
    assert work_of_a_pair(60) == work_of_a_pair(1_200)
