"""Records as they arrive: what to do with one, or why it cannot be read.

Sources decode bytes; :func:`parse_record` says what the decoded value asks for. A record comes

- flat, ``{"id": 7, "source": "crm", "name": "Ann"}``: the field names that say which record it is
  are configured, all others are its fields; or
- in an envelope, ``{"source": "crm", "id": 7, "version": 3, "fields": {"name": "Ann"}}``:
  exactly when ``fields`` is an object. Nothing but these and the operation may stand in one.

It is deleted by the operation ``delete``, or by ``"fields": null`` in an envelope. Both forms of a
record give the same fields: names that are reserved by the configuration are left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import orjson
import xxhash

from clustering.types import RecordKey
from stream.config import SourceConfig

Scalar = str | int | float | bool | None
Value = Scalar | list[Scalar]
Version = int | float | str | None
Position = dict[str, Any]
"""Where an operation stood, as small JSON; its source decides what is in it, and can go on reading
after it."""

MAX_KEY_BYTES = 1024
"""Longest source, id or version, in bytes of UTF-8."""

_ENVELOPE = frozenset({"source", "id", "version", "fields"})
_LEAST_INT, _MOST_INT = -(2**63), 2**64 - 1
_MOST_EXACT = 2.0**53


class BadReason(StrEnum):
    """Why something in the input is not a record."""

    BAD_JSON = "bad_json"
    INVALID_UTF8 = "invalid_utf8"
    DUPLICATE_KEY = "duplicate_key"
    NOT_AN_OBJECT = "not_an_object"
    BAD_ENVELOPE = "bad_envelope"
    BAD_OPERATION = "bad_operation"
    BAD_ROW = "bad_row"
    MISSING_ID = "missing_id"
    WRONG_TYPE = "wrong_type"
    NOT_FINITE = "not_finite"
    FIELD_TOO_LARGE = "field_too_large"
    RECORD_TOO_LARGE = "record_too_large"


@dataclass(frozen=True, slots=True)
class Upsert:
    """Keep this record, in place of an older version of it."""

    key: RecordKey
    fields: dict[str, Value]
    """as received, without the reserved ones; encodable as JSON"""
    version: Version
    """what its sender calls this version; None when it says nothing"""
    position: Position


@dataclass(frozen=True, slots=True)
class Delete:
    """Forget this record."""

    key: RecordKey
    version: Version
    position: Position


@dataclass(frozen=True, slots=True)
class Bad:
    """Something that is not a record."""

    reason: BadReason
    detail: str
    """what is wrong, for people"""
    raw: bytes
    """the input as it came, or the beginning of it"""
    key: RecordKey | None
    """of which record, when that much could be read"""
    position: Position
    left_out: int = 0
    """bytes of the input that ``raw`` lacks"""


Operation = Upsert | Delete | Bad


class _RefusedError(Exception):
    """What is wrong with a record."""

    def __init__(self, reason: BadReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def parse_record(data: object, raw: bytes, position: Position, config: SourceConfig) -> Operation:
    """What a decoded record asks for; never raises for what is in it.

    data: the value as decoded, keys text. raw: the bytes it was decoded from, whose length counts
    against ``max_record_size``. Values are text, finite numbers (integers within -2^63 .. 2^64-1),
    booleans, null, or lists of these.
    """
    key = None
    try:
        if len(raw) > config.max_record_size:
            detail = f"{len(raw)} bytes; source.max_record_size is {config.max_record_size}"
            raise _RefusedError(BadReason.RECORD_TOO_LARGE, detail)
        if not isinstance(data, Mapping):
            detail = f"a record is an object of fields, not {_describe(data)}"
            raise _RefusedError(BadReason.NOT_AN_OBJECT, detail)
        operation = _operation(data, config)
        if _is_envelope(data, config):
            key = _key(data.get("source"), data.get("id"), config)
            fields, version = data["fields"], data.get("version")
            if fields is None and operation == "upsert":
                detail = 'the operation is "upsert", but "fields" is null'
                raise _RefusedError(BadReason.BAD_OPERATION, detail)
            if version is None and config.version_field is not None and fields is not None:
                version = fields.get(config.version_field)
        else:
            key = _key(data.get(config.source_field), data.get(config.id_field), config)
            fields = data
            version = None if config.version_field is None else data.get(config.version_field)
        version = _version(version)
        if operation == "delete" or fields is None:
            return Delete(key, version, position)
        return Upsert(key, _fields(fields, config), version, position)
    except _RefusedError as refused:
        return Bad(refused.reason, refused.detail, raw, key, position)


def canonical_json(fields: Mapping[str, Value]) -> bytes:
    """The fields as JSON that is equal for equal content: names sorted, null fields left out."""
    present = {name: value for name, value in fields.items() if value is not None}
    return orjson.dumps(present, option=orjson.OPT_SORT_KEYS)


def content_hash(fields: Mapping[str, Value]) -> bytes:
    """16 bytes, equal for equal fields in any order; a null field counts as absent."""
    return xxhash.xxh3_128_digest(canonical_json(fields))


def compare_versions(a: Version, b: Version) -> int:
    """-1 when version ``a`` is older than ``b``, 1 when it is newer, else 0.

    Numbers compare as numbers, also those written as text (``"10"`` is newer than ``"9"``), ISO
    8601 dates and times as moments (UTC where they name no offset), anything else as text. Of two
    kinds, numbers are older than moments, and these than other text, so that the order never goes
    round in a circle. None is neither older nor newer than any version, since nothing is known of
    it: the last one to arrive counts.
    """
    if a is None or b is None:
        return 0
    x, y = _order(a), _order(b)
    return int(x > y) - int(x < y)


def _order(version: int | float | str) -> tuple[int, Any]:
    """The kind of a version, and what orders it within its kind."""
    if (number := _number(version)) is not None:
        return 0, number
    if (moment := _moment(version)) is not None:
        return 1, moment
    return 2, version


_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_FRACTION = re.compile(r"(.*:\d\d)[.,](\d+)(.*)", re.ASCII)


def _number(version: int | float | str) -> int | float | Decimal | None:
    if not isinstance(version, str):
        return version
    text = version.strip()
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _moment(version: int | float | str) -> tuple[datetime, Decimal] | None:
    """The second and the fraction of it, which may be finer than microseconds."""
    text = str(version).strip()
    fraction = Decimal(0)
    if match := _FRACTION.fullmatch(text):
        text, fraction = match[1] + match[3], Decimal(f"0.{match[2]}")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)), fraction


def _operation(data: Mapping[str, Any], config: SourceConfig) -> str | None:
    """The operation that a record names, or None."""
    operation = data.get(config.operation_field)
    if operation is None or operation == "":  # an empty cell of a table
        return None
    if operation not in ("upsert", "delete"):
        name, value = _quote(config.operation_field), _describe(operation)
        detail = f'{name} is "upsert" or "delete", not {value}'
        raise _RefusedError(BadReason.BAD_OPERATION, detail)
    return str(operation)


def _is_envelope(data: Mapping[str, Any], config: SourceConfig) -> bool:
    others = data.keys() - _ENVELOPE - {config.operation_field}
    if isinstance(data.get("fields"), Mapping):
        if others:
            name = _quote(min(others, key=str))
            detail = f'{name} stands beside "fields"; put it inside'
            raise _RefusedError(BadReason.BAD_ENVELOPE, detail)
        return True
    # A flat record may have a field of this name that happens to be null.
    return "fields" in data and data["fields"] is None and not others


def _key(source: object, id_: object, config: SourceConfig) -> RecordKey:
    if source is None or source == "":
        source = config.default_source
    return RecordKey(_name(source, "source"), _name(id_, "id"))


def _name(value: object, what: str) -> str:
    """A source or an id, as text: numbers in decimal digits, so that 7, 7.0 and "7" are one."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            raise _RefusedError(BadReason.NOT_FINITE, f"the {what} is {value}")
        # Beyond these a decoder may have rounded, and different ids would become one.
        if isinstance(value, float) and abs(value) >= _MOST_EXACT:
            detail = f"the {what} {value!r} has too many digits for a number; write it as text"
            raise _RefusedError(BadReason.WRONG_TYPE, detail)
        if not _LEAST_INT <= value <= _MOST_INT:
            detail = f"the {what} has too many digits for a number; write it as text"
            raise _RefusedError(BadReason.WRONG_TYPE, detail)
        text = str(int(value)) if value == int(value) else format(Decimal(repr(value)), "f")
    elif value is None:
        raise _RefusedError(BadReason.MISSING_ID, f"the record has no {what}")
    else:
        detail = f"the {what} is {_describe(value)}; it must be text or a number"
        raise _RefusedError(BadReason.WRONG_TYPE, detail)
    if not text.strip():
        raise _RefusedError(BadReason.MISSING_ID, f"the {what} is empty")
    if _utf8_length(text, f"the {what}") > MAX_KEY_BYTES:
        detail = f"the {what} is longer than {MAX_KEY_BYTES} bytes"
        raise _RefusedError(BadReason.FIELD_TOO_LARGE, detail)
    return text


