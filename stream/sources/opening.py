"""Finds out what an input is, and opens it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Literal, Protocol, get_args

from clustering.errors import DataError
from stream.config import SourceConfig
from stream.records import Operation, Position
from stream.sources.chunks import GZIP_MAGIC, head, unreadable
from stream.sources.delimited import DelimitedSource, sniff_delimiter
from stream.sources.jsonl import JsonLinesSource
from stream.sources.lines import BOM
from stream.sources.parquet import MAGIC, ParquetSource
from stream.sources.text import FileInput, Input, PipeInput

Format = Literal["csv", "jsonl", "parquet"]

_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_NOT_READ = {
    b"PK\x03\x04": "a zip archive or a workbook; unpack it, or save its sheet as CSV",
    b"BZh": "compressed with bzip2; unpack it, or use gzip",
    b"\xfd7zXZ": "compressed with xz; unpack it, or use gzip",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it, or use gzip",
}
_HEAD = 1 << 16


class Source(Protocol):
    """An input of records."""

    name: str
    """what its position is stored under: the absolute path, or "stdin" """
    bounded: bool
    """whether it has an end; a followed file has none"""

    def read(
        self, position: Position | None = None, stop: Event | None = None
    ) -> Iterator[Operation | None]:
        """What comes after the position of an earlier operation, or everything.

        None means that nothing came for a while. Ends at the end of the input, or soon after
        ``stop`` is set. Raises DataError when the input cannot be read (any further).
        """

    def progress(self) -> tuple[int, int | None]:
        """Bytes read so far, and bytes in all when that is known."""


def open_source(
    path: str,
    config: SourceConfig,
    follow: bool = False,
    format: Format | None = None,  # noqa: A002  # what it is called on the command line too
) -> Source:
    """The source at a path; ``-`` is standard input.

    follow: wait for what is added to the file, as ``tail -F`` does. format: None to decide by the
    name, or else by the content. Raises DataError for what cannot be read.
    """
    if format is not None and format not in get_args(Format):
        raise DataError(f"{path}: no format {format!r}; use one of {', '.join(get_args(Format))}")
    if path == "-":
        return _open_pipe(PipeInput(sys.stdin.fileno(), "stdin"), config, format)
    file = Path(path).absolute()
    try:
        if file.is_dir():
            raise IsADirectoryError
        if file.exists() and not file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            return _open_pipe(PipeInput(descriptor, str(file)), config, format)
        with file.open("rb") as opened:
            magic = opened.read(len(MAGIC))
    except OSError as error:
        raise unreadable(file, error) from error
    if follow and magic.startswith(GZIP_MAGIC):
        raise DataError(f"{file}: a gzipped file cannot be followed; unpack it, or do not follow")
    if format == "parquet" or (format is None and magic == MAGIC):
        if follow:
            raise DataError(f"{file}: a Parquet file does not grow; do not follow it")
        return ParquetSource(file, config)
    beginning = head(FileInput(file).open(Event()), _HEAD)
    kind = format or _recognise(str(file), beginning)
    if kind == "parquet":
        raise DataError(f"{file}: is not a Parquet file, in spite of its name; name its format")
    return _open_text(FileInput(file, follow), beginning, config, kind)


def _open_pipe(pipe: PipeInput, config: SourceConfig, wanted: Format | None) -> Source:
    beginning = pipe.peek(_HEAD)
    kind = wanted or _recognise(pipe.name, beginning)
    if kind == "parquet":
        raise DataError(f"{pipe.name}: Parquet cannot be read from a pipe; name the file")
    return _open_text(pipe, beginning, config, kind)


def _open_text(source: Input, beginning: bytes, config: SourceConfig, kind: Format) -> Source:
    if beginning[:2] in (b"\xff\xfe", b"\xfe\xff") and b"\0" in beginning[2:64]:
        raise DataError(f"{source.name}: is UTF-16 text; save it as UTF-8")
    if kind == "jsonl":
        return JsonLinesSource(source, config)
    if b"\n" not in beginning and b"\r" in beginning.rstrip(b"\r"):
        raise DataError(
            f"{source.name}: its lines end in carriage returns alone; save it with line feeds"
        )
    tabs = _suffix(source.name) in (".tsv", ".tab")
    return DelimitedSource(source, config, "\t" if tabs else None)


def _suffix(name: str) -> str:
    path = Path(name.lower())
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


def _recognise(name: str, beginning: bytes) -> Format:
    """The format of an input, by its name or else by how it begins."""
    if beginning.startswith(MAGIC):
        return "parquet"
    for magic, what in _NOT_READ.items():
        if beginning.startswith(magic):
            raise DataError(f"{name}: is {what}")
    text = beginning.removeprefix(BOM).lstrip()
    suffix = _suffix(name)
    if suffix == ".json" and text.startswith(b"["):
        raise DataError(f"{name}: is a JSON array; write its objects one a line (jq -c '.[]')")
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    first = text.partition(b"\n")[0]
    if first.startswith(b"{"):
        return "jsonl"
    if b"\0" not in first and sniff_delimiter(first) is not None:
        return "csv"
    if name == "stdin" and not text:
        return "jsonl"  # nothing at all is no records, in any format
    raise DataError(
        f"{name}: its format cannot be told from its name or beginning; name the format"
    )
