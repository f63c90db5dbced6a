"""Bytes cut into lines, however long, in bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import NamedTuple

from stream.sources.chunks import Chunks

BEGINNING = 1 << 16
"""Bytes kept of a line that is too long."""

BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line of the input."""

    raw: bytes
    """with its line break, if it has one; only the beginning when it was longer than allowed"""
    number: int
    """from 1"""
    end: int
    """bytes of the input up to its end"""
    crc: int
    """CRC-32 of these bytes"""
    whole: bool = True
    """False when it was longer than allowed"""
    left_out: int = 0
    """bytes of it that ``raw`` lacks"""


NO_LINE = Line(b"", 0, 0, 0)


def split_lines(chunks: Chunks, after: Line, limit: int) -> Iterator[Line | None]:
    """The lines that follow ``after``; a byte order mark before the first one is left out.

    limit: bytes above which only the beginning of a line is kept. None is passed on. When
    ``chunks`` end, what follows the last line break is a line; when they raise, it is lost.
    """
    number, end, crc = after.number, after.end, after.crc
    make = Line._make
    held: list[bytes] = []  # of a line that is not complete yet
    held_size = 0
    excess = 0  # bytes of it that were let go
    for chunk in _and_end(chunks):
        if chunk is None:
            yield None
            continue
        at_end = not chunk
        if not at_end and b"\n" not in chunk:
            held.append(chunk)
            held_size += len(chunk)
            crc = zlib.crc32(chunk, crc)
        else:
            first, *others = BytesIO(chunk).readlines() or [b""]
            last = others.pop() if others and not others[-1].endswith(b"\n") else b""
            crc = zlib.crc32(first, crc)
            size = held_size + excess + len(first)
            if size:
                number += 1
                end += size
                raw = b"".join((*held, first))
                if number == 1:
                    raw = raw.removeprefix(BOM)
                whole = size <= limit
                kept = raw if whole else raw[:BEGINNING]
                yield Line(kept, number, end, crc, whole, excess + len(raw) - len(kept))
            for raw in others:
                number += 1
                size = len(raw)
                end += size
                crc = zlib.crc32(raw, crc)
                if size <= limit:
                    yield make((raw, number, end, crc, True, 0))
                else:
                    kept = raw[:BEGINNING]
                    yield make((kept, number, end, crc, False, size - len(kept)))
            crc = zlib.crc32(last, crc)
            held, held_size, excess = [last], len(last), 0
        if held_size > max(limit, BEGINNING):
            beginning = b"".join(held)[:BEGINNING]
            excess += held_size - len(beginning)
            held, held_size = [beginning], len(beginning)


def _and_end(chunks: Chunks) -> Chunks:
    """The chunks and an empty one to mark their end."""
    yield from chunks
    yield b""
