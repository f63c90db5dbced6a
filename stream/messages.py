"""The messages that graftd sends: what is in them, and how they are made.

The models describe the messages, for JSON Schemas and for readers; the functions make the same
messages as compact JSON bytes without the cost of a model. ``seq`` is the number of a message in
the outbox of its topic partition: unique and ascending over all topics, with gaps within each.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from clustering.entities import Change, Kind
from clustering.types import RecordKey
from stream.records import Bad, BadReason, Position

ENTITY_UPDATES = "entity-updates"
ASSIGNMENTS = "assignments"
DEAD_LETTERS = "dead-letters"

MAX_RAW = 64 * 1024
"""Bytes of unreadable input that a dead letter carries at most."""

_ENTITY_UPDATE = "graftd.entity-update/1"
_ASSIGNMENT = "graftd.assignment/1"
_DEAD_LETTER = "graftd.dead-letter/1"

Text = Annotated[str, Field(min_length=1)]
Json = dict[str, Any]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Key(_Model):
    """Identity of a record."""

    source: Text = Field(description="Where the record comes from.")
    id: Text = Field(description="Its id there.")


class RecordCause(_Model):
    """A record that arrived, changed or was deleted."""

    kind: Literal["record"]
    source: Text = Field(description="Source of the record.")
    id: Text = Field(description="Id of the record.")
    position: Json = Field(description="Where it stood in the input.")


class RefitCause(_Model):
    """A new version of the model."""

    kind: Literal["refit"]
    model_version: NonNegativeInt = Field(description="The version taken into use.")


class _Message(_Model):
    seq: NonNegativeInt = Field(description="Number of the message; ascending, with gaps.")


class EntityUpdate(_Message):
    """One change of one entity; the last one of an entity is its present state."""

    schema_: Literal["graftd.entity-update/1"] = Field(alias="schema")
    entity_id: Text = Field(description="Id of the entity, never given to another one.")
    version: PositiveInt = Field(description="Number of changes of this entity so far.")
    kind: Kind = Field(description="What happened to it.")
    members: list[Key] = Field(description="Its records in order of arrival; none once retired.")
    previous_members: list[Key] = Field(description="Its records before the change.")
    from_ids: list[Text] = Field(description="Entities that it has some or all records of now.")
    into_ids: list[Text] = Field(description="Entities that have some or all of its records now.")
    cause: Annotated[RecordCause | RefitCause, Field(discriminator="kind")] = Field(
        description="What brought the change about."
    )
    certainty: Annotated[float, Field(ge=0, le=1)] | None = Field(
        description="Probability that its records belong together; null where it was not computed."
    )


class Assignment(_Message):
    """Which entity a record belongs to; the last one of a record counts."""

    schema_: Literal["graftd.assignment/1"] = Field(alias="schema")
    source: Text = Field(description="Source of the record.")
    id: Text = Field(description="Id of the record.")
    entity_id: Text | None = Field(description="Its entity; null once the record is deleted.")
    version: PositiveInt | None = Field(
        description="Version of the entity that brought it there; null once it is deleted."
    )


class DeadLetter(_Message):
    """Something in the input that is not a record; it was passed over."""

    schema_: Literal["graftd.dead-letter/1"] = Field(alias="schema")
    reason: BadReason = Field(description="What kind of fault it is.")
    detail: str = Field(description="What is wrong, for people.")
    position: Json = Field(description="Where it stood in the input.")
    key: Key | None = Field(description="Of which record, when that much could be read.")
    raw: str = Field(description="The input as it came; its beginning if longer than 64 KiB.")
    encoding: Literal["utf-8", "base64"] = Field(description="How `raw` is written.")
    raw_bytes: NonNegativeInt = Field(description="Length of the whole input in bytes.")
    raw_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(
        description="SHA-256 of the whole input, in hexadecimal digits; null when it was too long "
        "to be kept whole."
    )


MODELS: Mapping[str, type[EntityUpdate | Assignment | DeadLetter]] = {
    ENTITY_UPDATES: EntityUpdate,
    ASSIGNMENTS: Assignment,
    DEAD_LETTERS: DeadLetter,
}
"""The model of the messages in each topic."""


def entity_update(
    seq: int,
    change: Change,
    entity_id: Callable[[int], str],
    keys: Mapping[int, RecordKey],
    cause: Json,
) -> bytes:
    """An EntityUpdate as JSON.

    entity_id: id of an entity by its number. keys: of all records in the change, by number of
    arrival, also of those that were deleted. cause: see record_cause and refit_cause.
    """
    return orjson.dumps(
        {
            "schema": _ENTITY_UPDATE,
            "seq": seq,
            "entity_id": entity_id(change.number),
            "version": change.version,
            "kind": change.kind.value,
            "members": _members(change.members, keys),
            "previous_members": _members(change.before, keys),
            "from_ids": [entity_id(number) for number in change.came_from],
            "into_ids": [entity_id(number) for number in change.went_into],
            "cause": cause,
            "certainty": None,
        }
    )


def record_cause(key: RecordKey, position: Position) -> Json:
    """A RecordCause."""
    return {"kind": "record", "source": key.source, "id": key.id, "position": position}


def refit_cause(model_version: int) -> Json:
    """A RefitCause."""
    return {"kind": "refit", "model_version": model_version}


def assignment(seq: int, key: RecordKey, entity_id: str | None, version: int | None) -> bytes:
    """An Assignment as JSON; no entity and no version for a deleted record."""
    return orjson.dumps(
        {
            "schema": _ASSIGNMENT,
            "seq": seq,
            "source": key.source,
            "id": key.id,
            "entity_id": entity_id,
            "version": version,
        }
    )


def dead_letter(seq: int, bad: Bad) -> bytes:
    """A DeadLetter as JSON."""
    raw, encoding = _readable(bad.raw, bad.left_out > 0)
    return orjson.dumps(
        {
            "schema": _DEAD_LETTER,
            "seq": seq,
            "reason": bad.reason.value,
            # A detail that quotes the input must not make its own dead letter unreadable.
            "detail": bad.detail.encode(errors="replace").decode(),
            "position": bad.position,
            "key": None if bad.key is None else {"source": bad.key.source, "id": bad.key.id},
            "raw": raw,
            "encoding": encoding,
            "raw_bytes": len(bad.raw) + bad.left_out,
            "raw_sha256": None if bad.left_out else hashlib.sha256(bad.raw).hexdigest(),
        }
    )


def record_key_bytes(key: RecordKey) -> bytes:
    """Key of the messages about a record: a JSON array of its source and its id."""
    return orjson.dumps([key.source, key.id])


def entity_key_bytes(entity_id: str) -> bytes:
    """Key of the messages about an entity."""
    return entity_id.encode()


def json_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of the messages in each topic, by topic."""
    return {
        topic: {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **model.model_json_schema(),
        }
        for topic, model in MODELS.items()
    }


def _members(arrivals: Iterable[int], keys: Mapping[int, RecordKey]) -> list[dict[str, str]]:
    ordered = (keys[arrival] for arrival in sorted(arrivals))
    return [{"source": key.source, "id": key.id} for key in ordered]


def _readable(raw: bytes, cut: bool) -> tuple[str, str]:
    """The beginning of the bytes as text, and how it is encoded. cut: whether they go on."""
    beginning = raw[:MAX_RAW]
    try:
        return beginning.decode(), "utf-8"
    except UnicodeDecodeError as error:
        cut_character = (cut or len(raw) > MAX_RAW) and error.reason == "unexpected end of data"
        if cut_character:
            return beginning[: error.start].decode(), "utf-8"
    return base64.b64encode(beginning).decode(), "base64"


__all__ = [
    "ASSIGNMENTS",
    "DEAD_LETTERS",
    "ENTITY_UPDATES",
    "MAX_RAW",
    "MODELS",
    "Assignment",
    "DeadLetter",
    "EntityUpdate",
    "Key",
    "RecordCause",
    "RefitCause",
    "assignment",
    "dead_letter",
    "entity_key_bytes",
    "entity_update",
    "json_schemas",
    "record_cause",
    "record_key_bytes",
    "refit_cause",
]
