"""What a field is, from its values: every type, and what is left out. All values are invented."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustering.errors import UsageError
from clustering.features.schema import FieldType
from stream import shapes
from stream.config import Config, load_config, parse_config
from stream.init_file import render_config, to_fields, write_config
from stream.profile import FieldProfile, profile

N = 60
RNG = np.random.default_rng(5)
GIVEN = ["Ada", "Ben", "Cleo", "Dov", "Eva", "Finn", "Gus", "Hal", "Ida", "Jon", "Kay", "Leo"]
FAMILY = ["Abel", "Brandt", "Cole", "Dunn", "Ewing", "Falk", "Grant", "Horn", "Ives", "Jost"]
WORDS = [
    "blue",
    "steel",
    "lamp",
    "with",
    "long",
    "cable",
    "and",
    "a",
    "heavy",
    "foot",
    "at",
    "home",
]


def draw(choices: Iterable[Any], n: int = N) -> list[Any]:
    """``n`` of the choices at random, with repeats."""
    among = list(choices)
    return [among[i] for i in RNG.integers(0, len(among), n)]


def digits(length: int, n: int = N) -> list[str]:
    """``n`` numbers of ``length`` digits, as text."""
    low = 10 ** (length - 1)
    return [str(number) for number in RNG.integers(low, 10 * low, n)]


def only(name: str, values: list[Any]) -> FieldProfile:
    """The profile of one field that has these values, beside an id."""
    records = [{"id": str(i), name: value} for i, value in enumerate(values)]
    [found] = profile(records, reserved={"id"})
    return found


def sentence() -> str:
    return " ".join(draw(WORDS, 12))


CASES = {
    "given_name": (draw(GIVEN), FieldType.NAME),
    "lastName": ([f"{a}-{b}" for a, b in zip(draw(FAMILY), draw(FAMILY), strict=True)], "name"),
    "who": ([f"{a} {b}" for a, b in zip(draw(GIVEN), draw(FAMILY), strict=True)], "name"),
    "authors": (
        [f"{a}, B. Cole, and {b} Dunn" for a, b in zip(draw(GIVEN), draw(GIVEN), strict=True)],
        "text",
    ),
    "description": ([sentence() for _ in range(N)], "text"),
    "remarks": ([sentence() for _ in range(N)], "text"),
    "address1": ([f"{n} Mill Lane" for n in draw(range(1, 90))], "text"),
    "town": (
        draw(f"{a}{b}" for a in ("Nor", "Sud", "Wes") for b in ("ham", "ton", "wick", "by")),
        "text",
    ),
    "dob": (
        [
            f"{y}-{m:02d}-{d:02d}"
            for y, m, d in zip(
                draw(range(1930, 2010)), draw(range(1, 13)), draw(range(1, 29)), strict=True
            )
        ],
        "date",
    ),
    "born": (
        [f"{y}{m:02d}11" for y, m in zip(draw(range(1930, 2010)), draw(range(1, 13)), strict=True)],
        "date",
    ),
    "when": (
        [
            f"{d} March {y}"
            for d, y in zip(draw(range(1, 29)), draw(range(1950, 2010)), strict=True)
        ],
        "date",
    ),
    "published": ([f"({y})." for y in draw(range(1960, 2020))], "date"),
    "price": ([f"${n}.99" for n in draw(range(3, 400))], "number"),
    "cost": ([f"{n}.50 eur" for n in draw(range(3, 400))], "number"),
    "lat": (list(RNG.uniform(-90, 90, N)), "number"),
    "population": ([int(n) for n in RNG.integers(200, 900_000, N)], "number"),
    "children": (draw(range(5)), "category"),
    "month": ([str(m) for m in draw(range(1, 13))], "category"),
    "active": (draw([True, False]), "category"),
    "state": (draw(["nsw", "vic", "qld", "wa"]), "category"),
    "shelf": (draw(["A", "B", "C"]), "category"),
    "colour_kind": (draw(["dark red", "red", "green", "dark blue"]), "category"),
    "postcode": (digits(4), "category"),
    "zip": ([f"0{code}" for code in digits(4)], "category"),
    "street_number": ([str(n) for n in draw(range(1, 300))], "category"),
    "branch": (digits(3, 20) * 3, "category"),
    "phone": ([f"020/{n}" for n in digits(7)], "phone"),
    "contact_no": ([f"+49 30 {n}" for n in digits(7)], "phone"),
    "fax": (digits(9), "phone"),
    "email": (
        [f"{a}.{b}@mail.example".lower() for a, b in zip(draw(GIVEN), draw(FAMILY), strict=True)],
        "email",
    ),
    "reach": ([f"{a}@mail.example" for a in draw(GIVEN)], "email"),
    "ssn": (
        [f"{a}-{b}-{c}" for a, b, c in zip(digits(3), digits(2), digits(4), strict=True)],
        "identifier",
    ),
    "soc_sec_id": (digits(7), "identifier"),
    "member": (digits(8), "identifier"),
    "part": ([f"QX{a}B" for a in digits(5)], "identifier"),
    "site": ([f"https://shop.example/{n}" for n in draw(range(20))], "identifier"),
    "device": (draw(f"{n:032x}" for n in range(20)), "identifier"),
    "row": (list(range(N)), None),
    "rec": ([f"rec-{n}" for n in RNG.permutation(N)], None),
    "link": ([f"https://shop.example/{n}" for n in range(N)], None),
    "digest": ([f"{int(n):040x}" for n in RNG.permutation(N)], None),
    "tenant": (["acme"] * N, None),
    "empty": ([None, "", " "] * 20, None),
    "nested": ([{"a": 1}] * N, None),
    "updated_at": ([f"2024-05-{d:02d}T10:00:00Z" for d in draw(range(1, 29))], None),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_field_is(name: str) -> None:
    values, expected = CASES[name]

    found = only(name, values)

    assert found.type == expected, found.reason
    assert found.reason


@pytest.mark.parametrize("name", [name for name, (_, kind) in CASES.items() if kind])
def test_some_dirt_and_gaps_change_nothing(name: str) -> None:
    values, expected = CASES[name]
    dirty = [
        ["?", None, value, value][i % 4] if i < 20 else value for i, value in enumerate(values)
    ]

    assert only(name, dirty).type == expected


def test_shares_and_examples() -> None:
    found = only("town", ["Norham", "Norham", " Wesby", None, ""])

    assert found.missing_share == pytest.approx(0.4)
    assert found.distinct_share == pytest.approx(2 / 3)
    assert found.examples == ("Norham", "Wesby")


def test_a_list_is_several_values() -> None:
    found = only("phones", [["+49 30 1234567", "+49 30 7654321"], [], ["+49 40 5556667"]])

    assert found.type == FieldType.PHONE
    assert found.missing_share == pytest.approx(1 / 3)
    assert found.distinct_share == 1.0


@pytest.mark.parametrize(
    ("values", "order"),
    [
        (["25/12/80", "03/04/1981", "01/02/99"], "dmy"),
        (["12/25/80", "03/04/1981", "01/02/99"], "mdy"),
        (["03/04/1981", "01/02/99"], None),
        (["1981-04-03", "1999-02-01"], None),
    ],
)
def test_the_order_of_dates_shows_in_days_above_twelve(
    values: list[str], order: str | None
) -> None:
    found = only("dob", values * 5)

    assert found.type == FieldType.DATE
    assert found.date_order == order


def test_north_american_phones_get_their_region() -> None:
    numbers = [f"({a}) 555-{b}" for a, b in zip(draw([212, 415]), digits(4), strict=True)]

    assert only("phone", numbers).default_region == "US"
    assert only("phone", [f"0{n}" for n in digits(9)]).default_region is None


def test_a_copy_of_a_field_counts_once() -> None:
    names = draw(GIVEN)
    first, copy = profile([{"name": name, "display_name": name.upper()} for name in names])

    assert first.type == FieldType.NAME
    assert copy.type is None
    assert "name" in copy.reason


def test_fields_come_in_order_of_appearance_without_the_reserved() -> None:
    found = profile([{"id": 1, "b": "x"}, {"c": "y", "a": "z", "b": "w"}], Config().source.reserved)

    assert [field.name for field in found] == ["b", "c", "a"]


def test_no_records_have_no_fields() -> None:
    assert profile([]) == []


def test_few_records_are_not_overinterpreted() -> None:
    found = {f.name: f.type for f in profile([{"state": "vic", "row": 1, "name": "Ada"}] * 2)}

    assert found == {"state": "category", "row": "category", "name": "name"}


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("1980-02-30", {"ymd"}),  # the calendar is the business of whoever reads the date
        ("1980-13-01", set()),
        ("19801301", set()),
        ("1980/2/1", {"ymd"}),
        ("1980-02", {"ymd"}),
        ("13.02.1980", {"dmy"}),
        ("02/13/80", {"mdy"}),
        ("1/2/80", {"dmy", "mdy"}),
        ("1/2.80", set()),
        ("Feb 1980", {"ymd"}),
        ("3rd of", set()),
        ("1980.", {"year"}),
        ("9999", set()),
        ("", set()),
    ],
)
def test_date_orders(text: str, orders: set[str]) -> None:
    assert shapes.date_orders(text) == orders


@pytest.mark.parametrize(
    "text", ["192.168.10.12", "1-2", "12345", "+12", "0-201-53082-1", "call me"]
)
def test_what_is_no_phone(text: str) -> None:
    assert not shapes.is_phone(text)


@pytest.mark.parametrize("text", ["1" * 10**6, "1 " * 10**6, "a@" * 10**6, "," * 10**6])
def test_huge_values_are_text(text: str) -> None:
    assert only("body", [text, text + "x"]).type == FieldType.TEXT


def everything() -> list[FieldProfile]:
    return [only(name, values) for name, (values, _) in CASES.items()]


def test_the_first_file_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "graftd.yaml"
    profiles = [*everything(), only("day", ["25/12/1980"] * 3 + ["1/2/1990"])]

    write_config(profiles, path)

    config = load_config(path, {})
    assert dict(config.fields) == to_fields(profiles)
    assert list(config.fields) == [field.name for field in profiles]
    assert config.fields["day"].date_order == "dmy"
    assert config == Config(fields=config.fields)


@pytest.mark.parametrize(
    "name",
    [
        "yes",
        "null",
        "12",
        "a: b",
        "#x",
        "",
        " ",
        "it's",
        'a"b',
        "a\nb",
        "Größe",
        "a\\b",
        "\x07",
        "😀",
        "${A}",
    ],
)
def test_any_name_and_value_can_stand_in_the_first_file(name: str) -> None:
    text = render_config([only(name, [f"{name} {i} \n\x07# :" for i in range(3)])])

    assert list(parse_config(text, "c.yaml", {}).fields) == [name]


def test_the_settings_in_comments_are_the_defaults() -> None:
    text = render_config([])
    settings = re.sub(r"(?m)^#(?: ([a-z]+:)|( {3}[a-z_]+: .*))$", r"\1\2", text)

    config = parse_config(settings, "c.yaml", {})

    assert config == Config() == parse_config(text, "c.yaml", {})
    assert config.matching.model_fields_set == {*type(config.matching).model_fields}


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "graftd.yaml"
    path.write_text("version: 1\n")

    with pytest.raises(UsageError, match=r"graftd.yaml exists"):
        write_config([], path)
    with pytest.raises(UsageError, match="cannot be written"):
        write_config([], tmp_path / "none" / "graftd.yaml")

    assert path.read_text() == "version: 1\n"
