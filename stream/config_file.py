"""Reads a configuration file into plain data that still knows where everything was written.

What the file says is taken over in three steps: YAML becomes mappings, lists and scalars, each
with its line and column; ``${VAR}`` and ``${VAR:-default}`` in values are replaced from the
environment; ``GRAFTD_SECTION__KEY`` variables replace single keys. Nothing here knows which keys
there are. Problems are collected rather than raised, so that all of them are told at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

KeyPath = tuple[str | int, ...]
"""Where a value is in the data: mapping keys and list indices from the top."""

PREFIX = "GRAFTD_"
_VARIABLE = re.compile(r"\$\$|\$\{(\w+)(?::-([^}]*))?\}|\$\{")
_TYPED = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float")}
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_DIGITS = "[0-9]{1,30}(?:_[0-9]{1,30})*"
_INT = re.compile(rf"[-+]?{_DIGITS}")
_FLOAT = re.compile(rf"[-+]?(?:\.[0-9]+|{_DIGITS}(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{{1,3}})?")


class Place(NamedTuple):
    """Where something was written: ``file:line:column``, or the name of a variable."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class Problem(NamedTuple):
    """One thing that is wrong, where, and at which key."""

    place: Place
    path: KeyPath
    message: str

    def __str__(self) -> str:
        path = ".".join(str(part) for part in self.path)
        return f"{self.place} {path}: {self.message}" if path else f"{self.place}: {self.message}"


@dataclass
class Document:
    """Plain data with the place of every key and value, and what was wrong while reading.

    data: what was read; an empty file is an empty mapping.
    keys, values: the place of each path's key and of its value.
    """

    source: str
    data: dict[str, Any] = field(default_factory=dict)
    keys: dict[KeyPath, Place] = field(default_factory=dict)
    values: dict[KeyPath, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def place(self, path: KeyPath, of_key: bool = False) -> Place:
        """Where ``path`` was written; for what was not, where the nearest thing around it was."""
        if of_key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Place(self.source, 1, 1))

    def complain(self, path: KeyPath, message: str, of_key: bool = False) -> None:
        """Add a problem at ``path``."""
        self.problems.append(Problem(self.place(path, of_key), path, message))

    def sorted_problems(self) -> list[str]:
        """Every problem once, in the order of the file."""
        by_place = sorted(set(self.problems), key=lambda problem: (problem.place, str(problem)))
        return [str(problem) for problem in by_place]


def read_document(text: str, source: str, environ: Mapping[str, str]) -> Document:
    """The data in a file's ``text``, with variables of ``environ`` put in.

    source: the file's name as it shall stand in messages.
    """
    document = Document(source)

    def place_of(mark: Any) -> Place:
        return Place(source, mark.line + 1, mark.column + 1)

    try:
        root = _compose(text)
    except MarkedYAMLError as error:
        place = place_of(error.problem_mark or error.context_mark)
        document.problems.append(Problem(place, (), f"not valid YAML: {error.problem}"))
        return document
    except YAMLError as error:
        message = f"not valid YAML: {' '.join(str(error).split())}"
        document.problems.append(Problem(Place(source), (), message))
        return document
    if isinstance(root, MappingNode):
        document.data = _Builder(document, environ, place_of).build(root, ())
    elif root is not None and not (isinstance(root, ScalarNode) and typed(root.value) is None):
        document.complain((), "a configuration is a mapping of sections, such as `matching:`")
    for name in sorted(environ):
        if name.startswith(PREFIX) and "__" in name:
            _override(document, environ, name)
    return document


def typed(text: str) -> str | int | float | bool | None:
    """What a scalar without quotes means: a number, true, false, nothing, or the text itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.fullmatch(text):
        return int(text)
    number = float(text) if _FLOAT.fullmatch(text) else math.nan
    return number if math.isfinite(number) else text


def _compose(text: str) -> Node | None:
    root: Node | None = YAML(typ="safe", pure=True).compose(text)
    return root


def _override(document: Document, environ: Mapping[str, str], name: str) -> None:
    """Put the value of the variable ``GRAFTD_SECTION__KEY`` in the place of section.key."""
    place = Place(name)
    data: Any = document.data
    path: KeyPath = ()
    *sections, last = name[len(PREFIX) :].split("__")
    for part in sections:
        path = (*path, _key(data, part))
        document.keys.setdefault(path, place)
        if data.get(path[-1]) is None:
            data[path[-1]] = {}
            document.values[path] = place
        data = data[path[-1]]
        if not isinstance(data, dict):
            message = "has a single value in the file, so no key of it can be set"
            document.problems.append(Problem(place, path, message))
            return
    path = (*path, _key(data, last))
    document.keys[path] = document.values[path] = place
    try:
        node = _compose(environ[name])
    except YAMLError:
        document.complain(path, "is not valid YAML; put the value in quotes")
        return
    value = None if node is None else _Builder(document, environ, lambda _: place).build(node, path)
    data[path[-1]] = value


def _key(data: Mapping[str, Any], part: str) -> str:
    """The key that a variable's part means: one that is there, whatever its case, or a new one."""
    return next((key for key in data if key.lower() == part.lower()), part.lower())


class _Builder:
    """Turns YAML nodes into plain data, noting places and problems in a document."""

    def __init__(
        self, document: Document, environ: Mapping[str, str], place_of: Callable[[Any], Place]
    ) -> None:
        self._document = document
        self._environ = environ
        self._place_of = place_of
        self._open: set[int] = set()

    def build(self, node: Node, path: KeyPath) -> Any:
        """The value of ``node``; parts that cannot be read are left out with a complaint."""
        self._document.values[path] = self._place_of(node.start_mark)
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            self._document.complain(path, "an alias must not contain itself")
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return [self.build(item, (*path, i)) for i, item in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: Node, path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                problem = Problem(self._place_of(key.start_mark), path, "a key must be plain text")
                self._document.problems.append(problem)
                continue
            place, inner = self._place_of(key.start_mark), (*path, key.value)
            if key.value in data:
                first = self._document.keys[inner].line
                message = f"this key is given twice, first in line {first}; keep one"
                self._document.problems.append(Problem(place, inner, message))
                continue
            self._document.keys[inner] = place
            data[key.value] = self.build(value, inner)
        return data

    def _scalar(self, node: ScalarNode, path: KeyPath) -> Any:
        text = _VARIABLE.sub(lambda match: self._variable(match, path), node.value)
        plain = node.style is None and (text != node.value or str(node.tag) in _TYPED)
        return typed(text) if plain else text

    def _variable(self, match: re.Match[str], path: KeyPath) -> str:
        """What stands for one ``${…}``; as in a shell, ``:-`` also covers an empty variable."""
        name, default = match.groups()
        if match[0] == "$$":
            return "$"
        if name is None:
            message = "`${` begins a variable such as ${NAME:-default}; for itself write `$${`"
            self._document.complain(path, message)
            return ""
        value = self._environ.get(name)
        if value or (value is not None and default is None):
            return value
        if default is None:
            message = f"the variable {name} is not set; set it or write ${{{name}:-default}}"
            self._document.complain(path, message)
            return ""
        return str(default)
