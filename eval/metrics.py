"""How far a predicted partition agrees with the true one.

Every function takes ``truth`` and ``predicted``, integers[n] with n >= 1: the cluster of each item
in either partition; the numbers themselves mean nothing. n_ij is the number of items in true
cluster i and predicted cluster j, t_i and p_j are the clusters' sizes. Sums of pairs are exact
integers. All raise DataError for empty arrays or arrays of different lengths.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clustering.errors import DataError


class Scores(NamedTuple):
    """Precision, recall and their harmonic mean, each in [0, 1]."""

    precision: float
    recall: float
    f1: float


class _Table(NamedTuple):
    """The cells n_ij > 0: ``both`` = n_ij, ``in_truth`` = t_i, ``in_predicted`` = p_j, and sizes.

    both, in_truth, in_predicted: int64[cells]; true_sizes: int64[true clusters];
    predicted_sizes: int64[predicted clusters].
    """

    both: npt.NDArray[np.int64]
    in_truth: npt.NDArray[np.int64]
    in_predicted: npt.NDArray[np.int64]
    true_sizes: npt.NDArray[np.int64]
    predicted_sizes: npt.NDArray[np.int64]


def pairwise(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> Scores:
    """Precision and recall over pairs of items in one cluster, and their F1.

    With S(x) = sum of x (x - 1) / 2: precision = S(n_ij) / S(p_j), recall = S(n_ij) / S(t_i)
    (Menestrina, Whang & Garcia-Molina, "Evaluating Entity Resolution Results", VLDB 2010).
    No predicted pair: precision 1, nothing was claimed wrongly. No true pair: recall 1, nothing
    was missed.
    """
    table = _tabulate(truth, predicted)
    found = _pairs(table.both)
    return _scores(found, _pairs(table.predicted_sizes), found, _pairs(table.true_sizes))


def b_cubed(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> Scores:
    """B-cubed: for each item the overlap of its two clusters, as a share of either; then the mean.

    precision = sum of n_ij^2 / p_j over cells, divided by n; recall likewise with t_i; F1 is that
    of the two means (Bagga & Baldwin, "Entity-Based Cross-Document Coreferencing Using the Vector
    Space Model", COLING-ACL 1998).
    """
    table = _tabulate(truth, predicted)
    n = float(table.true_sizes.sum())
    both = table.both.astype(np.float64)
    return _scores(
        float((both * (both / table.in_predicted)).sum()),
        n,
        float((both * (both / table.in_truth)).sum()),
        n,
    )


def cluster_exact(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> Scores:
    """Share of the predicted (precision) and of the true (recall) clusters that are in both.

    A cluster is in both when it has the very same items, singletons included (Menestrina, Whang &
    Garcia-Molina, VLDB 2010).
    """
    table = _tabulate(truth, predicted)
    same = int(
        np.count_nonzero((table.both == table.in_truth) & (table.both == table.in_predicted))
    )
    return _scores(same, table.predicted_sizes.size, same, table.true_sizes.size)


def adjusted_rand(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """The Rand index corrected for chance: 1 for equal partitions, 0 expected at random; <= 1.

    With S as in `pairwise`, N = n (n - 1) / 2 and E = S(t_i) S(p_j) / N:
    (S(n_ij) - E) / ((S(t_i) + S(p_j)) / 2 - E) (Hubert & Arabie, "Comparing Partitions", Journal
    of Classification 1985, equation 5). 0 / 0, both partitions trivial and equal, is 1.
    """
    table = _tabulate(truth, predicted)
    found = _pairs(table.both)
    true, claimed = _pairs(table.true_sizes), _pairs(table.predicted_sizes)
    n = int(table.true_sizes.sum())
    possible = n * (n - 1) // 2
    above_chance = 2 * (found * possible - true * claimed)
    at_most = (true + claimed) * possible - 2 * true * claimed
    return above_chance / at_most if at_most else 1.0


def _tabulate(truth: npt.ArrayLike, predicted: npt.ArrayLike) -> _Table:
    true_of, true_sizes = _clusters(truth, "truth")
    predicted_of, predicted_sizes = _clusters(predicted, "predicted")
    if true_of.size != predicted_of.size:
        raise DataError(
            f"truth has {true_of.size} items but predicted has {predicted_of.size}; "
            "both must list the same items in the same order"
        )
    cell, both = np.unique(true_of * predicted_sizes.size + predicted_of, return_counts=True)
    i, j = np.divmod(cell, predicted_sizes.size)
    return _Table(
        both.astype(np.int64), true_sizes[i], predicted_sizes[j], true_sizes, predicted_sizes
    )


def _clusters(
    labels: npt.ArrayLike, name: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Each item's cluster as 0 .. k - 1, and the k sizes."""
    array: npt.NDArray[Any] = np.asarray(labels)
    if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise DataError(
            f"{name} must be one row of at least one integer, "
            f"not {array.dtype} of shape {array.shape}"
        )
    _, cluster, sizes = np.unique(array, return_inverse=True, return_counts=True)
    return cluster.astype(np.int64), sizes.astype(np.int64)


def _pairs(sizes: npt.NDArray[np.int64]) -> int:
    return int((sizes * (sizes - 1) // 2).sum())


def _scores(right: float, claimed: float, found: float, existing: float) -> Scores:
    """Precision right / claimed, recall found / existing; 0 / 0 is 1."""
    precision = right / claimed if claimed else 1.0
    recall = found / existing if existing else 1.0
    total = precision + recall
    return Scores(precision, recall, 2 * precision * recall / total if total else 0.0)
