"""One comparison of a prediction with the truth: every figure, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.table import Table

from clustering.types import RecordKey
from eval.labels import align
from eval.metrics import Scores, adjusted_rand, b_cubed, cluster_exact, pairwise


@dataclass(frozen=True)
class Report:
    """How a prediction compares with the truth.

    records: records compared, those of the truth; unpredicted: those among them without a
    prediction, scored as clusters of their own; unknown: records predicted without a truth, not
    scored; found, true: number of clusters in either partition of the compared records.
    """

    records: int
    unpredicted: int
    unknown: int
    found: int
    true: int
    pairwise: Scores
    b_cubed: Scores
    cluster_exact: Scores
    adjusted_rand: float

    def as_json(self) -> dict[str, Any]:
        """The report as plain numbers, the scores nested by name."""
        plain = asdict(self)
        for name in ("pairwise", "b_cubed", "cluster_exact"):
            plain[name] = getattr(self, name)._asdict()
        return plain

    def as_table(self) -> Table:
        """The report as a table of measures."""
        table = Table("measure", title=f"{self.records} records compared with the truth")
        for column in ("precision", "recall", "F1"):
            table.add_column(column, justify="right")
        for name, scores in (
            ("pairs", self.pairwise),
            ("B-cubed", self.b_cubed),
            ("exact clusters", self.cluster_exact),
        ):
            table.add_row(name, *(f"{score:.4f}" for score in scores))
        table.add_row("adjusted Rand", "", "", f"{self.adjusted_rand:.4f}")
        table.caption = f"{self.found} entities found, {self.true} true"
        for number, what in (
            (self.unpredicted, "without a prediction, each its own entity"),
            (self.unknown, "without a truth, left out"),
        ):
            if number:
                table.caption += f"\nrecords {what}: {number}"
        return table


def evaluate(predicted: Mapping[RecordKey, str], truth: Mapping[RecordKey, str]) -> Report:
    """Compare two tables of record key to cluster, by the rule of `eval.labels`.

    Raises DataError when the tables have no record in common.
    """
    sides = align(predicted, truth)
    return Report(
        records=sides.truth.size,
        unpredicted=sides.unpredicted,
        unknown=sides.unknown,
        found=np.unique(sides.predicted).size,
        true=np.unique(sides.truth).size,
        pairwise=pairwise(sides.truth, sides.predicted),
        b_cubed=b_cubed(sides.truth, sides.predicted),
        cluster_exact=cluster_exact(sides.truth, sides.predicted),
        adjusted_rand=adjusted_rand(sides.truth, sides.predicted),
    )
