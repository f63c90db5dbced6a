"""Checks every invariant of a data directory, also while a daemon runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from clustering.errors import GraftdError, StoreError
from clustering.types import RecordKey
from state.consistency import find_problems
from stream.messages import ASSIGNMENTS, DEAD_LETTERS, ENTITY_UPDATES
from stream.view import View


def verify(root: Path) -> list[str]:
    """What is wrong with a data directory, in words; empty when it is sound.

    Checked: rows agree with each other; the whole answer can be restored and is what its records,
    tree and thresholds make it; each output file consists of messages with ascending numbers; and
    the messages published, and those still in the outbox, say of each record what the store does.
    Raises StoreError when the directory cannot be opened at all.
    """
    with View.open(root) as view:
        try:
            problems = find_problems(view.rows)
            if not problems:
                problems = _problems_restoring(view)
            return problems + _output_problems(view)
        except StoreError as error:
            return [str(error)]


def _problems_restoring(view: View) -> list[str]:
    try:
        view.restored().resolver.check()
    except (AssertionError, GraftdError) as error:
        return [f"the answer in memory: {error}"]
    return []


def _output_problems(view: View) -> list[str]:
    output, out = view.config.output, view.data_dir.out
    files = {
        ENTITY_UPDATES: out / output.entity_updates,
        ASSIGNMENTS: out / output.assignments,
        DEAD_LETTERS: out / output.dead_letters,
    }
    end = view.rows.read_counters().outbox
    problems: list[str] = []
    last = dict.fromkeys(files, -1)
    told: dict[RecordKey, str | None] = {}
    whole = False
    for topic, path in files.items():
        for message in _messages(path, problems):
            if message["seq"] <= last[topic]:
                problems.append(f"{path}: seq {message['seq']} comes after {last[topic]}")
                break
            if message["seq"] >= end:  # published since this view was opened
                break
            whole = whole or message["seq"] == 0
            whole = whole or message["seq"] == 0
            last[topic] = message["seq"]
            if topic == ASSIGNMENTS:
                told[RecordKey(message["source"], message["id"])] = message["entity_id"]
    for row in view.rows.outbox(last[ASSIGNMENTS]):
        if row.topic == ASSIGNMENTS:
            message = orjson.loads(row.value)
            told[RecordKey(message["source"], message["id"])] = message["entity_id"]
    if not problems:
        problems = _differences(view, told, whole, files[ASSIGNMENTS])
    return problems


def _differences(
    view: View, told: dict[RecordKey, str | None], whole: bool, path: Path
) -> list[str]:
    """Records of which the messages say something else than the store.

    whole: whether there are messages from the first one on. Otherwise, as in a data directory
    restored from a checkpoint, records that none is about are passed over.
    """
    held = dict(view.assignments())
    wrong = [key for key, entity in told.items() if held.get(key) != entity]
    wrong += [key for key in held if whole and key not in told]
    if not wrong:
        return []
    key = wrong[0]
    return [
        f"{path}: {len(wrong)} records are told to be in another entity than they are; {key} in "
        f"{told.get(key) or 'none'}, but the store has {held.get(key) or 'none'}"
    ]


def _messages(path: Path, problems: list[str]) -> Iterator[dict[str, Any]]:
    """The messages in an output file up to the first that is none, which is a problem.

    A last line without its end is one that is being written.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    message = orjson.loads(line)
                except orjson.JSONDecodeError:
                    message = None
                if not isinstance(message, dict) or not isinstance(message.get("seq"), int):
                    problems.append(f"{path}, line {number}: is not a message")
                    return
                yield message
    except FileNotFoundError:
        return
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror}")


__all__ = ["verify"]
