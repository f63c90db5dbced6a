from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from clustering.errors import StoreError
from state.codecs import OutboxRow
from stream.sinks import JsonlSink, JsonlSinks

FILES = {"a": "a.jsonl", "b": "b.jsonl"}


def line(seq: int, text: str = "x") -> bytes:
    return b'{"schema":"s/1","seq":%d,"text":"%s"}' % (seq, text.encode())


def outbox(first: int, end: int) -> list[OutboxRow]:
    return [OutboxRow(n, "ab"[n % 3 == 0], b"k", line(n, "é" * n)) for n in range(first, end)]


def written(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(each + b"\n" for each in lines))
    return path


def test_new_file(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "a.jsonl")
    assert (sink.last_seq, sink.cut_bytes) == (-1, 0)
    sink.publish([(0, line(0)), (4, line(4))])
    sink.publish([])
    sink.sync()
    sink.close()
    sink.close()
    assert (tmp_path / "a.jsonl").read_bytes() == line(0) + b"\n" + line(4) + b"\n"
    assert JsonlSink(tmp_path / "a.jsonl").last_seq == 4


def test_messages_in_the_file_are_passed_over(tmp_path: Path) -> None:
    sink = JsonlSink(written(tmp_path / "f", line(3), line(5)))
    sink.publish([(n, line(n)) for n in range(3, 8)])
    assert sink.last_seq == 7
    assert sink.path.read_bytes().splitlines() == [line(3), line(5), line(6), line(7)]


def test_many_messages_are_written_in_parts(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "f")
    rows = [(n, line(n, "x" * 300_000)) for n in range(12)]
    sink.publish(iter(rows))
    assert sink.path.read_bytes().splitlines() == [value for _, value in rows]


def test_files_are_the_same_after_a_crash_at_any_byte(tmp_path: Path) -> None:
    """The outbox holds 3..8 when the process dies, with each file written up to any byte."""
    sinks = JsonlSinks(tmp_path, FILES)
    sinks.publish(outbox(0, 3))
    before = {name: (tmp_path / name).read_bytes() for name in FILES.values()}
    sinks.publish(outbox(3, 9))
    assert sinks.last_seq == 8
    sinks.close()
    after = {name: (tmp_path / name).read_bytes() for name in FILES.values()}
    cuts = 0
    for name, other in [("a.jsonl", "b.jsonl"), ("b.jsonl", "a.jsonl")]:
        for size in range(len(before[name]), len(after[name]) + 1):
            for rest in (before[other], after[other]):
                (tmp_path / name).write_bytes(after[name][:size])
                (tmp_path / other).write_bytes(rest)
                sinks = JsonlSinks(tmp_path, FILES)
                cuts += len(sinks.cut_bytes)
                sinks.check_belongs(9, {})
                sinks.publish(outbox(3, 9))
                sinks.close()
                assert {n: (tmp_path / n).read_bytes() for n in FILES.values()} == after
    assert cuts > 100


def test_partial_line_is_cut(tmp_path: Path) -> None:
    path = written(tmp_path / "f", line(1))
    with open(path, "ab") as file:
        file.write(line(2)[:-1])
    sink = JsonlSink(path)
    assert (sink.last_seq, sink.cut_bytes) == (1, len(line(2)) - 1)
    assert path.read_bytes() == line(1) + b"\n"


def test_whole_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(line(1) + b"\n" + line(2))
    sink = JsonlSink(path)
    assert (sink.last_seq, sink.cut_bytes) == (2, 0)
    assert path.read_bytes() == line(1) + b"\n" + line(2) + b"\n"


@pytest.mark.parametrize("size", [10, 65_000, 65_536, 70_000, 300_000])
@pytest.mark.parametrize("tail", [b"", b'{"seq":4,"te' + b"x" * 200_000])
def test_long_lines(tmp_path: Path, size: int, tail: bytes) -> None:
    path = written(tmp_path / "f", line(1), line(2, "x" * size), line(3, "y" * size))
    with open(path, "ab") as file:
        file.write(tail)
    sink = JsonlSink(path)
    assert (sink.last_seq, sink.cut_bytes) == (3, len(tail))


def test_opening_reads_the_end_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "f", *(line(n) for n in range(30_000)))
    lengths: list[int] = []
    real = os.pread

    def pread(file: int, length: int, offset: int) -> bytes:
        lengths.append(length)
        return real(file, length, offset)

    monkeypatch.setattr(os, "pread", pread)
    assert JsonlSink(path).last_seq == 29_999
    assert sum(lengths) == 1 << 16 < path.stat().st_size


