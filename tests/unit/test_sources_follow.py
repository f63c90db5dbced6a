from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream.config import SourceConfig
from stream.records import Operation, Upsert
from stream.sources import open_source

CONFIG = SourceConfig()


class Impatient(threading.Event):
    """An event that is never waited for."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


def until_pause(operations: Iterator[Operation | None], pauses: int = 1) -> list[str]:
    """The ids of what comes until nothing did, ``pauses`` times."""
    ids = []
    for operation in operations:
        if operation is None:
            pauses -= 1
            if not pauses:
                break
        else:
            assert isinstance(operation, Upsert)
            ids.append(operation.key.id)
    return ids


class Growing:
    """A file in one of the formats, to which records are added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()

    def add(self, *ids: int, end: str = "\n", header: bool = False) -> None:
        csv = self.path.suffix == ".csv"
        rows = ["id,name"] if csv and header else []
        rows += [f'{i},"a\nb"' if csv else f'{{"id":{i},"name":"a"}}' for i in ids]
        with self.path.open("a") as file:
            file.write("\n".join(rows) + end)


@pytest.fixture(params=["a.jsonl", "a.csv"])
def growing(request: pytest.FixtureRequest, tmp_path: Path) -> Growing:
    return Growing(tmp_path / request.param)


def test_what_is_added_comes_once_its_line_is_whole(growing: Growing) -> None:
    source = open_source(str(growing.path), CONFIG, follow=True)
    assert not source.bounded
    stop = Impatient()
    operations = source.read(None, stop)
    assert until_pause(operations) == []

    growing.add(1, 2, header=True)
    assert until_pause(operations) == ["1", "2"]
    growing.add(3, end="")
    assert until_pause(operations) == []
    growing.add(end="\n")
    assert until_pause(operations) == ["3"]

    stop.set()
    assert list(operations) == []


def test_a_row_whose_quote_is_open_waits_for_its_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,name\n1,"a\n')
    operations = open_source(str(path), CONFIG, follow=True).read(None, Impatient())

    assert until_pause(operations, pauses=3) == []
    with path.open("a") as file:
        file.write('b"\n2,c\n')
    assert until_pause(operations) == ["1", "2"]


def test_following_resumes(growing: Growing) -> None:
    growing.add(1, 2, 3, header=True)
    first = next(open_source(str(growing.path), CONFIG, follow=True).read(None, Impatient()))
    assert first is not None

    again = open_source(str(growing.path), CONFIG, follow=True).read(first.position, Impatient())

    assert until_pause(again) == ["2", "3"]
    growing.add(4)
    assert until_pause(again) == ["4"]


def test_a_renamed_file_is_read_to_its_end_and_then_the_new_one(growing: Growing) -> None:
    growing.add(1, header=True)
    operations = open_source(str(growing.path), CONFIG, follow=True).read(None, Impatient())
    assert until_pause(operations) == ["1"]

    with growing.path.open("a") as old:
        growing.path.rename(growing.path.with_suffix(".old"))
        assert until_pause(operations, pauses=2) == []
        growing.add(3, header=True)
        old.write('2,"x"' if growing.path.suffix == ".csv" else '{"id":2}')

    assert until_pause(operations, pauses=3) == ["2", "3"]
    growing.add(4)
    assert until_pause(operations) == ["4"]


def test_a_file_cut_short_is_read_from_its_beginning(growing: Growing) -> None:
    growing.add(1, 2, header=True)
    operations = open_source(str(growing.path), CONFIG, follow=True).read(None, Impatient())
    assert until_pause(operations) == ["1", "2"]

    growing.path.write_bytes(b"")
    assert until_pause(operations) == []
    growing.add(5, header=True)
    assert until_pause(operations) == ["5"]


def test_a_file_replaced_while_nobody_read_is_read_from_its_beginning(growing: Growing) -> None:
    growing.add(1, 2, header=True)
    source = open_source(str(growing.path), CONFIG, follow=True)
    last = [operation for operation, _ in zip(source.read(None, Impatient()), "ab", strict=False)][
        1
    ]
    assert last is not None
    growing.path.unlink()
    growing.add(7, header=True)

    again = open_source(str(growing.path), CONFIG, follow=True).read(last.position, Impatient())

    assert until_pause(again) == ["7"]
