"""JSON Lines: one object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from stream.config import SourceConfig
from stream.records import Bad, BadReason, Operation, Position, parse_record
from stream.sources.lines import Line
from stream.sources.text import TextSource, position_after

_KEY_END = re.compile(rb'"\s*:')
_MOST_INT = 2.0**63


class JsonLinesSource(TextSource):
    """Objects, one a line; blank lines are skipped."""

    def _operations(
        self, lines: Iterator[Line | None], resumed: Position | None
    ) -> Iterator[Operation | None]:
        del resumed  # every line stands for itself
        for line in lines:
            if line is None:
                yield None
            elif not line.raw.isspace():
                yield _operation(line, self._config)


def _operation(line: Line, config: SourceConfig) -> Operation:
    raw, position = line.raw, position_after(line)
    if not line.whole:
        detail = f"line {line.number} is longer than source.max_record_size, "
        detail += f"{config.max_record_size}"
        return Bad(BadReason.RECORD_TOO_LARGE, detail, raw, None, position, line.left_out)
    try:
        data = orjson.loads(raw)
        if isinstance(data, dict) and not _is_faithful(data, raw):
            data = _decode(raw)
    except orjson.JSONDecodeError:
        # The slower decoder reads NaN and half surrogates, which are refused by name later.
        try:
            data = _decode(raw)
        except _DuplicateKeyError as error:
            return Bad(BadReason.DUPLICATE_KEY, str(error), raw, None, position)
        except UnicodeDecodeError as error:
            detail = f"line {line.number} is not UTF-8 text at byte {error.start + 1}"
            return Bad(BadReason.INVALID_UTF8, detail, raw, None, position)
        except (ValueError, RecursionError) as error:
            detail = f"line {line.number} is not JSON: {error}"
            return Bad(BadReason.BAD_JSON, detail, raw, None, position)
    except _DuplicateKeyError as error:
        return Bad(BadReason.DUPLICATE_KEY, str(error), raw, None, position)
    return parse_record(data, raw, position, config)


class _DuplicateKeyError(Exception):
    """An object has a key twice."""


def _is_faithful(data: dict[str, Any], raw: bytes) -> bool:
    """Whether orjson surely lost nothing: no key was there twice, no integer was rounded.

    Each key ends in a quote and a colon, so as many of these as keys leave none for another; only
    objects within objects, lists, or such a pair within a text need the slower decoder.
    """
    keys, kinds = len(data), {*map(type, data.values())}
    if dict in kinds and isinstance(fields := data.get("fields"), dict):
        keys += len(fields)
        kinds.update(map(type, fields.values()))
        values = [*data.values(), *fields.values()]
    else:
        values = list(data.values())
    if raw.count(b":") != keys and len(_KEY_END.findall(raw)) != keys:
        return False
    if list in kinds:
        return False
    return float not in kinds or all(abs(v) < _MOST_INT for v in values if type(v) is float)


def _decode(raw: bytes) -> Any:
    return json.loads(raw.decode(), object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _DuplicateKeyError(f"{json.dumps(name[:60])} is there more than once")
            seen.add(name)
    return data
