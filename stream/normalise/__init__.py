"""What values are compared as. Stored values stay as they came; this is for comparison alone.

One notion of missing: null, empty, white space, invisible characters and placeholders all become
None here, and no later step sees anything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from clustering.features.schema import ComparisonValue, FieldSpec, FieldType, PartialDate
from stream.config import FieldConfig, NormaliseConfig
from stream.normalise import codes, dates, numbers
from stream.normalise.placeholders import DATES, is_placeholder
from stream.normalise.text import folded, label, phrase_pattern, without_phrases, words

# Distinct values of one field whose normalised form is remembered, and the longest of them, in
# characters: together they bound the memory that this takes.
REMEMBERED = 1 << 14
LONGEST_REMEMBERED = 256


class Normaliser:
    """Normalises the compared fields of records, in the order of ``specs``."""

    def __init__(
        self,
        specs: Sequence[FieldSpec],
        fields: Mapping[str, FieldConfig],
        normalise: NormaliseConfig,
    ) -> None:
        self._of_text = {
            spec: _remembering(_of_text(spec.type, fields.get(spec.name), normalise))
            for spec in specs
        }
        self._specs = tuple(specs)

    def record(self, fields: Mapping[str, Any]) -> tuple[ComparisonValue, ...]:
        """Comparison values of a record's fields; a field that it lacks is None."""
        return tuple(self.value(spec, fields.get(spec.name)) for spec in self._specs)

    def value(self, spec: FieldSpec, raw: Any) -> ComparisonValue:
        """The comparison value of a field, which is one of ``specs``, for any value that JSON has.

        Of a list, all distinct strings in order, or the first date or number that there is. Objects
        and numbers beyond the range of float64 are missing.
        """
        if isinstance(raw, str):
            return self._of_text[spec](raw)
        if isinstance(raw, list | tuple):
            return _joined([self._single(spec, item) for item in _items(raw)])
        return self._single(spec, raw)

    def _single(self, spec: FieldSpec, raw: Any) -> ComparisonValue:
        if isinstance(raw, bool):
            return float(raw) if spec.type is FieldType.NUMBER else self.value(spec, str(raw))
        if isinstance(raw, int | float):
            try:
                number = float(raw)
            except OverflowError:
                return None
            if not math.isfinite(number) or spec.type is FieldType.NUMBER:
                return number if math.isfinite(number) else None
            return self.value(spec, numbers.plain(raw))
        return self._of_text[spec](raw) if isinstance(raw, str) else None


def _items(values: Sequence[Any]) -> Iterator[Any]:
    """What is in a list and in the lists within it, in order, however deep they lie."""
    waiting = [iter(values)]
    while waiting:
        for item in waiting[-1]:
            if isinstance(item, list | tuple):
                waiting.append(iter(item))
                break
            yield item
        else:
            waiting.pop()


def _joined(values: Sequence[ComparisonValue]) -> ComparisonValue:
    """One value of several: all distinct strings, or the first date or number."""
    known = [value for value in values if value is not None]
    for value in known:
        if isinstance(value, PartialDate | float):
            return value
    strings = {text for value in known if isinstance(value, tuple) for text in value}
    return tuple(sorted(str(text) for text in strings)) or None


def _remembering(normalised: Callable[[str], ComparisonValue]) -> Callable[[str], ComparisonValue]:
    remembered = lru_cache(maxsize=REMEMBERED)(normalised)
    return lambda text: (normalised if len(text) > LONGEST_REMEMBERED else remembered)(text)


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
        unknown = value.lower() in placeholders or is_placeholder(type_, value)
        return (value,) if value and not unknown else None

    def whole_date(text: str) -> ComparisonValue:
        value = None if folded(text) in placeholders else dates.date(text, order)
        return None if value in DATES else value

    def number(text: str) -> ComparisonValue:
        return None if folded(text) in placeholders else numbers.number(text)

    return {FieldType.DATE: whole_date, FieldType.NUMBER: number}.get(type_, strings)


def _to_string(type_: FieldType, region: str | None) -> Callable[[str], str]:
    if type_ is FieldType.PHONE:
        return lambda text: codes.phone(text, region)
    others = {
        FieldType.EMAIL: codes.email,
        FieldType.IDENTIFIER: codes.identifier,
        FieldType.CATEGORY: label,
    }
    return others.get(type_, words)


__all__ = ["Normaliser"]
