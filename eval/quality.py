"""The quality runner: how well graftd, run as a user would, resolves sets with a known truth.

    python -m eval.quality DATA_DIR [--sets a,b] [--orders N] [--clean-sources] [--output json]

DATA_DIR has one folder for each set: records.csv (columns id, source if there are several, and the
fields), truth.csv (id, cluster) and SOURCE.md, which says where the set is from. graftd gets the
records and, at most, a YAML text naming field types; never the truth, and no setting tuned on it.
"""

from __future__ import annotations

import csv
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from clustering.errors import DataError, GraftdError, UnavailableError, UsageError
from clustering.types import RecordKey
from eval.labels import membership
from eval.report import Report, evaluate

# What a user would say of a set's fields, as YAML text; a set that is not here runs without any.
FIELD_TYPES: Mapping[str, str] = {}

# Sets whose sources each list an entity once, or nearly so.
CLEAN_SETS = ("abt_buy", "amazon_google", "dblp_acm", "febrl4", "geo_settlements", "italy_r9")

# Pairwise F1 of the best of Splink, dedupe with 100 labels, and hierarchical clustering of TF-IDF
# vectors with its threshold chosen on the truth.
BEST_OF_OTHERS: Mapping[str, float] = {
    "abt_buy": 0.239,
    "amazon_google": 0.088,
    "cora": 0.869,
    "dblp_acm": 0.936,
    "fake1000": 0.957,
    "febrl1": 1.0,
    "febrl3": 0.999,
    "febrl4": 0.999,
    "geo_settlements": 0.972,
    "restaurant": 0.959,
    "rldata500": 0.990,
}
# The same where every source is taken to list an entity once.
BEST_OF_OTHERS_CLEAN: Mapping[str, float] = {
    "abt_buy": 0.911,
    "amazon_google": 0.602,
    "dblp_acm": 0.989,
}

WIDTH_OF_A_PIPE = 160  # columns; a pipe has no width of its own to fit into


class Output(StrEnum):
    """How the result is printed."""

    table = "table"
    json = "json"


class RunFailedError(GraftdError):
    """graftd itself failed on a set; its own message is part of this one."""

    exit_code = 1


@dataclass(frozen=True)
class Trial:
    """One run of graftd over one set: how good, and how many seconds the run took."""

    report: Report
    seconds: float


@dataclass(frozen=True)
class Result:
    """The trials of one set, or why there are none; ``best`` is the best F1 of others, if known."""

    name: str
    trials: tuple[Trial, ...]
    best: float | None
    failure: str = ""

    def mean(self, measure: Callable[[Trial], float]) -> float:
        """Mean of a measure over the trials."""
        return statistics.fmean(map(measure, self.trials))

    def f1(self) -> list[float]:
        """Pairwise F1 of every trial."""
        return [trial.report.pairwise.f1 for trial in self.trials]

    def as_json(self) -> dict[str, Any]:
        """The set's result as plain numbers; no ``f1`` when graftd failed."""
        plain: dict[str, Any] = {"set": self.name, "best_of_others_f1": self.best}
        if self.failure:
            return plain | {"failure": self.failure}
        f1 = self.f1()
        return plain | {
            "f1": {
                "mean": statistics.fmean(f1),
                "min": min(f1),
                "max": max(f1),
                "spread": max(f1) - min(f1),
            },
            "trials": [t.report.as_json() | {"seconds": t.seconds} for t in self.trials],
        }


Resolve = Callable[[Path, Path, Path | None], tuple[dict[RecordKey, str], float]]


def run_graftd(
    records: Path, directory: Path, config: Path | None
) -> tuple[dict[RecordKey, str], float]:
    """Entities that graftd finds in the file ``records``, by record id, and the run's seconds.

    directory: an empty folder for graftd's data. The ids of a set are unique over its sources, so
    the keys here have no source. Raises RunFailedError when graftd exits with an error.
    """
    graftd = [sys.executable, "-m", "stream.cli"]
    data = ["--data-dir", str(directory)]
    settings = [] if config is None else ["--config", str(config)]
    started = time.perf_counter()
    _call([*graftd, "run", str(records), *data, *settings])
    seconds = time.perf_counter() - started
    lines = _call([*graftd, "export", *data, *settings, "--output", "jsonl"]).splitlines()
    try:
        entities = [(RecordKey("", row["id"]), row["entity_id"]) for row in map(json.loads, lines)]
    except (ValueError, KeyError) as error:
        raise RunFailedError(
            f"graftd export printed a line without id, entity_id: {error}"
        ) from None
    return membership(entities, "graftd's export"), seconds


