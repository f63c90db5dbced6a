from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clustering.errors import DataError
from stream.config import SourceConfig
from stream.records import Upsert
from stream.sources import Format, open_source
from stream.sources.chunks import StoppedError
from stream.sources.text import PipeInput

CONFIG = SourceConfig()
ROWS = [{"id": str(i), "name": f"Ann {i}", "city": None} for i in range(5)]
JSONL = b"".join(b'{"id":"%d","name":"Ann %d","city":null}\n' % (i, i) for i in range(5))


def csv_of(delimiter: str) -> bytes:
    rows = ["id,name,city", *(f"{i},Ann {i}," for i in range(5))]
    return "\n".join(rows).replace(",", delimiter).encode() + b"\n"


def upserts(path: Path, **options: object) -> list[tuple[str, dict[str, object]]]:
    got: list[tuple[str, dict[str, object]]] = []
    for operation in open_source(str(path), CONFIG, **options).read(None):  # type: ignore[arg-type]
        assert isinstance(operation, Upsert)
        got.append((operation.key.id, dict(operation.fields)))
    return got


EXPECTED = [(row["id"], {"name": row["name"], "city": None}) for row in ROWS]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", JSONL),
        ("a.JSON", JSONL),
        ("a.csv", csv_of(",")),
        ("a.csv", csv_of(";")),
        ("a.txt", csv_of("|")),
        ("a.tsv", csv_of("\t")),
        ("data", csv_of("\t")),
        ("data", JSONL),
        ("bom.jsonl", b"\xef\xbb\xbf" + JSONL),
        ("bom.csv", b"\xef\xbb\xbf" + csv_of(",")),
        ("crlf.csv", csv_of(",").replace(b"\n", b"\r\n")),
        ("crlf.jsonl", JSONL.replace(b"\n", b"\r\n")),
        ("blank.jsonl", b"\n \n" + JSONL.replace(b"\n", b"\n\n")),
        ("blank.csv", b"\n" + csv_of(",").replace(b"\n", b"\n\n")),
        ("unended.jsonl", JSONL[:-1]),
        ("unended.csv", csv_of(",")[:-1]),
    ],
)
def test_every_spelling_of_the_same_records_is_read(
    tmp_path: Path, name: str, content: bytes, packed: bool
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if packed else content)

    assert upserts(path) == EXPECTED


def test_a_given_format_counts_more_than_the_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(JSONL)

    assert upserts(path, format="jsonl") == EXPECTED


def test_parquet_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "data"
    pq.write_table(pa.Table.from_pylist(ROWS), path)

    assert upserts(path) == EXPECTED


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", b""), ("a.csv", b"id,name\n"), ("a.csv", b"\n\n"), ("a.jsonl", b""), ("a", b"id,x")],
)
def test_nothing_is_no_records(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    assert upserts(path) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"id,a,a\n1,2,3\n", 'two columns are named "a"'),
        ("a.csv", b"id,,a\n1,2,3\n", "column 2 has no name"),
        ("a.csv", b"id,\xff\n1,2\n", "header is not UTF-8"),
        ("a.csv", b"id,a\r1,2\r3,4\r", "carriage returns"),
        ("a.csv", "id,a\n1,2\n".encode("utf-16"), "UTF-16"),
        ("a.xlsx", b"PK\x03\x04\0\0", "workbook"),
        ("a.json", b'[{"id":1}]', "one a line"),
        ("a", b"", "name the format"),
        ("a", b"what is this\n", "name the format"),
        ("a.parquet", b"id,a\n", "not a Parquet file"),
        ("a", b"PAR1 no more", "cannot be read as Parquet"),
    ],
)
def test_what_cannot_be_read_is_said(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(DataError, match=message) as caught:
        upserts(path)

    assert str(path) in str(caught.value)


def test_missing_files_and_folders_are_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        open_source(str(tmp_path / "none.csv"), CONFIG)
    with pytest.raises(DataError, match="is a folder"):
        open_source(str(tmp_path), CONFIG)


def test_what_cannot_grow_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(gzip.compress(csv_of(",")))
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "a.parquet")

    for name in ("a.csv", "a.parquet"):
        with pytest.raises(DataError, match="follow"):
            open_source(str(tmp_path / name), CONFIG, follow=True)


