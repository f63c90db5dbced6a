"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer


class Output(StrEnum):
    """How a result is printed."""

    table = "table"
    json = "json"
    jsonl = "jsonl"


InputFormat = Literal["csv", "jsonl", "parquet"]

DataDirOption = Annotated[
    Path,
    typer.Option(
        "--data-dir", "-d", envvar="GRAFTD_DATA_DIR", help="Data directory that `graftd run` fills."
    ),
]
DataDirArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="Data directory that `graftd run` fills.")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Configuration; `graftd init` writes a first one."
    ),
]
OutputOption = Annotated[
    Output, typer.Option("--output", help="How to print the result: for people or for programs.")
]
FormatOption = Annotated[
    InputFormat | None,
    typer.Option("--format", help="Format of the input; by its name or content when left out."),
]


__all__ = [
    "ConfigOption",
    "DataDirArgument",
    "DataDirOption",
    "FormatOption",
    "InputFormat",
    "Output",
    "OutputOption",
]
