"""Commands that look after a data directory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stream.cli.app import LOOKING_AFTER, command
from stream.cli.options import DataDirArgument, Output, OutputOption

if TYPE_CHECKING:
    from state.checkpoints import CheckpointManifest


@command(LOOKING_AFTER, "graftd verify DIR", "graftd verify DIR --output json")
def verify(data_dir: DataDirArgument, output: OutputOption = Output.table) -> None:
    """Check everything in a data directory; also while a daemon runs. Exits with 74 on problems."""
    from clustering.errors import StoreError
    from stream.cli.printing import print_json
    from stream.verifying import verify as find_problems

    problems = find_problems(data_dir)
    if output is not Output.table:
        print_json({"ok": not problems, "problems": problems}, indent=output is Output.json)
    elif not problems:
        typer.echo(f"{data_dir}: OK")
    for problem in problems:
        typer.echo(f"error: {problem}", err=True)
    if problems:
        raise typer.Exit(StoreError.exit_code)


@command(LOOKING_AFTER, "graftd checkpoint DIR backups/monday")
def checkpoint(
    data_dir: DataDirArgument,
    dest: Annotated[Path, typer.Argument(help="New folder for the checkpoint.")],
    output: OutputOption = Output.table,
) -> None:
    """Copy the state of a data directory that no daemon has open.

    Files are hard links where the disk allows. The output files in DIR/out are not part of it.
    """
    from state.checkpoints import create_checkpoint
    from state.data_dir import DataDir, check_format
    from state.rocksdb_store import RocksDBStore

    place = DataDir(data_dir)
    check_format(place)
    store = RocksDBStore.open(place.db)
    try:
        manifest = create_checkpoint(store, place, dest)
    finally:
        store.close()
    _tell(f"wrote {dest}", manifest, output)


@command(LOOKING_AFTER, "graftd restore backups/monday NEW_DIR")
def restore(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="Checkpoint to restore.")],
    data_dir: Annotated[Path, typer.Argument(metavar="DIR", help="New or empty data directory.")],
    output: OutputOption = Output.table,
) -> None:
    """Make a data directory from a checkpoint, every byte of it checked."""
    from state.checkpoints import restore_checkpoint
    from state.data_dir import DataDir

    _tell(f"restored {data_dir}", restore_checkpoint(source, DataDir(data_dir)), output)


def _tell(what: str, manifest: CheckpointManifest, output: Output) -> None:
    from stream.cli.printing import print_json

    if output is not Output.table:
        print_json(asdict(manifest), indent=output is Output.json)
    else:
        typer.echo(f"{what}: {manifest.records:,} records, {manifest.entities:,} entities")
