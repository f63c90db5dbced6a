"""Dendrogram purity of any forest equals its definition, however the nodes are numbered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.dendrogram_purity import dendrogram_purity, sampled_dendrogram_purity
from tests.property.purity_reference import exact_purity


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Parent and labels of up to 30 nodes numbered in any order, with unused ids among them."""
    n = draw(st.integers(1, 30))
    reach = draw(st.sampled_from([1, 3, 30]))
    grown = [draw(st.integers(max(-1, node - reach), node - 1)) for node in range(n)]
    number = draw(st.permutations(range(n)))
    parent, labels = [-1] * n, [-1] * n
    for node, above in enumerate(grown):
        parent[number[node]] = -1 if above < 0 else number[above]
    for node in range(n):
        if node not in parent:
            labels[node] = draw(st.integers(-1 if parent[node] < 0 else 0, 3))
    return parent, labels


@settings(max_examples=150, deadline=None)
@given(forests())
def test_exact_purity_is_the_definition(forest: tuple[list[int], list[int]]) -> None:
    parent, labels = forest
    expected = exact_purity(parent, labels)
    purity = dendrogram_purity(np.array(parent, np.int32), np.array(labels))
    assert purity == pytest.approx(float(expected), rel=1e-14)
    assert (purity == 1.0) == (expected == 1)


@settings(max_examples=50, deadline=None)
@given(forests(), st.integers(0, 2**32))
def test_the_estimate_is_near_the_exact_purity(
    forest: tuple[list[int], list[int]], seed: int
) -> None:
    parent, labels = forest
    exact = dendrogram_purity(parent, labels)
    estimate, error = sampled_dendrogram_purity(parent, labels, 2000, seed)
    # A purity is in [0, 1], so the mean of 2,000 is this far off once in 10^12 (Hoeffding).
    assert abs(estimate - exact) < 0.09
    assert 0.0 <= error <= 0.5 / np.sqrt(1999)


@settings(max_examples=50, deadline=None)
@given(forests(), st.permutations(range(4)))
def test_names_of_classes_mean_nothing(
    forest: tuple[list[int], list[int]], names: list[int]
) -> None:
    parent, labels = forest
    renamed = [names[label] * 1000 if label >= 0 else -1 for label in labels]
    assert dendrogram_purity(parent, renamed) == pytest.approx(
        dendrogram_purity(parent, labels), rel=1e-14
    )
