"""Decides what each field of the records is, from the first few hundred of them.

A field's type follows from the shape of its values (dates look like dates), from how often they
repeat (a code that many records share is a category, one that few share is an identifier) and, only
where those leave a choice, from the words in its name. Every decision comes with its reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from clustering.features.schema import FieldType
from stream import shapes

MOSTLY = 0.8
"""Share of the values that must have a shape; the rest may be dirt."""

ENOUGH = 10
"""Values below which nothing is concluded from how often they repeat."""

_HINTS: Mapping[str, str] = {
    word: hint
    for hint, words in {
        "name": "name names surname forename fname lname firstname lastname fullname nickname "
        "alias author authors coauthor editor artist composer person people contact company "
        "organisation organization org employer manufacturer brand maker vendor supplier label",
        "text": "title subject description abstract summary note notes comment text body headline "
        "journal venue publisher institution",
        "place": "address addr street road line city town suburb village place locality "
        "location district",
        "category": "gender sex type status category genre country state province region county "
        "currency language lang kind role class nationality colour color",
        "postcode": "postcode zip zipcode postal plz postleitzahl",
        "phone": "phone tel telephone mobile fax cell msisdn",
        "identifier": "id ids key ssn sin nin isbn issn ean upc gtin sku vin iban vat tax passport "
        "license licence serial lei duns uuid guid account",
        "quantity": "price amount cost total salary income fee lat latitude lon lng long longitude "
        "height weight length width depth duration runtime population altitude elevation score",
        "written": "created updated modified inserted loaded scraped imported ingested timestamp",
    }.items()
    for word in words.split()
}


@dataclass(frozen=True)
class FieldProfile:
    """What a field seems to be.

    type: how to compare it; None to carry it along uncompared.
    reason: what its values are, in a few words.
    alternatives: other types that would make sense.
    missing_share: share of the records without a value, 0..1.
    distinct_share: distinct values as a share of the values, 0..1; 0 when there are none.
    examples: its most frequent values, at most three.
    date_order: order of day, month and year, where dates leave a choice and the values show it.
    default_region: country of phone numbers without one, where their form shows it.
    """

    name: str
    type: FieldType | None
    reason: str
    alternatives: tuple[FieldType, ...]
    missing_share: float
    distinct_share: float
    examples: tuple[str, ...]
    date_order: str | None = None
    default_region: str | None = None


def profile(
    records: Sequence[Mapping[str, Any]], reserved: Collection[str] = ()
) -> list[FieldProfile]:
    """What each field of the ``records`` is, in order of first appearance.

    records: the first few hundred, in the order they come.
    reserved: fields to leave out, such as the record's id.
    """
    names = dict.fromkeys(name for record in records for name in record)
    columns = [
        _Column(name, [shapes.texts(record.get(name)) for record in records])
        for name in names
        if name not in reserved
    ]
    first_with: dict[tuple[tuple[str, ...], ...], str] = {}
    profiles = []
    for column in columns:
        twin = first_with.setdefault(column.content, column.name)
        decision = _decide(column)
        if decision.type is not None and twin != column.name and len(column.values) >= ENOUGH:
            decision = _Decision(None, f"the same values as {twin}; they count once")
        profiles.append(_profile_of(column, decision))
    return profiles


@dataclass(frozen=True)
class _Decision:
    type: FieldType | None
    reason: str
    alternatives: tuple[FieldType, ...] = ()
    date_order: str | None = None
    default_region: str | None = None


class _Column:
    """One field's values over the records, and how they repeat."""

    def __init__(self, name: str, cells: list[list[str]]) -> None:
        self.name = name
        self.records = len(cells)
        self.filled = sum(1 for cell in cells if cell)
        self.values = [text for cell in cells for text in cell]
        self.counts = Counter(self.values)
        self.content = tuple(tuple(text.casefold() for text in cell) for cell in cells)

    @cached_property
    def hint(self) -> str:
        """What the field's name suggests, its last words first; "" for nothing."""
        words = re.findall("[A-Z]?[a-z]+|[A-Z]+", self.name)
        known = [_HINTS[word.lower()] for word in words if word.lower() in _HINTS]
        return known[-1] if known else ""

    @property
    def distinct_share(self) -> float:
        """Distinct values as a share of the values; 0 when there are none."""
        return len(self.counts) / len(self.values) if self.values else 0.0

    @property
    def unique(self) -> bool:
        """No value comes twice, among enough of them to tell."""
        return len(self.counts) == len(self.values) >= ENOUGH

    @cached_property
    def mean_words(self) -> float:
        return sum(len(text.split()) for text in self.values) / len(self.values)

    @cached_property
    def wordy_share(self) -> float:
        """Share of the values without a digit."""
        return self.share(lambda text: not any(map(str.isdigit, text)))

    def share(self, holds: Callable[[str], bool]) -> float:
        """Share of the values for which ``holds``."""
        return sum(n for text, n in self.counts.items() if holds(text)) / len(self.values)

    def mostly(self, holds: Callable[[str], bool]) -> bool:
        """Whether ``holds`` for all values but some dirt."""
        return self.share(holds) >= MOSTLY


