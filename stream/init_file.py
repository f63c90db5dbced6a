"""Writes a first configuration file from what the fields of some records seem to be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from clustering.errors import UsageError
from stream.config import Config, FieldConfig, Section
from stream.profile import FieldProfile

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_WIDTH = 98


def to_fields(profiles: Iterable[FieldProfile]) -> dict[str, FieldConfig]:
    """The ``fields`` section that the profiles amount to, in their order."""
    return {
        profile.name: FieldConfig.model_validate(
            {
                "type": profile.type or "ignore",
                "date_order": profile.date_order,
                "default_region": profile.default_region,
            }
        )
        for profile in profiles
    }


def write_config(profiles: Sequence[FieldProfile], path: Path) -> None:
    """Write :func:`render_config` to a new file. Raises UsageError if there is one already."""
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(render_config(profiles))
    except FileExistsError:
        raise UsageError(f"{path} exists; remove it first or write to another file") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def render_config(profiles: Sequence[FieldProfile]) -> str:
    """A YAML file with the profiles' fields, and every other setting as a comment.

    Each field comes after what its values looked like and which other types would make sense.
    """
    lines = [
        "# Configuration of graftd. Settings behind a # stand at their defaults.",
        "version: 1",
        "",
        "# What each field is, as far as its first values show. Correct what is wrong: the types",
        "# are name, text, date, number, category, phone, email, identifier and ignore.",
        "# The examples are values of the records: take them out before you show this to others.",
        "fields:",
    ]
    for profile, field in zip(profiles, to_fields(profiles).values(), strict=True):
        lines += [f"  # {line}" for line in _description(profile)]
        lines.append(f"  {_quoted(profile.name)}: {_entry(field)}")
    defaults = Config()
    for name in Config.model_fields:
        section = getattr(defaults, name)
        if isinstance(section, Section):
            lines += ["", *_commented(name, section)]
    return "\n".join(lines) + "\n"


def _description(profile: FieldProfile) -> list[str]:
    shares = f"{profile.missing_share:.0%} missing, {profile.distinct_share:.0%} distinct"
    seen = ", ".join(
        _printable(json.dumps(_short(text), ensure_ascii=False)) for text in profile.examples
    )
    other = f"; or: {', '.join(profile.alternatives)}" if profile.alternatives else ""
    text = f"{profile.reason}{other} ({shares}{f'; {seen}' if seen else ''})"
    return wrap(text, _WIDTH - 4, break_long_words=False, break_on_hyphens=False)


def _entry(field: FieldConfig) -> str:
    settings = field.model_dump(exclude_defaults=True)
    if settings.keys() == {"type"}:
        return field.type
    return "{" + ", ".join(f"{key}: {value}" for key, value in settings.items()) + "}"


def _commented(name: str, section: Section) -> list[str]:
    """A section whose every key is a comment, each after what it means."""
    lines = [f"# {name}:"]
    values = section.model_dump(mode="json")
    for key, field in type(section).model_fields.items():
        lines += [f"#   # {line}" for line in wrap(field.description or "", _WIDTH - 6)]
        lines.append(f"#   {key}: {_value(values[key])}")
    return lines


def _value(value: Any) -> str:
    """A default as YAML writes it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return _quoted(value) if not re.fullmatch("[0-9]+[A-Za-z]+", value) else value
    return json.dumps(value)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def _quoted(text: str) -> str:
    """``text`` as YAML reads it back, in quotes where it could be taken for something else."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return _printable(json.dumps(text, ensure_ascii=False))


def _printable(text: str) -> str:
    r"""``text`` with what YAML does not let stand in a file as ``\UXXXXXXXX``."""
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
