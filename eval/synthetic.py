"""Made-up data with known clusters, for benchmarks and ablations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


def sparse_clusters(
    clusters: int = 100,
    points: int = 25,
    width: int = 10_000,
    active: int = 200,
    keep: float = 0.1,
    seed: int = 0,
) -> tuple[Rows, Labels]:
    """Clusters of sparse binary points, in the manner of Monath et al., KDD 2019.

    A cluster is a random set of ``active`` of the ``width`` features; each of its points has each
    of them with probability ``keep``. Two points of a cluster share about ``active * keep**2``
    features, so that early arrivals often share none and hang in wrong places, from which only
    grafts can bring them back: the sums of a few points do tell the clusters apart.

    Returns unit rows float32[clusters * points, width] and labels int64, cluster by cluster.
    """
    rng = np.random.default_rng(seed)
    rows = np.zeros((clusters * points, width), np.float32)
    for cluster in range(clusters):
        features = rng.choice(width, active, replace=False)
        block = rng.random((points, active)) < keep
        block[np.arange(points), rng.integers(active, size=points)] = True
        rows[cluster * points : (cluster + 1) * points, features] = block
    labels = np.repeat(np.arange(clusters, dtype=np.int64), points)
    return _unit(rows), labels


def noisy_copies(
    n: int, width: int = 64, mean_size: float = 5.0, noise: float = 1.0, seed: int = 0
) -> tuple[Rows, Labels]:
    """Many small clusters, as records of entities have: noisy copies of random directions.

    Cluster sizes are geometric with mean ``mean_size``; ``noise`` is the noise's standard
    deviation when a centre's is 1. Returns unit rows float32[n, width] and labels int64[n], in
    random order.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.geometric(1.0 / mean_size, size=n)
    labels = rng.permutation(np.repeat(np.arange(n, dtype=np.int64), sizes)[:n])
    centres = rng.normal(size=(int(labels.max()) + 1, width))
    rows = centres[labels] + noise * rng.normal(size=(n, width))
    return _unit(rows.astype(np.float32)), labels


def arrival_orders(labels: Labels, seed: int = 0) -> dict[str, Labels]:
    """The paper's three orders of arrival, each a permutation of the points.

    random; round robin: one point of every class in turn; sorted: class by class.
    """
    by_class = np.argsort(labels, kind="stable")
    ordered = labels[by_class]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    turn = np.empty(len(labels), np.int64)
    turn[by_class] = np.arange(len(labels)) - np.repeat(
        starts, np.diff(np.append(starts, len(labels)))
    )
    return {
        "random": np.random.default_rng(seed).permutation(len(labels)),
        "round robin": np.lexsort((labels, turn)),
        "sorted": by_class,
    }


def _unit(rows: Rows) -> Rows:
    unit: Rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
