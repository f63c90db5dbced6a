"""A comparison as numbers, as JSON and as a table."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from clustering.types import RecordKey
from eval.report import Report, evaluate

TRUTH = {RecordKey("", n): cluster for n, cluster in zip("123456", "aaabbc", strict=True)}
PREDICTED = {RecordKey("", n): cluster for n, cluster in zip("123457", "xxyyyz", strict=True)}


@pytest.fixture
def report() -> Report:
    return evaluate(PREDICTED, TRUTH)


def test_a_missing_prediction_counts_as_a_cluster_of_its_own(report: Report) -> None:
    whole = evaluate({**PREDICTED, RecordKey("", "6"): "alone"}, TRUTH)
    assert (report.unpredicted, report.unknown, whole.unpredicted) == (1, 1, 0)
    assert report.pairwise == whole.pairwise == (0.5, 0.5, 0.5)
    assert report.b_cubed == whole.b_cubed
    assert (report.records, report.found, report.true) == (6, 3, 3)


def test_json_has_every_figure_by_name(report: Report) -> None:
    plain = json.loads(json.dumps(report.as_json()))
    assert plain["pairwise"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert plain["cluster_exact"]["f1"] == pytest.approx(1 / 3)
    assert set(plain) == set(Report.__dataclass_fields__)


def test_the_table_says_what_was_left_out(report: Report) -> None:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(report.as_table())
    printed = " ".join(capture.get().split())
    assert "6 records compared" in printed
    assert "3 entities found, 3 true" in printed
    assert "records without a prediction, each its own entity: 1" in printed
    assert "records without a truth, left out: 1" in printed
    assert "0.5000" in printed
