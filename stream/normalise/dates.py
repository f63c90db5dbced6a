"""Dates as they are compared, whole or in part."""

from __future__ import annotations

import calendar
import re
from typing import Literal

from clustering.features.schema import PartialDate
from stream.normalise.text import folded

DateOrder = Literal["ymd", "dmy", "mdy"]

# Two digits of a year up to this one are of the 2000s, others of the 1900s. Fixed, so that a
# record means the same whenever it is read.
LAST_SHORT_YEAR = 30

_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?:t.*|\d{6})?")  # a time may follow
_YEAR_FIRST = re.compile(r"(\d{4})[-/. ](\d{1,2})(?:[-/. ](\d{1,2}))?(?!\d)(?:[t ].*)?")
_YEAR_LAST = re.compile(r"(\d{1,2})[-/. ](\d{1,2})[-/. ](\d{4}|\d{2})(?!\d)(?: .*)?")
_MONTH_YEAR = re.compile(r"(\d{1,2})[-/.](\d{4})")
_WORD = re.compile(
    r"(?<![a-z])(?:(jan)(?:uary)?|(feb)(?:ruary)?|(mar)(?:ch)?|(apr)(?:il)?|(may)|(june?)|(july?)|"
    r"(aug)(?:ust)?|(sept?)(?:ember)?|(oct)(?:ober)?|(nov)(?:ember)?|(dec)(?:ember)?)(?![a-z])"
)
_SHORT_YEAR = re.compile(r"\d{1,2}(?:st|nd|rd|th)?[ .-]*[a-z]+[ .,'-]*(\d{2})")
_DAY = re.compile(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th)?(?!\d)")
_LONE_YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d|21\d\d)(?!\d)")


def date(text: str, order: DateOrder | None) -> PartialDate | None:
    """The date that a text gives, as far as it gives one; None if it gives no year.

    order: of day, month and year where digits alone leave it open. Without it, and where it makes
    no date, the first order that does is taken: day before month, then month before day, then,
    where the first number can only be one, year first. Month names are English. Parts that cannot
    be (month 13, 31 February) or are 0 are unknown; the year 9999, which means "never", is no year.
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
    year_found = _LONE_YEAR.search(plain) or _SHORT_YEAR.fullmatch(plain)
    if year_found is None:
        return None
    year, rest = _full_year(int(year_found[1])), plain[: year_found.start(1)]
    rest += " " + plain[year_found.end(1) :]
    word = _WORD.search(rest)
    if word is None or word.lastindex is None:
        return None if year_found.re is _SHORT_YEAR else _date(year, 0, 0)
    day_found = _DAY.search(rest[: word.start()] + " " + rest[word.end() :])
    return _date(year, word.lastindex, int(day_found[1]) if day_found else 0)


def _short(first: int, second: int, year: str, order: DateOrder | None) -> PartialDate | None:
    last = int(year)
    readings = {"dmy": (last, second, first), "mdy": (last, first, second)}
    year_first = first > 31 or (order == "ymd" and len(year) == 2)
    if year_first:
        readings["ymd"] = (first, second, last)
    preferred = [order] if order in readings else []
    for name in (*preferred, *readings):
        short, month, day = readings[name]
        found = _date(_full_year(short), month, day)
        if found and found.day:
            return found
    short, month, day = readings[(*preferred, *readings)[0]]
    if day == 0:
        return _date(_full_year(short), month, 0)
    return _date(_full_year(first if year_first else last), 0, 0)


def _full_year(year: int) -> int:
    if year >= 100:
        return year
    return year + (2000 if year <= LAST_SHORT_YEAR else 1900)


def _date(year: int, month: int, day: int) -> PartialDate | None:
    if not 1 <= year < 9999:
        return None
    if not 1 <= month <= 12:
        return PartialDate(year)
    return PartialDate(year, month, day if day <= calendar.monthrange(year, month)[1] else 0)


__all__ = ["DateOrder", "date"]
