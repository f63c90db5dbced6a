"""Prints results: tables for people, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from rich.console import Console, RenderableType
from rich.text import Text

from stream.cli.options import Output

WIDTH_OF_A_PIPE = 160  # columns; a pipe has no width of its own to fit into


def console(stderr: bool = False) -> Console:
    """Where tables go; colour only on a terminal."""
    probe = Console(stderr=stderr)
    return probe if probe.is_terminal else Console(stderr=stderr, width=WIDTH_OF_A_PIPE)


def show(*what: RenderableType) -> None:
    """Print for people."""
    target = console()
    for part in what:
        target.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, str | Text))


def print_json(value: Any, indent: bool = True) -> None:
    """Print one JSON value."""
    option = orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if indent else 0)
    write(orjson.dumps(value, option=option))


def print_rows(rows: Iterable[Mapping[str, Any]], output: Output) -> None:
    """Print rows as one JSON array, or as one object a line."""
    if output is Output.jsonl:
        for row in rows:
            write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    else:
        print_json(list(rows))


def write(data: bytes) -> None:
    """Write text in UTF-8 to the standard output, whatever the locale."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def shown(value: Any) -> str:
    """A field's value for people; control characters never reach the terminal."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " | ".join(map(shown, value))
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(value))


__all__ = ["console", "print_json", "print_rows", "show", "shown", "write"]
