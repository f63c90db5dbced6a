"""Questions to a data directory: get, search, why, how, export, evaluate."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from clustering.features.leaves import Leaves
from clustering.linkage.learned_kernels import pair_logit
from clustering.types import RecordKey
from stream.view import View
from tests.unit.cli_data import CONFIG, PEOPLE, TRUTH, as_json, fill, graftd


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("asking"))


def members(data: Path) -> set[frozenset[str]]:
    groups: dict[str, set[str]] = {}
    for line in graftd("export", "-d", data, "--output", "jsonl").stdout.splitlines():
        row = json.loads(line)
        groups.setdefault(row["entity_id"], set()).add(f"{row['source']}:{row['id']}")
    return {frozenset(group) for group in groups.values()}


def test_export_lists_every_record_once(data: Path) -> None:
    assert members(data) == {
        frozenset({"crm:1", "shop:1"}),
        frozenset({"crm:2"}),
        frozenset({"crm:3", "shop:7"}),
        frozenset({"shop:8"}),
    }


def test_export_writes_the_same_table_in_every_format(data: Path, tmp_path: Path) -> None:
    on_stdout = list(csv.DictReader(io.StringIO(graftd("export", "-d", data).stdout)))
    for name in ("table.csv", "table.jsonl", "table.parquet"):
        assert graftd("export", "-d", data, tmp_path / name).exit_code == 0

    assert list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines())) == on_stdout
    lines = (tmp_path / "table.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == on_stdout
    assert parquet.read_table(tmp_path / "table.parquet").to_pylist() == on_stdout


def test_parquet_needs_a_file(data: Path) -> None:
    done = graftd("export", "-d", data, "--format", "parquet")

    assert done.exit_code == 2
    assert "needs a file" in done.stderr


def test_get_shows_a_record_by_source_and_id(data: Path) -> None:
    record = as_json("get", "crm", "3", "-d", data)

    assert record["fields"]["name"] == "Chidi Okafor"
    assert record == as_json("get", "crm:3", "-d", data) == as_json("get", "3", "-d", data)


def test_get_shows_an_entity_with_its_records(data: Path) -> None:
    name = as_json("get", "crm", "3", "-d", data)["entity_id"]

    (entity,) = as_json("get", name, "-d", data)

    assert [(r["source"], r["id"]) for r in entity["records"]] == [("crm", "3"), ("shop", "7")]


def test_an_id_that_two_sources_have_must_be_named_in_full(data: Path) -> None:
    done = graftd("get", "1", "-d", data)

    assert done.exit_code == 1
    assert "crm:1, shop:1" in done.stderr


def test_unknown_record_is_an_error(data: Path) -> None:
    done = graftd("get", "crm", "nobody", "-d", data)

    assert (done.exit_code, done.stdout) == (1, "")
    assert "no record crm:nobody" in done.stderr


def test_why_adds_up_to_the_score_exactly(data: Path) -> None:
    evidence = as_json("why", "crm:3", "shop:7", "-d", data)["evidence"]

    total = evidence["bias"]
    for field in evidence["fields"]:
        assert field["total"] == field["weight"] + field["rarity"]
        total += field["total"]
    assert total == evidence["score"]
    assert evidence["limit"] == 0.0
    assert evidence["probability"] == pytest.approx(1 / (1 + np.exp(-total)))


def test_why_gives_the_score_of_the_linkage(data: Path) -> None:
    with View.open(data) as view:
        embedder = view.embedder
        leaves = Leaves(len(embedder.model.specs))
        for i, key in enumerate([RecordKey("crm", "1"), RecordKey("shop", "8")]):
            embedded = embedder.embed(embedder.bags(view.fields(view.record(key))))
            leaves.put(i, embedded.weighed)
        expected = pair_logit(leaves.arrays, embedder.model.params(), 0, 1)

    result = as_json("why", "crm:1", "shop:8", "-d", data)

    assert result["evidence"]["score"] == expected
    assert not result["together"]


def test_missing_fields_are_no_evidence(data: Path) -> None:
    fields = as_json("why", "crm:1", "shop:1", "-d", data)["evidence"]["fields"]

    assert fields[3] | {"a": None} == {
        "field": "email",
        "type": "email",
        "a": None,
        "b": None,
        "similarity": None,
        "level": None,
        "weight": 0.0,
        "rarity": 0.0,
        "total": 0.0,
    }


def test_too_little_evidence_is_a_line_of_its_own(tmp_path: Path) -> None:
    people = "source,id,name,city\ncrm,1,,Bonn\ncrm,2,,Bonn\n"
    config = "fields: {name: name, city: {type: category, weight: 9}}\n"
    data = fill(tmp_path, people, config)

    evidence = as_json("why", "1", "2", "-d", data)["evidence"]

    assert evidence["limit"] < 0
    total = evidence["bias"] + sum(field["total"] for field in evidence["fields"])
    assert evidence["score"] == pytest.approx(total + evidence["limit"])
    assert "too few fields agree" in graftd("why", "1", "2", "-d", data).stdout


def test_why_of_a_vector_linkage_is_the_cosine(tmp_path: Path) -> None:
    data = fill(tmp_path, config=CONFIG + "matching: {linkage: cosine}\n")

    evidence = as_json("why", "crm:3", "shop:7", "-d", data)["evidence"]

    assert evidence["linkage"] == "cosine"
    assert evidence["probability"] is None
    assert 0.5 < evidence["score"] <= 1.0
    assert "similarity by the cosine linkage" in graftd("why", "3", "7", "-d", data).stdout


def test_how_lists_the_merges_children_first(data: Path) -> None:
    (result,) = as_json("how", "crm:3", "-d", data)

    (merge,) = result["merges"]
    assert {record["node"] for record in result["records"]} == {merge["left"], merge["right"]}
    why = as_json("why", "crm:3", "shop:7", "-d", data)
    assert merge["linkage"] == why["evidence"]["score"] == why["meet"]["linkage"]
    assert "2 records, linkage" in graftd("how", "crm:3", "-d", data).stdout


def test_search_says_what_a_record_would_join_without_inserting_it(data: Path) -> None:
    before = graftd("export", "-d", data).stdout

    found = as_json("search", "-d", data, "name=Chidi Okafor", "street=99 Cedar St")

    assert found["joins"] == [as_json("get", "crm", "3", "-d", data)["entity_id"]]
    assert found["probability"] > 0.5
    best = found["candidates"][0]
    assert (best["source"], best["id"]) == ("shop", "7")
    assert best["score"] == best["bias"] + sum(f["total"] for f in best["fields"])
    assert graftd("export", "-d", data).stdout == before


def test_search_takes_json_and_finds_strangers_new(data: Path) -> None:
    stranger = json.dumps({"name": "Zoltan Quist", "email": "z@quist.example"})

    found = as_json("search", "-d", data, "--json", stranger)

    assert found["joins"] == []
    assert found["linkage"] is None
    table = graftd("search", "-d", data, "--json", stranger).stdout
    assert "entity of its own" in table


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "FIELD=VALUE"),
        (["nme=Ada"], 2, "did you mean name?"),
        (["name"], 2, "is not FIELD=VALUE"),
        (["--json", "[]"], 2, "must be an object"),
        (["--json", "{"], 2, "is not JSON"),
        (["name=n/a"], 65, "nothing in this record can be compared"),
    ],
)
def test_search_refuses_what_makes_no_sense(
    data: Path, arguments: list[str], code: int, said: str
) -> None:
    done = graftd("search", "-d", data, *arguments)

    assert done.exit_code == code
    assert said in done.stderr


def test_retired_ids_lead_to_their_successors(tmp_path: Path) -> None:
    data = fill(tmp_path)
    old = as_json("get", "crm", "2", "-d", data)["entity_id"]
    heir = as_json("get", "crm", "1", "-d", data)["entity_id"]
    update = (
        PEOPLE.splitlines()[0] + "\ncrm,2,Ada Morgan,12 Alder Lane,Bonn,ada.morgan@example.org\n"
    )
    (tmp_path / "update.csv").write_text(update)
    assert graftd("run", tmp_path / "update.csv", "-d", data).exit_code == 0

    (entity,) = as_json("get", old, "-d", data)

    assert (entity["entity_id"], entity["asked_for"]) == (heir, old)
    assert len(entity["records"]) == 3
    assert "is retired" in graftd("get", old, "-d", data).stdout
    assert as_json("how", old, "-d", data)[0]["entity_id"] == heir


def test_evaluate_compares_with_the_truth(data: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.csv"
    truth.write_text(TRUTH)

    report = as_json("evaluate", truth, "-d", data)

    assert report["records"] == 6
    assert report["pairwise"]["f1"] == 1.0
    assert "B-cubed" in graftd("evaluate", truth, "-d", data).stdout


def test_truth_without_sources_needs_unique_ids(data: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.csv"
    truth.write_text("id,cluster\n1,ada\n")

    done = graftd("evaluate", truth, "-d", data)

    assert done.exit_code == 65
    assert "several sources have the id 1" in done.stderr


@pytest.mark.parametrize("command", [["get", "crm:3"], ["how", "crm:3"], ["why", "crm:3", "7"]])
def test_jsonl_is_one_object_a_line(data: Path, command: list[str]) -> None:
    done = graftd(*command, "-d", data, "--output", "jsonl")

    (line,) = done.stdout.splitlines()
    assert isinstance(json.loads(line), dict)
