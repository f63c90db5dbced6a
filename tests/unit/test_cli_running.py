"""Commands that write: init, validate, run, train, verify, checkpoint, restore."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from clustering.errors import ConfigError
from stream.cli import asking
from tests.unit.cli_data import CONFIG, PEOPLE, as_json, fill, graftd


def test_init_writes_a_configuration_that_validates(tmp_path: Path) -> None:
    people, config = tmp_path / "people.csv", tmp_path / "graftd.yaml"
    people.write_text(PEOPLE)

    done = graftd("init", config, "--from", people)

    assert done.exit_code == 0
    assert "5 fields" not in done.stdout  # the id and the source are no fields to compare
    assert "  email: email" in config.read_text().splitlines()
    assert graftd("validate", config, people).stdout.endswith("OK\n")
    again = graftd("init", config)
    assert again.exit_code == 2
    assert "exists" in again.stderr


def test_init_takes_another_id_field(tmp_path: Path) -> None:
    people, config = tmp_path / "people.csv", tmp_path / "graftd.yaml"
    people.write_text("key,name\n1,Ada Morgan\n2,Bela Novak\n")

    assert graftd("init", config, "--from", people).exit_code == 65
    assert graftd("init", config, "--from", people, "--id-field", "key").exit_code == 0

    assert as_json("validate", config, people) == {"ok": True, "warnings": []}
    assert as_json("run", people, "-d", tmp_path / "data", "-c", config)["records"] == 2


def test_validate_tells_every_problem_with_its_place(tmp_path: Path) -> None:
    config = tmp_path / "graftd.yaml"
    config.write_text("fields: {name: nam}\nmatching: {tresh: 1}\n")

    done = graftd("validate", config)

    assert done.exit_code == ConfigError.exit_code
    assert f"{config}:1:" in done.stderr
    assert f"{config}:2:" in done.stderr
    assert "did you mean" in done.stderr
    assert "Traceback" not in done.output


def test_validate_compares_with_data(tmp_path: Path) -> None:
    people, config = tmp_path / "people.csv", tmp_path / "graftd.yaml"
    people.write_text(PEOPLE)
    config.write_text("fields: {name: name, city: date, born: date}\n")

    result = as_json("validate", config, people)

    said = "\n".join(result["warnings"])
    assert "no record has the field born" in said
    assert "the field email is not configured" in said
    assert "no value of the field city reads as date" in said
    assert graftd("validate", config, people).exit_code == 0
    assert graftd("validate", config, people, "--deny-warnings").exit_code == 78


def test_validate_prints_the_schema() -> None:
    done = graftd("validate", "--schema")

    assert json.loads(done.stdout)["title"] == "graftd configuration"


def test_run_counts_what_it_did(tmp_path: Path) -> None:
    more = '{"source":"crm","id":9,"name":"Eve Stone"}\nnot json\n'
    (tmp_path / "more.jsonl").write_text(more)
    data = fill(tmp_path)

    result = as_json("run", tmp_path / "people.csv", tmp_path / "more.jsonl", "-d", data)

    assert (result["processed"], result["created"], result["rejected"]) == (2, 1, 1)
    assert (result["records"], result["entities"]) == (7, 5)
    letters = Path(result["files"]["dead_letters"]).read_text().splitlines()
    assert json.loads(letters[0])["reason"] == "bad_json"
    table = graftd("run", tmp_path / "more.jsonl", "-d", data).stdout
    assert "0 records read" in table


def test_run_mentions_dead_letters(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id":1,"name":"Eve"}\n{"name":"Nobody"}\n')

    done = graftd("run", tmp_path / "bad.jsonl", "-d", tmp_path / "data")

    assert done.exit_code == 0
    assert "1 could not be read" in done.stdout
    assert "dead-letters.jsonl" in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "it is empty"), ('{"key":1}\n', "source.id_field"), ("oops\n", "format")],
)
def test_input_without_any_record_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "in").write_text(text)

    done = graftd("run", tmp_path / "in", "-d", tmp_path / "data")
    named = graftd("run", tmp_path / "in", "-d", tmp_path / "data", "--format", "jsonl")

    assert done.exit_code == named.exit_code == 65
    assert said in done.stderr + named.stderr


def test_run_takes_the_settings_of_the_data_directory(tmp_path: Path) -> None:
    data = fill(tmp_path, config=CONFIG + "matching: {threshold: 3}\n")

    assert graftd("run", tmp_path / "people.csv", "-d", data).exit_code == 0
    (tmp_path / "other.yaml").write_text(CONFIG)
    other = graftd("run", tmp_path / "people.csv", "-d", data, "-c", tmp_path / "other.yaml")

    assert other.exit_code == 78
    assert "matching.threshold" in other.stderr


def test_verify_finds_a_damaged_output_file(tmp_path: Path) -> None:
    data = fill(tmp_path)
    assert as_json("verify", data) == {"ok": True, "problems": []}
    path = data / "out" / "assignments.jsonl"
    path.write_text(path.read_text().replace('"E0"', '"E3"'))

    done = graftd("verify", data)

    assert done.exit_code == 74
    assert "assignments.jsonl" in done.stderr


def test_verify_says_what_is_no_data_directory(tmp_path: Path) -> None:
    assert graftd("verify", tmp_path / "nowhere").exit_code == 74
    done = graftd("verify", tmp_path)
    assert done.exit_code == 74
    assert list(tmp_path.iterdir()) == []


def test_checkpoint_and_restore(tmp_path: Path) -> None:
    data = fill(tmp_path)
    copy, restored = tmp_path / "copy", tmp_path / "restored"

    assert graftd("checkpoint", data, copy).exit_code == 0
    assert graftd("restore", copy, restored).exit_code == 0

    assert graftd("export", "-d", restored).stdout == graftd("export", "-d", data).stdout
    assert graftd("verify", restored).exit_code == 0
    assert as_json("run", tmp_path / "people.csv", "-d", restored)["processed"] == 0
    assert graftd("restore", copy, restored).exit_code == 74
    assert graftd("checkpoint", data, copy).exit_code == 74


def test_train_writes_a_model_that_run_takes(tmp_path: Path) -> None:
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnoprstuvw", k=7)) for _ in range(120)]
    rows, truth = ["id,name,city"], ["id,cluster"]
    for i in range(40):
        first, last, city = words[3 * i : 3 * i + 3]
        rows += [f"{2 * i},{first} {last},{city}", f"{2 * i + 1},{first} {last[:-1]},{city}"]
        truth += [f"{2 * i},c{i}", f"{2 * i + 1},c{i}"]
    people, known, model = (tmp_path / name for name in ("people.csv", "truth.csv", "my.model"))
    people.write_text("\n".join(rows) + "\n")
    known.write_text("\n".join(truth) + "\n")
    config = tmp_path / "graftd.yaml"
    config.write_text("fields: {name: name, city: name}\n")

    result = as_json("train", people, known, "-c", config, "-o", model)

    assert (result["labelled"], result["clusters"]) == (80, 40)
    assert result["held_out"]["pairwise"]["f1"] > 0.9
    config.write_text(config.read_text() + f"matching: {{model_file: {model}}}\n")
    run = as_json("run", people, "-d", tmp_path / "data", "-c", config)
    assert run["entities"] == 40


def test_train_needs_clusters_of_two(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,name\n1,Ada\n2,Bela\n")
    (tmp_path / "truth.csv").write_text("id,cluster\n1,a\n2,b\n")

    done = graftd("train", tmp_path / "people.csv", tmp_path / "truth.csv", "-o", tmp_path / "m")

    assert done.exit_code == 65
    assert "nothing to learn from" in done.stderr


def test_log_lines_are_json_without_values_of_records(tmp_path: Path) -> None:
    rows = "".join(f"{i},Person Number{i},Street {i % 7}\n" for i in range(120))
    (tmp_path / "people.csv").write_text("id,name,street\n" + rows)

    done = graftd("run", tmp_path / "people.csv", "-d", tmp_path / "data")

    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert [event["event"] for event in events] == ["refit", "refit"]
    assert "Person" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "missing.csv", "-d", "{}/data"], 65, "no such file"),
        (["run", "{}/people.csv", "-d", "{}/data", "-c", "{}/bad.yaml"], 78, "unknown key"),
        (["run", "{}/people.csv", "-d", "{}"], 74, "is not a data directory"),
        (["run", "{}/people.csv"], 2, "--data-dir"),
        (["walk"], 2, "No such command"),
        (["get", "1", "-d", "{}/nowhere"], 74, "there is no data directory"),
        (["get", "1", "-d", "{}/nowhere", "--output", "xml"], 2, "xml"),
        (["checkpoint", "{}/nowhere", "{}/copy"], 74, "is not a data directory"),
        (["restore", "{}/nowhere", "{}/data"], 74, "cannot be read"),
        (["evaluate", "{}/truth.csv", "-d", "{}/nowhere"], 74, "there is no data directory"),
        (["export", "-d", "{}/nowhere"], 74, "there is no data directory"),
        (["validate"], 2, "name the configuration"),
        (["init", "{}/nowhere/graftd.yaml"], 2, "cannot be written"),
    ],
)
def test_errors_are_one_message_and_an_exit_code(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "bad.yaml").write_text("feilds: {name: name}\n")

    done = graftd(*(argument.replace("{}", str(tmp_path)) for argument in arguments))

    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_fault_of_ours_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr(asking, "_fields", broken)
    arguments = "search", "-d", tmp_path, "a=b"

    done = graftd(*arguments)

    assert done.exit_code == 70
    assert "GRAFTD_DEBUG=1" in done.stderr
    monkeypatch.setenv("GRAFTD_DEBUG", "1")
    assert isinstance(graftd(*arguments).exception, ZeroDivisionError)
