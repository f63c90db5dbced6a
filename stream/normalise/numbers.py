"""Numbers as they are compared."""

from __future__ import annotations

import math
import re

from stream.normalise.text import folded

_NUMBER = re.compile(r"[-+]?\d[\d.,' ]*(?:e[-+]?\d+)?|[-+]?[.,]\d+")


def number(text: str) -> float | None:
    """The first number in a text, whatever stands around it (a currency, a unit); None if none.

    A comma or point with exactly three digits behind it groups thousands when it comes more than
    once or before another mark, or is a comma; otherwise the last mark is the decimal one. So
    "1,299.00", "1.299,00" and "1 299" are what they look like, "1,299" is 1299 and "1.299" is 1.299.
    """
    found = _NUMBER.search(folded(text))
    if found is None:
        return None
    digits = found[0].strip(" ,.'").replace(" ", "").replace("'", "")
    if found[0][0] in ".,":
        digits = found[0]
    points, commas = digits.count("."), digits.count(",")
    if points and commas:
        decimal = "." if digits.rfind(".") > digits.rfind(",") else ","
        digits = digits.replace("," if decimal == "." else ".", "").replace(",", ".")
    elif commas == 1 and not re.fullmatch(r"[-+]?\d{1,3},\d{3}", digits):
        digits = digits.replace(",", ".")
    elif commas or points > 1:
        digits = digits.replace(",", "").replace(".", "")
    try:
        value = float(digits)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def plain(value: float) -> str:
    """A number as the text of a code: no exponent, no ".0"."""
    return str(int(value)) if value == int(value) else repr(value)


__all__ = ["number", "plain"]
