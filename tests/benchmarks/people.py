"""A large town of invented people, and the records that offices keep of them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

Fields = dict[str, str | None]

FIELDS = {
    "given": "name",
    "family": "name",
    "born": "date",
    "street": "text",
    "city": "category",
    "phone": "phone",
    "email": "email",
    "postcode": "identifier",
}
"""Type of each field of a person."""

_ONSETS = [
    "b",
    "br",
    "c",
    "ch",
    "d",
    "f",
    "fr",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "kl",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "r",
    "s",
    "sch",
    "st",
    "t",
    "tr",
    "v",
    "w",
    "z",
]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "au", "ei", "ia", "ou"]
_ENDS = ["n", "r", "s", "l", "ck", "nd", "rt", "sson", "ski", "berg", "mann", "ton", "etti"]


def _words(count: int, syllables: int, seed: int) -> list[str]:
    """Different pronounceable words."""
    draw = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        parts = [draw.choice(_ONSETS) + draw.choice(_VOWELS) for _ in range(syllables)]
        found["".join(parts) + draw.choice(_ENDS)] = None
    return list(found)


class Town:
    """People with names that are common and rare, as they are in life.

    mean_records: how many records one person has on average; the number is geometric.
    """

    def __init__(self, n_records: int, mean_records: float = 4.0, seed: int = 0) -> None:
        self._draw = random.Random(seed)
        self._given = _words(800, 2, 1)
        self._family = _words(6_000, 2, 2)
        self._streets = _words(3_000, 3, 3)
        self._cities = _words(60, 2, 4)
        self._n_records = n_records
        self._go_on = 1.0 - 1.0 / mean_records

    def json_lines(self) -> Iterator[str]:
        """The records in random order, as lines of JSON without line ends."""
        records: list[str] = []
        while len(records) < self._n_records:
            person = self._person()
            records.append(json.dumps(person))
            while self._draw.random() < self._go_on:
                records.append(json.dumps(self._variant(person)))
        records = records[: self._n_records]
        self._draw.shuffle(records)
        return (f'{{"id": {i}, {record[1:]}' for i, record in enumerate(records))

    def _common(self, words: list[str]) -> str:
        """One of the words, the first ones more often (density falling as 1 / rank)."""
        return words[int(len(words) ** self._draw.random()) - 1]

    def _person(self) -> Fields:
        draw = self._draw
        given, family = self._common(self._given), self._common(self._family)
        year, month, day = draw.randrange(1930, 2008), draw.randrange(1, 13), draw.randrange(1, 29)
        host = draw.choice(("mail", "post", "web", "office"))
        return {
            "given": given,
            "family": family,
            "born": f"{year}-{month:02}-{day:02}",
            "street": f"{draw.choice(self._streets)} street {draw.randrange(1, 200)}",
            "city": self._common(self._cities),
            "phone": f"+4930{draw.randrange(10**6, 10**7)}",
            "email": f"{given}.{family}{draw.randrange(100)}@{host}.example",
            "postcode": f"{draw.randrange(10_000, 99_999)}",
        }

    def _variant(self, person: Fields) -> Fields:
        """A record of the same person: one or two typing errors, sometimes a gap or a move."""
        draw, fields = self._draw, dict(person)
        for name in draw.sample(("given", "family", "street", "email"), draw.choice((1, 1, 2))):
            fields[name] = _typo(str(fields[name]), draw)
        if draw.random() < 0.3:
            fields[draw.choice(("born", "city", "phone", "email"))] = None
        if draw.random() < 0.1:
            fields["street"] = f"{draw.choice(self._streets)} street {draw.randrange(1, 200)}"
            fields["postcode"] = f"{draw.randrange(10_000, 99_999)}"
        return fields


def _typo(text: str, draw: random.Random) -> str:
    """The text with two neighbouring letters swapped, one left out or one doubled."""
    at = draw.randrange(len(text) - 1)
    kind = draw.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text[:at] + text[at + 1 :] if kind == 1 else text[:at] + text[at] + text[at:]
