"""Phone numbers, e-mail addresses and identifiers as they are compared."""

from __future__ import annotations

import re

import phonenumbers

from clustering.features.schema import FieldType
from stream.normalise.placeholders import is_placeholder
from stream.normalise.text import folded

FEWEST_DIGITS = 5

_EXTENSION = re.compile(r"(?:ext\.?|extension|x|#)\s*\d{1,6}\s*$")
_IN_ANGLES = re.compile(r"<([^<>]+)>")
_LINK = re.compile(r"(?:mailto:)+")
_NOT_CODE = re.compile(r"[^A-Z0-9]+")


def phone(text: str, region: str | None) -> str:
    """Digits of a phone number, with the country's code where that is known; may be empty.

    A number is read by its country's rules when it begins with + or 00, or when ``region`` (ISO
    3166) says which country numbers without one belong to; otherwise its digits are taken as they
    stand. One that is not valid in its region is read as if the + were missing where that makes it
    valid there. Extensions are left out. Fewer than FEWEST_DIGITS digits, and placeholders,
    are no number.
    """
    plain = _EXTENSION.sub("", folded(text)).strip()
    digits = "".join(c for c in plain if c.isdigit())
    # Looked at before a country's code goes ahead of it and hides what it is.
    if len(digits) < FEWEST_DIGITS or is_placeholder(FieldType.PHONE, digits):
        return ""
    international = plain.startswith("+") or digits.startswith("00")
    if international or region is not None:
        written = "+" + digits.lstrip("0") if international else digits
        try:
            parsed = phonenumbers.parse(written, None if international else region)
        except phonenumbers.NumberParseException:
            return digits
        if not (international or phonenumbers.is_valid_number(parsed)):
            parsed = _with_country(digits, parsed)
        if phonenumbers.is_possible_number(parsed):
            digits = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)[1:]
    return digits if len(digits) >= FEWEST_DIGITS else ""


def _with_country(digits: str, national: phonenumbers.PhoneNumber) -> phonenumbers.PhoneNumber:
    """The number that the digits are with + ahead, if valid in the same country; else as it was."""
    try:
        parsed = phonenumbers.parse("+" + digits)
    except phonenumbers.NumberParseException:
        return national
    same = parsed.country_code == national.country_code
    return parsed if same and phonenumbers.is_valid_number(parsed) else national


def email(text: str) -> str:
    """An e-mail address in lower case, out of a display name or a link; may be empty."""
    plain = folded(text).replace(" ", "")
    in_angles = (part for part in _IN_ANGLES.findall(plain) if "@" in part)
    address = _LINK.sub("", next(in_angles, plain))
    return address if any(c.isalnum() for c in address) else ""


def identifier(text: str) -> str:
    """Letters and digits of an identifier, in upper case; may be empty."""
    return _NOT_CODE.sub("", folded(text).upper())


__all__ = ["FEWEST_DIGITS", "email", "identifier", "phone"]
