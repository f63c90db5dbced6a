"""Commands about the configuration, and `version`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stream.cli.app import LOOKING_AFTER, SETTING_UP, command
from stream.cli.options import FormatOption, Output, OutputOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream.config import Config
    from stream.records import Operation


@command(
    SETTING_UP,
    "graftd init graftd.yaml --from customers.csv",
    "graftd init graftd.yaml --from crm.jsonl --from shop.csv --id-field key",
)
def init(
    file: Annotated[Path, typer.Argument(help="Configuration file to write; it must be new.")],
    data: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="DATA", help="Records to profile; - is standard input."),
    ] = None,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[DATA]...", help="More records to profile.")
    ] = None,
    id_field: Annotated[
        str | None, typer.Option(help="Field that holds a record's id, if it is not `id`.")
    ] = None,
    format_: FormatOption = None,
) -> None:
    """Write a configuration with every setting, its fields profiled from the first records."""
    from stream.config import load_config
    from stream.init_file import write_config
    from stream.profile import profile
    from stream.run import upserted

    config = load_config(None)
    if id_field is not None:
        source = config.source.model_copy(update={"id_field": id_field})
        config = config.model_copy(update={"source": source})
    records = []
    for path in [*(data or []), *(more or [])]:
        first = _first(path, config, format_)
        records += [operation.fields for operation in upserted(first)]
    profiles = profile(records, config.source.reserved)
    write_config(profiles, file)
    if id_field is not None:
        with file.open("a", encoding="utf-8") as written:
            written.write(f"\nsource:\n  id_field: {json.dumps(id_field)}\n")
    what = f"{len(profiles)} fields from {len(records)} records" if records else "no fields"
    typer.echo(f"wrote {file} ({what}); check the types, then: graftd run DATA -c {file} -d DIR")


@command(
    SETTING_UP,
    "graftd validate graftd.yaml",
    "graftd validate graftd.yaml customers.csv",
    "graftd validate --schema > graftd.schema.json",
)
def validate(
    config_file: Annotated[
        Path | None, typer.Argument(metavar="[CONFIG]", help="Configuration to check.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DATA]...", help="Inputs whose first records it should fit."),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of configurations instead.")
    ] = False,
    deny_warnings: Annotated[
        bool, typer.Option("--deny-warnings", help="Exit with 78 when there are warnings.")
    ] = False,
    format_: FormatOption = None,
    output: OutputOption = Output.table,
) -> None:
    """Check a configuration, and whether the first records of some inputs fit it."""
    from clustering.errors import ConfigError, UsageError
    from stream.cli.printing import print_json
    from stream.config import json_schema, load_config

    if schema:
        print_json(json_schema())
        return
    if config_file is None:
        raise UsageError("name the configuration to check, or ask for --schema")
    config = load_config(config_file)
    warnings = [
        f"{path}: {problem}"
        for path in data or []
        for problem in _misfits(config, _first(path, config, format_))
    ]
    if output is not Output.table:
        print_json({"ok": not warnings, "warnings": warnings}, indent=output is Output.json)
    else:
        for warning in warnings:
            typer.echo(f"warning: {warning}", err=True)
        typer.echo(f"{config_file}: OK")
    if warnings and deny_warnings:
        raise typer.Exit(ConfigError.exit_code)


@command(LOOKING_AFTER, "graftd version")
def version(output: OutputOption = Output.table) -> None:
    """Print the version of graftd and of its data directories."""
    import platform
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    from state.keys import FORMAT
    from stream.cli.printing import print_json

    try:
        graftd = version_of("graftd")
    except PackageNotFoundError:
        graftd = "not installed"
    facts = {"graftd": graftd, "data_directory_format": FORMAT, "python": platform.python_version()}
    if output is Output.table:
        typer.echo(
            f"graftd {graftd} (data directories of format {FORMAT}, Python {facts['python']})"
        )
    else:
        print_json(facts, indent=output is Output.json)


def _first(path: str, config: Config, format_: FormatOption) -> list[Operation]:
    """The first operations of an input; DataError when none of them is a record."""
    from threading import Event

    from stream.run import check_readable, first_operations
    from stream.sources import open_source

    source = open_source(path, config.source, format=format_)
    first = first_operations(source.read(None, Event()))
    check_readable(first, source.name)
    return first


def _misfits(config: Config, first: Sequence[Operation]) -> list[str]:
    """What in the first operations of an input does not fit a configuration, in words."""
    from stream.normalise import Normaliser
    from stream.records import Bad
    from stream.run import upserted

    bad = [operation for operation in first if isinstance(operation, Bad)]
    records = [operation.fields for operation in upserted(first)]
    problems = []
    if bad:
        detail = f"{bad[0].reason}: {bad[0].detail}"
        problems.append(f"{len(bad)} of {len(first)} records cannot be read; the first: {detail}")
    seen = {name for record in records for name in record}
    problems += [f"no record has the field {name}" for name in config.fields if name not in seen]
    if config.fields:
        others = sorted(seen - config.fields.keys())
        problems += [f"the field {name} is not configured, so not compared" for name in others]
    from stream.config import to_field_specs

    specs = to_field_specs(config)
    normaliser = Normaliser(specs, config.fields, config.normalise)
    values = [normaliser.record(record) for record in records]
    for i, spec in enumerate(specs):
        given = sum(record.get(spec.name) not in (None, "") for record in records)
        if given and all(row[i] is None or row[i] == () for row in values):
            problems.append(f"no value of the field {spec.name} reads as {spec.type.value}")
    return problems
