"""What the sources made of lines have in common: resuming, following, counting."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from stream.config import SourceConfig
from stream.records import Operation, Position
from stream.sources.chunks import (
    GZIP_MAGIC,
    Chunks,
    StoppedError,
    TruncatedError,
    file_chunks,
    follow_chunks,
    gunzip,
    head,
    joined,
    pipe_chunks,
    skip,
)
from stream.sources.lines import NO_LINE, Line, split_lines


class Input(Protocol):
    """Bytes that can be read once or, from a file, again and again."""

    name: str
    bounded: bool
    repeatable: bool
    """whether it can be opened again, at its beginning"""

    def open(self, stop: threading.Event) -> Chunks: ...

    def progress(self) -> tuple[int, int | None]: ...


class FileInput:
    """A plain or gzipped file; ``follow`` waits for more at its end. See chunks for errors."""

    repeatable = True

    def __init__(self, path: Path, follow: bool = False) -> None:
        self.name = str(path)
        self.bounded = not follow
        self._path = path
        self._read = 0

    def open(self, stop: threading.Event) -> Chunks:
        if not self.bounded:
            return follow_chunks(self._path, self._count, stop)
        return _unpacked(file_chunks(self._path, self._count, stop), self.name)

    def progress(self) -> tuple[int, int | None]:
        """Bytes of the file read, and its size; before unpacking."""
        try:
            return self._read, self._path.stat().st_size
        except OSError:
            return self._read, None

    def _count(self, done: int) -> None:
        self._read = done


class PipeInput:
    """A pipe, which is read once, plain or gzipped."""

    bounded = True
    repeatable = False

    def __init__(self, descriptor: int, name: str) -> None:
        self.name = name
        self._read = 0
        self._stop = threading.Event()
        self._chunks = _unpacked(pipe_chunks(descriptor, name, self._count, self._stopped), name)
        self._seen: list[bytes] = []

    def open(self, stop: threading.Event) -> Chunks:
        self._stop = stop
        seen, self._seen = self._seen, []
        yield from seen
        yield from self._chunks

    def peek(self, size: int) -> bytes:
        """The beginning, which stays to be read; waits for a line or ``size`` bytes."""
        data = head(self._chunks, size)
        self._seen = [data] if data else []
        return data

    def progress(self) -> tuple[int, int | None]:
        """Bytes read, before unpacking; nobody knows how many will come."""
        return self._read, None

    def _count(self, done: int) -> None:
        self._read = done

    def _stopped(self) -> bool:
        return self._stop.is_set()


def _unpacked(chunks: Chunks, name: str) -> Chunks:
    """The chunks, unpacked when they begin as gzip data do."""
    first = b""
    for chunk in chunks:
        if chunk is None:
            yield None
            continue
        first += chunk
        if len(first) >= len(GZIP_MAGIC):
            break
    whole = joined(first, chunks)
    yield from gunzip(whole, name) if first.startswith(GZIP_MAGIC) else whole


class TextSource(ABC):
    """Records in lines of an input.

    A position is ``{"offset": bytes, "line": number, "crc": CRC-32}`` of the unpacked input up to
    the end of the record. When the input no longer begins with these bytes it is another one and
    is read from its beginning; a pipe is always read from where it stands.
    """

    def __init__(self, source: Input, config: SourceConfig) -> None:
        self.name = source.name
        self.bounded = source.bounded
        self._input = source
        self._config = config

    @abstractmethod
    def _operations(
        self, lines: Iterator[Line | None], resumed: Position | None
    ) -> Iterator[Operation | None]:
        """What the lines say; they follow the position ``resumed``."""

    def progress(self) -> tuple[int, int | None]:
        return self._input.progress()

    def read(
        self, position: Position | None = None, stop: threading.Event | None = None
    ) -> Iterator[Operation | None]:
        stop = stop or threading.Event()
        while True:
            try:
                yield from self._read_once(position, stop)
            except StoppedError:
                return
            except TruncatedError:
                pass
            if self.bounded:
                return
            position = None

    def _read_once(
        self, position: Position | None, stop: threading.Event
    ) -> Iterator[Operation | None]:
        if not self._input.repeatable:
            position = None
        chunks, after = self._input.open(stop), NO_LINE
        if position is not None:
            after = Line(b"", position["line"], position["offset"], position["crc"])
            rest = skip(chunks, after.end, after.crc)
            if rest is None:
                position, after, rest = None, NO_LINE, self._input.open(stop)
            chunks = rest
        lines = split_lines(chunks, after, self._config.max_record_size)
        yield from self._operations(lines, position)


def position_after(line: Line) -> Position:
    """Where reading goes on after this line."""
    return {"offset": line.end, "line": line.number, "crc": line.crc}
