"""What values are compared as. Stored values stay as they came; this is for comparison alone.

One notion of missing: null, empty, white space, invisible characters and placeholders all become
None here, and no later step sees anything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from clustering.features.schema import ComparisonValue, FieldSpec, FieldType, PartialDate
from stream.config import FieldConfig, NormaliseConfig
from stream.normalise import codes, dates, numbers
from stream.normalise.placeholders import DATES, is_placeholder
from stream.normalise.text import folded, phrase_pattern, without_phrases, words

# Distinct values of one field whose normalised form is remembered.
REMEMBERED = 1 << 14


class Normaliser:
    """Normalises the compared fields of records, in the order of ``specs``."""

    def __init__(
        self,
        specs: Sequence[FieldSpec],
        fields: Mapping[str, FieldConfig],
        normalise: NormaliseConfig,
    ) -> None:
        self._specs = tuple(specs)
        self._of_text = [
            lru_cache(maxsize=REMEMBERED)(_of_text(spec.type, fields.get(spec.name), normalise))
            for spec in specs
        ]

    def record(self, fields: Mapping[str, Any]) -> tuple[ComparisonValue, ...]:
        """Comparison values of a record's fields; a field that it lacks is None."""
        return tuple(
            self._value(i, spec, fields.get(spec.name)) for i, spec in enumerate(self._specs)
        )

    def _value(self, position: int, spec: FieldSpec, raw: Any) -> ComparisonValue:
        if raw is None:
            return None
        if isinstance(raw, str):
            return self._of_text[position](raw)
        if isinstance(raw, list | tuple):
            return _joined([self._value(position, spec, item) for item in raw])
        if isinstance(raw, float) and not math.isfinite(raw):
            return None
        if spec.type is FieldType.NUMBER:
            return float(raw)
        text = str(raw).lower() if isinstance(raw, bool) else numbers.plain(raw)
        return self._of_text[position](text)


def _joined(values: Sequence[ComparisonValue]) -> ComparisonValue:
    """One value of several: all distinct strings, or the first date or number."""
    known = [value for value in values if value is not None]
    for value in known:
        if isinstance(value, PartialDate | float):
            return value
    strings = {text for value in known if isinstance(value, tuple) for text in value}
    return tuple(sorted(str(text) for text in strings)) or None


def _of_text(
    type_: FieldType, field: FieldConfig | None, normalise: NormaliseConfig
) -> Callable[[str], ComparisonValue]:
    """How a text is normalised in one field."""
    order = None if field is None else field.date_order
    own = frozenset() if field is None else frozenset(map(folded, field.placeholders))
    placeholders = own | frozenset(map(folded, normalise.placeholders))
    phrases = [phrase_pattern(phrase) for phrase in normalise.stop_phrases if words(phrase)]
    to_string = _to_string(type_, None if field is None else field.default_region)

    def strings(text: str) -> ComparisonValue:
        if placeholders and folded(text) in placeholders:
            return None
        value = to_string(text)
        if phrases and type_ in (FieldType.NAME, FieldType.TEXT):
            value = without_phrases(value, phrases)
        return (value,) if value and not is_placeholder(type_, value) else None

    def whole_date(text: str) -> ComparisonValue:
        value = None if folded(text) in placeholders else dates.date(text, order)
        return None if value in DATES else value

    def number(text: str) -> ComparisonValue:
        return None if folded(text) in placeholders else numbers.number(text)

    return {FieldType.DATE: whole_date, FieldType.NUMBER: number}.get(type_, strings)


def _to_string(type_: FieldType, region: str | None) -> Callable[[str], str]:
    if type_ is FieldType.PHONE:
        return lambda text: codes.phone(text, region)
    return {FieldType.EMAIL: codes.email, FieldType.IDENTIFIER: codes.identifier}.get(type_, words)


__all__ = ["Normaliser"]