@pytest.mark.parametrize(
    "wrong", [b"", b"junk", b"[]", b"{}", b'{"seq":"3"}', b'{"seq":true}', b'{"seq":-1}', b"\0" * 9]
)
@pytest.mark.parametrize("after", [[], [line(3)]])
def test_line_that_is_no_message(tmp_path: Path, wrong: bytes, after: list[bytes]) -> None:
    path = written(tmp_path / "f", line(1), wrong, *after)
    whole = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        JsonlSink(path)
    message = str(caught.value)
    assert str(path) in message
    assert "is not a message" in message
    assert path.read_bytes() == whole
    advised = re.search(r"`truncate -s (\d+)`", message)
    assert advised is not None
    os.truncate(path, int(advised[1]))
    assert JsonlSink(path).last_seq == 1


@pytest.mark.parametrize("seqs", [(5, 4), (5, 5), (1, 2, 2, 3)])
def test_seq_that_goes_backwards(tmp_path: Path, seqs: tuple[int, ...]) -> None:
    path = written(tmp_path / "f", *(line(n) for n in seqs))
    with pytest.raises(StoreError, match=r"has seq \d after \d.*truncate"):
        JsonlSink(path)


def test_byte_of_a_bad_line_in_a_long_file(tmp_path: Path) -> None:
    good = [line(n) for n in range(5_000)]
    path = written(tmp_path / "f", *good, b"junk", line(9_999))
    with pytest.raises(StoreError, match=f"byte {sum(len(each) + 1 for each in good)} "):
        JsonlSink(path)


def test_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot be opened: Is a directory"):
        JsonlSink(tmp_path)
    with pytest.raises(StoreError, match=r"missing.*No such file"):
        JsonlSinks(tmp_path / "missing", FILES)


def failing_write(accept: int) -> Callable[[int, memoryview], int]:
    """A disk with room for some bytes."""
    real = os.write
    left = accept

    def write(file: int, data: memoryview) -> int:
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = real(file, data[:left])
        left -= count
        return count

    return write


def test_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = JsonlSink(written(tmp_path / "f", line(1)))
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", failing_write(10))
        with pytest.raises(StoreError, match="No space left"):
            sink.publish([(2, line(2)), (3, line(3))])
    assert sink.last_seq == 1
    assert sink.path.read_bytes() == line(1) + b"\n"
    sink.publish([(2, line(2))])
    assert sink.path.read_bytes() == line(1) + b"\n" + line(2) + b"\n"


def test_failed_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = JsonlSink(tmp_path / "f")

    def fsync(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StoreError, match="Input/output error"):
        sink.sync()


def test_messages_go_to_the_file_of_their_topic(tmp_path: Path) -> None:
    sinks = JsonlSinks(tmp_path, FILES)
    assert sinks.last_seq == -1
    sinks.publish(outbox(0, 5))
    assert sinks.last_seq == 4
    rows = outbox(0, 5)
    for topic, name in FILES.items():
        expected = [row.value for row in rows if row.topic == topic]
        assert (tmp_path / name).read_bytes().splitlines() == expected


def test_files_are_synced_even_if_nothing_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    JsonlSinks(tmp_path, FILES).publish(outbox(0, 5))
    sinks = JsonlSinks(tmp_path, FILES)
    synced: list[str] = []
    real = os.fsync

    def fsync(file: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{file}")).name)
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    sinks.publish(outbox(0, 5))
    assert sorted(synced) == ["a.jsonl", "b.jsonl"]


def test_topic_without_a_file(tmp_path: Path) -> None:
    sinks = JsonlSinks(tmp_path, FILES)
    with pytest.raises(StoreError, match="messages for c"):
        sinks.publish([*outbox(0, 3), OutboxRow(3, "c", b"", line(3))])
    assert sinks.last_seq == -1


def test_output_of_another_data_directory(tmp_path: Path) -> None:
    written(tmp_path / "b.jsonl", line(7))
    sinks = JsonlSinks(tmp_path, FILES)
    sinks.check_belongs(8, {})
    with pytest.raises(StoreError, match=r"b\.jsonl: data directory and output do not belong"):
        sinks.check_belongs(7, {})
