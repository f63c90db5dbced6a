"""Troubles that users of other programs met, each by the smallest input that shows it.

They are about what values mean: when they say nothing, and how much they say when they are alike.
"""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustering.features.leaves import Leaves
from clustering.features.schema import FieldSpec, FieldType
from clustering.linkage.learned_kernels import level_of, pair_similarities
from clustering.model import first_model
from stream.config import NormaliseConfig
from stream.embedding import Embedder
from stream.messages import ASSIGNMENTS
from stream.normalise import Normaliser
from tests.support.people import GIVEN, Fields, person
from tests.support.resolve import resolve
from tests.support.rig import Rig, assigned, small_config, upserts

NOTHING = [None, "", "   ", "\u00a0", "\u200b", "\ufeff", "n/a", "-"]
PERSON = {"given": "name", "family": "name", "born": "date", "phone": "phone"}
REFIT = pytest.mark.parametrize("refit", [False, True], ids=["first model", "refitted"])


def invented_names(n: int, seed: int = 1) -> list[str]:
    """Distinct names that look like nobody's."""
    draw = random.Random(seed)
    names: dict[str, None] = {}
    while len(names) < n:
        pairs = (draw.choice("bcdfghjklmnprstvz") + draw.choice("aeiou") for _ in range(5))
        names["".join(pairs).title()] = None
    return list(names)


def strangers(n: int, **same: Any) -> list[tuple[str, Fields]]:
    """People with nothing in common but ``same`` and, now and then, a given name."""
    families = invented_names(n)
    return [
        (
            str(i),
            {
                "given": GIVEN[i % len(GIVEN)],
                "family": families[i],
                "born": person(i)["born"],
                **same,
            },
        )
        for i in range(n)
    ]


def alone(n: int) -> list[set[str]]:
    return sorted(({str(i)} for i in range(n)), key=min)


@pytest.mark.parametrize("nothing", NOTHING)
def test_a_missing_value_is_neither_agreement_nor_disagreement(nothing: str | None) -> None:
    fields = {"name": "name", "born": "date", "phone": "phone"}
    ann, bo = ({"name": n, "born": b} for n, b in (("Ann Lee", "1980-04-05"), ("Bo Roe", None)))
    records = [
        ("1", {**ann, "phone": nothing}),
        ("2", {**bo, "phone": nothing}),
        ("3", {**ann, "phone": "+49 30 1234567"}),
        ("4", {**ann, "phone": nothing}),
    ]
    assert resolve(records, fields) == [{"1", "3", "4"}, {"2"}]


@pytest.mark.parametrize("nothing", NOTHING)
@REFIT
def test_sharing_only_what_is_missing_is_no_agreement(nothing: str | None, refit: bool) -> None:
    shared = {"phone": nothing, "born": nothing, "family": nothing}
    records = [("1", {"given": "Ann", **shared}), ("2", {"given": "Bo", **shared})]
    assert resolve(records, PERSON, refit) == [{"1"}, {"2"}]
    records = [("1", {"given": nothing, **shared}), ("2", {"given": nothing, **shared})]
    assert resolve(records, PERSON, refit) == [{"1"}, {"2"}]


@pytest.mark.parametrize("filler", ["1900-01-01", "1985-01-01"], ids=["listed", "not listed"])
def test_a_default_birthday_that_all_have_brings_nobody_together(filler: str) -> None:
    names = invented_names(300)
    records = [(str(i), {"name": names[i], "born": filler}) for i in range(300)]
    assert resolve(records, {"name": "name", "born": "date"}, refit=True) == alone(300)


