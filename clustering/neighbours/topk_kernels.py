"""The k best of a stream of (score, label): higher scores first, ties by smaller label.

The best so far are a binary heap with the worst of them at the root, so an offer that is not good
enough costs one comparison. The outcome does not depend on the order of the offers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, types

Scores = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

SCORES_TYPE = types.float64[::1]
LABELS_TYPE = types.int64[::1]


@njit(types.boolean(types.float64, types.int64, types.float64, types.int64), cache=True)
def worse(score: float, label: int, other_score: float, other_label: int) -> bool:
    """Whether (score, label) comes after the other pair."""
    return score < other_score or (score == other_score and label > other_label)


@njit(types.void(SCORES_TYPE, LABELS_TYPE, types.int64), cache=True)
def sink(scores: Scores, labels: Labels, held: int) -> None:
    """Restore the heap of the first ``held`` pairs after its root was replaced."""
    score, label = scores[0], labels[0]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= held:
            break
        right = child + 1
        if right < held and worse(scores[right], labels[right], scores[child], labels[child]):
            child = right
        if not worse(scores[child], labels[child], score, label):
            break
        scores[place], labels[place] = scores[child], labels[child]
        place = child
    scores[place], labels[place] = score, label


@njit(types.int64(SCORES_TYPE, LABELS_TYPE, types.int64, types.float64, types.int64), cache=True)
def offer(scores: Scores, labels: Labels, held: int, score: float, label: int) -> int:
    """Keep (score, label) if it is among the best len(scores); returns how many are held now."""
    if held == len(scores):
        if held and worse(scores[0], labels[0], score, label):
            scores[0], labels[0] = score, label
            sink(scores, labels, held)
        return held
    place = held
    while place:
        parent = (place - 1) // 2
        if not worse(score, label, scores[parent], labels[parent]):
            break
        scores[place], labels[place] = scores[parent], labels[parent]
        place = parent
    scores[place], labels[place] = score, label
    return held + 1


@njit(types.void(SCORES_TYPE, LABELS_TYPE, types.int64), cache=True)
def best_first(scores: Scores, labels: Labels, held: int) -> None:
    """Sort the ``held`` pairs of the heap, best first."""
    for last in range(held - 1, 0, -1):
        scores[0], scores[last] = scores[last], scores[0]
        labels[0], labels[last] = labels[last], labels[0]
        sink(scores, labels, last)
