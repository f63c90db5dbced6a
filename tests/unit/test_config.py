"""The configuration file: defaults, errors that say where, units, the environment, the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from clustering.errors import ConfigError
from clustering.features.schema import FieldSpec, FieldType
from stream.config import (
    Config,
    FieldKind,
    fingerprint,
    json_schema,
    load_config,
    parse_config,
    to_field_specs,
)
from stream.config_file import typed
from stream.units import format_duration, format_size, parse_duration, parse_size


def parse(text: str, **environ: str) -> Config:
    return parse_config(text, "c.yaml", environ)


def problems(text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, **environ)
    assert caught.value.exit_code == 78
    return str(caught.value).splitlines()


def test_no_file_gives_the_defaults() -> None:
    config = load_config(None, {})

    assert config == Config()
    assert config.state.batch_wait == 0.2
    assert config.source.max_record_size == 8 * 2**20
    assert config.model.refit_at == (100, 500, 2000, 8000, 32000)


@pytest.mark.parametrize("text", ["", "~", "# nothing\n", "matching:\n", "version: 1\n"])
def test_an_empty_file_or_section_gives_the_defaults(text: str) -> None:
    assert parse(text) == Config()


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "graftd.yaml"
    path.write_text(
        "version: 1\n"
        "source: {id_field: key, max_field_size: 64KiB}\n"
        "fields:\n"
        "  surname: name\n"
        "  born: {type: date, date_order: dmy, placeholders: ['01.01.1900'], weight: 2}\n"
        "  remark: ignore\n"
        "sources:\n"
        "  crm: {no_duplicates: true}\n"
        "matching: {threshold: 1, model_file: trained.json}\n"
        "state: {batch_wait: 1.5s}\n",
        encoding="utf-8",
    )

    config = load_config(path, {})

    assert config.source.max_field_size == 65536
    assert config.fields["born"].placeholders == ("01.01.1900",)
    assert config.sources["crm"].no_duplicates
    assert config.matching.threshold == 1.0
    assert config.matching.model_file == Path("trained.json")
    assert config.state.batch_wait == 1.5
    assert to_field_specs(config) == (
        FieldSpec("surname", FieldType.NAME),
        FieldSpec("born", FieldType.DATE, 2.0),
    )


def test_the_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Config().matching.linkage = "cosine"  # type: ignore[misc]


def test_field_types_are_those_of_the_features() -> None:
    assert set(get_args(FieldKind)) == {*FieldType, "ignore"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("matchng: {}", 'c.yaml:1:1 matchng: unknown key (did you mean "matching"?)'),
        ("tree:\n  grafts: true", 'c.yaml:2:3 tree.grafts: unknown key (did you mean "graft"?)'),
        (
            "neighbours:\n  serch_ef: 50",
            'c.yaml:2:3 neighbours.serch_ef: unknown key (did you mean "ef_search"?)',
        ),
        (
            "threshold: 0.5",
            'c.yaml:1:1 threshold: unknown key (did you mean "matching.threshold"?)',
        ),
        (
            "fields:\n  a: text\n  b:\n    type: phone\n    wieght: 2",
            'c.yaml:5:5 fields.b.wieght: unknown key (did you mean "weight"?)',
        ),
        ("zzz: 1", "c.yaml:1:1 zzz: unknown key"),
        ("version: 2", "c.yaml:1:10 version: must be 1, not 2"),
        (
            "matching: {linkage: lerned}",
            "c.yaml:1:21 matching.linkage: must be one of learned, cosine, average, "
            'not "lerned" (did you mean "learned"?)',
        ),
        (
            "fields: {surname: nmae}",
            "c.yaml:1:19 fields.surname: must be one of name, text, date, number, category, "
            'phone, email, identifier, ignore, not "nmae" (did you mean "name"?)',
        ),
        ("fields: {a: {weight: 2}}", "c.yaml:1:13 fields.a.type: is missing"),
        (
            "fields: {a: {type: text, weight: 0}}",
            "c.yaml:1:34 fields.a.weight: must be greater than 0, not 0",
        ),
        (
            "matching: {threshold: high}",
            'c.yaml:1:23 matching.threshold: is "high"; use "auto" or a number',
        ),
        ("tree: {rotate: yes}", 'c.yaml:1:16 tree.rotate: must be a valid boolean, not "yes"'),
        ("tree: {cap: 1.5}", "c.yaml:1:13 tree.cap: must be a valid integer, not 1.5"),
        ("tree: [1]", "c.yaml:1:7 tree: must be a mapping, not [1]"),
        ("sources: 5", "c.yaml:1:10 sources: must be a mapping, not 5"),
        ("model: {refit_at: 5}", "c.yaml:1:19 model.refit_at: must be a list in [ ], not 5"),
        (
            "normalise: {placeholders: [9999]}",
            "c.yaml:1:28 normalise.placeholders.0: must be text; put 9999 in quotes",
        ),
        (
            "state:\n  sync: true\n  sync: false",
            "c.yaml:3:3 state.sync: this key is given twice, first in line 2; keep one",
        ),
        ("- a", "c.yaml:1:1: a configuration is a mapping of sections, such as `matching:`"),
        ("a: [1", "c.yaml:1:6: not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("[a]: 1", "c.yaml:1:1: a key must be plain text"),
        ("sources: &s {a: *s}", "c.yaml:1:10 sources.a: an alias must not contain itself"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, problem: str) -> None:
    assert problem in problems(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "source: {version_field: id}",
            'c.yaml:1:25 source.version_field: "id" is already the id_field; name another field',
        ),
        (
            "source: {max_field_size: 9MiB}",
            "c.yaml:1:26 source.max_field_size: is larger than max_record_size; make it smaller",
        ),
        (
            "fields: {a: {type: text, date_order: ymd}}",
            "c.yaml:1:38 fields.a.date_order: is only for fields of the type date, not text",
        ),
        (
            "fields: {a: {type: text, default_region: DE}}",
            "c.yaml:1:42 fields.a.default_region: is only for fields of the type phone, not text",
        ),
        (
            "matching: {linkage: cosine, model_file: m.json}",
            "c.yaml:1:41 matching.model_file: is only for the learned linkage, not for cosine",
        ),
        (
            "model: {refit_at: [100, 50]}",
            "c.yaml:1:25 model.refit_at.1: 50 does not follow 100; counts must grow",
        ),
        (
            "output: {assignments: out/a.jsonl}",
            'c.yaml:1:23 output.assignments: "out/a.jsonl" must be the name of a file, '
            "without a folder",
        ),
        (
            "output: {assignments: a, dead_letters: a}",
            'c.yaml:1:40 output.dead_letters: "a" is already the file of assignments; name another',
        ),
        (
            "fields: {id: text, a: text}",
            "c.yaml:1:14 fields.id: says which record it is (see source), so only `ignore`",
        ),
        (
            "fields: {a: ignore}",
            "c.yaml:1:9 fields: nothing is left to compare; give a field another type than ignore",
        ),
        (
            "tree: {neighbours: 300}",
            "c.yaml:1:1 neighbours.ef_search: must be at least tree.neighbours, which is 300",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_all_problems_are_told_at_once_in_the_order_of_the_file() -> None:
    found = problems("tree:\n  cap: x\nmodel:\n  seed: -1\n  sed: 2\nstate: {batch_wait: 5}\n")

    assert [line.split(": ")[0] for line in found] == [
        "c.yaml:2:8 tree.cap",
        "c.yaml:4:9 model.seed",
        "c.yaml:5:3 model.sed",
        "c.yaml:6:21 state.batch_wait",
    ]


@pytest.mark.parametrize(("name", "content"), [("none.yaml", None), ("bytes.yaml", b"a: \xff")])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, content: bytes | None) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ConfigError, match=name):
        load_config(path, {})


def test_variables_are_put_in() -> None:
    text = (
        "matching: {linkage: '${LINKAGE:-cosine}'}\n"
        "tree:\n  cap: ${CAP:-7}\n  graft: ${GRAFT}\n"
        "source: {id_field: 'a$${b}${C}'}\n"
        "normalise: {stop_phrases: ['${N}']}\n"
    )

    config = parse(text, CAP="", GRAFT="false", C="c", N="12")

    assert config.matching.linkage == "cosine"
    assert config.tree.cap == 7
    assert config.tree.graft is False
    assert config.source.id_field == "a${b}c"
    assert config.normalise.stop_phrases == ("12",)  # in quotes, so text


def test_a_variable_that_is_not_set_is_one_problem() -> None:
    assert problems("tree:\n  cap: ${CAP}") == [
        "c.yaml:2:8 tree.cap: the variable CAP is not set; set it or write ${CAP:-default}"
    ]
    assert "`${` begins a variable" in problems("tree:\n  cap: ${")[0]


def test_the_environment_overrides_the_file() -> None:
    config = parse(
        "tree: {cap: 5}\nfields: {SurName: {type: text}, a: text}",
        GRAFTD_TREE__CAP="9",
        GRAFTD_MODEL__REFIT_AT="[10, 20]",
        GRAFTD_STATE__BATCH_WAIT="5m",
        GRAFTD_FIELDS__SURNAME__TYPE="name",
        GRAFTD_SERVICE_HOST="10.0.0.1",  # no section: not ours
    )

    assert config.tree.cap == 9
    assert config.model.refit_at == (10, 20)
    assert config.state.batch_wait == 300.0
    assert config.fields["SurName"].type == "name"


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("GRAFTD_TREE__CAP", "x", 'tree.cap: must be a valid integer, not "x"'),
        ("GRAFTD_TREE__KAP", "1", 'tree.kap: unknown key (did you mean "cap"?)'),
        ("GRAFTD_TRE__CAP", "1", 'tre: unknown key (did you mean "tree"?)'),
        ("GRAFTD_TREE__CAP", "[", "tree.cap: is not valid YAML; put the value in quotes"),
        (
            "GRAFTD_FIELDS__A__TYPE",
            "text",
            "fields.a: has a single value in the file, so no key of it can be set",
        ),
    ],
)
def test_a_wrong_override_is_told_by_its_name(name: str, value: str, problem: str) -> None:
    assert problems("fields: {a: text}", **{name: value}) == [f"{name} {problem}"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("1_000", 1000),
        ("007", 7),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("TRUE", True),
        ("null", None),
        ("yes", "yes"),
        ("1__0", "1__0"),
        ("9" * 40, "9" * 40),
        ("1e999", "1e999"),
        (".inf", ".inf"),
        ("2001-01-01", "2001-01-01"),
    ],
)
def test_scalars_without_quotes(text: str, value: object) -> None:
    assert typed(text) == value
    assert type(typed(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("200ms", 0.2), ("30s", 30.0), ("1.5 s", 1.5), ("5m", 300.0), ("2h", 7200.0), ("1d", 86400.0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10B", 10),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("64MiB", 2**26),
        ("1GB", 10**9),
        ("1.5KiB", 1536),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (5, "5 has no unit; write for example 30s"),
        ("5", "5 has no unit"),
        ("5 sec", "unknown unit 'sec'; use one of ms, s, m, h, d"),
        ("5S", 'did you mean "s"'),
        ("-5s", "'-5s' is not a number with a unit"),
        ("s", "'s' is not a number with a unit"),
        (True, "True is not a number with a unit"),
        (None, "None is not a number with a unit"),
    ],
)
def test_a_duration_without_a_proper_unit_gets_a_hint(text: object, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        parse_duration(text)


def test_a_size_is_whole_bytes() -> None:
    with pytest.raises(ValueError, match='did you mean "MiB"'):
        parse_size("64mib")
    with pytest.raises(ValueError, match="not a whole number of bytes"):
        parse_size("1.5B")


@given(st.integers(0, 2**50))
def test_a_size_is_read_as_it_is_written(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.integers(0, 10**12))
def test_a_duration_is_read_as_it_is_written(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds / 1000)) == milliseconds / 1000


def test_the_resolved_configuration_is_a_configuration() -> None:
    config = parse("fields: {a: date}\nmatching: {threshold: -0.5}\nstate: {batch_wait: 1500ms}")

    assert parse(config.model_dump_json()) == config


def test_the_fingerprint_is_of_the_settings_not_of_the_file() -> None:
    plain = fingerprint(parse("fields: {a: text, b: date}\nmatching: {threshold: 1}"))

    assert plain == fingerprint(
        parse("matching:\n  threshold: 1.0\nfields:\n  a: {type: text}\n  b: ${B:-date}\n")
    )
    assert plain != fingerprint(parse("fields: {b: date, a: text}\nmatching: {threshold: 1}"))
    assert plain != fingerprint(parse("fields: {a: text, b: date}\nmatching: {threshold: 2}"))


def test_the_schema_accepts_what_is_right_and_refuses_what_is_not() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    assert validator.is_valid(json.loads(Config().model_dump_json()))
    assert validator.is_valid({"fields": {"a": "text", "b": {"type": "date"}}})
    assert not validator.is_valid({"fields": {"a": "txt"}})
    assert not validator.is_valid({"treee": {}})
    assert not validator.is_valid({"state": {"batch_wait": 5}})


def test_every_setting_is_described() -> None:
    definitions = json_schema()["$defs"]
    described = [
        (name, key, "description" in setting)
        for name, section in definitions.items()
        for key, setting in section.get("properties", {}).items()
    ]

    assert [entry for entry in described if not entry[2]] == []
    assert json_schema()["$defs"]["StateConfig"]["properties"]["batch_wait"]["default"] == "200ms"
