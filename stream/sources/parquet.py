"""Parquet files: one record a row, read a batch at a time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

import orjson

from clustering.errors import DataError
from stream.config import SourceConfig
from stream.records import Bad, BadReason, Operation, Position, parse_record

MAGIC = b"PAR1"
_BATCH_ROWS = 1024


class ParquetSource:
    """Rows of a Parquet file: dates and times are ISO 8601 text, decimals text.

    NaN is null, and so is a date beyond the years 1 to 9999, as which infinity is written.
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
                    columns = [
                        self._values(*column) for column in zip(names, rows.columns, strict=True)
                    ]
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

    def _values(self, name: str, column: Any) -> list[Any]:
        """A column as values that JSON knows; text that cannot be decoded stays bytes."""
        from pyarrow import types

        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = _readable(column.type)
        if kind != column.type:
            column = column.cast(kind, safe=False)
        try:
            values: list[Any] = column.to_pylist()
        except (OverflowError, UnicodeDecodeError):
            values = [_one(scalar) for scalar in column]
        except LookupError as error:
            raise DataError(
                f'{self.name}: column "{name}" is in the time zone {error}, which is not known '
                "here; write it in UTC"
            ) from error
        if types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind):
            return values
        return [_plain(value) for value in values]

    def _operation(self, names: list[str], row: tuple[Any, ...], position: Position) -> Operation:
        data = dict(zip(names, row, strict=True))
        raw = orjson.dumps(data, default=str)
        for name, value in data.items():
            items = value if isinstance(value, list) else [value]
            if any(isinstance(item, bytes) for item in items):
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


def _readable(kind: Any) -> Any:
    """The type whose values Python can hold: dates and times to the microsecond."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if types.is_time64(kind):
        return pa.time64("us")
    if types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if types.is_list(kind):
        return pa.list_(_readable(kind.value_type))
    if types.is_large_list(kind):
        return pa.large_list(_readable(kind.value_type))
    if types.is_fixed_size_list(kind):
        return pa.list_(_readable(kind.value_type), kind.list_size)
    if types.is_struct(kind):
        return pa.struct([field.with_type(_readable(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(kind.key_type, _readable(kind.item_type))
    return kind


def _one(scalar: Any) -> Any:
    """A value of a column in which some value cannot be read."""
    items = getattr(scalar, "values", None)
    if isinstance(items, Iterable):  # a list; the scalars of other types have no such attribute
        return [_one(item) for item in items]
    try:
        return scalar.as_py()
    except OverflowError:
        return None
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes()


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
    UUID: str,
}
