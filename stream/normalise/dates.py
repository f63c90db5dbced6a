"""Dates as they are compared, whole or in part."""

from __future__ import annotations

import re
from typing import Literal

from clustering.features.schema import PartialDate
from stream.normalise.text import folded

DateOrder = Literal["ymd", "dmy", "mdy"]

# Two digits of a year up to this one are of the 2000s, others of the 1900s. Fixed, so that a
# record means the same whenever it is read.
LAST_SHORT_YEAR = 30

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})")
_YEAR_FIRST = re.compile(r"(\d{4})[-/. ](\d{1,2})(?:[-/. ](\d{1,2}))?(?!\d)(?:[t ].*)?")
_YEAR_LAST = re.compile(r"(\d{1,2})[-/. ](\d{1,2})[-/. ](\d{4}|\d{2})(?!\d)(?: .*)?")
_MONTH_YEAR = re.compile(r"(\d{1,2})[-/.](\d{4})")
_WORD = re.compile(r"\b(" + "|".join(_MONTHS) + r")[a-z]*\b")
_DAY = re.compile(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th)?(?!\d)")
_LONE_YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d|21\d\d)(?!\d)")


def date(text: str, order: DateOrder | None) -> PartialDate | None:
    """The date that a text gives, as far as it gives one; None if it gives no year.

    order: of day, month and year where digits alone leave it open. Without it, and where it makes
    no date, the first order that does is taken: day before month, then month before day.
    Parts that cannot be (month 13, day 32) are unknown.
    """
    plain = folded(text).strip(" .,;()[]")
    if found := _COMPACT.fullmatch(plain):
        return _date(int(found[1]), int(found[2]), int(found[3]))
    if found := _YEAR_FIRST.fullmatch(plain):
        year, month, day = int(found[1]), int(found[2]), int(found[3] or 0)
        return _date(year, day, month) if month > 12 >= day > 0 else _date(year, month, day)
    if found := _YEAR_LAST.fullmatch(plain):
        return _short(int(found[1]), int(found[2]), found[3], order)
    if found := _MONTH_YEAR.fullmatch(plain):
        return _date(int(found[2]), int(found[1]), 0)
    year_found = _LONE_YEAR.search(plain)
    if year_found is None:
        return None
    year, rest = int(year_found[1]), plain[: year_found.start()] + " " + plain[year_found.end() :]
    word = _WORD.search(rest)
    if word is None:
        return _date(year, 0, 0)
    day_found = _DAY.search(rest[: word.start()] + " " + rest[word.end() :])
    return _date(year, _MONTHS.index(word[1]) + 1, int(day_found[1]) if day_found else 0)


def _short(first: int, second: int, year: str, order: DateOrder | None) -> PartialDate | None:
    if order == "ymd" and len(year) == 2:
        return _date(_full_year(first), second, int(year))
    as_dmy, as_mdy = (second, first), (first, second)
    tries = (as_mdy, as_dmy) if order == "mdy" else (as_dmy, as_mdy)
    for month, day in tries:
        if 1 <= month <= 12 and 1 <= day <= 31:
            return _date(_full_year(int(year)), month, day)
    return _date(_full_year(int(year)), 0, 0)


def _full_year(year: int) -> int:
    if year >= 100:
        return year
    return year + (2000 if year <= LAST_SHORT_YEAR else 1900)


def _date(year: int, month: int, day: int) -> PartialDate | None:
    if not 1 <= year <= 9999:
        return None
    if not 1 <= month <= 12:
        return PartialDate(year)
    return PartialDate(year, month, day if 1 <= day <= 31 else 0)


__all__ = ["DateOrder", "date"]