def _decide(column: _Column) -> _Decision:
    """The first rule that knows what the column is."""
    if not column.values:
        return _Decision(None, "no plain values")
    if len(column.counts) == 1 and len(column.values) >= ENOUGH:
        return _Decision(None, "one value throughout, which tells no two records apart")
    for rule in (_addresses, _counters, _dates, _phones, _numbers, _codes, _categories):
        if decision := rule(column):
            return decision
    return _words(column)


def _addresses(column: _Column) -> _Decision | None:
    """E-mail and page addresses, random ids."""
    if column.mostly(shapes.is_email):
        return _Decision(FieldType.EMAIL, "e-mail addresses")
    for shape, what in ((shapes.is_url, "page addresses"), (shapes.is_random_id, "random ids")):
        if column.mostly(shape):
            if column.unique:
                reason = f"{what}, another one in every record, which names the record only"
                return _Decision(None, reason, (FieldType.IDENTIFIER,))
            return _Decision(FieldType.IDENTIFIER, f"{what} that records share")
    return None


def _counters(column: _Column) -> _Decision | None:
    """Numbers given to records one after the other."""
    steps = [shapes.counter(text) for text in column.values]
    if not column.unique or len(column.values) < column.records or None in steps:
        return None
    numbers = [step[1] for step in steps if step]
    density = len(numbers) / (max(numbers) - min(numbers) + 1)
    rising = all(a < b for a, b in pairwise(numbers))
    one_prefix = len({step[0] for step in steps if step}) == 1
    if one_prefix and (density > 0.5 or (rising and density > 0.05)):
        reason = "a running number, which names the record only"
        return _Decision(None, reason, (FieldType.IDENTIFIER,))
    return None


def _dates(column: _Column) -> _Decision | None:
    """Whole dates in any usual form, and years."""
    orders = {text: shapes.date_orders(text) for text in column.counts}
    if not column.mostly(lambda text: bool(orders[text])):
        return None
    if column.hint == "written":
        return _Decision(None, "when the record was written, not what it is about")
    if column.mostly(lambda text: shapes.YEAR in orders[text]):
        if column.hint in ("quantity", "identifier"):
            return None
        reason = "years: dates whose month and day are not known"
        return _Decision(FieldType.DATE, reason, (FieldType.CATEGORY,))
    choice = [order for order in orders.values() if order & {"dmy", "mdy"}]
    only = Counter(order for found in choice if len(found) == 1 for order in found)
    if not choice:
        return _Decision(FieldType.DATE, "dates")
    if not only:
        reason = "dates; whether the day or the month comes first does not show: set date_order"
        return _Decision(FieldType.DATE, reason)
    order = only.most_common(1)[0][0]
    first = "day" if order == "dmy" else "month"
    return _Decision(FieldType.DATE, f"dates, the {first} first", date_order=order)


def _phones(column: _Column) -> _Decision | None:
    """Phone numbers: by their form, or by a looser one where the field is called so."""
    called_so = column.hint == "phone" and column.share(
        lambda text: shapes.is_phone(text) or (text.isdigit() and 6 <= len(text) <= 15)
    )
    if not (called_so and called_so >= 0.5) and not column.mostly(shapes.is_surely_phone):
        return None
    national = [text for text in column.counts if not text.startswith("+")]
    american = sum(map(shapes.is_american_phone, national))
    if national and american >= MOSTLY * len(national):
        return _Decision(
            FieldType.PHONE, "phone numbers of the North American form", default_region="US"
        )
    return _Decision(FieldType.PHONE, "phone numbers")


