"""Dendrogram purity by its definition: every pair of leaves, exact fractions, no cleverness."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations


def exact_purity(parent: Sequence[int], labels: Sequence[int]) -> Fraction:
    """Dendrogram purity of a small forest; -1 is both "no parent" and the root above all roots."""
    leaves = [node for node, label in enumerate(labels) if label >= 0]
    lines = {leaf: _line(parent, leaf) for leaf in leaves}
    purities = []
    for a, b in combinations(leaves, 2):
        if labels[a] == labels[b]:
            meeting = next(node for node in lines[a] if node in lines[b])
            below = [labels[leaf] for leaf in leaves if meeting in lines[leaf]]
            purities.append(Fraction(below.count(labels[a]), len(below)))
    return sum(purities, Fraction()) / len(purities) if purities else Fraction(1)


def _line(parent: Sequence[int], node: int) -> list[int]:
    """The node and all nodes above it, lowest first."""
    line = [node]
    while line[-1] != -1:
        line.append(parent[line[-1]])
    return line
