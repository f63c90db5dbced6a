from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import jsonschema
import orjson
import pytest
from pydantic import ValidationError

from clustering.entities import Change, Entities, Kind
from clustering.types import RecordKey
from stream import messages
from stream.messages import ASSIGNMENTS, DEAD_LETTERS, ENTITY_UPDATES, MAX_RAW, MODELS
from stream.records import Bad, BadReason

KEYS = {n: RecordKey("crm" if n % 2 else "érp", f"r{n}") for n in range(20)}
CAUSE = messages.record_cause(KEYS[3], {"file": "a.jsonl", "line": 4})
REFIT = messages.refit_cause(2)


def entity_id(number: int) -> str:
    return f"e{number}"


def update(change: Change, cause: dict[str, Any] = CAUSE) -> bytes:
    return messages.entity_update(5, change, entity_id, KEYS, cause)


def letter(raw: bytes = b"{", **changes: Any) -> bytes:
    values = {
        "reason": BadReason.BAD_JSON,
        "detail": "no end",
        "key": None,
        "position": {"line": 1},
    }
    return messages.dead_letter(9, Bad(raw=raw, **(values | changes)))


def lifecycle() -> list[Change]:
    """Changes of every kind."""
    entities = Entities()
    changes = entities.update([frozenset({1, 10, 2}), frozenset({3})])
    changes += entities.update([frozenset({1, 10, 2, 3})])
    changes += entities.update([frozenset({1, 3}), frozenset({10, 2})])
    changes += entities.update([], removed=[10, 2])
    assert {change.kind for change in changes} == set(Kind)
    return changes


EXAMPLES: list[tuple[str, bytes]] = [
    *((ENTITY_UPDATES, update(change)) for change in lifecycle()),
    *((ENTITY_UPDATES, update(change, REFIT)) for change in lifecycle()[:2]),
    (ASSIGNMENTS, messages.assignment(1, KEYS[4], "e1", 3)),
    (ASSIGNMENTS, messages.assignment(2, KEYS[4], None, None)),
    (DEAD_LETTERS, letter()),
    (DEAD_LETTERS, letter(b"\xff\xfe", key=KEYS[2])),
    *((DEAD_LETTERS, letter(reason=reason)) for reason in BadReason),
]


@pytest.mark.parametrize(("topic", "message"), EXAMPLES)
def test_builders_make_exactly_what_models_and_schemas_describe(topic: str, message: bytes) -> None:
    model = MODELS[topic].model_validate_json(message, strict=True)
    dumped = model.model_dump(mode="json", by_alias=True)
    assert dumped == orjson.loads(message)
    assert dumped.keys() == {f.alias or name for name, f in type(model).model_fields.items()}
    jsonschema.Draft202012Validator(messages.json_schemas()[topic]).validate(dumped)


@pytest.mark.parametrize(("topic", "message"), EXAMPLES[:1] + EXAMPLES[-1:])
def test_models_refuse_anything_else(topic: str, message: bytes) -> None:
    whole = orjson.loads(message)
    others: list[Mapping[str, Any]] = [{k: v for k, v in whole.items() if k != n} for n in whole]
    others += [whole | {"more": 1}, whole | {"schema": "graftd.other/1"}, whole | {"seq": -1}]
    schema = jsonschema.Draft202012Validator(messages.json_schemas()[topic])
    for other in others:
        assert not schema.is_valid(other)
        with pytest.raises(ValidationError):
            MODELS[topic].model_validate_json(orjson.dumps(other))


def test_schemas_are_schemas_of_every_topic() -> None:
    schemas = messages.json_schemas()
    assert set(schemas) == {"entity-updates", "assignments", "dead-letters"}
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert "schema" in schema["required"]


def test_entity_update() -> None:
    change = Change(
        4,
        2,
        Kind.CHANGED,
        frozenset({2, 11}),
        frozenset({11, 2, 10}),
        came_from=(7,),
        went_into=(8, 9),
    )
    assert orjson.loads(update(change)) == {
        "schema": "graftd.entity-update/1",
        "seq": 5,
        "entity_id": "e4",
        "version": 2,
        "kind": "changed",
        "members": [
            {"source": "érp", "id": "r2"},
            {"source": "érp", "id": "r10"},
            {"source": "crm", "id": "r11"},
        ],
        "previous_members": [{"source": "érp", "id": "r2"}, {"source": "crm", "id": "r11"}],
        "from_ids": ["e7"],
        "into_ids": ["e8", "e9"],
        "cause": {
            "kind": "record",
            "source": "crm",
            "id": "r3",
            "position": {"file": "a.jsonl", "line": 4},
        },
        "certainty": None,
    }


def test_applying_the_updates_of_each_entity_gives_the_table() -> None:
    last: dict[str, dict[str, Any]] = {}
    for change in lifecycle():
        message = orjson.loads(update(change))
        before = last.get(message["entity_id"])
        assert message["version"] == (before["version"] + 1 if before else 1)
        if before:
            assert message["previous_members"] == before["members"]
        last[message["entity_id"]] = message
    live = {name: [m["id"] for m in u["members"]] for name, u in last.items() if u["members"]}
    assert list(live.values()) == [["r1", "r3"]]


def test_dead_letter_of_text() -> None:
    raw = '{"näme":'.encode()
    found = orjson.loads(letter(raw, key=KEYS[1]))
    assert (found["raw"], found["encoding"]) == ('{"näme":', "utf-8")
    assert found["raw_bytes"] == len(raw)
    assert found["raw_sha256"] == hashlib.sha256(raw).hexdigest()
    assert found["key"] == {"source": "crm", "id": "r1"}


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"ab\xc3", b"x" * (MAX_RAW + 9) + b"\xff"])
def test_dead_letter_of_bytes(raw: bytes) -> None:
    found = orjson.loads(letter(raw))
    if found["encoding"] == "base64":
        assert base64.b64decode(found["raw"]) == raw
    else:
        assert found["raw"].encode() == raw[:MAX_RAW]
    assert found["raw_sha256"] == hashlib.sha256(raw).hexdigest()


def test_dead_letter_of_what_was_too_long_to_keep() -> None:
    found = orjson.loads(letter(b"ab\xc3", left_out=1_000_000))
    assert (found["raw"], found["encoding"]) == ("ab", "utf-8")
    assert found["raw_bytes"] == 1_000_003
    assert found["raw_sha256"] is None


@pytest.mark.parametrize("shift", range(4))
def test_dead_letter_is_cut_between_characters(shift: int) -> None:
    raw = b"x" * shift + "😀".encode() * MAX_RAW
    found = orjson.loads(letter(raw))
    assert found["encoding"] == "utf-8"
    kept = found["raw"].encode()
    assert raw.startswith(kept)
    assert MAX_RAW - 4 < len(kept) <= MAX_RAW
    assert found["raw_bytes"] == len(raw)


def test_dead_letter_of_a_detail_that_is_no_text() -> None:
    assert orjson.loads(letter(detail="bad \ud800"))["detail"] == "bad ?"


def test_message_keys_keep_source_and_id_apart() -> None:
    assert messages.record_key_bytes(RecordKey("a:b", 'c"')) == b'["a:b","c\\""]'
    ambiguous = [RecordKey("a:b", "c"), RecordKey("a", "b:c"), RecordKey('a","b', "c")]
    assert len({messages.record_key_bytes(key) for key in ambiguous}) == 3
    assert messages.entity_key_bytes("é") == "é".encode()
