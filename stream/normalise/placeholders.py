"""Values that people and programs write where nothing is known.

A whole value counts, never a part of one. Values that are placeholders in one data set only come
from the configuration; those that are merely frequent lose their weight through the model.
"""

from __future__ import annotations

from clustering.features.schema import FieldType, PartialDate

# As `words` writes them.
WORDS = frozenset(
    {
        "n a", "na", "nan", "nil", "none", "null", "missing", "blank", "empty", "undefined",
        "unknown", "unk", "not known", "not available", "not applicable", "not specified",
        "not provided", "no data", "no value", "to be determined", "tbd", "tba", "test",
        "xx", "xxx", "xxxx", "xxxxx", "anonymous", "unbekannt", "nicht bekannt", "keine angabe",
        "k a", "inconnu", "non disponible", "desconocido", "no disponible", "sconosciuto",
    }
)  # fmt: skip
# Real names and codes may be spelt like these, so they are placeholders in other types only.
_NAMES = frozenset({"na", "nil", "none", "null", "test", "blank", "xx", "unk"})

DATES = frozenset(
    PartialDate(year, month, day)
    for year, month, day in (
        (1, 1, 1), (1800, 1, 1), (1900, 1, 1), (1901, 1, 1), (1970, 1, 1), (9999, 12, 31),
        (9999, 9, 9), (1111, 11, 11),
    )
)  # fmt: skip

EMAILS = frozenset(
    {"test", "none", "noemail", "no", "noreply", "no-reply", "na", "unknown", "null"}
)

_COUNTING = "12345678901234567890"


def is_placeholder(type_: FieldType, text: str) -> bool:
    """Whether a normalised string of some type stands for nothing."""
    if type_ is FieldType.NAME:
        return text in WORDS and text not in _NAMES
    if type_ in (FieldType.TEXT, FieldType.CATEGORY):
        return text in WORDS
    if type_ is FieldType.EMAIL:
        return text.partition("@")[0] in EMAILS or text.replace("/", " ") in WORDS
    if type_ is FieldType.PHONE:
        return len(set(text[-7:])) == 1 or text in _COUNTING
    return text.lower() in WORDS or text == "NA" or (len(text) > 2 and set(text) <= {"0"})


__all__ = ["DATES", "is_placeholder"]
