"""Bytes of a file or pipe, piece by piece; None stands for "nothing came for a while".

Each function is an iterator over non-empty pieces. It ends where the input does, and only there:
what follows the last line break is then known to be a whole line. Anything else that ends reading
is an exception.
"""

from __future__ import annotations

import os
import select
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from clustering.errors import DataError

POLL_SECONDS = 0.2
"""How often an input that may grow is looked at."""

GZIP_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 18

Chunks = Iterator[bytes | None]


class StoppedError(Exception):
    """Reading was asked to stop; an unfinished line is left for the next time."""


class TruncatedError(Exception):
    """A followed file was cut short; it is read again from its beginning."""


def unreadable(path: Path | str, error: OSError) -> DataError:
    """The error for a file that the system does not let us read."""
    match error:
        case FileNotFoundError():
            return DataError(f"{path}: no such file; check the path")
        case IsADirectoryError():
            return DataError(f"{path}: is a folder; name a file in it")
        case PermissionError():
            return DataError(f"{path}: may not be read; give this user permission to read it")
    return DataError(f"{path}: cannot be read: {error.strerror or error}")


def file_chunks(path: Path, on_read: Callable[[int], None], stop: threading.Event) -> Chunks:
    """A file up to its present end. on_read: told the number of bytes read so far.

    Raises DataError when it cannot be read, StoppedError once ``stop`` is set.
    """
    try:
        with path.open("rb", buffering=0) as file:
            done = 0
            while piece := file.read(_PIECE):
                if stop.is_set():
                    raise StoppedError
                done += len(piece)
                on_read(done)
                yield piece
    except OSError as error:
        raise unreadable(path, error) from error


def follow_chunks(path: Path, on_read: Callable[[int], None], stop: threading.Event) -> Chunks:
    """A file that grows; ends when another file has taken its name and this one is read.

    Raises DataError when it cannot be read, TruncatedError when it became shorter than what was
    read of it, StoppedError once ``stop`` is set.
    """
    try:
        with path.open("rb", buffering=0) as file:
            done, replaced = 0, False
            while True:
                if stop.is_set():
                    raise StoppedError
                if piece := file.read(_PIECE):
                    done += len(piece)
                    on_read(done)
                    yield piece
                    continue
                if replaced:
                    return
                here = os.fstat(file.fileno())
                if here.st_size < done:
                    raise TruncatedError
                # Its writer may still finish a line after the renaming: look once more, later.
                replaced = _is_another_file(path, here)
                yield None
                stop.wait(POLL_SECONDS)
    except OSError as error:
        raise unreadable(path, error) from error


def _is_another_file(path: Path, opened: os.stat_result) -> bool:
    try:
        return not os.path.samestat(path.stat(), opened)
    except FileNotFoundError:
        return False  # between the renaming of the old file and the making of the new one


def pipe_chunks(
    descriptor: int, name: str, on_read: Callable[[int], None], stopped: Callable[[], bool]
) -> Chunks:
    """A pipe, terminal or redirected file, until its writer closes it.

    Raises DataError when it cannot be read, StoppedError once ``stopped`` says so.
    """
    done = 0
    try:
        while True:
            if stopped():
                raise StoppedError
            if not select.select([descriptor], [], [], POLL_SECONDS)[0]:
                yield None
                continue
            piece = os.read(descriptor, _PIECE)
            if not piece:
                return
            done += len(piece)
            on_read(done)
            yield piece
    except OSError as error:
        raise unreadable(name, error) from error


def gunzip(chunks: Chunks, name: str) -> Chunks:
    """What gzip members one after another hold; all that is readable before an error is given.

    Raises DataError where the data are damaged or end too early.
    """
    member, fresh = zlib.decompressobj(wbits=31), True
    for chunk in chunks:
        if chunk is None:
            yield None
            continue
        data = chunk
        while data:
            if fresh and not (data := data.lstrip(b"\0")):
                break  # members may be followed by zeros
            fresh = False
            before = member.copy()
            try:
                piece = member.decompress(data, _PIECE)
            except zlib.error as error:
                if piece := _salvage(before, data):
                    yield piece
                raise DataError(
                    f"{name}: the gzip data are damaged ({error}); what came before was read; "
                    "get the file again, and go on with the same command"
                ) from error
            if piece:
                yield piece
            data = member.unconsumed_tail
            if member.eof:
                data, member, fresh = member.unused_data, zlib.decompressobj(wbits=31), True
    if not fresh:
        raise DataError(
            f"{name}: the gzip data end too early; what came before was read; get the file again, "
            "and go on with the same command"
        )


def _salvage(member: zlib._Decompress, data: bytes) -> bytes:
    """What a piece of damaged data gives, up to the byte that cannot be."""
    pieces = []
    try:
        for i in range(min(len(data), _PIECE)):
            pieces.append(member.decompress(data[i : i + 1]))  # noqa: PERF401  # until it raises
    except zlib.error:
        pass
    return b"".join(pieces)


def skip(chunks: Chunks, size: int, crc: int) -> Chunks | None:
    """What follows the first ``size`` bytes, or None if their CRC-32 is not ``crc``.

    It is not when the file was rewritten since, or is now too short.
    """
    seen = 0
    while size > 0:
        chunk = next(chunks, None)
        if chunk is None:
            return None
        seen = zlib.crc32(chunk[:size], seen)
        if len(chunk) > size:
            return None if seen != crc else joined(chunk[size:], chunks)
        size -= len(chunk)
    return None if seen != crc else chunks


def joined(first: bytes, rest: Chunks) -> Chunks:
    """The first bytes, which may be none, and then the rest."""
    if first:
        yield first
    yield from rest


def head(chunks: Chunks, size: int) -> bytes:
    """The beginning of the input: at least its first line, unless that is longer than ``size``."""
    data = b""
    for chunk in chunks:
        data += chunk or b""
        if b"\n" in data or len(data) >= size:
            break
    return data