def _numbers(column: _Column) -> _Decision | None:
    """Quantities; numbers that only name something are categories or identifiers."""
    if column.hint == "postcode" and column.share(str.isalpha) < 0.5:
        return _Decision(FieldType.CATEGORY, "postcodes", (FieldType.TEXT,))
    if not column.mostly(shapes.is_number):
        return None
    whole = [text.split(".")[0] for text in column.values if shapes.is_whole(text)]
    signed = column.share(lambda text: text[0] in "+-") > 0.02
    if column.hint == "quantity" or signed or len(whole) < 0.7 * len(column.values):
        return _Decision(FieldType.NUMBER, "quantities")
    if column.hint == "identifier":
        return _Decision(FieldType.IDENTIFIER, "numbers that identify, by the field's name")
    if column.hint == "place":
        reason = "numbers of places, where 12 is no nearer to 13 than to 90"
        return _Decision(FieldType.CATEGORY, reason, (FieldType.TEXT,))
    length, of_length = Counter(map(len, whole)).most_common(1)[0]
    padded = sum(1 for text in whole if text[0] == "0" and text != "0")
    if length >= 3 and (of_length >= 0.95 * len(whole) or padded >= 0.05 * len(whole)):
        if length >= 6 and column.distinct_share > 0.5:
            reason = f"numbers of {length} digits that few records share"
            return _Decision(FieldType.IDENTIFIER, reason, (FieldType.CATEGORY,))
        return _Decision(
            FieldType.CATEGORY,
            f"codes of {length} digits",
            (FieldType.IDENTIFIER, FieldType.NUMBER),
        )
    if column.distinct_share <= 0.25 or len(column.counts) <= 12:
        reason = "few different whole numbers, so codes rather than quantities"
        return _Decision(FieldType.CATEGORY, reason, (FieldType.NUMBER,))
    return _Decision(FieldType.NUMBER, "whole numbers of any length", (FieldType.CATEGORY,))


def _codes(column: _Column) -> _Decision | None:
    """Single words with digits that few records share."""
    if not column.mostly(shapes.is_code):
        return None
    if column.hint == "identifier":
        return _Decision(FieldType.IDENTIFIER, "codes that identify, by the field's name")
    if column.distinct_share > 0.5 and column.hint != "category":
        return _Decision(FieldType.IDENTIFIER, "codes that few records share", (FieldType.TEXT,))
    return None


def _categories(column: _Column) -> _Decision | None:
    """Values of few words out of a small vocabulary."""
    if column.share(_is_list) >= 0.2:
        return None
    different, repeats = len(column.counts), len(column.values) / len(column.counts)
    longest = max(map(len, column.counts))
    few = (
        (longest <= 6 and repeats >= 4 and column.mean_words < 1.5)
        or (different <= 30 and repeats >= 3 and column.mean_words < 1.5)
        or (different <= 100 and repeats >= 8 and column.mean_words <= 4)
    )
    recur = column.distinct_share <= 0.8 or len(column.values) < ENOUGH
    if column.hint == "category" and column.mean_words <= 3 and recur:
        return _Decision(FieldType.CATEGORY, "classes, by the field's name", (FieldType.TEXT,))
    if not few or (column.hint in ("name", "place") and different > 10):
        return None
    reason = f"{different} different values that recur"
    return _Decision(FieldType.CATEGORY, reason, (FieldType.TEXT,))


def _words(column: _Column) -> _Decision:
    """Names and texts: what is left when nothing else fits."""
    if column.hint == "name" and column.mean_words > 4 and column.share(_is_list) >= 0.3:
        reason = "several names in one value, whose words and order vary as in a text"
        return _Decision(FieldType.TEXT, reason, (FieldType.NAME,))
    if column.hint == "name" and column.mean_words <= 5 and column.wordy_share >= 0.7:
        return _Decision(FieldType.NAME, "names, by the field's name", (FieldType.TEXT,))
    if column.hint == "place":
        return _Decision(FieldType.TEXT, "places, in words that may be left out or misspelt")
    short = column.mean_words <= 2.5 and column.wordy_share >= 0.9
    if not column.hint and short and column.share(_is_list) < 0.2:
        reason = "one to three words without digits, as names have"
        return _Decision(FieldType.NAME, reason, (FieldType.TEXT, FieldType.CATEGORY))
    words = round(column.mean_words)
    return _Decision(FieldType.TEXT, "single words" if words < 2 else f"about {words} words each")


def _is_list(text: str) -> bool:
    """Whether one text seems to hold several values."""
    return re.search(r"[;|]|\*\*|,\S|,.*,| and | & ", text) is not None


def _profile_of(column: _Column, decision: _Decision) -> FieldProfile:
    return FieldProfile(
        name=column.name,
        type=decision.type,
        reason=decision.reason,
        alternatives=decision.alternatives,
        missing_share=1 - column.filled / column.records if column.records else 0.0,
        distinct_share=column.distinct_share,
        examples=tuple(text for text, _ in column.counts.most_common(3)),
        date_order=decision.date_order,
        default_region=decision.default_region,
    )
