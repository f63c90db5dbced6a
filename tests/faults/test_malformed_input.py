"""Whatever is in an input, its good records are read, each bad one is told of, and reading ends."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clustering.errors import DataError
from stream.config import SourceConfig
from stream.records import Bad, BadReason, Operation, Upsert
from stream.sources import open_source
from stream.sources.lines import BEGINNING

CONFIG = SourceConfig()
LIMIT = CONFIG.max_record_size


def read(path: Path, config: SourceConfig = CONFIG) -> list[Operation]:
    return [operation for operation in open_source(str(path), config).read(None) if operation]


def outline(operations: list[Operation]) -> list[str]:
    """The id of each good record, the reason of each bad one."""
    return [
        str(operation.reason) if isinstance(operation, Bad) else operation.key.id
        for operation in operations
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id":', "bad_json"),
        (b'{"id":1} {"id":2}', "bad_json"),
        (b'{"id":1,}', "bad_json"),
        (b"{'id':1}", "bad_json"),
        (b"\0", "bad_json"),
        (b'{"id":1,"a":' + b"[" * 100_000, "bad_json"),
        (b"null", "not_an_object"),
        (b"[]", "not_an_object"),
        (b"17", "not_an_object"),
        (b'"id"', "not_an_object"),
        (b"NaN", "not_an_object"),
        (b"{}", "missing_id"),
        (b'{"id":1,"a":NaN}', "not_finite"),
        (b'{"id":1,"a":-Infinity}', "not_finite"),
        (b'{"id":1,"a":1e999}', "not_finite"),
        (b"\xff\xfe", "invalid_utf8"),
        (b'{"id":1,"a":"\xff"}', "invalid_utf8"),
        (b'{"id":1,"a":"\xed\xa0\x80"}', "invalid_utf8"),
        (b'{"id":1,"a":"\\ud800"}', "invalid_utf8"),
        (b'{"id":1,"id":2}', "duplicate_key"),
        (b'{"id":1,"a":"x","a" : "y"}', "duplicate_key"),
        (b'{"id":1,"\\u0061":"x","a":"y"}', "duplicate_key"),
        (b'{"id":1,"a":"10:20","a":"y"}', "duplicate_key"),
        (b'{"id":1,"source":"s","fields":{"a":1,"a":2}}', "duplicate_key"),
        (b'{"id":1,"fields":{"a":1},"fields":{"a":1,"b":2}}', "duplicate_key"),
        (b'{"id":1,"a":[{"b":1,"b":2}]}', "duplicate_key"),
        (b'{"id":1,"a":{"b":1}}', "wrong_type"),
        (b'{"id":1,"a":123456789012345678901234567890}', "wrong_type"),
        (b'{"id":1,"a":[123456789012345678901234567890]}', "wrong_type"),
        (b'{"id":1,"a":"' + b"x" * 5_000_000 + b'"}', "field_too_large"),
        (b'{"id":1,"a":"' + b"x" * 10_000_000 + b'"}', "record_too_large"),
    ],
)
def test_a_bad_line_is_told_of_and_its_neighbours_are_read(
    tmp_path: Path, line: bytes, reason: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id":"before"}\n' + line + b'\n{"id":"after"}\n')

    got = read(path)

    assert outline(got) == ["before", reason, "after"]
    bad = got[1]
    assert isinstance(bad, Bad)
    assert bad.raw == (line + b"\n" if len(line) < LIMIT else line[:BEGINNING])
    assert len(bad.raw) + bad.left_out == len(line) + 1
    assert len(bad.detail) < 300


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":"good","a":"10:20:30"}',
        b'{"id":"good","a":"\\":"}',
        b'{"id":"good" , "a" : 1.5e300}',
        b'{"id":"good","a":["x","y"]}',
        b'{"id":"good","fields":{"a":"x"}}',
        b' {"id":"good","a":18446744073709551615} \r',
    ],
)
def test_a_good_line_that_looks_odd_is_read(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line + b"\n")

    assert outline(read(path)) == ["good"]


def test_a_last_line_cut_off_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id":1}\n{"id":2')

    assert outline(read(path)) == ["1", "bad_json"]


def test_a_line_without_end_takes_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    config = SourceConfig.model_validate({"max_record_size": "1MiB"})
    with path.open("wb") as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))
        file.write(b'\n{"id":1}\n')
    tracemalloc.start()
    try:
        got = outline(read(path, config))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert got == ["record_too_large", "1"]
    assert peak < 8 << 20


ROWS = [
    (b"bad,x", "bad_row"),
    (b"bad,x,y,z", "bad_row"),
    (b"bad,x\0,y", "bad_row"),
    (b"bad,\xff,y", "invalid_utf8"),
    (b'bad,"x\n\xff",y', "invalid_utf8"),
    (b'bad,"x,y', "bad_row"),
    (b'bad,"x"x,y', "bad_row"),
    (b'bad,"x\\"x",y', "bad_row"),
    (b"bad\r,x,y", "bad_row"),
    (b",x,y", "missing_id"),
    (b"bad," + b"x" * 5_000_000 + b",y", "field_too_large"),
    (b"bad," + b"x" * 10_000_000 + b",y", "record_too_large"),
]


@pytest.mark.parametrize("after", [b'"after",b,c\n', b"after,b,c\n", b'after,"b\nb","c"'])
@pytest.mark.parametrize(("row", "reason"), ROWS)
def test_a_bad_row_is_told_of_and_its_neighbours_are_read(
    tmp_path: Path, row: bytes, reason: str, after: bytes
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,a,b\nbefore,"1\n2",3\n' + row + b"\n" + after)

    got = read(path)

    assert outline(got) == ["before", reason, "after"]
    bad = got[1]
    assert isinstance(bad, Bad)
    assert bad.raw == (row + b"\n" if len(row) < LIMIT else row[:BEGINNING])
    assert len(bad.raw) + bad.left_out == len(row) + 1
    if reason == "bad_row":
        assert "row 2" in bad.detail


def test_a_quote_never_closed_takes_one_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    config = SourceConfig.model_validate({"max_record_size": "10kB", "max_field_size": "1kB"})
    rows = [b"%d,x,y\n" % i for i in range(5000)]
    rows[7] = b'7,"x,y\n'
    path.write_bytes(b"id,a,b\n" + b"".join(rows))

    got = outline(read(path, config))

    assert got == [str(i) if i != 7 else "bad_row" for i in range(5000)]


def test_large_cells_within_the_limit_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,a\n1," + b"x" * 1_000_000 + b'\n2,"' + b"x\n" * 500_000 + b'"\n')

    assert outline(read(path)) == ["1", "2"]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz"])
def test_damaged_gzip_gives_what_is_readable_and_then_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    draw = random.Random(1)
    ids = [f"{draw.getrandbits(200):x}" for _ in range(3000)]
    if name.startswith("a.csv"):
        content = "id,a\n" + "".join(f"{i},x\n" for i in ids)
    else:
        content = "".join(f'{{"id":"{i}"}}\n' for i in ids)
    packed = gzip.compress(content.encode())

    for size in (len(packed) // 3, len(packed) - 9, len(packed) - 3):
        path.write_bytes(packed[:size])
        got, error = read_until_error(path)
        assert "too early" in error
        assert got == ids[: len(got)]
        assert len(got) > 800

    half = len(packed) // 2
    path.write_bytes(packed[:half] + b"\xff" * 500 + packed[half + 500 :])
    got, error = read_until_error(path)
    assert "damaged" in error
    assert got[:1200] == ids[:1200]

    path.write_bytes(packed[:-8] + b"\0\0\0\0" + packed[-4:])
    got, error = read_until_error(path)
    assert "damaged" in error
    assert got == ids

    path.write_bytes(packed + b"more")
    got, error = read_until_error(path)
    assert got == ids


def read_until_error(path: Path) -> tuple[list[str], str]:
    got: list[Operation] = []
    with pytest.raises(DataError) as caught:  # noqa: PT012  # what came before it counts
        for operation in open_source(str(path), CONFIG).read(None):
            assert operation is not None
            got.append(operation)
    assert str(path) in str(caught.value)
    return outline(got), str(caught.value)


def test_a_mended_gzip_file_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    draw = random.Random(1)
    ids = [f"{draw.getrandbits(200):x}" for _ in range(3000)]
    packed = gzip.compress("".join(f'{{"id":"{i}"}}\n' for i in ids).encode())
    path.write_bytes(packed[: len(packed) // 2])
    last = None
    with pytest.raises(DataError):
        for last in open_source(str(path), CONFIG).read(None):  # noqa: B007
            pass
    assert isinstance(last, Upsert)
    path.write_bytes(packed)

    rest = list(open_source(str(path), CONFIG).read(last.position))

    assert (
        outline([operation for operation in rest if operation])
        == (ids[ids.index(last.key.id) + 1 :])
    )


def test_bad_parquet_rows_are_told_of(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    text = pa.Array.from_buffers(
        pa.string(), 3, pa.array([b"x", b"\xff", b"y"], pa.binary()).buffers()
    )
    table = pa.table(
        {
            "id": ["1", "2", "3"],
            "a": text,
            "b": pa.array([None, None, {"x": 1}], pa.struct([("x", pa.int64())])),
        }
    )
    pq.write_table(table, path)

    got = read(path)

    assert outline(got) == ["1", str(BadReason.INVALID_UTF8), str(BadReason.WRONG_TYPE)]


def test_parquet_values_that_python_cannot_hold_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    not_text = pa.array([b"x", b"\xff", b"y"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, not_text.buffers())
    nanoseconds = [1_577_934_245_678_901_234, None, 0]
    table = pa.table(
        {
            "id": ["1", "2", "3"],
            "infinity": pa.array([2**63 - 1, None, 0], pa.timestamp("us", "UTC")),
            "days": pa.array([[10**7, 5], None, []], pa.list_(pa.date32())),
            "times": pa.array([nanoseconds] * 3, pa.list_(pa.timestamp("ns"))),
            "texts": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), text),
            "kind": pa.array(["x", "x", None]).dictionary_encode(),
        }
    )
    pq.write_table(table, path)

    first, second, third = read(path)

    assert isinstance(first, Upsert)
    assert first.fields == {
        "infinity": None,
        "days": [None, "1970-01-06"],
        "times": ["2020-01-02T03:04:05.678901", None, "1970-01-01T00:00:00"],
        "texts": ["x"],
        "kind": "x",
    }
    assert outline([second, third]) == [str(BadReason.INVALID_UTF8), "3"]
    assert isinstance(third, Upsert)
    assert third.fields["infinity"] == "1970-01-01T00:00:00+00:00"


def test_an_unknown_time_zone_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"id": ["1"], "at": pa.array([5], pa.timestamp("us", "No/Where"))}), path
    )

    with pytest.raises(DataError, match=r'column "at" is in the time zone .No/Where.'):
        read(path)


def test_a_damaged_parquet_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [str(i * i) for i in range(5000)]}), path)
    whole = path.read_bytes()

    for damaged in (whole[: len(whole) // 2], whole[:4] + b"\xff" * 2000 + whole[2004:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="Parquet"):
            read(path)
