"""How long one insert takes in the tree alone, with its neighbours found beforehand.

    python -m tests.benchmarks.tree_bench [points]

The data are noisy copies, five to a cluster. Microseconds are given for each quarter of the
points, so that growth with the number of points would show.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from rich.console import Console

from clustering.grinch import GrinchConfig, GrinchTree
from clustering.linkage.average import average
from clustering.linkage.cosine import cosine
from eval.dendrogram_purity import dendrogram_purity
from eval.synthetic import noisy_copies

WIDTH, K, BLOCK = 64, 25, 500


def earlier_neighbours(rows: np.ndarray) -> list[np.ndarray]:
    """For every row the K most alike before it, best first."""
    found: list[np.ndarray] = []
    for start in range(0, len(rows), BLOCK):
        alike = -(rows[start : start + BLOCK] @ rows[: start + BLOCK].T)
        for i, mine in enumerate(alike, start):
            before = mine[:i]
            near = np.argpartition(before, K)[:K] if i > K else np.arange(i)
            found.append(near[np.argsort(before[near], kind="stable")])
    return found


def main(n: int) -> None:
    """Print one line per linkage and setting."""
    console = Console(width=120)
    rows, labels = noisy_copies(n, WIDTH)
    near = earlier_neighbours(rows)
    settings = {
        "one tree": GrinchConfig(),
        "forest": GrinchConfig(floor=0.3, threshold=0.45),
        "one tree, single elimination": GrinchConfig(single_elimination=True),
    }
    for linkage in (average(), cosine()):
        for name, config in settings.items():
            tree = GrinchTree(WIDTH, linkage, config)
            leaves = np.empty(n, np.int64)
            took = np.empty(n)
            for i in range(n):
                candidates = leaves[near[i]]
                start = time.perf_counter()
                leaves[i] = tree.insert(rows[i], candidates)
                took[i] = time.perf_counter() - start
            of_nodes = np.full(tree.n_ids, -1, np.int64)
            of_nodes[leaves] = labels
            quarters = " ".join(f"{q.mean() * 1e6:6.1f}" for q in np.array_split(took, 4))
            purity = dendrogram_purity(tree.parent[: tree.n_ids], of_nodes)
            console.print(f"{linkage.name:8} {name:30} us/insert {quarters}  purity {purity:.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
