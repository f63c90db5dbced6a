"""A record as bags of weighted tokens, one bag per compared field.

This is what a record looks like before any model: the same record gives the same bags for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clustering.features.schema import ComparisonValue, FieldSpec, FieldType, PartialDate
from clustering.features.token_kernels import (
    HEAD,
    WHOLE,
    Tokens,
    date_tokens,
    hash_bytes,
    merged,
    number_token,
    string_tokens,
    tile_tokens,
)

# A longer text is compared by its words alone: its n-grams would cost much and add little.
MOST_WORDS_WITH_GRAMS = 24
MOST_TEXT_BYTES = 4096


class Bags(NamedTuple):
    """The bags of one record.

    starts: int32[n_fields + 1]; field f has the tokens starts[f]:starts[f + 1].
    ids: int32[n_tokens], ascending within a field, distinct there.
    weights: float32[n_tokens], > 0.
    values: int64[n_fields], hash of the whole value, 0 where the field is missing.
    """

    starts: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    values: npt.NDArray[np.int64]


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode()[:MOST_TEXT_BYTES], np.uint8)


def _name(text: str) -> Tokens:
    return string_tokens(_bytes(text), 2, 3, 1.0, False, 2.0, 0.0)


def _text(text: str) -> Tokens:
    longest = 3 if text.count(" ") < MOST_WORDS_WITH_GRAMS else 0
    return string_tokens(_bytes(text), 3, longest, 1.2, True, 1.0, 0.0)


def _category(text: str) -> Tokens:
    return string_tokens(_bytes(text), 2, 2, 0.7, False, 0.0, 3.0)


def _code(text: str) -> Tokens:
    return string_tokens(_bytes(text), 2, 3, 1.0, False, 0.0, 2.0)


def _email(text: str) -> Tokens:
    local, _, domain = text.partition("@")
    ids, weights = string_tokens(_bytes(local), 2, 3, 1.0, False, 0.0, 0.0)
    whole, host = _bytes(text), _bytes(domain)
    extra = [hash_bytes(whole, 0, len(whole), WHOLE), hash_bytes(host, 0, len(host), HEAD)]
    return merged(
        np.concatenate([ids, np.array(extra, np.uint32).view(np.int32)]),
        np.concatenate([weights, np.array([2.0, 1.0], np.float32)]),
        len(ids) + 2,
    )


_STRINGS = {
    FieldType.NAME: _name,
    FieldType.TEXT: _text,
    FieldType.CATEGORY: _category,
    FieldType.PHONE: _code,
    FieldType.IDENTIFIER: _code,
    FieldType.EMAIL: _email,
}


def _hash(text: str) -> int:
    """Non-zero 63-bit hash of a whole value."""
    data = np.frombuffer(text.encode(), np.uint8)
    high, low = hash_bytes(data, 0, len(data), 21), hash_bytes(data, 0, len(data), 22)
    return (int(high) >> 1) << 32 | int(low) | 1


@lru_cache(maxsize=1 << 16)
def _string_field(type_: FieldType, values: tuple[str, ...]) -> tuple[Tokens, int]:
    parts = [_STRINGS[type_](value) for value in values]
    tokens = parts[0]
    if len(parts) > 1:
        ids = np.concatenate([part[0] for part in parts])
        tokens = merged(ids, np.concatenate([part[1] for part in parts]), len(ids))
    return tokens, _hash("\x1f".join(values))


@lru_cache(maxsize=1 << 14)
def _other_field(value: PartialDate | float) -> tuple[Tokens, int]:
    if isinstance(value, PartialDate):
        packed = (value.year * 16 + value.month) * 32 + value.day
        return date_tokens(*value), (int(number_token(20, packed)) & 0x7FFFFFFF) << 1 | 1
    return tile_tokens(value), _hash(repr(value))


_NOTHING: tuple[Tokens, int] = ((np.empty(0, np.int32), np.empty(0, np.float32)), 0)


def _field(spec: FieldSpec, value: ComparisonValue) -> tuple[Tokens, int]:
    if value is None or value == ():
        return _NOTHING
    if isinstance(value, tuple) and not isinstance(value, PartialDate):
        return _string_field(spec.type, value)
    return _other_field(value)


def encode(specs: Sequence[FieldSpec], values: Sequence[ComparisonValue]) -> Bags:
    """The bags of a record whose normalised values come in the order of ``specs``."""
    fields = [_field(spec, value) for spec, value in zip(specs, values, strict=True)]
    starts = np.zeros(len(fields) + 1, np.int32)
    np.cumsum([len(tokens[0]) for tokens, _ in fields], out=starts[1:])
    return Bags(
        starts,
        np.concatenate([tokens[0] for tokens, _ in fields]),
        np.concatenate([tokens[1] for tokens, _ in fields]),
        np.array([value for _, value in fields], np.int64),
    )


__all__ = ["Bags", "encode"]