def test_a_source_is_named_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_bytes(csv_of(","))
    monkeypatch.chdir(tmp_path)

    source = open_source("a.csv", CONFIG)

    assert source.name == str(tmp_path / "a.csv")
    assert source.bounded


@pytest.mark.parametrize(
    ("name", "format_"), [("a.csv", "csv"), ("a.jsonl", "jsonl"), ("a.parquet", "parquet")]
)
def test_progress_ends_at_the_size(tmp_path: Path, name: str, format_: Format) -> None:
    path = tmp_path / name
    match format_:
        case "csv":
            path.write_bytes(csv_of(","))
        case "jsonl":
            path.write_bytes(gzip.compress(JSONL))
        case "parquet":
            pq.write_table(pa.Table.from_pylist(ROWS), path)
    source = open_source(str(path), CONFIG)
    size = path.stat().st_size
    assert source.progress() == (0, size)

    list(source.read(None))

    assert source.progress() == (size, size)


@pytest.mark.parametrize("content", [JSONL, gzip.compress(JSONL, mtime=0), csv_of(";"), b""])
def test_standard_input_is_read_to_its_end(content: bytes) -> None:
    program = (
        "from stream.config import SourceConfig\n"
        "from stream.sources import open_source\n"
        "source = open_source('-', SourceConfig())\n"
        "print(source.name, source.bounded, *[o.key.id for o in source.read(None) if o])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        input=content,
        capture_output=True,
        check=True,
    )

    ids = b" 0 1 2 3 4" if content else b""
    assert done.stdout == b"stdin True" + ids + b"\n"


def test_a_silent_pipe_says_that_nothing_came_and_can_be_stopped() -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"id":1}\n{"id"')
    pipe = PipeInput(reading, "pipe")
    assert pipe.peek(100).startswith(b'{"id":1}')
    stop = threading.Event()
    chunks = pipe.open(stop)

    assert next(chunks) == b'{"id":1}\n{"id"'
    assert next(chunks) is None
    os.write(writing, b":2}\n")
    assert next(chunks) == b":2}\n"

    stop.set()
    with pytest.raises(StoppedError):
        next(chunks)
    os.close(writing)
    os.close(reading)


def test_a_named_pipe_is_read_like_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(csv_of(";"),))
    writer.start()

    assert upserts(path) == EXPECTED

    writer.join()


def test_parquet_values_become_what_json_knows(tmp_path: Path) -> None:
    import datetime as dt

    path = tmp_path / "a.parquet"
    moment = dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=dt.UTC)
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "day": [dt.date(2024, 5, 6), None],
            "at": pa.array([moment, None], pa.timestamp("ns", "UTC")),
            "local": pa.array([moment.replace(tzinfo=None), None], pa.timestamp("ms")),
            "clock": pa.array([dt.time(1, 2, 3), None], pa.time64("ns")),
            "price": [Decimal("1.50"), None],
            "share": [float("nan"), 0.5],
            "tags": [["a", "b"], []],
            "days": [[dt.date(2024, 5, 6)], None],
            "kind": pa.array(["x", "y"]).dictionary_encode(),
            "bytes": [b"text", None],
            "old": [True, False],
        }
    )
    pq.write_table(table, path)

    assert upserts(path) == [
        (
            "1",
            {
                "day": "2024-05-06",
                "at": "2024-05-06T07:08:09+00:00",
                "local": "2024-05-06T07:08:09",
                "clock": "01:02:03",
                "price": "1.50",
                "share": None,
                "tags": ["a", "b"],
                "days": ["2024-05-06"],
                "kind": "x",
                "bytes": "text",
                "old": True,
            },
        ),
        (
            "2",
            {
                **dict.fromkeys(("day", "at", "local", "clock", "price", "days", "bytes")),
                "share": 0.5,
                "tags": [],
                "kind": "y",
                "old": False,
            },
        ),
    ]