@pytest.mark.parametrize(
    ("other", "lowest", "highest"),
    [
        ("1975-11-30", 0, 1),
        ("1966-07-23", 0, 1),
        ("1980-01-01", 1, 5),
        ("1980-01-10", 2, 5),
        ("1990-10-01", 2, 5),
        ("1981-10-01", 2, 5),
        ("1980-10-02", 2, 5),
        ("1980", 2, 5),
        ("1 October 1980", 7, 7),
    ],
)
def test_unlike_birthdays_are_a_disagreement_and_slips_are_not(
    other: str, lowest: int, highest: int
) -> None:
    """ISO dates share most of their letters whatever they are, which says nothing."""
    model = first_model((FieldSpec("born", FieldType.DATE),), 16, 1)
    embedder = Embedder(model, Normaliser(model.specs, {}, NormaliseConfig()))
    leaves = Leaves(1)
    for leaf, born in enumerate(("1980-10-01", other)):
        leaves.put(leaf, embedder.embed(embedder.bags({"born": born})).weighed)
    alike = pair_similarities(leaves.arrays, model.params(), np.array([[0, 1]])).item()
    assert lowest <= level_of(alike) <= highest, alike
    assert (alike == 1.0) == (lowest == 7)


def test_people_of_one_name_with_unlike_birthdays_are_two() -> None:
    fields = {"name": "name", "born": "date"}
    records = [("1", "1980-01-01"), ("2", "1975-11-30"), ("3", "1 Jan 1980")]
    named = [(id_, {"name": "Ann Lee", "born": born}) for id_, born in records]
    assert resolve(named, fields) == [{"1", "3"}, {"2"}]


@REFIT
def test_one_birthday_and_town_do_not_make_one_person(refit: bool) -> None:
    fields = {"name": "name", "born": "date", "town": "category"}
    both = {"born": "1980-04-05", "town": "York"}
    records = [("1", {"name": "Ann Lee", **both}), ("2", {"name": "Bo Roe", **both})]
    assert resolve(records, fields, refit) == [{"1"}, {"2"}]
    records = [("1", {"name": None, **both}), ("2", {"name": "Bo Roe", "born": both["born"]})]
    assert resolve(records, fields, refit) == [{"1"}, {"2"}], "a birthday never stands alone"


@pytest.mark.parametrize("fields", [{"name": "name"}, {"name": "name", "email": "email"}])
def test_composed_and_decomposed_letters_are_the_same_name(fields: dict[str, str]) -> None:
    name = "Jos\u00e9 N\u00fa\u00f1ez"
    records = [
        (form, {"name": unicodedata.normalize(form, name), "email": "j@example.org"})
        for form in ("NFC", "NFD")
    ]
    assert records[0][1]["name"] != records[1][1]["name"]
    assert resolve(records, fields) == [{"NFC", "NFD"}]


def test_names_meet_across_scripts() -> None:
    born = "1980-04-05"
    records = [
        ("1", {"name": "\u0412\u043b\u0430\u0434\u0438\u043c\u0438\u0440 \u041a\u0438\u043c"}),
        ("2", {"name": "Vladimir Kim"}),
        ("3", {"name": "Ann Lee"}),
    ]
    dated = [(id_, {**fields, "born": born}) for id_, fields in records]
    assert resolve(dated, {"name": "name", "born": "date"}) == [{"1", "2"}, {"3"}]


def test_odd_ids_come_out_as_they_went_in(tmp_path: Path) -> None:
    ids = [
        "\u00e9/1?x",
        "e\u0301/1?x",
        "a b",
        "%C3%A9",
        "a\x00b",
        "a:b",
        "\u200b1",
        "1",
        "\U0001f600",
    ]
    rig = Rig.on_disk(small_config(), tmp_path)
    rig.feed(upserts((id_, person(i)) for i, id_ in enumerate(ids)))
    assert rig.clusters() == {frozenset({id_}) for id_ in ids}
    assert [value["id"] for value in rig.values(ASSIGNMENTS)[: len(ids)]] == ids
    rig.restart()
    assert rig.clusters() == {frozenset({id_}) for id_ in ids}
    assert assigned(rig.values(ASSIGNMENTS)) == rig.partition()
    rig.close()


