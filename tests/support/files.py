"""Runs on files: an input with everything in it, and what a data directory says afterwards."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

from stream.config import Config
from stream.run import Observer, run
from stream.sources import open_source
from tests.support.people import crowd, variant


def mixed_input(path: Path, n_records: int, seed: int = 0) -> Path:
    """A JSON Lines file of new, changed, repeated, deleted and unreadable records."""
    draw = random.Random(seed)
    lines: list[bytes] = []
    seen: list[str] = []

    def add(id_: str, fields: dict[str, Any]) -> None:
        source = "clean" if int(id_) % 5 == 0 else "crm"
        lines.append(json.dumps({"id": id_, "source": source, **fields}).encode())

    for id_, fields in crowd(n_records, seed):
        add(id_, fields)
        seen.append(id_)
        kind = draw.random()
        if kind < 0.1:
            lines.append(lines[draw.randrange(len(lines))])
        elif kind < 0.2:
            add(draw.choice(seen), variant(draw.randrange(20), draw.randrange(4)))
        elif kind < 0.28:
            gone = draw.choice(seen)
            source = "clean" if int(gone) % 5 == 0 else "crm"
            lines.append(json.dumps({"id": gone, "source": source, "_op": "delete"}).encode())
        elif kind < 0.33:
            lines.append(draw.choice([b"{", b'{"id": NaN}', b"\xff\xfe", b"[]", b"{}"]))
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def resolve(config: Config, root: Path, path: Path, events: list[str] | None = None) -> None:
    """Run to the end of the input; names of unusual events are added to ``events``."""
    told = [] if events is None else events
    observer = Observer(event=lambda name, details: told.append(name))
    source = open_source(str(path), config.source)
    partition = run(config, root, [source], threading.Event(), observer)
    partition.engine.resolver.check()
    partition.close()


def outputs(root: Path) -> dict[str, bytes]:
    """The output files of a data directory, by name."""
    return {path.name: path.read_bytes() for path in sorted((root / "out").iterdir())}


__all__ = ["mixed_input", "outputs", "resolve"]
