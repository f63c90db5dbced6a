"""Files of messages, one JSON message a line, each message in them exactly once.

A message stands in the store's outbox, committed together with what it tells of, until it is in
its file and on disk. Whatever instant a crash comes at, publishing the outbox again on the next
start completes the files: a partial last line is cut off on opening, and messages up to a file's
last ``seq`` are passed over. So the files are those of a run without a crash, byte for byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import orjson

from clustering.errors import StoreError
from state.codecs import OutboxRow
from state.files import sync_directory

_WINDOW = 1 << 16
"""Bytes at the end of a file that opening checks, or more until a whole line is among them."""
_BUFFER = 1 << 20


class JsonlSink:
    """One append-only file. It has one writer: whoever holds the lock of the data directory.

    Raises StoreError when the file cannot be opened, read or written, or its end is not made of
    messages with ascending ``seq``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last_seq = -1
        """of the last message in the file; -1 when there is none"""
        self.cut_bytes = 0
        """length of the partial last line that opening cut off"""
        self._size = 0
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            self._fail("cannot be opened", error)
        try:
            self._open_end()
            sync_directory(path.parent)
        except OSError as error:
            self.close()
            self._fail("cannot be read or written", error)
        except StoreError:
            self.close()
            raise

    def publish(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Append messages ``(seq, JSON with that seq)``, ascending; those in the file stay out.

        On an error the file holds whole lines only, up to ``last_seq``.
        """
        buffer = bytearray()
        last = self.last_seq
        for seq, line in rows:
            if seq <= last:
                continue
            buffer += line
            buffer += b"\n"
            last = seq
            if len(buffer) >= _BUFFER:
                self._append(buffer, last)
                buffer = bytearray()
        self._append(buffer, last)

    def sync(self) -> None:
        """Wait until what was published is on disk."""
        try:
            os.fsync(self._file)
        except OSError as error:
            self._fail("cannot be written to disk", error)

    def close(self) -> None:
        """Close the file; does not sync. Closing twice does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, lines: bytearray, last: int) -> None:
        size = self._size
        try:
            with memoryview(lines) as view:
                written = 0
                while written < len(view):
                    written += os.write(self._file, view[written:])
        except OSError as error:
            with suppress(OSError):  # if this fails too, the next opening does it
                os.ftruncate(self._file, size)
            self._fail("cannot be written; what is published so far is kept", error)
        self._size = size + len(lines)
        self.last_seq = last

    def _open_end(self) -> None:
        """Mend the last line and find its seq, reading no more than the end of the file."""
        self._size = os.fstat(self._file).st_size
        *lines, tail = self._read_end()
        if tail:
            if _seq(tail) is None:
                self.cut_bytes = len(tail)
                self._size -= len(tail)
                os.ftruncate(self._file, self._size)
            else:  # Only the line's end is missing: after a crash, or an editor took it away.
                lines.append(tail)
                self._append(bytearray(b"\n"), self.last_seq)
        end = self._size - sum(len(line) + 1 for line in lines)
        for line in lines:
            seq = _seq(line)
            if seq is None or seq <= self.last_seq:
                after = f"has seq {seq} after {self.last_seq}"
                raise StoreError(
                    f"{self.path}: the line at byte {end} "
                    f"{'is not a message' if seq is None else after}: something else wrote to "
                    f"this file, or the disk lost a part of it. Restore it from a copy, or cut it "
                    f"there with `truncate -s {end}`: messages from there on that are no longer "
                    "in the outbox are then missing"
                )
            self.last_seq = seq
            end += len(line) + 1

    def _read_end(self) -> list[bytes]:
        """The last lines of the file, and last of all what follows the last line's end."""
        window = _WINDOW
        while True:
            start = max(0, self._size - window)
            lines = os.pread(self._file, self._size - start, start).split(b"\n")
            if start == 0:
                return lines
            if len(lines) > 2:  # one that may have begun before the window, one whole, the tail
                return lines[1:]
            window *= 4

    def _fail(self, what: str, error: OSError) -> NoReturn:
        advice = "make sure that it is a file of ours and that the disk has space, then start again"
        raise StoreError(f"{self.path}: {what}: {error.strerror}; {advice}") from error


class JsonlSinks:
    """The files of all topics, in one directory.

    files: name of the file of each topic. The outbox's empty values (tombstones) do not occur in
    files: that a record is deleted is told by an assignment without entity, a line like any other.
    """

    def __init__(self, directory: Path, files: Mapping[str, str]) -> None:
        self._sinks: dict[str, JsonlSink] = {}
        try:
            for topic, name in files.items():
                self._sinks[topic] = JsonlSink(directory / name)
        except StoreError:
            self.close()
            raise

    @property
    def last_seq(self) -> int:
        """The largest seq in any file, -1 when all are empty; others may lack smaller ones."""
        return max((sink.last_seq for sink in self._sinks.values()), default=-1)

    @property
    def cut_bytes(self) -> dict[Path, int]:
        """Bytes that opening cut off, of the files where it did."""
        return {s.path: s.cut_bytes for s in self._sinks.values() if s.cut_bytes}

    def check_belongs(self, next_seq: int, published: Mapping[str, int]) -> None:
        """Raise StoreError when a file has more or less than the store knows of.

        next_seq: the number of the next message in the store's outbox. published: by topic, the
        last message that left the outbox because it was in its file. An empty file is a fresh
        start (after a restore, or once the old one was moved away) and may lack them all.
        """
        for topic, sink in self._sinks.items():
            if -1 < sink.last_seq < published.get(topic, -1):
                raise StoreError(
                    f"{sink.path}: has lost its end: its last message is {sink.last_seq}, but "
                    f"{published[topic]} was written to it. Restore the whole file, or "
                    "start a new data directory and feed it the records again"
                )
            if sink.last_seq >= next_seq:
                raise StoreError(
                    f"{sink.path}: data directory and output do not belong together: its last "
                    f"message is {sink.last_seq}, but the data directory has made none from "
                    f"{next_seq} on. Use the data directory that wrote it, or move the output away"
                )

    def publish(self, rows: Iterable[OutboxRow]) -> None:
        """Append messages, ascending by sequence, each to its topic's file, and sync.

        Once it returns they may leave the outbox. Raises StoreError, and writes nothing, when a
        topic has no file.
        """
        by_topic: dict[str, list[tuple[int, bytes]]] = {}
        for row in rows:
            by_topic.setdefault(row.topic, []).append((row.sequence, row.value))
        if unknown := by_topic.keys() - self._sinks.keys():
            raise StoreError(
                f"the outbox has messages for {', '.join(sorted(unknown))}, which no file is for: "
                "open this data directory with the version of graftd that wrote it"
            )
        for topic, messages in by_topic.items():
            self._sinks[topic].publish(messages)
        # Also those passed over: a crash may have come between their writing and their sync.
        for topic in by_topic:
            self._sinks[topic].sync()

    def close(self) -> None:
        """Close all files."""
        for sink in self._sinks.values():
            sink.close()


def _seq(line: bytes) -> int | None:
    """The seq of a message; None when the line is none."""
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    seq = message.get("seq") if isinstance(message, dict) else None
    return seq if isinstance(seq, int) and not isinstance(seq, bool) and seq >= 0 else None


__all__ = ["JsonlSink", "JsonlSinks"]
