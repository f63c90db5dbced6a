"""The command `export`: the answer as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stream.cli.app import RUNNING, command
from stream.cli.options import ConfigOption, DataDirOption, InputFormat


@command(
    RUNNING,
    "graftd export -d DIR > entities.csv",
    "graftd export -d DIR entities.parquet",
    "graftd export -d DIR --format jsonl | head",
)
def export(
    data_dir: DataDirOption,
    file: Annotated[
        Path | None, typer.Argument(help="File to write; the standard output when left out.")
    ] = None,
    format_: Annotated[
        InputFormat | None,
        typer.Option("--format", "--output", help="By the file's name when left out, else csv."),
    ] = None,
    config: ConfigOption = None,  # noqa: ARG001  # as for `run`; the data directory has its own
) -> None:
    """Write the table of all records and their entities: source, id, entity_id."""
    from stream.exporting import export_table
    from stream.view import View

    wanted = format_ or _format_of(file)
    with View.open(data_dir) as view:
        rows = export_table(view, wanted, file)
    if file is not None:
        typer.echo(f"wrote {file}: {rows} records", err=True)


def _format_of(file: Path | None) -> str:
    suffix = "" if file is None else file.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        return "jsonl"
    return "parquet" if suffix in (".parquet", ".pq") else "csv"
