"""Reading goes on exactly after any position, and from the beginning when the file is another."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.config import SourceConfig
from stream.records import Bad, Operation, Upsert
from stream.sources import Source, open_source

CONFIG = SourceConfig()
NAMES = ["Ann", "Zoë, née\nSmith", 'the "other" one', "", "x" * 300, "Bob"]

JSONL = b"\n".join(
    [
        *(json.dumps({"id": i, "name": name}).encode() for i, name in enumerate(NAMES)),
        b"",
        b'{"id":',
        b"[]",
        b'{"id": 9}',
    ]
)
CSV = (
    b"\xef\xbb\xbfid,name\r\n"
    + "".join(
        f'{i},"{name.replace(chr(34), chr(34) * 2)}"\r\n' for i, name in enumerate(NAMES)
    ).encode()
    + b'\r\n7,a,ragged\r\n8,"open\r\n9,\xff\r\n10,last'
)


def write_parquet(path: Path) -> None:
    names = NAMES * 3
    table = pa.table({"id": list(range(len(names))), "name": names})
    pq.write_table(table, path, row_group_size=5)


MAKERS: dict[str, Callable[[Path], object]] = {
    "a.jsonl": lambda path: path.write_bytes(JSONL),
    "a.jsonl.gz": lambda path: path.write_bytes(
        gzip.compress(JSONL[:99]) + gzip.compress(JSONL[99:]) + b"\0\0"
    ),
    "a.csv": lambda path: path.write_bytes(CSV),
    "a.csv.gz": lambda path: path.write_bytes(gzip.compress(CSV)),
    "a.parquet": write_parquet,
}


def operations(source: Source, position: dict[str, object] | None = None) -> list[Operation]:
    return [operation for operation in source.read(position) if operation is not None]


@pytest.mark.parametrize("name", MAKERS)
def test_reading_goes_on_after_every_record(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    MAKERS[name](path)
    everything = operations(open_source(str(path), CONFIG))
    assert len(everything) >= len(NAMES)

    for i, operation in enumerate(everything):
        position = json.loads(json.dumps(operation.position))
        assert operations(open_source(str(path), CONFIG), position) == everything[i + 1 :]


def test_the_rows_between_bad_ones_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(CSV)

    got = operations(open_source(str(path), CONFIG))

    assert [
        operation.reason.value if isinstance(operation, Bad) else operation.key.id
        for operation in got
    ] == ["0", "1", "2", "3", "4", "5", "bad_row", "bad_row", "invalid_utf8", "10"]
    names = [operation.fields["name"] for operation in got if isinstance(operation, Upsert)]
    assert names == [name or None for name in NAMES] + ["last"]
    assert [operation.position["row"] for operation in got] == list(range(1, 11))


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_what_was_added_is_read_and_nothing_twice(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    MAKERS[name](path)
    last = operations(open_source(str(path), CONFIG))[-1]
    with path.open("ab") as file:
        file.write(b'\n{"id": 77}\n' if name == "a.jsonl" else b"\r\n77,new\r\n")

    added = operations(open_source(str(path), CONFIG), last.position)

    assert [operation.key.id for operation in added if operation.key] == ["77"]


@pytest.mark.parametrize("name", MAKERS)
def test_a_rewritten_file_is_read_from_its_beginning(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    MAKERS[name](path)
    position = operations(open_source(str(path), CONFIG))[4].position
    match name:
        case "a.parquet":
            pq.write_table(pa.table({"id": [str(i) for i in range(9)]}), path)
        case "a.csv" | "a.csv.gz":
            path.write_bytes(b"id,name\n" + b"1,other\n" * 9)
        case _:
            path.write_bytes(b'{"id":1}\n' * 9)

    got = operations(open_source(str(path), CONFIG), position)

    assert len(got) == 9


@pytest.mark.parametrize("name", MAKERS)
def test_a_stop_ends_reading_and_loses_nothing(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    MAKERS[name](path)
    everything = operations(open_source(str(path), CONFIG))
    stop = threading.Event()
    stop.set()

    assert list(open_source(str(path), CONFIG).read(None, stop)) == []
    assert operations(open_source(str(path), CONFIG), everything[0].position) == everything[1:]
