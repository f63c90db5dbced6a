"""Which cluster each record is in, checked once, and two such tables side by side.

The rule for records that only one table knows: the truth decides what is compared. A record with a
truth but no prediction counts as a predicted cluster of its own, so leaving hard records out never
helps; a record with a prediction but no truth cannot be scored and is left out. Both are counted,
and the counts are part of every report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt

from clustering.errors import DataError
from clustering.types import RecordKey

NAMED_AT_MOST = 5


def membership(rows: Iterable[tuple[RecordKey, str]], name: str) -> dict[RecordKey, str]:
    """The table of ``rows`` (record key, cluster); ``name`` says in messages which one it is.

    Raises DataError when a record is listed twice, even in the same cluster, or has no cluster.
    """
    listed = list(rows)
    table = dict(listed)
    if len(table) < len(listed):
        times = Counter(key for key, _ in listed)
        twice = [key for key, n in times.items() if n > 1]
        raise DataError(f"{name} lists {_some(twice)} more than once; keep one line for a record")
    bare = [key for key, cluster in table.items() if not cluster]
    if bare:
        raise DataError(f"{name} gives no cluster for {_some(bare)}")
    return table


@dataclass(frozen=True)
class Aligned:
    """Two tables over the records of the truth.

    truth, predicted: int64[n], cluster numbers (only equality within an array has a meaning).
    unpredicted: records of the truth without a prediction, each scored as a cluster of its own.
    unknown: records with a prediction but no truth, not scored.
    """

    truth: npt.NDArray[np.int64]
    predicted: npt.NDArray[np.int64]
    unpredicted: int
    unknown: int


def align(predicted: Mapping[RecordKey, str], truth: Mapping[RecordKey, str]) -> Aligned:
    """Both tables as arrays over the truth's records, by the rule above.

    Raises DataError when the tables have no record in common.
    """
    shared = sum(key in predicted for key in truth)
    if shared == 0:
        raise DataError(
            "prediction and truth have no record in common: "
            f"predicted are {_some(list(predicted))}, known are {_some(list(truth))}"
        )
    return Aligned(
        truth=_numbers(truth.values()),
        predicted=_numbers(predicted.get(key) for key in truth),
        unpredicted=len(truth) - shared,
        unknown=len(predicted) - shared,
    )


def _numbers(clusters: Iterable[str | None]) -> npt.NDArray[np.int64]:
    """Clusters numbered as they first appear; every None is a new one."""
    fresh = count()
    seen: dict[str, int] = {}
    numbers = []
    for cluster in clusters:
        if cluster is None:
            numbers.append(next(fresh))
        else:
            if cluster not in seen:
                seen[cluster] = next(fresh)
            numbers.append(seen[cluster])
    return np.array(numbers, np.int64)


def _some(keys: list[RecordKey]) -> str:
    """A few of ``keys`` by name and how many others there are."""
    if not keys:
        return "none"
    named = ", ".join(str(key) if key.source else key.id for key in keys[:NAMED_AT_MOST])
    others = len(keys) - NAMED_AT_MOST
    return f"{named} and {others} others" if others > 0 else named
