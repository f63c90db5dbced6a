"""Parquet files: one record a row, read a batch at a time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import orjson

from clustering.errors import DataError
from stream.config import SourceConfig
from stream.records import Bad, BadReason, Operation, Position, parse_record

MAGIC = b"PAR1"
_BATCH_ROWS = 1024


class ParquetSource:
    """Rows of a Parquet file: NaN is null, dates and times are ISO 8601 text, decimals text.

    A position is ``{"row": number, "file": CRC-32 of the file's metadata}``; rows count from 1.
    When the file has other metadata it is another one and is read from its beginning.
    """

    bounded = True

    def __init__(self, path: Path, config: SourceConfig) -> None:
        self.name = str(path)
        self._path = path
        self._config = config
        self._share_read = 0.0

    def progress(self) -> tuple[int, int | None]:
        """Bytes of the file read, by its rows, and its size."""
        try:
            size = self._path.stat().st_size
        except OSError:
            return 0, None
        return int(size * self._share_read), size

    def read(
        self, position: Position | None = None, stop: Event | None = None
    ) -> Iterator[Operation | None]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            file_crc = _metadata_crc(self._path)
            with pq.ParquetFile(self._path) as file:
                names = file.schema_arrow.names
                if len(set(names)) < len(names):
                    raise DataError(f"{self.name}: two columns have one name; rename one")
                done = 0
                if position is not None and position["file"] == file_crc:
                    done = int(position["row"])
                groups, first = _groups_after(file.metadata, done)
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups):
                    rows = batch.slice(max(0, done - first))
                    first += batch.num_rows
                    columns = [_values(column) for column in rows.columns]
                    for row in zip(*columns, strict=True):
                        if stop is not None and stop.is_set():
                            return
                        done += 1
                        yield self._operation(names, row, {"row": done, "file": file_crc})
                    self._share_read = done / file.metadata.num_rows
                self._share_read = 1.0
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{self.name}: cannot be read as Parquet: {error}; write it again"
            ) from error

    def _operation(self, names: list[str], row: tuple[Any, ...], position: Position) -> Operation:
        data = dict(zip(names, row, strict=True))
        raw = orjson.dumps(data, default=str)
        for name, value in data.items():
            if isinstance(value, bytes):
                detail = f'row {position["row"]}: "{name}" is not UTF-8 text'
                return Bad(BadReason.INVALID_UTF8, detail, raw, None, position)
        return parse_record(data, raw, position, self._config)


def _metadata_crc(path: Path) -> int:
    """CRC-32 of the last part of the file, which describes all others."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size - 8 - length))
        return zlib.crc32(file.read())


def _groups_after(metadata: Any, row: int) -> tuple[list[int], int]:
    """The row groups that have rows after ``row``, and the number of rows before them."""
    first = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if first + rows > row:
            return list(range(group, metadata.num_row_groups)), first
        first += rows
    return [], first


def _values(column: Any) -> list[Any]:
    """A column as Python values that JSON knows; text that cannot be decoded stays bytes."""
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    elif types.is_time64(kind):
        column = column.cast(pa.time64("us"), safe=False)
    elif types.is_duration(kind):
        column = column.cast(pa.duration("us"), safe=False)
    elif types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        try:
            return list(column.to_pylist())
        except UnicodeDecodeError:
            column = column.cast(pa.large_binary())
    values: list[Any] = column.to_pylist()
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind):
        return values
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    convert = _CONVERSIONS.get(type(value))
    return value if convert is None else convert(value)


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    float: lambda value: None if value != value else value,  # noqa: PLR0124  # NaN
    date: date.isoformat,
    datetime: datetime.isoformat,
    time: time.isoformat,
    timedelta: str,
    Decimal: str,
    bytes: _text,
    list: lambda values: [_plain(value) for value in values],
}