def _call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        said = " / ".join(done.stderr.strip().splitlines()[-3:])
        raise RunFailedError(f"graftd {command[3]} exited with {done.returncode}: {said}")
    return done.stdout


def find_sets(root: Path, wanted: str = "") -> list[Path]:
    """Folders of ``root`` having records.csv and truth.csv, by name; only those ``wanted`` (a,b).

    Raises UnavailableError when there are none, UsageError when one that is wanted is missing.
    """
    found = {
        truth.parent.name: truth.parent
        for truth in sorted(root.glob("*/truth.csv"))
        if (truth.parent / "records.csv").is_file()
    }
    if not found:
        raise UnavailableError(
            f"no sets in {root}: each needs a folder with records.csv (id, fields) and "
            "truth.csv (id, cluster); the data do not come with graftd"
        )
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    missing = [name for name in names if name not in found]
    if missing:
        raise UsageError(f"no set {', '.join(missing)} in {root}; there are {', '.join(found)}")
    return [found[name] for name in names or found]


def read_truth(path: Path) -> dict[RecordKey, str]:
    """The true clusters in ``path``, by record id. Raises DataError for an unusable file."""
    header, rows = _read(path)
    if header[:2] != ["id", "cluster"]:
        raise DataError(f"{path} must have the columns id,cluster, not {','.join(header)}")
    return membership(((RecordKey("", row[0]), row[1]) for row in rows), str(path))


def settings(name: str, records: Path, clean_sources: bool) -> str:
    """YAML text that graftd gets for a set; empty for no configuration at all."""
    text = FIELD_TYPES.get(name, "")
    if clean_sources and name in CLEAN_SETS:
        header, rows = _read(records)
        if "source" not in header:
            raise DataError(f"{records} has no column source, so no source can be called clean")
        sources = sorted({row[header.index("source")] for row in rows})
        # JSON is YAML, and quotes sources that look like numbers.
        clean = json.dumps({source: {"no_duplicates": True} for source in sources})
        text = f"{text}\nsources: {clean}\n".lstrip()
    return text


def shuffle(records: Path, seed: int, target: Path) -> None:
    """Write the rows of ``records`` to ``target`` in the order that ``seed`` gives."""
    header, rows = _read(records)
    random.Random(seed).shuffle(rows)
    with target.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV file, every row as long as the header."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = [row for row in csv.reader(file) if row] or [[]]
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise DataError(f"{path}, row {number} has {len(row)} values for {len(header)} columns")
    return header, rows


def measure(
    folder: Path,
    orders: int = 0,
    clean_sources: bool = False,
    resolve: Resolve = run_graftd,
    after_each: Callable[[], None] = lambda: None,
) -> Result:
    """Run graftd over one set: once in the file's order, or in each of ``orders`` shuffled ones.

    A failure of graftd is part of the result; a set that is itself unusable raises DataError.
    """
    name, records = folder.name, folder / "records.csv"
    truth = read_truth(folder / "truth.csv")
    text = settings(name, records, clean_sources)
    best = BEST_OF_OTHERS.get(name)
    if clean_sources:
        best = BEST_OF_OTHERS_CLEAN.get(name, best)
    trials = []
    for seed in range(max(orders, 1)):
        with tempfile.TemporaryDirectory(prefix="graftd-quality-") as scratch:
            given, config = records, None
            if orders:
                given = Path(scratch, "records.csv")
                shuffle(records, seed, given)
            if text:
                config = Path(scratch, "graftd.yaml")
                config.write_text(text, encoding="utf-8")
            directory = Path(scratch, "data")
            directory.mkdir()
            try:
                predicted, seconds = resolve(given, directory, config)
                trials.append(Trial(evaluate(predicted, truth), seconds))
            except GraftdError as error:
                return Result(name, (), best, str(error))
        after_each()
    return Result(name, tuple(trials), best)


