"""Writes the table of records and their entities, piece by piece, whatever its size."""

from __future__ import annotations

import csv
import io
import itertools
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import orjson

from clustering.errors import StoreError, UsageError
from stream.view import View

COLUMNS = ("source", "id", "entity_id")
_ROWS = 10_000  # in one piece

Row = tuple[str, str, str]


def export_table(view: View, kind: str, path: Path | None) -> int:
    """Write all records of a data directory with their entities; returns how many.

    kind: csv, jsonl or parquet. path: a file, which appears whole or not at all; None for the
    standard output, where Parquet is refused with UsageError.
    """
    rows = ((key.source, key.id, entity) for key, entity in view.assignments())
    if kind == "parquet":
        if path is None:
            raise UsageError("Parquet needs a file: graftd export -d DIR entities.parquet")
        with _replacing(path) as file:
            return _write_parquet(rows, file)
    encode = _csv if kind == "csv" else _jsonl
    if path is None:
        return _write(encode(rows), sys.stdout.buffer)
    with _replacing(path) as file:
        return _write(encode(rows), file)


def _write(pieces: Iterable[tuple[int, bytes]], file: BinaryIO) -> int:
    total = 0
    for rows, data in pieces:
        file.write(data)
        total += rows
    file.flush()
    return total


def _csv(rows: Iterable[Row]) -> Iterator[tuple[int, bytes]]:
    yield 0, (",".join(COLUMNS) + "\n").encode()
    for piece in _pieces(rows):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(piece)
        yield len(piece), text.getvalue().encode()


def _jsonl(rows: Iterable[Row]) -> Iterator[tuple[int, bytes]]:
    for piece in _pieces(rows):
        lines = (
            orjson.dumps(dict(zip(COLUMNS, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)
            for row in piece
        )
        yield len(piece), b"".join(lines)


def _write_parquet(rows: Iterable[Row], file: BinaryIO) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    total = 0
    with parquet.ParquetWriter(file, schema) as writer:
        for piece in _pieces(rows):
            columns = [list(column) for column in zip(*piece, strict=True)]
            writer.write_table(pa.table(columns, schema=schema))
            total += len(piece)
    return total


def _pieces(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while piece := list(itertools.islice(iterator, _ROWS)):
        yield piece


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path`` once it is complete."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)


__all__ = ["export_table"]
