"""Every benchmark: ``python -m tests.benchmarks``, or ``make bench``."""

from __future__ import annotations

import argparse

from rich.console import Console

from tests.benchmarks import engine_bench, neighbours_bench, tree_bench


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description="Measure how fast graftd is.")
    parser.add_argument(
        "--sizes", default="10000,50000,100000,200000", help="numbers of records, in thousands"
    )
    parser.add_argument("--quick", action="store_true", help="5,000 and 10,000 records only")
    parser.add_argument(
        "--clock", choices=engine_bench.CLOCKS, default="wall", help="what to count"
    )
    parser.add_argument("--parts", action="store_true", help="also the tree and the search alone")
    given = parser.parse_args()
    sizes = [5_000, 10_000] if given.quick else [int(size) for size in given.sizes.split(",")]
    console = Console(width=150)
    engine_bench.run(console, sizes, given.clock)
    if given.parts:
        tree_bench.main(10_000)
        neighbours_bench.run(console, 60_000)


if __name__ == "__main__":
    main()
