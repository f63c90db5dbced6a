"""How fast the neighbour indexes are, where the graph overtakes the scan, and what it finds.

Run ``python -m tests.benchmarks.neighbours_bench``; half a minute on one core. The vectors are
like records: groups of five around random centres, arriving in random order.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from clustering.neighbours.exact import ExactNeighbours
from clustering.neighbours.hnsw import HnswConfig, HnswGraph
from clustering.neighbours.hybrid import HybridConfig, HybridNeighbours
from clustering.neighbours.tokens import TokenIndex

K = 25
Vectors = npt.NDArray[np.float32]


def record_like(n: int, dimension: int, seed: int = 0) -> Vectors:
    """Unit vectors in groups of five around random centres, in random order: float32[n, d]."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(n // 5 + 1, dimension))
    rows = centres[random.integers(0, len(centres), n)]
    rows = rows + random.normal(scale=0.4, size=rows.shape)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


def microseconds(work: Callable[[Vectors], object], rows: Vectors) -> float:
    """Mean time of ``work`` over the rows, the best of three rounds."""
    rounds = []
    for part in np.array_split(rows, 3):
        start = time.perf_counter()
        for row in part:
            work(row)
        rounds.append((time.perf_counter() - start) / len(part))
    return 1e6 * min(rounds)


def blas_search(vectors: Vectors, query: Vectors) -> npt.NDArray[np.int64]:
    """What a scan by matrix-vector product would do: inexact ties, no fixed summation order."""
    similarities = vectors @ query
    best = np.argpartition(similarities, len(similarities) - K)[-K:]
    return best[np.argsort(-similarities[best])]


def filled(rows: Vectors) -> ExactNeighbours:
    """An exact index of the rows."""
    index = ExactNeighbours(rows.shape[1])
    for label, row in enumerate(rows):
        index.add(label, row)
    return index


def scan_against_blas(console: Console) -> None:
    """Compare our scan with a BLAS product and a partial sort."""
    table = Table("vectors", "d", "ours, us", "BLAS, us", "BLAS / ours", title="Exact search")
    for dimension in (64, 96):
        rows = record_like(50_000, dimension)
        for n in (1_000, 10_000, 25_000, 50_000):
            index, vectors = filled(rows[:n]), rows[:n].copy()
            queries = rows[: max(60, 1_000_000 // n)]
            ours = microseconds(lambda row, index=index: index.search(row, K), queries)
            blas = microseconds(lambda row, vectors=vectors: blas_search(vectors, row), queries)
            table.add_row(
                f"{n:,}", str(dimension), f"{ours:.0f}", f"{blas:.0f}", f"{blas / ours:.2f}"
            )
    console.print(table)


def found(graph: HnswGraph, truth: list[npt.NDArray[np.int64]], queries: Vectors, k: int) -> float:
    """Recall of the best ``k`` in a search for K."""
    hits = sum(
        len(np.intersect1d(best[:k], graph.search(query, K)))
        for best, query in zip(truth, queries, strict=True)
    )
    return hits / (k * len(queries))


def crossover(console: Console, largest: int, config: HnswConfig) -> None:
    """Time of one record (a search and an add) by scan and by graph, and what the graph finds."""
    for dimension in (64, 96):
        title = f"d = {dimension}, m = {config.m}, ef_construction = {config.ef_construction}"
        table = Table("vectors", "scan, us", "graph add, us", title=title)
        for ef in (50, 100):
            table.add_column(f"ef {ef}: search, us")
            table.add_column("record: graph / scan")
            table.add_column("recall 5, 25")
        rows = record_like(largest + 1_000, dimension)
        queries = rows[largest:]
        graph, exact = HnswGraph(dimension, config), ExactNeighbours(dimension)
        for n in (10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 60_000, 100_000):
            if n > largest:
                break
            for label in range(len(graph), n - 600):
                graph.add(label, rows[label])
                exact.add(label, rows[label])
            add = microseconds(lambda row, g=graph: g.add(len(g), row), rows[n - 600 : n])
            for label in range(n - 600, n):
                exact.add(label, rows[label])
            scan = microseconds(lambda row, e=exact: e.search(row, K), queries[:150])
            truth = [exact.search(query, K)[0] for query in queries[:300]]
            cells = []
            for ef in (50, 100):
                graph = HnswGraph.from_state(
                    graph.state(), dimension, replace(config, ef_search=ef)
                )
                search = microseconds(lambda row, g=graph: g.search(row, K), queries)
                recalls = [found(graph, truth, queries[:300], k) for k in (5, K)]
                cells += [
                    f"{search:.0f}",
                    f"{(search + add) / scan:.2f}",
                    " ".join(f"{recall:.3f}" for recall in recalls),
                ]
            table.add_row(f"{n:,}", f"{scan:.0f}", f"{add:.0f}", *cells)
        console.print(table)


def growth(console: Console, largest: int) -> None:
    """Records a second of the hybrid index as it grows, with its snapshots."""
    table = Table("vectors", "records/s", "approximate", title="Hybrid index, d = 64, defaults")
    rows = record_like(largest, 64)
    index = HybridNeighbours(64, HybridConfig())
    snapshots = rolled = 0.0
    for start in range(0, largest, 10_000):
        began = time.perf_counter()
        for label in range(start, start + 10_000):
            index.search(rows[label], K)
            index.add(label, rows[label])
            if index.snapshot_due:
                before = time.perf_counter()
                index.roll()
                rolled += time.perf_counter() - before
                snapshots += 1
        rate = 10_000 / (time.perf_counter() - began)
        table.add_row(f"{start + 10_000:,}", f"{rate:,.0f}", str(index.approximate))
    console.print(table)
    console.print(f"{snapshots:.0f} snapshots, {rolled:.2f} s in all")


def token_index(console: Console, n: int = 100_000) -> None:
    """Time of one record in the token index: six identifiers, ten rare tokens, four common ones."""
    random = np.random.default_rng(0)
    pools = ((6, 2**62), (10, n // 10), (4, 300))
    tokens = np.concatenate([random.integers(0, top, (n, m)) for m, top in pools], axis=1)
    tokens = tokens.astype(np.uint64)
    table = Table("records", "add, us", "candidates, us", title="Token index, 20 tokens a record")
    index = TokenIndex()
    for start in range(0, n, n // 4):
        labels = range(start, start + n // 4)
        began = time.perf_counter()
        for label in labels:
            index.add(label, tokens[label])
        added = time.perf_counter()
        for label in labels:
            index.candidates(tokens[label], K)
        searched = time.perf_counter()
        table.add_row(
            f"{labels.stop:,}",
            f"{1e6 * (added - began) / len(labels):.1f}",
            f"{1e6 * (searched - added) / len(labels):.1f}",
        )
    console.print(table)


def main() -> None:
    """Ask for the number of vectors on the command line."""
    parser = argparse.ArgumentParser(description="Measure the neighbour indexes.")
    parser.add_argument("--largest", type=int, default=60_000, help="vectors (default 60000)")
    run(Console(width=120), parser.parse_args().largest)


def run(console: Console, largest: int) -> None:
    """Print every table, of at most so many vectors."""
    scan_against_blas(console)
    crossover(console, largest, HnswConfig())
    growth(console, largest)
    token_index(console)


if __name__ == "__main__":
    main()
