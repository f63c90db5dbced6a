"""Invented people, and the ways in which a record of one comes to look different."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any

GIVEN = [
    "Adela",
    "Bruno",
    "Clara",
    "Dario",
    "Edith",
    "Fabio",
    "Greta",
    "Henri",
    "Irene",
    "Jonas",
    "Karla",
    "Luigi",
    "Marta",
    "Niels",
    "Olivia",
    "Pablo",
    "Quinn",
    "Rosa",
    "Sven",
    "Tilda",
    "Ugo",
    "Vera",
    "Wanda",
    "Xenia",
    "Yann",
    "Zora",
]
FAMILY = [
    "Abendroth",
    "Bonfiglio",
    "Castellan",
    "Drummond",
    "Eriksson",
    "Falkenberg",
    "Gulbrandsen",
    "Hollander",
    "Ivanovic",
    "Jankowski",
    "Kaltenbrunn",
    "Lindqvist",
    "Montefiore",
    "Nakamura",
    "Oppenheim",
    "Papadakis",
    "Quintana",
    "Rasmussen",
    "Santorini",
    "Thornbury",
    "Ustinov",
    "Valdemar",
    "Wolkonsky",
    "Ximenez",
    "Yamamoto",
    "Zimmerli",
]
STREETS = [
    "Harbour",
    "Mill",
    "Station",
    "Church",
    "Garden",
    "Bridge",
    "Castle",
    "Forest",
    "River",
    "Market",
]

FIELDS = {
    "given": "name",
    "family": "name",
    "born": "date",
    "street": "text",
    "phone": "phone",
}
"""Type of each field of a person."""

Fields = dict[str, Any]


def person(number: int) -> Fields:
    """Person ``number``, always the same; neighbouring numbers share little."""
    draw = random.Random(f"person {number}")
    return {
        "given": draw.choice(GIVEN),
        "family": draw.choice(FAMILY),
        "born": str(date(1930, 1, 1) + timedelta(draw.randrange(27_000))),
        "street": f"{draw.choice(STREETS)} Street {draw.randrange(1, 200)}",
        "phone": f"+4930{draw.randrange(10**6, 10**7)}",
    }


def typo(text: str, draw: random.Random) -> str:
    """The text with two neighbouring letters swapped, one left out or one doubled."""
    if len(text) < 3:
        return text
    at = draw.randrange(len(text) - 1)
    kind = draw.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text[:at] + text[at + 1 :] if kind == 1 else text[:at] + text[at] + text[at:]


def variant(number: int, which: int) -> Fields:
    """One way in which person ``number`` may be written down; 0 is the correct one."""
    fields = person(number)
    draw = random.Random(f"variant {number} {which}")
    if which == 0:
        return fields
    name = draw.choice(["given", "family", "street"])
    fields[name] = typo(fields[name], draw)
    if which % 3 == 0:
        fields[draw.choice(["born", "street", "phone"])] = None
    return fields


def crowd(n_records: int, seed: int = 0, copies: int = 3) -> list[tuple[str, Fields]]:
    """Ids and fields of ``n_records`` records of invented people, in random order.

    copies: most records of one person.
    """
    draw = random.Random(seed)
    records: list[Fields] = []
    number = seed * 1_000_000
    while len(records) < n_records:
        records += [variant(number, which) for which in range(draw.randint(1, copies))]
        number += 1
    records = records[:n_records]
    draw.shuffle(records)
    return [(str(i), fields) for i, fields in enumerate(records)]


__all__ = ["FIELDS", "Fields", "crowd", "person", "typo", "variant"]
