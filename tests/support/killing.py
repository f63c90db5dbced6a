"""Resolves a file in children that are killed, each going on where the one before was.

``python -m tests.support.killing FOLDER INPUT KILLS SEED`` prints how often a child came to the
end. The children are forked, so that what a process needs seconds for, imports and compiled
kernels, is there when they begin: the kills then fall into the work.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from stream import resolver
from stream.config import Config
from stream.run import Observer, run
from stream.sources import open_source
from tests.support.people import crowd
from tests.support.rig import Rig, small_config, upserts

MOST_BATCHES = 2
"""A child is killed after at most so many batches."""
MOST_WAIT = 0.02
"""And at most so many seconds later."""


def config() -> Config:
    """Refits that fit weights, graph search and snapshots of it within 2,000 records."""
    return small_config(
        model={"refit_at": [60, 700]},
        neighbours={"exact_below": 300},
        state={"batch_records": 25, "sync": False},
    )


def warm() -> None:
    """Let every kernel be loaded, without a thread that a fork would lose."""
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(small_config(model={"refit_at": [60]}), Path(folder))
        rig.feed(upserts(crowd(80)))
        rig.restart()


def child(root: Path, path: Path, pipe: int) -> None:
    """The life of a child: a byte into the pipe for each batch."""
    source = open_source(str(path), config().source)
    observer = Observer(batch=lambda done: os.write(pipe, b".") and None)
    run(config(), root, [source], threading.Event(), observer).close()


def start(root: Path, path: Path) -> tuple[int, int]:
    """Fork a child; returns its process id and the pipe that tells of its batches."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            child(root, path, writing)
        finally:
            os._exit(sys.exc_info()[0] is not None)
    os.close(writing)
    return process, reading


def main(folder: Path, path: Path, kills: int, seed: int) -> int:
    """Kill so many children and let the next one finish; returns how often one came to the end.

    One that is left alone works in ``folder / "alone"``, the others in "killed-0", or "killed-1"
    once a child came to the end of that before it was killed, and so on.
    """
    resolver.SNAPSHOT_INTERVAL = 100
    warm()
    finish(*start(folder / "alone", path))
    draw = random.Random(seed)
    finished = 0
    while True:
        process, pipe = start(folder / f"killed-{finished}", path)
        if kills:
            for _ in range(draw.randint(0, MOST_BATCHES)):
                os.read(pipe, 1)
            time.sleep(draw.uniform(0, MOST_WAIT))
            os.kill(process, signal.SIGKILL)
        if finish(process, pipe):
            finished += 1
            if not kills:
                return finished
        else:
            kills -= 1


def finish(process: int, pipe: int) -> bool:
    """Wait for a child; whether it came to the end. Exits when it failed."""
    _, status = os.waitpid(process, 0)
    os.close(pipe)
    if status not in {0, signal.SIGKILL}:
        sys.exit(f"a child ended with status {status}")
    return status == 0


if __name__ == "__main__":
    sys.stdout.write(f"{main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))}\n")
