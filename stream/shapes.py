"""What a single value looks like: a date, a number, a phone number, the address of a page.

These are guesses from the form alone, for :mod:`stream.profile`; they normalise nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

YEAR = "year"
LONGEST = 300
"""Characters beyond which a value has none of these shapes, whatever it holds."""

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]{2,}")
_URL = re.compile(r"(?:[a-z][a-z0-9+.-]*://|www\.)\S+", re.IGNORECASE)
_RANDOM_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,}", re.IGNORECASE)
_CODE = re.compile(r"(?=[^\d]*\d)[A-Za-z0-9][A-Za-z0-9._/-]{3,39}")
_COUNTER = re.compile(r"([A-Za-z]{0,8}[-_:#]?)([0-9]{1,18})")
_WHOLE = re.compile(r"[-+]?[0-9]+(?:\.0+)?")
_NUMBER = re.compile(
    r"(?:[$€£¥]|[A-Za-z]{3} )? ?[-+]?(?:[0-9]{1,3}(?:[,' ][0-9]{3})+|[0-9]+)?(?:[.,]?[0-9]+)"
    r"(?:[eE][-+]?[0-9]+)? ?(?:[$€£¥%]|(?<= )[A-Za-z]{1,4})?"
)
_PHONE = re.compile(
    r"(?![0-9]{1,3}(?:\.[0-9]{1,3}){3}$)"  # an address of a machine
    r"\+?[0-9]{0,4}[ .-]?\(?[0-9]{2,5}\)?(?:[ ./-]{1,2}[0-9]{2,8}){1,4}"
    r"(?: ?(?:x|ext\.?|ext) ?[0-9]{1,6})?|\+[0-9]{8,15}|0[0-9]{8,11}",
    re.IGNORECASE,
)
_AMERICAN_PHONE = re.compile(r"1?[2-9][0-9]{2}[2-9][0-9]{6}")
_ISO_DATE = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})(?:[-/.]([0-9]{1,2}))?(?:[T ][0-9:.,Z+ -]+)?")
_COMPACT_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
_SHORT_DATE = re.compile(r"([0-9]{1,2})([-/. ])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})")
_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_WORDY_DATE = re.compile(
    rf"(?:[0-9]{{1,2}}(?:st|nd|rd|th)?[. -]+)?(?:{_MONTH})[a-z]*[. ,-]+"
    r"(?:[0-9]{1,2}[, ]+)?[0-9]{4}",
    re.IGNORECASE,
)
_LONE_YEAR = re.compile(r"[^\w]*([0-9]{4})[a-z]?[^\w]*")


def texts(value: Any) -> list[str]:
    """The values in a field of a record, as text without surrounding space; empty if missing.

    A list counts as several values; what is inside nested objects is not looked at.
    """
    if value is None or isinstance(value, dict):
        return []
    if isinstance(value, list | tuple):
        return [text for item in value for text in texts(item)]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    text = str(value).strip()
    return [text] if text else []


def date_orders(text: str) -> frozenset[str]:
    """The orders ("ymd", "dmy", "mdy") in which ``text`` is a date, or "year"; empty if none.

    A date whose month is a word has no order to be mistaken in and counts as "ymd".
    """
    if len(text) > LONGEST:
        return frozenset()
    if match := _ISO_DATE.fullmatch(text) or _COMPACT_DATE.fullmatch(text):
        year, month, day = (int(part or 1) for part in match.groups())
        return frozenset({"ymd"} if _is_date(year, month, day) else ())
    if match := _SHORT_DATE.fullmatch(text):
        first, second = int(match[1]), int(match[3])
        year = int(match[4]) + (1900 if len(match[4]) == 2 else 0)
        orders = (("dmy", second, first), ("mdy", first, second))
        return frozenset(order for order, month, day in orders if _is_date(year, month, day))
    if _WORDY_DATE.fullmatch(text):
        return frozenset({"ymd"})
    match = _LONE_YEAR.fullmatch(text)
    return frozenset({YEAR} if match and _is_date(int(match[1]), 1, 1) else ())


def _is_date(year: int, month: int, day: int) -> bool:
    return 1500 <= year <= 2100 and 1 <= month <= 12 and 1 <= day <= 31


def is_phone(text: str) -> bool:
    """Whether a field of phone numbers could hold this; other numbers with hyphens pass too."""
    return 7 <= sum(map(str.isdigit, text[:LONGEST])) <= 15 and _matches_phone(text)


def is_surely_phone(text: str) -> bool:
    """A phone number whatever the field is called: long, or with ``+``, ``(`` or 0 ahead."""
    return is_phone(text) and (text[0] in "+(0" or sum(map(str.isdigit, text)) >= 10)


def is_american_phone(text: str) -> bool:
    """A number of the North American plan, without ``+``."""
    digits = "".join(filter(str.isdigit, text))
    return not text.startswith("+") and _AMERICAN_PHONE.fullmatch(digits) is not None


def counter(text: str) -> tuple[str, int] | None:
    """The prefix and the number of what may be one step of a counter, such as ``r00012``."""
    match = _COUNTER.fullmatch(text) if len(text) <= LONGEST else None
    return (match[1], int(match[2])) if match else None


def _matcher(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: len(text) <= LONGEST and pattern.fullmatch(text) is not None


_matches_phone = _matcher(_PHONE)
is_email = _matcher(_EMAIL)
is_url = _matcher(_URL)
is_random_id = _matcher(_RANDOM_ID)
is_code = _matcher(_CODE)
is_whole = _matcher(_WHOLE)
is_number = _matcher(_NUMBER)
