"""Says in our own words, at a place in the file, what pydantic found wrong with a configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from stream.config_file import Document, KeyPath


def report(document: Document, error: ErrorDetails, root: type[BaseModel]) -> None:
    """Add what pydantic found wrong to the document's problems.

    root: the model that the whole document was read by.
    """
    path, kind, shown = error["loc"], error["type"], json.dumps(error["input"], ensure_ascii=False)
    if kind == "extra_forbidden":
        document.complain(path, f"unknown key{_similar_key(path, root)}", of_key=True)
        return
    if kind in ("conflict", "missing"):
        document.complain(path, error["msg"] if kind == "conflict" else "is missing")
        return
    if path not in document.values:
        path = path[:-1]  # the type of a field, written in place of the mapping
    if kind == "literal_error":
        choices = re.findall("'(.*?)'", error["ctx"]["expected"]) or [error["ctx"]["expected"]]
        hint = _did_you_mean(str(error["input"]), choices)
        several = f"one of {', '.join(choices)}" if len(choices) > 1 else choices[0]
        message = f"must be {several}, not {shown}{hint}"
    elif kind == "string_type" and isinstance(error["input"], int | float):
        message = f"must be text; put {shown} in quotes"
    elif kind in ("quantity", "threshold"):
        message = error["msg"]
    else:
        must = re.sub("^(Input|String) should", "must", error["msg"])
        must = must.replace("an object", "a mapping").replace("valid array", "list in [ ]")
        message = f"{must}, not {shown}"
    if all(known[:2] != (document.place(path), path) for known in document.problems):
        document.complain(path, message)


def _similar_key(path: KeyPath, root: type[BaseModel]) -> str:
    """A hint at the key that was meant by one that is unknown, or nothing."""
    *sections, last = path
    elsewhere = {
        key: f"{section}.{key}"
        for section, field in root.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        for key in field.annotation.model_fields
    }
    here = _section_at(sections, root).model_fields
    return _did_you_mean(str(last), here) or _did_you_mean(str(last), elsewhere, elsewhere)


def _section_at(path: Sequence[str | int], root: type[BaseModel]) -> type[BaseModel]:
    """The model that is read at ``path``, which leads to a section or to a mapping's entry."""
    section: Any = root
    for part in path:
        is_mapping = get_origin(section) is Mapping
        section = get_args(section)[1] if is_mapping else section.model_fields[part].annotation
    return cast("type[BaseModel]", section)


def _did_you_mean(given: str, known: Iterable[str], shown: Mapping[str, str] | None = None) -> str:
    """A hint at the one of ``known`` that is most like ``given``, whatever its words' order."""
    meant = {_sorted_words(key): key for key in known}
    close = get_close_matches(_sorted_words(given), meant, n=1, cutoff=0.6)
    return (
        f' (did you mean "{(shown or {}).get(meant[close[0]], meant[close[0]])}"?)' if close else ""
    )


def _sorted_words(text: str) -> str:
    return "_".join(sorted(re.split("[-_. ]", text.lower())))
