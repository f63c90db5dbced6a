"""Numbers as they are compared."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from stream.normalise.text import folded

# A space groups thousands only; elsewhere it ends the number.
_NUMBER = re.compile(r"[-+]?\d(?:[\d.,']| (?=\d{3}(?!\d)))*(?:e[-+]?\d+)?|[-+]?[.,]\d+")


def number(text: str) -> float | None:
    """The first number in a text, whatever stands around it (a currency, a unit); None if none.

    Of a comma and a point, the last is the decimal mark. A mark that comes more than once groups
    thousands, as does a lone comma before exactly three digits; a lone point never does. So
    "1,299.00", "1.299,00" and "1 299" are what they look like, "1,299" is 1299, and "1.299" is
    1.299.
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
    """A finite number as the text of a code: no exponent, no ".0"."""
    return str(int(value)) if value == int(value) else format(Decimal(repr(value)), "f")


__all__ = ["number", "plain"]
