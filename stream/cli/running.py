"""The command `run`: records in, entities out, until the input ends or a signal comes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream.cli.app import RUNNING, command
from stream.cli.options import ConfigOption, DataDirOption, FormatOption, Output, OutputOption

if TYPE_CHECKING:
    from stream.run import Partition
    from stream.sources import Source


@command(
    RUNNING,
    "graftd run customers.csv -d DIR",
    "graftd run crm.jsonl shop.parquet -d DIR -c graftd.yaml",
    "producer | graftd run - -d DIR --format jsonl",
    "graftd run events.jsonl -d DIR --follow",
)
def run(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Files of records, read one after the other; - is standard input. CSV, JSON Lines "
            "or Parquet, also gzipped.",
        ),
    ],
    data_dir: DataDirOption,
    config: ConfigOption = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for what is added to the last input.")
    ] = False,
    format_: FormatOption = None,
    output: OutputOption = Output.table,
) -> None:
    """Resolve records: what changes is appended to the files in DIR/out as it happens.

    Running again goes on where the last run ended, also after a crash; what was read is not read
    again. Without a configuration the data directory's own is used, or field types are decided
    from the first records. SIGTERM and SIGINT end the run in good order.
    """
    with stopping() as stop:
        from stream.cli.printing import console

        with console(stderr=True).status("starting (compiles its kernels the first time)"):
            from stream.cli.progress import Watch
            from stream.run import config_for
            from stream.run import run as run_sources
            from stream.sources import open_source

        settings = config_for(config, data_dir)
        last = len(inputs) - 1
        sources: list[Source] = [
            open_source(path, settings.source, follow and i == last, format_)
            for i, path in enumerate(inputs)
        ]
        started = time.monotonic()
        with Watch(sources) as watch:
            partition = run_sources(settings, data_dir, sources, stop, watch.observer)
        try:
            summary = _summary(partition, data_dir, time.monotonic() - started, stop.is_set())
        finally:
            partition.close()
    _print(summary, output)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set; a second one ends the process at once."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _summary(partition: Partition, data_dir: Path, seconds: float, stopped: bool) -> dict[str, Any]:
    """What a run did, as plain data."""
    engine, names = partition.engine, partition.engine.config.output
    operations = ("created", "updated", "duplicate", "stale", "deleted", "rejected")
    counts = {name: engine.counts[name] for name in operations}
    kinds = ("created", "changed", "merged", "split", "retired")
    total = sum(counts.values())
    out = data_dir / "out"
    return {
        "processed": total,
        **counts,
        "records": len(engine),
        "entities": len(engine.resolver.entities),
        "entity_updates": {kind: engine.counts[f"entities_{kind}"] for kind in kinds},
        "refits": engine.counts["refits"],
        "seconds": round(seconds, 3),
        "per_second": round(total / seconds, 1) if seconds > 0 else None,
        "stopped": stopped,
        "files": {
            "entity_updates": str(out / names.entity_updates),
            "assignments": str(out / names.assignments),
            "dead_letters": str(out / names.dead_letters),
        },
    }


def _print(summary: dict[str, Any], output: Output) -> None:
    from stream.cli.printing import print_json

    if output is not Output.table:
        print_json(summary, indent=output is Output.json)
        return
    names = ("created", "updated", "duplicate", "stale", "deleted", "rejected")
    counts = ", ".join(f"{summary[name]:,} {name}" for name in names if summary[name])
    updates = summary["entity_updates"]
    refits = f", {summary['refits']} refits of the model" if summary["refits"] else ""
    lines = [
        f"{'stopped' if summary['stopped'] else 'done'}: {summary['processed']:,} records read in "
        f"{summary['seconds']:,.1f} s, {summary['per_second'] or 0:,.0f}/s"
        + (f" ({counts})" if counts else ""),
        f"now {summary['entities']:,} entities of {summary['records']:,} records "
        f"({updates['merged']:,} merged, {updates['split']:,} split{refits})",
        f"entity updates: {summary['files']['entity_updates']}",
        f"assignments:    {summary['files']['assignments']}",
    ]
    if summary["rejected"]:
        lines.append(
            f"{summary['rejected']:,} could not be read; why: {summary['files']['dead_letters']}"
        )
    sys.stdout.write("\n".join(lines) + "\n")