def _version(value: object) -> Version:
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        detail = f"the version is {_describe(value)}; it must be text or a number"
        raise _RefusedError(BadReason.WRONG_TYPE, detail)
    if _checked_scalar(value, "the version") > MAX_KEY_BYTES:
        detail = f"the version is longer than {MAX_KEY_BYTES} bytes"
        raise _RefusedError(BadReason.FIELD_TOO_LARGE, detail)
    return value


def _fields(data: Mapping[str, Any], config: SourceConfig) -> dict[str, Value]:
    reserved = config.reserved
    fields: dict[str, Value] = {}
    for name, value in data.items():
        if name in reserved:
            continue
        if not name.isascii():
            _utf8_length(name, "the name of a field")
        if isinstance(value, list | tuple):
            value = list(value)  # noqa: PLW2901  # a tuple is a list in JSON
            size = sum(_checked_scalar(item, name, " in a list") for item in value)
        else:
            size = _checked_scalar(value, name)
        if size > config.max_field_size:
            detail = f"{_quote(name)} has {size} bytes; source.max_field_size is "
            detail += str(config.max_field_size)
            raise _RefusedError(BadReason.FIELD_TOO_LARGE, detail)
        fields[name] = value
    return fields


def _checked_scalar(value: object, name: str, where: str = "") -> int:
    """Size of a scalar in bytes (8 if not text); refuses what JSON cannot carry exactly."""
    if isinstance(value, str):
        return len(value) if value.isascii() else _utf8_length(value, _quote(name))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _RefusedError(BadReason.NOT_FINITE, f"{_quote(name)} is {value}{where}")
    elif isinstance(value, int):
        if not _LEAST_INT <= value <= _MOST_INT:
            detail = f"{_quote(name)} is a number of more than 64 bits{where}; write it as text"
            raise _RefusedError(BadReason.WRONG_TYPE, detail)
    elif value is not None:
        detail = f"{_quote(name)} is {_describe(value)}{where}; flatten it into fields of its own"
        raise _RefusedError(BadReason.WRONG_TYPE, detail)
    return 8


def _utf8_length(text: str, what: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        detail = f"{what} holds half of a surrogate pair, which is no character"
        raise _RefusedError(BadReason.INVALID_UTF8, detail) from None


def _quote(name: object) -> str:
    """A name as ASCII in quotes, shortened, safe to print anywhere."""
    text = str(name)
    return json.dumps(text if len(text) <= 60 else text[:57] + "...")


def _describe(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quote(value)
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case int() | float():
            return "a number"
    return f"a {type(value).__name__}"


__all__ = [
    "MAX_KEY_BYTES",
    "Bad",
    "BadReason",
    "Delete",
    "Operation",
    "Position",
    "Scalar",
    "Upsert",
    "Value",
    "Version",
    "canonical_json",
    "compare_versions",
    "content_hash",
    "parse_record",
]