def as_table(results: list[Result], orders: int, clean_sources: bool) -> Table:
    """The results as a table with one line for each set; figures are means over the orders."""
    title = "graftd, clean sources named" if clean_sources else "graftd"
    title += f", mean of {orders} orders" if orders else ", order of the file"
    table = Table(title=title, box=SIMPLE_HEAD)
    table.add_column("set", no_wrap=True)
    spread = ("min", "max", "spread") if orders else ()
    columns = ("N", "found", "true", "pair P", "pair R", "pair F1", *spread)
    for column in (*columns, "B3 F1", "exact F1", "ARI", "s", "others' F1"):
        table.add_column(column, justify="right", no_wrap=True)
    for result in results:
        best = "" if result.best is None else f"{result.best:.3f}"
        if result.failure:
            table.add_row(result.name, "failed", *[""] * (len(table.columns) - 3), best)
            continue
        reports = [trial.report for trial in result.trials]
        f1 = result.f1()
        table.add_row(
            result.name,
            str(reports[0].records),
            f"{result.mean(lambda t: t.report.found):.0f}",
            str(reports[0].true),
            f"{result.mean(lambda t: t.report.pairwise.precision):.3f}",
            f"{result.mean(lambda t: t.report.pairwise.recall):.3f}",
            f"{statistics.fmean(f1):.3f}",
            *(f"{x:.3f}" for x in (min(f1), max(f1), max(f1) - min(f1)) if orders),
            f"{result.mean(lambda t: t.report.b_cubed.f1):.3f}",
            f"{result.mean(lambda t: t.report.cluster_exact.f1):.3f}",
            f"{result.mean(lambda t: t.report.adjusted_rand):.3f}",
            f"{result.mean(lambda t: t.seconds):.1f}",
            best,
        )
    return table


def remarks(results: list[Result]) -> list[str]:
    """What a figure alone would hide: failures, and records that only one side knows."""
    lines = [f"{result.name}: {result.failure}" for result in results if result.failure]
    for result in results:
        for number, what in (
            (max((t.report.unpredicted for t in result.trials), default=0), "in no entity"),
            (max((t.report.unknown for t in result.trials), default=0), "without a truth"),
        ):
            if number:
                lines.append(f"{result.name}: records {what}: {number}")
    return lines


@contextmanager
def _progress(steps: int) -> Iterator[Callable[[str, int], None]]:
    """A bar on the terminal's error output, if it is a terminal; call it with (set, steps done)."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=steps)
        yield lambda name, done: bar.update(task, description=name, advance=done)


app = typer.Typer(add_completion=False)


@app.command()
def main(
    data_dir: Annotated[Path, typer.Argument(help="Folder with one folder for each set.")],
    sets: Annotated[str, typer.Option(help="Only these sets: a,b,c.")] = "",
    orders: Annotated[
        int, typer.Option(min=0, help="Shuffle the rows so many times; 0 keeps their order.")
    ] = 0,
    clean_sources: Annotated[
        bool, typer.Option("--clean-sources", help="Say which sources have no duplicates.")
    ] = False,
    output: Annotated[Output, typer.Option(help="How to print the result.")] = Output.table,
) -> None:
    """Run graftd over sets of records with a known truth and say how good it is.

    Exits with 1 when graftd fails on a set, 65 when a set is unusable, 69 when there are no sets.
    """
    try:
        folders = find_sets(data_dir, sets)
        results = []
        with _progress(len(folders) * max(orders, 1)) as advance:
            for folder in folders:
                advance(folder.name, 0)
                after_each = partial(advance, folder.name, 1)
                results.append(measure(folder, orders, clean_sources, after_each=after_each))
    except GraftdError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(error.exit_code) from error
    if output is Output.json:
        typer.echo(json.dumps([result.as_json() for result in results], indent=2))
    else:
        console = Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_PIPE)
        console.print(as_table(results, orders, clean_sources))
    for line in remarks(results):
        typer.echo(line, err=True)
    if any(result.failure for result in results):
        raise typer.Exit(RunFailedError.exit_code)


if __name__ == "__main__":
    app()
