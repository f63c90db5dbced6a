"""What holds of the normalisation of every value that JSON can have."""

import math
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustering.features.schema import FieldSpec, FieldType, PartialDate
from stream.config import FieldConfig, NormaliseConfig
from stream.normalise import Normaliser

SPECS = tuple(FieldSpec(type_.value, type_) for type_ in FieldType)
FIELDS = {
    spec.name: FieldConfig.model_validate({"type": spec.type.value, "placeholders": ["foo!", "-1"]})
    for spec in SPECS
}
NORMALISER = Normaliser(SPECS, FIELDS, NormaliseConfig(stop_phrases=("a b", "so-called")))
STRINGS = tuple(spec for spec in SPECS if spec.type not in (FieldType.DATE, FieldType.NUMBER))

# Characters and pieces that the rules look at, among any others.
PIECES = st.sampled_from(
    ["foo!", "a b", " a", " b", "-1", "1.5", "1,299", "mailto:", "<", ">", "@", "+49", "00",
     "ext 1", "26", "/", "Oct ", "1966", "test", "n/a", "'", "\u00b4", "é",
     "\u0301", "ガ", "\u200b", "\xa0", "ß"]
)  # fmt: skip
TEXTS = st.text(max_size=20) | st.lists(PIECES | st.characters(), max_size=8).map("".join)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_every_json_value_gives_a_value_of_its_type(raw: Any) -> None:
    for spec in SPECS:
        value = NORMALISER.value(spec, raw)
        if value is None:
            continue
        if spec.type is FieldType.DATE:
            assert isinstance(value, PartialDate)
            assert 1 <= value.year < 9999
            assert 0 <= value.month <= 12
            assert 0 <= value.day <= 31
            assert value.month or not value.day
        elif spec.type is FieldType.NUMBER:
            assert isinstance(value, float)
            assert math.isfinite(value)
        else:
            assert isinstance(value, tuple)
            texts = [str(text) for text in value]
            assert list(value) == sorted(set(texts))
            assert all(text and text.isascii() and text == text.strip() for text in texts)


@pytest.mark.parametrize("spec", STRINGS, ids=lambda spec: spec.name)
@settings(max_examples=150, deadline=None)
@given(raw=TEXTS)
def test_a_normalised_string_is_normal(spec: FieldSpec, raw: str) -> None:
    value = NORMALISER.value(spec, raw)
    if isinstance(value, tuple):
        assert NORMALISER.value(spec, value[0]) == value


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_composed_and_decomposed_text_are_the_same(raw: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, raw) for form in ("NFC", "NFD"))
    for spec in SPECS:
        assert NORMALISER.value(spec, composed) == NORMALISER.value(spec, decomposed)
