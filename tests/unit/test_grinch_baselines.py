"""The trees that Grinch is compared with."""

from __future__ import annotations

import numpy as np
import pytest

from clustering.errors import ConfigError
from clustering.grinch.baselines import hac, mini_batch_hac
from clustering.linkage.average import average


def clusters(parent: np.ndarray, n: int) -> set[frozenset[int]]:
    """Leaf sets of all nodes."""
    below: list[set[int]] = [{i} if i < n else set() for i in range(len(parent))]
    for node in range(len(parent)):
        if parent[node] >= 0:
            assert parent[node] > node
            below[parent[node]] |= below[node]
    return {frozenset(b) for b in below}


def vectors(n: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, 5))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 3, 30])
def test_one_buffer_for_all_is_batch_agglomeration(n):
    rows = vectors(n)
    assert clusters(mini_batch_hac(rows, average(), buffer=max(n, 2)), n) == clusters(hac(rows), n)


@pytest.mark.parametrize("buffer", [2, 3, 8, 50])
def test_a_buffer_gives_one_binary_tree(buffer):
    n = 40
    parent = mini_batch_hac(vectors(n), average(), buffer=buffer)
    assert len(parent) == 2 * n - 1
    assert (parent == -1).sum() == 1
    assert (np.bincount(parent[parent >= 0], minlength=2 * n - 1)[n:] == 2).all()
    assert frozenset(range(n)) in clusters(parent, n)


def test_refuses_a_buffer_without_room():
    with pytest.raises(ConfigError):
        mini_batch_hac(vectors(3), average(), buffer=1)
