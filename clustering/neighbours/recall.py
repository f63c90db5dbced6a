"""How much of the truth an index finds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from clustering.neighbours import Neighbours
from clustering.neighbours.exact import ExactNeighbours


def recall_against_exact(
    index: Neighbours, exact: ExactNeighbours, queries: npt.NDArray[np.float32], k: int
) -> float:
    """Mean share of the ``k`` most alike vectors that ``index`` finds, in [0, 1].

    exact: holds the vectors of ``index`` under the same labels, each distinct vector once.
    queries: float32[n, d]. Returns 1.0 when there is nothing to find.
    """
    found = wanted = 0
    for query in queries:
        truth, _ = exact.search(query, k)
        labels, _ = index.search(query, k)
        found += len(np.intersect1d(truth, labels))
        wanted += len(truth)
    return found / wanted if wanted else 1.0
