"""Text as it is compared: one spelling for what people see as the same words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from anyascii import anyascii

# Left out, not turned into a space: they stand inside words.
_INSIDE_WORDS = re.compile("['`\u00b4\u2018\u2019\u02bc]")
_ASCII_NOT_WORD = re.compile(r"[^a-z0-9]+")
# Control, format (zero-width, direction marks), surrogate and private-use characters show nothing.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co"})


def folded(text: str) -> str:
    """Case-folded text in plain letters: NFKC, no invisible characters, no accents, transliterated.

    White space of any kind becomes one space between words. Punctuation stays.
    """
    if not text.isascii():
        composed = unicodedata.normalize("NFKC", text)
        seen = "".join(
            " " if c.isspace() else c
            for c in composed
            if c.isspace() or unicodedata.category(c) not in _INVISIBLE
        )
        apart = unicodedata.normalize("NFKD", seen.casefold())
        text = anyascii("".join(c for c in apart if not unicodedata.combining(c)))
    elif not text.isprintable():
        text = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)
    return " ".join(text.casefold().split())


def words(text: str) -> str:
    """Folded text of letters and digits with single spaces between words; may be empty."""
    plain = _INSIDE_WORDS.sub("", folded(text))
    return _ASCII_NOT_WORD.sub(" ", plain).strip()


def without_phrases(text: str, phrases: Iterable[re.Pattern[str]]) -> str:
    """Words without the phrases that say nothing; unchanged where nothing else is left."""
    left = text
    for phrase in phrases:
        left = phrase.sub(" ", left)
    return " ".join(left.split()) or text


def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Matches a phrase as whole words of `words`."""
    return re.compile(rf"\b{re.escape(words(phrase))}\b")


__all__ = ["folded", "phrase_pattern", "without_phrases", "words"]
