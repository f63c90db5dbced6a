"""The demo, on a part of its records."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream import demo
from stream.view import View


def test_records_come_with_their_truth() -> None:
    records, truth = demo.febrl3()

    assert len(records) == len(truth) == 5000
    assert len(set(truth.values())) == 2000
    assert records[0]["given_name"] == "mitchell"


def test_demo_shows_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    records, truth = demo.febrl3()
    part = sorted(records, key=lambda record: str(record["id"]))[:60]
    known = {key: cluster for key, cluster in truth.items() if key.id in {r["id"] for r in part}}
    monkeypatch.setattr(demo, "febrl3", lambda: (part, known))
    monkeypatch.chdir(tmp_path)

    demo.demo()
    demo.demo()  # begins afresh

    said = capsys.readouterr().out
    assert "entities found" in said
    assert "the largest: entity" in said
    assert "probability that these two are one entity" in said
    assert "Try next" in said
    with View.open(tmp_path / "graftd-demo" / "data") as view:
        assert len(list(view.assignments())) == 60
