"""Dendrogram purity against cases worked out by hand as exact fractions."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.dendrogram_purity import dendrogram_purity
from tests.property.purity_reference import exact_purity

CASES = json.loads(Path(__file__).with_name("dendrogram_purity.json").read_text(encoding="utf-8"))


def arrays(case: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Parent and labels of a case: leaves keep their numbers, inner nodes come after them."""
    classes = sorted(set(case["labels"]))
    labels = [classes.index(label) for label in case["labels"]]
    parent = [-1] * len(labels)

    def add(tree: Any) -> int:
        if isinstance(tree, int):
            return tree
        children = [add(child) for child in tree]
        parent.append(-1)
        labels.append(-1)
        for child in children:
            parent[child] = len(parent) - 1
        return len(parent) - 1

    add(case["tree"])
    return parent, labels


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_purity_is_that_of_the_golden_case(case: dict[str, Any]) -> None:
    parent, labels = arrays(case)
    expected = Fraction(case["purity_fraction"])
    assert exact_purity(parent, labels) == expected
    assert dendrogram_purity(np.array(parent, np.int32), np.array(labels)) == pytest.approx(
        float(expected), rel=1e-15
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_forest_counts_as_joined_at_one_root(case: dict[str, Any]) -> None:
    parent, labels = arrays(case)
    tops = [-1 if above == len(parent) - 1 else above for above in parent]
    assert dendrogram_purity(tops[:-1], labels[:-1]) == dendrogram_purity(parent, labels)
