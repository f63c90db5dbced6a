"""Phone numbers, e-mail addresses and identifiers as they are compared."""

from __future__ import annotations

import re

import phonenumbers

from stream.normalise.text import folded

FEWEST_DIGITS = 5

_EXTENSION = re.compile(r"(?:ext\.?|extension|x|#)\s*\d{1,6}\s*$")
_IN_ANGLES = re.compile(r"<([^<>]+@[^<>]+)>")
_NOT_CODE = re.compile(r"[^A-Z0-9]+")


def phone(text: str, region: str | None) -> str:
    """Digits of a phone number, with the country's code where that is known; may be empty.

    A number is read by its country's rules when it begins with + or 00, or when ``region`` (ISO
    3166) says which country numbers without one belong to; otherwise its digits are taken as they
    stand. Extensions are left out. Fewer than FEWEST_DIGITS digits are no number.
    """
    plain = _EXTENSION.sub("", folded(text)).strip()
    digits = "".join(c for c in plain if c.isdigit())
    if len(digits) < FEWEST_DIGITS:
        return ""
    international = plain.startswith("+") or digits.startswith("00")
    if international or region is not None:
        written = "+" + digits.lstrip("0") if international else digits
        try:
            parsed = phonenumbers.parse(written, None if international else region)
        except phonenumbers.NumberParseException:
            return digits
        if phonenumbers.is_possible_number(parsed):
            return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)[1:]
    return digits


def email(text: str) -> str:
    """An e-mail address in lower case, out of a display name or a link; may be empty."""
    plain = folded(text).removeprefix("mailto:")
    found = _IN_ANGLES.search(plain)
    address = (found[1] if found else plain).replace(" ", "")
    return address if any(c.isalnum() for c in address) else ""


def identifier(text: str) -> str:
    """Letters and digits of an identifier, in upper case; may be empty."""
    return _NOT_CODE.sub("", folded(text).upper())


__all__ = ["FEWEST_DIGITS", "email", "identifier", "phone"]
