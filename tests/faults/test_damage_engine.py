"""Damage every kind of file of a data directory: going on is refused, or gives the same answer."""

from __future__ import annotations

import random
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustering.errors import GraftdError
from stream import resolver
from stream.config import Config
from stream.run import run
from stream.sources import open_source
from tests.support.files import mixed_input, outputs, resolve
from tests.support.rig import small_config

KINDS = [
    "db/*.sst",
    "db/*.log",
    "db/MANIFEST-*",
    "db/CURRENT",
    "db/GUARD",
    "db/OPTIONS-*",
    "index/*",
    "FORMAT",
    "out/*",
]
MUST_BE_TOLD = {"db/*.log", "db/MANIFEST-*", "db/GUARD"}
"""Kinds in which no damage may stay unnoticed."""


@pytest.fixture(autouse=True, scope="module")
def _frequent_snapshots() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolver, "SNAPSHOT_INTERVAL", 5)
        yield


def config() -> Config:
    return small_config(model={"refit_at_end": False}, state={"batch_records": 4})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half an input, resolved in "data" by a process that was killed; all of it, in "whole"."""
    folder = tmp_path_factory.mktemp("damage")
    path = mixed_input(folder / "records.jsonl", 40, seed=10)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    source = open_source(str(path), config().source)
    partition = run(config(), folder / "running", [source], threading.Event())
    shutil.copytree(folder / "running", folder / "data")
    partition.close()
    path.write_bytes(whole)
    shutil.copytree(folder / "data", folder / "whole")
    resolve(config(), folder / "whole", path)
    return folder


def go_on(folder: Path, name: str, damaged: bytes | None, data: Path) -> str:
    """Resolve the rest in a copy whose file ``name`` holds other bytes, or is missing (None).

    Returns "refused", "told" when an unusual event told of it, or "same"; fails for another answer.
    """
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(folder / "data", data)
    if damaged is None:
        (data / name).unlink()
    else:
        (data / name).write_bytes(damaged)
    events: list[str] = []
    try:
        resolve(config(), data, folder / "records.jsonl", events)
    except GraftdError as error:
        says = str(error)
    else:
        says = ""
    assert "refit" not in events
    if says:
        assert str(data) in says, "where"
        assert any(word in says for word in ("estore", "delete", "use ")), "how to mend"
        return "refused"
    if events:
        return "told"
    expected, found = outputs(folder / "whole"), outputs(data)
    if name.startswith("out/"):
        # What stands in a file that others wrote to is theirs; the messages after it are ours.
        mine = Path(name).name
        before = (folder / "data" / name).read_bytes()
        assert len(found[mine]) == len(expected[mine])
        found[mine] = before + found[mine][len(before) :]
    assert found == expected, f"{name}: silently another answer"
    return "same"


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_byte_or_a_cut_is_refused_or_changes_nothing(
    kind: str, folder: Path, tmp_path: Path
) -> None:
    draw = random.Random(kind)
    outcomes: Counter[str] = Counter()
    paths = [path for path in sorted((folder / "data").glob(kind)) if path.stat().st_size]
    assert paths, f"no {kind} to damage"
    for path in paths[-3:]:
        name, good = str(path.relative_to(folder / "data")), path.read_bytes()
        for at in {0, len(good) - 1, *(draw.randrange(len(good)) for _ in range(2))}:
            flipped = good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :]
            damages = [flipped] if kind == "out/*" else [flipped, good[:at]]
            for damaged in damages:
                outcomes[go_on(folder, name, damaged, tmp_path / "data")] += 1
    if kind in MUST_BE_TOLD:
        assert outcomes.keys() == {"refused"}
    if kind == "index/*":
        assert outcomes["told"], "a damaged snapshot is rebuilt, and that is told"


@pytest.mark.parametrize("name", ["FORMAT", "db/CURRENT"])
def test_a_missing_file_is_refused_or_changes_nothing(
    name: str, folder: Path, tmp_path: Path
) -> None:
    outcome = go_on(folder, name, None, tmp_path / "data")
    assert outcome == ("same" if name == "FORMAT" else "refused")


def test_an_output_file_cut_short_is_refused_or_completed(folder: Path, tmp_path: Path) -> None:
    name = "out/assignments.jsonl"
    lines = (folder / "data" / name).read_bytes().splitlines(keepends=True)
    go_on(folder, name, b"".join(lines[:3]), tmp_path / "data")
