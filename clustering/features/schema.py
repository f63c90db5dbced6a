"""What a field is and the form its values take when they are compared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class FieldType(StrEnum):
    """How the values of a field are compared."""

    NAME = "name"
    TEXT = "text"
    DATE = "date"
    NUMBER = "number"
    CATEGORY = "category"
    PHONE = "phone"
    EMAIL = "email"
    IDENTIFIER = "identifier"


@dataclass(frozen=True)
class FieldSpec:
    """One compared field: its name in the records, its type, and how much it counts (> 0)."""

    name: str
    type: FieldType
    weight: float = 1.0


class PartialDate(NamedTuple):
    """A calendar date whose parts may be unknown; an unknown part is 0."""

    year: int
    month: int = 0
    day: int = 0


# What a normalised value is when it is compared; None is "missing" and is no evidence.
# Strings of the types name, text, category, phone, email and identifier come as a tuple with one
# element per value of a multi-valued field, dates as PartialDate, numbers as float.
ComparisonValue = tuple[str, ...] | PartialDate | float | None
