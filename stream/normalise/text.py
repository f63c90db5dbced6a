"""Text as it is compared: one spelling for what people see as the same words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from anyascii import anyascii

# Left out, not turned into a space: they stand inside words.
_INSIDE_WORDS = re.compile("['`]")
_ASCII_NOT_WORD = re.compile(r"[^a-z0-9]+")
_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
# Control, format (zero-width, direction marks), surrogate and private-use characters show nothing.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co"})


def folded(text: str) -> str:
    """Case-folded text in plain letters: NFKC, no invisible characters, no accents, transliterated.

    White space of any kind becomes one space between words. Punctuation stays.
    """
    if not text.isascii():
        # NFKC would take the acute accent that stands for an apostrophe apart, leaving a space.
        composed = unicodedata.normalize("NFKC", text.replace("\u00b4", "'"))
        seen = "".join(
            " " if c.isspace() else c
            for c in composed
            if c.isspace() or unicodedata.category(c) not in _INVISIBLE
        )
        # Composed, since marks are more than accents in some scripts: they tell ga from ka.
        text = anyascii(unicodedata.normalize("NFKC", seen.casefold()))
    elif not text.isprintable():
        text = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)
    return " ".join(text.casefold().split())


def words(text: str) -> str:
    """Folded text of letters and digits with single spaces between words; may be empty."""
    plain = _INSIDE_WORDS.sub("", folded(text))
    return _ASCII_NOT_WORD.sub(" ", plain).strip()


def label(text: str) -> str:
    """The words of a category; a number keeps its sign and its point, so that 2.5 is not "2 5"."""
    plain = folded(text)
    return plain if _PLAIN_NUMBER.fullmatch(plain) else words(plain)


def without_phrases(text: str, phrases: Collection[re.Pattern[str]]) -> str:
    """The words without the phrases that say nothing; unchanged where nothing else is left."""
    left, before = text, ""
    while left != before:  # what is taken out may bring the words of another phrase together
        before = left
        for phrase in phrases:
            left = " ".join(phrase.sub(" ", left).split())
    return left or text


def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Matches a phrase as whole words of `words`."""
    return re.compile(rf"\b{re.escape(words(phrase))}\b")


__all__ = ["folded", "label", "phrase_pattern", "without_phrases", "words"]
