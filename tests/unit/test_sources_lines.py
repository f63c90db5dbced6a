from __future__ import annotations

import zlib

import pytest

from stream.sources.chunks import Chunks, StoppedError, skip
from stream.sources.lines import BEGINNING, NO_LINE, Line, split_lines


def cut(data: bytes, size: int) -> Chunks:
    for i in range(0, len(data), size):
        yield data[i : i + size]


def lines(chunks: Chunks, after: Line = NO_LINE, limit: int = 1 << 20) -> list[Line]:
    return [line for line in split_lines(chunks, after, limit) if line is not None]


DATA = b"\xef\xbb\xbfone\r\n\n" + b"long" * 50_000 + b"\ntwo\nlast"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 65_536, 1 << 20])
def test_lines_do_not_depend_on_how_the_bytes_arrive(size: int) -> None:
    data = DATA.replace(b"long" * 50_000, b"long" * 50) if size < 7 else DATA

    got = lines(cut(data, size), limit=100_000)

    assert [line.raw[:4] for line in got] == [b"one\r", b"\n", b"long", b"two\n", b"last"]
    assert [line.number for line in got] == [1, 2, 3, 4, 5]
    assert [line.whole for line in got] == [True, True, len(data) < 100_000, True, True]
    for line in got:
        assert line.crc == zlib.crc32(data[: line.end])
    assert got[-1].end == len(data)


def test_a_long_line_is_kept_by_its_beginning() -> None:
    got = lines(cut(b"x" * 10_000_000 + b"\nnext\n", 1 << 18), limit=1 << 20)

    assert [(len(line.raw), line.whole) for line in got] == [(BEGINNING, False), (5, True)]
    assert [line.left_out for line in got] == [10_000_001 - BEGINNING, 0]


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_line_above_a_small_limit_is_kept_but_not_whole(size: int) -> None:
    got = lines(cut(b"\xef\xbb\xbflong line\nok\n", size), limit=5)

    assert [(line.raw, line.whole, line.left_out) for line in got] == [
        (b"long line\n", False, 0),
        (b"ok\n", True, 0),
    ]


def test_lines_go_on_after_any_line() -> None:
    everything = lines(cut(DATA, 4096))

    for i, line in enumerate(everything):
        rest = skip(cut(DATA, 1000), line.end, line.crc)
        assert rest is not None
        assert lines(rest, line) == everything[i + 1 :]


@pytest.mark.parametrize("data", [b"", b"on", b"oNe\ntwo\n"])
def test_other_bytes_are_not_skipped(data: bytes) -> None:
    assert skip(cut(data, 3), 4, zlib.crc32(b"one\n")) is None


def test_a_pause_is_passed_on_and_an_unfinished_line_is_lost_with_an_error() -> None:
    def chunks() -> Chunks:
        yield b"one\ntw"
        yield None
        yield b"o\nthr"
        raise StoppedError

    got = split_lines(chunks(), NO_LINE, 100)

    assert [line and line.raw for line in (next(got), next(got), next(got))] == [
        b"one\n",
        None,
        b"two\n",
    ]
    with pytest.raises(StoppedError):
        next(got)
