"""The quality runner, with a small stand-in for graftd's command where one is run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clustering.errors import DataError, UnavailableError, UsageError
from clustering.types import RecordKey
from eval import quality

RECORDS = "id,source,name\nr1,A,ann\nr2,B,ann\nr3,2008,bob\n"
TRUTH = "id,cluster\nr1,c1\nr2,c1\nr3,c2\n"

# Records of one name are one entity; what it was called with is left beside the data.
STAND_IN = """
import csv, json, pathlib, sys
verb, *rest = sys.argv[1:]
data = pathlib.Path(rest[rest.index("--data-dir") + 1])
if verb == "run":
    rows = list(csv.DictReader(open(rest[0], encoding="utf-8")))
    if rows[0]["name"] == "fail":
        sys.exit("first line\\nthe reason")
    (data / "rows.json").write_text(json.dumps(rows))
else:
    assert rest[-2:] == ["--output", "jsonl"]
    for row in json.loads((data / "rows.json").read_text()):
        print(json.dumps({"source": "s", "id": row["id"], "entity_id": row["name"]}))
"""


def add_set(root: Path, name: str, records: str = RECORDS, truth: str = TRUTH) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "records.csv").write_text(records, encoding="utf-8")
    (folder / "truth.csv").write_text(truth, encoding="utf-8")
    return folder


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for sets, in a working directory whose `stream.cli` is the stand-in."""
    package = tmp_path / "stream"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(STAND_IN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "sets"


def test_a_set_is_run_and_compared(sets: Path) -> None:
    add_set(sets, "people")
    add_set(sets, "more")
    (sets / "no_truth").mkdir()
    shown = CliRunner().invoke(quality.app, [str(sets), "--sets", "people", "--output", "json"])
    assert shown.exit_code == 0
    (result,) = json.loads(shown.stdout)
    assert (result["set"], result["best_of_others_f1"]) == ("people", None)
    assert result["f1"] == {"mean": 1.0, "min": 1.0, "max": 1.0, "spread": 0.0}
    assert result["trials"][0]["records"] == 3
    assert result["trials"][0]["found"] == 2


def test_a_failure_is_shown_and_the_other_sets_still_run(sets: Path) -> None:
    add_set(sets, "broken", RECORDS.replace("ann", "fail"))
    add_set(sets, "febrl1")
    shown = CliRunner().invoke(quality.app, [str(sets)])
    assert shown.exit_code == 1
    assert "broken: graftd run exited with 1: first line / the reason" in shown.stderr
    lines = {line.split()[0]: line.split() for line in shown.stdout.splitlines() if line.strip()}
    assert lines["broken"] == ["broken", "failed"]
    assert lines["febrl1"][:7] == ["febrl1", "3", "2", "2", "1.000", "1.000", "1.000"]
    assert lines["febrl1"][-1] == "1.000"


def test_orders_shuffle_the_same_rows_by_seed(tmp_path: Path) -> None:
    rows = "".join(f'r{n},"a, b\nc",{n}\n' for n in range(30))
    folder = add_set(tmp_path, "s", "id,text,n\n" + rows, TRUTH)
    seen = []

    def resolve(records: Path, _: Path, config: Path | None) -> tuple[dict[RecordKey, str], float]:
        assert config is None
        with records.open(encoding="utf-8", newline="") as file:
            seen.append(list(csv.DictReader(file)))
        split = len(seen) % 2 == 0
        return {RecordKey("", f"r{n}"): str(n * split) for n in (1, 2, 3)}, float(len(seen))

    result = quality.measure(folder, orders=2, resolve=resolve)
    again = quality.measure(folder, orders=2, resolve=resolve)
    assert seen[0] == seen[2] != seen[1] == seen[3]
    assert sorted(seen[0], key=lambda row: int(row["n"])) == sorted(
        seen[1], key=lambda row: int(row["n"])
    )
    assert {row["text"] for row in seen[0]} == {"a, b\nc"}
    assert result.f1() == again.f1() == [0.5, 0.0]
    assert result.as_json()["f1"] == {"mean": 0.25, "min": 0.0, "max": 0.5, "spread": 0.5}


def test_clean_sources_are_named_for_sets_that_have_them(tmp_path: Path) -> None:
    configs: list[str] = []

    def resolve(_: Path, __: Path, config: Path | None) -> tuple[dict[RecordKey, str], float]:
        configs.append("" if config is None else config.read_text(encoding="utf-8"))
        return {RecordKey("", "r1"): "e"}, 0.0

    clean = add_set(tmp_path, "abt_buy")
    result = quality.measure(clean, clean_sources=True, resolve=resolve)
    assert result.best == 0.911
    assert quality.measure(clean, resolve=resolve).best == 0.239
    quality.measure(add_set(tmp_path, "people"), clean_sources=True, resolve=resolve)
    expected = {source: {"no_duplicates": True} for source in ("2008", "A", "B")}
    assert configs == [f"sources: {json.dumps(expected)}\n", "", ""]


def test_records_that_one_side_lacks_are_remarked_on(tmp_path: Path) -> None:
    def resolve(*_: object) -> tuple[dict[RecordKey, str], float]:
        return {RecordKey("", name): "e" for name in ("r1", "r8", "r9")}, 0.0

    result = quality.measure(add_set(tmp_path, "s"), resolve=resolve)
    assert quality.remarks([result]) == [
        "s: records in no entity: 2",
        "s: records without a truth: 2",
    ]


def test_sets_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no sets in"):
        quality.find_sets(tmp_path / "absent")
    assert CliRunner().invoke(quality.app, [str(tmp_path)]).exit_code == 69
    add_set(tmp_path, "people")
    with pytest.raises(UsageError, match=r"no set nobody in .*; there are people"):
        quality.find_sets(tmp_path, "people, nobody")


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ("", "must have the columns id,cluster"),
        ("key,cluster\n", "must have the columns id,cluster, not key,cluster"),
        ("id,cluster\nr1,c1\nr2\n", "row 2 has 1 values for 2 columns"),
        ("id,cluster\nr1,c1\nr1,c1\n", "lists r1 more than once"),
    ],
)
def test_an_unusable_truth_is_refused(tmp_path: Path, truth: str, message: str) -> None:
    folder = add_set(tmp_path, "s", truth=truth)
    with pytest.raises(DataError, match=message):
        quality.measure(folder)
    assert CliRunner().invoke(quality.app, [str(tmp_path)]).exit_code == 65