def test_a_phone_that_hundreds_share_chains_nobody() -> None:
    """500 callers of one number, and three of them again without it."""
    records = strangers(500, phone="+49 30 1234567")
    again = {i: (f"again {i}", {**records[i][1], "phone": None}) for i in (3, 77, 400)}
    expected = [{str(i), again[i][0]} if i in again else {str(i)} for i in range(500)]

    found = resolve([*records, *again.values()], PERSON, refit=True)

    assert found == sorted(expected, key=min)


def test_a_rare_name_says_more_than_a_common_one(tmp_path: Path) -> None:
    """Its weight is the rarer one's, and the same as ever within its bounds."""
    records = strangers(120)
    for i in range(40):
        records[i][1]["family"] = "Smith"
    records += [("rare 1", {"family": "Zyx"}), ("rare 2", {"family": "Zyx"})]
    records += [("common 1", {"family": "Smith"}), ("common 2", {"family": "Smith"})]
    fields = {"given": "name", "family": "name", "born": "date"}
    rig = Rig(small_config(fields=fields, model={"refit_at": []}), tmp_path)
    rig.feed(upserts(records))
    rig.engine.refit()
    clusters = rig.clusters()
    assert not any({"common 1", "common 2"} <= members for members in clusters)
    found = rig.engine.resolver.leaves.arrays[3][:, 1]
    rarity = {
        key.id: float(found[held.leaf])
        for key in map(rig.engine.key_of, range(len(records)))
        if (held := rig.engine.held(key)) is not None
    }
    assert rarity["rare 1"] == rarity["rare 2"] > 3.0
    assert rarity["common 1"] == rarity["common 2"] == pytest.approx(1.082, abs=0.001)


def test_words_that_only_comment_on_a_name_are_left_out() -> None:
    records = [
        ("1", {"name": "SO-CALLED Republic of Foo"}),
        ("2", {"name": "Republic of Foo"}),
        ("3", {"name": "Kingdom of Bar"}),
    ]
    normalise = {"stop_phrases": ["so-called"]}
    assert resolve(records, {"name": "name"}, normalise=normalise) == [{"1", "2"}, {"3"}]


@REFIT
def test_a_name_within_another_is_not_the_same_name(refit: bool) -> None:
    records = [("1", {"name": "Bank"}), ("2", {"name": "Bank of New York"})]
    assert resolve(records, {"name": "name"}, refit) == [{"1"}, {"2"}]


def test_letters_of_either_case_are_the_same() -> None:
    records = [("1", {"name": "SMITH"}), ("2", {"name": "smith"}), ("3", {"name": "Jones"})]
    assert resolve(records, {"name": "name"}) == [{"1", "2"}, {"3"}]


@pytest.mark.parametrize(("n_equal", "n_others"), [(60, 0), (60, 1), (200, 60)])
def test_equal_records_stay_together_however_many_they_are(n_equal: int, n_others: int) -> None:
    names = ("given", "family", "born")
    records = [
        (str(i), {name: person(max(0, i - n_equal + 1))[name] for name in names})
        for i in range(n_equal + n_others)
    ]
    fields = {"given": "name", "family": "name", "born": "date"}
    found = resolve(records, fields, refit=True)
    assert {str(i) for i in range(n_equal)} in found
    assert len(found) == 1 + n_others


@pytest.mark.xfail(reason="a frequent birthday takes the weight of all others", strict=True)
def test_a_default_birthday_of_some_leaves_the_others_what_they_say() -> None:
    """A tenth have it; records that are equal otherwise are still one."""
    names = ("given", "family", "born")
    records = [(f"a{i}", {name: person(5000 + i)[name] for name in names}) for i in range(300)]
    for _, fields in records[::10]:
        fields["born"] = "1985-01-01"
    records += [(f"b{i}", dict(records[i][1])) for i in range(1, 21) if i % 10]
    found = resolve(records, {"given": "name", "family": "name", "born": "date"}, refit=True)
    assert all({f"a{i}", f"b{i}"} in found for i in range(1, 21) if i % 10)
