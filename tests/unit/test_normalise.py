"""Values as they are compared: one spelling for what is the same, one notion of missing."""

import json
from typing import Any

import pytest

from clustering.features.schema import ComparisonValue, FieldSpec, FieldType, PartialDate
from stream.config import FieldConfig, NormaliseConfig
from stream.normalise import LONGEST_REMEMBERED, Normaliser

ALL_TYPES = [type_.value for type_ in FieldType]


def value(
    type_: str, raw: Any, normalise: NormaliseConfig | None = None, **options: Any
) -> ComparisonValue:
    spec = FieldSpec("f", FieldType(type_))
    field = FieldConfig.model_validate({"type": type_, **options})
    return Normaliser([spec], {"f": field}, normalise or NormaliseConfig()).value(spec, raw)


def test_record_gives_the_fields_in_the_order_of_the_specs() -> None:
    specs = [
        FieldSpec("born", FieldType.DATE),
        FieldSpec("name", FieldType.NAME),
        FieldSpec("phone", FieldType.PHONE),
    ]
    normaliser = Normaliser(specs, {}, NormaliseConfig())
    record = {"name": "Ann LEE", "born": 1993, "other": "left alone"}
    assert normaliser.record(record) == (PartialDate(1993), ("ann lee",), None)


@pytest.mark.parametrize("type_", ALL_TYPES)
@pytest.mark.parametrize(
    "raw",
    [None, "", "  \t\n", "\xa0", "\u200b", "\ufeff\u2060", "nan", "N/A", "unknown", "-", "--", "?",
     ".", "\u2014", float("nan"), float("inf"), [], [None, ""], [[]], {}, {"a": 1}],
)  # fmt: skip
def test_what_says_nothing_is_missing_in_every_type(type_: str, raw: Any) -> None:
    assert value(type_, raw) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("  Ann\u00a0 LEE ", "ann lee"),
        ("Lee, Ann-Marie", "lee ann marie"),
        ("O'Hare", "ohare"),
        ("O\u2019Hare", "ohare"),
        ("O\u00b4Hare", "ohare"),
        ("José Núñez", "jose nunez"),
        ("Jose\u0301 Nu\u0301n\u0303ez", "jose nunez"),
        ("Владимир Ким", "vladimir kim"),
        ("Straße", "strasse"),
        ("An\u00adna\u200b", "anna"),
        ("Null", "null"),
        ("Unknown Mortal", "unknown mortal"),
    ],
)
def test_names_are_plain_words(raw: str, expected: str) -> None:
    assert value("name", raw) == (expected,)


def test_marks_that_are_letters_are_not_taken_for_accents() -> None:
    assert value("name", "ガク") == value("name", "カ\u3099ク") == ("gaku",)
    assert value("name", "カク") == ("kaku",)


def test_numbers_are_plain_text_in_a_category() -> None:
    assert value("category", 5) == value("category", 5.0) == value("category", "5") == ("5",)
    assert value("category", 2.5) == value("category", "2.5") == ("2.5",)
    assert value("category", -1) == ("-1",)
    assert value("category", 1e-7) == ("0.0000001",)
    assert value("category", True) == ("true",)


def test_stop_phrases_go_as_whole_words_and_never_leave_nothing() -> None:
    normalise = NormaliseConfig(stop_phrases=("so-called", "the"))
    assert value("name", "SO-CALLED Republic of Foo", normalise) == ("republic of foo",)
    assert value("text", "The Theremin", normalise) == ("theremin",)
    assert value("name", "The", normalise) == ("the",)
    assert value("category", "the", normalise) == ("the",)


def test_stop_phrases_that_others_leave_behind_go_too() -> None:
    assert value("text", "x a a b b", NormaliseConfig(stop_phrases=("a b",))) == ("x",)


def test_placeholders_come_from_the_configuration_too() -> None:
    normalise = NormaliseConfig(placeholders=("Not Given", "-1"))
    assert value("name", "not  GIVEN!", normalise) is None
    assert value("category", -1, normalise) is None
    assert value("category", 1, normalise) == ("1",)
    assert value("name", "Dummy", placeholders=["dummy"]) is None
    assert value("name", "Dummy Smith", placeholders=["dummy"]) == ("dummy smith",)
    assert value("date", "1985-05-05", placeholders=["1985-05-05"]) is None
    assert value("number", "-999", placeholders=["-999"]) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("19661026", (1966, 10, 26)),
        (19661026, (1966, 10, 26)),
        ("1966-10-26", (1966, 10, 26)),
        ("1966-10-26T23:30:00+02:00", (1966, 10, 26)),
        ("19661026T233000Z", (1966, 10, 26)),
        ("19661026233000", (1966, 10, 26)),
        ("26/10/1966", (1966, 10, 26)),
        ("10/26/66", (1966, 10, 26)),
        ("8/15/67", (1967, 8, 15)),
        ("67-8-15", (1967, 8, 15)),
        ("July 1994", (1994, 7, 0)),
        ("26 Oct 1966", (1966, 10, 26)),
        ("26-OCT-66", (1966, 10, 26)),
        ("Oct 26, 1966", (1966, 10, 26)),
        ("October 26th, 1966", (1966, 10, 26)),
        ("sept 1994", (1994, 9, 0)),
        ("1994-07", (1994, 7, 0)),
        ("07/1994", (1994, 7, 0)),
        ("1993.", (1993, 0, 0)),
        ("(1993)", (1993, 0, 0)),
        (1993, (1993, 0, 0)),
        (1993.0, (1993, 0, 0)),
        ("Mayor 1993", (1993, 0, 0)),
        ("1966-13-40", (1966, 0, 0)),
        ("1966-02-31", (1966, 2, 0)),
        ("1966-02-29", (1966, 2, 0)),
        ("1968-02-29", (1968, 2, 29)),
        ("31/02/1966", (1966, 0, 0)),
        ("00/10/1966", (1966, 10, 0)),
        ("00/00/1966", (1966, 0, 0)),
        (["?", "1993", "1994"], (1993, 0, 0)),
    ],
)
def test_dates_keep_what_they_give(raw: Any, expected: tuple[int, int, int]) -> None:
    assert value("date", raw) == PartialDate(*expected)


