"""What a run shows while it goes on: a bar on a terminal, log lines of rare events anywhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import structlog
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from stream.run import Observer

if TYPE_CHECKING:
    from stream.run import Partition
    from stream.sources import Source


class Watch:
    """Follows a run; a context that the bar lives in. Log lines hold no values of records."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.observer = Observer(batch=self._batch, event=self._event, opened=self._opened)
        self._sources = sources
        self._partition: Partition | None = None
        self._done = 0
        console = Console(stderr=True)
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=None)
        self._log = structlog.wrap_logger(
            structlog.WriteLogger(sys.stderr),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
                structlog.processors.JSONRenderer(),
            ],
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _opened(self, partition: Partition) -> None:
        self._partition = partition

    def _batch(self, done: int) -> None:
        self._done += done
        if self._bar.disable or self._partition is None:
            return
        engine = self._partition.engine
        read = [source.progress() for source in self._sources]
        total = None
        if all(size is not None for _, size in read):
            total = sum(size or 0 for _, size in read)
        speed = self._bar.tasks[0].elapsed or 0.0
        rate = self._done / speed if speed else 0.0
        text = (
            f"{self._done:,} records  {rate:,.0f}/s  {len(engine.resolver.entities):,} entities  "
            f"{engine.counts['entities_merged']:,} merged  "
            f"{engine.counts['entities_split']:,} split"
        )
        self._bar.update(
            self._task, description=text, total=total, completed=sum(done for done, _ in read)
        )

    def _event(self, name: str, details: dict[str, Any]) -> None:
        if self._bar.disable:
            self._log.info(name, **details)
        else:
            said = "  ".join(f"{key}={value}" for key, value in details.items())
            self._bar.console.print(f"{name}  {said}", markup=False, highlight=False)


__all__ = ["Watch"]
