"""Durations and sizes as people write them: ``200ms``, ``5m``, ``64MiB``, ``1GB``.

In a configuration both are always text with a unit; in the program a duration is a float in
seconds and a size an int in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

SECONDS: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES: Mapping[str, int] = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}

_QUANTITY = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?([A-Za-z]*)", re.ASCII)


def _split(text: object, units: Mapping[str, float], example: str) -> tuple[str, str]:
    """The number and the unit of a quantity. Raises ValueError, saying how to write it."""
    known = ", ".join(units)
    if isinstance(text, int | float) and not isinstance(text, bool):
        raise ValueError(f"{text} has no unit; write for example {example} (units: {known})")
    match = _QUANTITY.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r} is not a number with a unit, for example {example}")
    number, unit = match.groups()
    if not unit:
        raise ValueError(f"{number} has no unit; write for example {example} (units: {known})")
    if unit not in units:
        close = [name for name in units if name.lower() == unit.lower()]
        advice = f'did you mean "{close[0]}"?' if close else f"use one of {known}"
        raise ValueError(f"unknown unit {unit!r}; {advice}")
    return number, unit


def parse_duration(text: object) -> float:
    """Seconds (>= 0) of a text such as ``200ms``, ``1.5s``, ``5m``. Raises ValueError."""
    number, unit = _split(text, SECONDS, "30s")
    # Milliseconds are divided, not multiplied: 200 / 1000 is 0.2, 200 * 0.001 is not.
    return float(number) / 1000 if unit == "ms" else float(number) * SECONDS[unit]


def parse_size(text: object) -> int:
    """Bytes (>= 0) of a text such as ``64MiB``, ``1GB``, ``1.5GiB``. Raises ValueError."""
    number, unit = _split(text, BYTES, "64MiB")
    size = float(number) * BYTES[unit] if "." in number else int(number) * BYTES[unit]
    if size != int(size):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size)


def format_duration(seconds: float) -> str:
    """The shortest text that :func:`parse_duration` reads as ``seconds`` again."""
    for unit in ("d", "h", "m", "s"):
        count = seconds / SECONDS[unit]
        if count >= 1 and count == int(count):
            return f"{int(count)}{unit}"
    milliseconds = round(seconds * 1000)
    return f"{milliseconds}ms" if milliseconds / 1000 == seconds else f"{seconds:.9f}s"


def format_size(size: int) -> str:
    """The shortest text that :func:`parse_size` reads as ``size`` again."""
    for unit in ("TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "kB"):
        if size and size % BYTES[unit] == 0:
            return f"{size // BYTES[unit]}{unit}"
    return f"{size}B"


def _schema(units: Mapping[str, float], example: str) -> dict[str, Any]:
    pattern = rf"^\s*\d+(\.\d+)? ?({'|'.join(units)})\s*$"
    return {"type": "string", "pattern": pattern, "examples": [example]}


def _reading(parse: Any) -> BeforeValidator:
    def read(value: object) -> Any:
        try:
            return parse(value)
        except ValueError as error:
            raise PydanticCustomError("quantity", "{reason}", {"reason": str(error)}) from None

    return BeforeValidator(read)


Duration = Annotated[
    float,
    _reading(parse_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema(_schema(SECONDS, "30s")),
]
"""A pydantic type: text with a unit in the configuration, seconds in the program."""

Size = Annotated[
    int,
    _reading(parse_size),
    PlainSerializer(format_size, return_type=str, when_used="json"),
    WithJsonSchema(_schema(BYTES, "64MiB")),
]
"""A pydantic type: text with a unit in the configuration, bytes in the program."""