@pytest.mark.parametrize(
    ("order", "expected"),
    [(None, (2003, 2, 1)), ("dmy", (2003, 2, 1)), ("mdy", (2003, 1, 2)), ("ymd", (2001, 2, 3))],
)
def test_the_order_of_a_date_is_the_one_configured(
    order: str | None, expected: tuple[int, int, int]
) -> None:
    assert value("date", "01/02/03", date_order=order) == PartialDate(*expected)


def test_short_years_turn_at_a_fixed_one() -> None:
    assert value("date", "1/1/30") == PartialDate(2030, 1, 1)
    assert value("date", "1/1/31") == PartialDate(1931, 1, 1)


@pytest.mark.parametrize(
    "raw",
    ["1900-01-01", "01/01/1901", "0000-00-00", "9999-12-31", "1800-01-01", 99999999, "12", True,
     "Monday", "0000"],
)  # fmt: skip
def test_what_is_no_date_is_missing(raw: Any) -> None:
    assert value("date", raw) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("$1,299.00", 1299.0),
        ("1.299,00 €", 1299.0),
        ("1 299", 1299.0),
        ("1\u202f299,50", 1299.5),
        ("1'299", 1299.0),
        ("1,299", 1299.0),
        ("1.299", 1.299),
        ("0,5", 0.5),
        (".5", 0.5),
        ("12%", 12.0),
        ("12 3 kg", 12.0),
        ("\u22125", -5.0),
        ("1e5", 1e5),
        (True, 1.0),
        (False, 0.0),
        (7, 7.0),
        (["x", "3"], 3.0),
    ],
)
def test_numbers(raw: Any, expected: float) -> None:
    assert value("number", raw) == expected


@pytest.mark.parametrize("raw", ["abc", "1e999", "inf", 10**400, -(10**400), float("-inf")])
def test_what_is_no_finite_number_is_missing(raw: Any) -> None:
    assert value("number", raw) is None


@pytest.mark.parametrize(
    ("raw", "region", "expected"),
    [
        ("213/680-9355", None, "2136809355"),
        ("(213) 680 9355", None, "2136809355"),
        ("213-680-9355 ext. 12", None, "2136809355"),
        (2136809355, None, "2136809355"),
        ("+49 (0)30 123456", None, "4930123456"),
        ("0049 30 123456", None, "4930123456"),
        ("030 123456", "DE", "4930123456"),
        ("4930123456", "DE", "4930123456"),
        ("213-680-9355", "US", "12136809355"),
        ("+1 213 680 9355", "DE", "12136809355"),
    ],
)
def test_phones_are_digits(raw: Any, region: str | None, expected: str) -> None:
    assert value("phone", raw, default_region=region) == (expected,)


@pytest.mark.parametrize(
    "raw", ["1234", "0049 00", "000-000-0000", "1234567890", "555-555-5555", "none"]
)
def test_what_is_no_phone_is_missing(raw: str) -> None:
    assert value("phone", raw) is None
    assert value("phone", raw, default_region="US") is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (" Ann.Lee@Example.ORG ", "ann.lee@example.org"),
        ("mailto:ann@example.org", "ann@example.org"),
        ("Ann Lee <ann@example.org>", "ann@example.org"),
        ("Ann (office) <mailto:ann@example.org>", "ann@example.org"),
        ("ann.example.org", "ann.example.org"),
    ],
)
def test_email_addresses_are_bare(raw: str, expected: str) -> None:
    assert value("email", raw) == (expected,)


@pytest.mark.parametrize("raw", ["test@test.com", "noreply@example.org", "none@none.com", "@"])
def test_what_is_no_email_address_is_missing(raw: str) -> None:
    assert value("email", raw) is None


def test_identifiers_are_letters_and_digits() -> None:
    assert value("identifier", "ab-12 3/é") == ("AB123E",)
    assert value("identifier", 42) == ("42",)


def test_lists_are_distinct_and_sorted() -> None:
    assert value("name", ["Bo", "ann", "ANN", None, ["Cy"]]) == ("ann", "bo", "cy")


def test_lists_may_lie_as_deep_as_they_like() -> None:
    raw: Any = "Ann"
    for _ in range(5000):
        raw = [raw]
    assert value("name", raw) == ("ann",)


def test_long_values_are_normalised_alike() -> None:
    word = "é" * (LONGEST_REMEMBERED + 1)
    assert value("text", word) == ("e" * (LONGEST_REMEMBERED + 1),)


@pytest.mark.parametrize("type_", ALL_TYPES)
@pytest.mark.parametrize("piece", ["<@", "@", "1 ", "1,", "- ", "ext", "jan ", "mailto:", "1/"])
def test_hostile_repetition_does_no_harm(type_: str, piece: str) -> None:
    value(type_, piece * 20_000)


def test_what_json_gives_is_accepted() -> None:
    raw = json.loads('["\\ud800", 1e400, -0.0, {"a": []}, "Ann"]')
    assert value("name", raw) == ("0", "ann")
