"""Delimited text (CSV, TSV): a header, then one record a row, as RFC 4180 has it.

A quote that opens a cell and is never closed would swallow all that follows. Such a row is given up
where the quotes contradict themselves, the row grows too large or the input ends; reading goes on
with the next line, so that no other row is lost.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from threading import Event
from typing import NamedTuple

from clustering.errors import DataError
from stream.config import SourceConfig
from stream.records import Bad, BadReason, Operation, Position, parse_record
from stream.sources.lines import NO_LINE, Line, split_lines
from stream.sources.text import Input, TextSource, position_after

DELIMITERS = ",;\t|"


def sniff_delimiter(header: bytes) -> str | None:
    """The delimiter most frequent in a header outside of quotes; None when there is none."""
    bare = b"".join(header.split(b'"')[::2]).decode("utf-8", "replace")
    best = max(DELIMITERS, key=bare.count)
    return best if best in bare else None


class DelimitedSource(TextSource):
    """Rows of a delimited file; an empty cell is null, blank lines are skipped.

    delimiter: None to take the one that the header shows. The position also has the ``row``, from
    1 after the header.
    """

    def __init__(self, source: Input, config: SourceConfig, delimiter: str | None) -> None:
        super().__init__(source, config)
        self._delimiter = delimiter
        # The limit is the interpreter's, not the reader's; rows are bounded by their lines here.
        csv.field_size_limit(max(csv.field_size_limit(), config.max_record_size))

    def _operations(
        self, lines: Iterator[Line | None], resumed: Position | None
    ) -> Iterator[Operation | None]:
        number = 0 if resumed is None else resumed["row"]
        limit = self._config.max_record_size
        if resumed is None:
            rows = read_rows(lines, self._delimiter, limit)
            header = None
        else:
            chunks = self._input.open(Event())
            header_rows = read_rows(split_lines(chunks, NO_LINE, limit), self._delimiter, limit)
            first = next(row for row in header_rows if row is not None)
            header = self._header(first)
            rows = read_rows(lines, first.delimiter, limit)
        for row in rows:
            if row is None:
                yield None
            elif header is None:
                header = self._header(row)
            else:
                number += 1
                yield self._operation(row, number, header)

    def _header(self, row: Row) -> list[str]:
        if row.problem is not None:
            raise DataError(f"{self.name}: the header {row.problem[1]}; correct it")
        names = [name.strip() for name in row.cells]
        for i, name in enumerate(names):
            if not name:
                raise DataError(f"{self.name}: column {i + 1} has no name in the header; name it")
            if name in names[:i]:
                raise DataError(
                    f'{self.name}: two columns are named "{name}" in the header; rename one'
                )
        return names

    def _operation(self, row: Row, number: int, header: list[str]) -> Operation:
        position = position_after(row.line)
        position["row"] = number
        problem = row.problem
        if problem is None and len(row.cells) != len(header):
            counts = f"has {len(row.cells)} cells, but the header {len(header)}"
            problem = BadReason.BAD_ROW, counts
        if problem is not None:
            detail = f"row {number}, which ends in line {row.line.number}, {problem[1]}"
            return Bad(problem[0], detail, row.raw, None, position, row.left_out)
        data = dict(zip(header, [cell or None for cell in row.cells], strict=True))
        return parse_record(data, row.raw, position, self._config)


class Row(NamedTuple):
    """One row, or what is wrong with it."""

    cells: list[str]
    raw: bytes
    line: Line
    """its last one"""
    delimiter: str
    problem: tuple[BadReason, str] | None = None
    left_out: int = 0
    """bytes of it that ``raw`` lacks"""


class _NothingYetError(Exception):
    """The rest of a row has not been written yet."""


class _TooLongError(Exception):
    """A row is larger than allowed."""


def read_rows(
    lines: Iterator[Line | None], delimiter: str | None, limit: int
) -> Iterator[Row | None]:
    """The rows that the lines make up, the header like any other; None is passed on.

    limit: most bytes of a row.
    """
    feed = _Feed(lines, limit)
    if delimiter is None:
        for line in lines:
            if line is None:
                yield None
            elif not line.raw.isspace():
                feed.again.append(line)
                delimiter = sniff_delimiter(line.raw) or DELIMITERS[0]
                break
        else:
            return
    reader = csv.reader(feed, delimiter=delimiter or DELIMITERS[0], strict=True)
    delimiter = reader.dialect.delimiter
    while True:
        feed.start()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except _NothingYetError:
            feed.give_back(0)
            yield None
            continue
        except (csv.Error, _TooLongError) as error:
            line = feed.taken[0]
            problem = _problem(feed.taken, error, limit)
            feed.give_back(1)
            yield Row([], line.raw, line, delimiter, problem, line.left_out)
            continue
        taken = feed.taken
        line = taken[-1]
        raw = line.raw if len(taken) == 1 else b"".join([line.raw for line in taken])
        if feed.undecodable:
            yield Row([], raw, line, delimiter, (BadReason.INVALID_UTF8, "is not UTF-8 text"))
        elif b"\0" in raw:
            yield Row([], raw, line, delimiter, (BadReason.BAD_ROW, "holds a NUL byte"))
        elif cells:
            yield Row(cells, raw, line, delimiter)


def _problem(taken: list[Line], error: Exception, limit: int) -> tuple[BadReason, str]:
    if not taken[0].whole:
        return BadReason.RECORD_TOO_LARGE, f"is longer than source.max_record_size, {limit}"
    if len(taken) > 1 or "end of data" in str(error):
        return BadReason.BAD_ROW, "opens a quote that is not closed where a cell ends"
    if "new-line" in str(error):
        return BadReason.BAD_ROW, "holds a carriage return outside of quotes"
    return BadReason.BAD_ROW, "has something after a closing quote; double a quote within a cell"


class _Feed(Iterator[str]):
    """Hands lines to the csv reader, and knows which ones the present row is made of."""

    def __init__(self, lines: Iterator[Line | None], limit: int) -> None:
        self.again: deque[Line] = deque()
        self.taken: list[Line] = []
        self.undecodable = False
        self._lines = lines
        self._limit = limit
        self._size = 0

    def start(self) -> None:
        self.taken = []
        self.undecodable = False
        self._size = 0

    def give_back(self, kept: int) -> None:
        """Take back all lines of the row but the first ``kept``."""
        self.again.extendleft(reversed(self.taken[kept:]))

    def __next__(self) -> str:
        line = self.again.popleft() if self.again else next(self._lines)
        if line is None:
            raise _NothingYetError
        self.taken.append(line)
        self._size += len(line.raw)
        if self._size > self._limit or not line.whole:
            raise _TooLongError
        try:
            return line.raw.decode()
        except UnicodeDecodeError:
            self.undecodable = True
            return line.raw.decode("utf-8", "surrogateescape")
