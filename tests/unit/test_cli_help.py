"""Every command explains itself, at once."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

from stream.cli import app
from stream.cli.app import ORDER

COMMANDS = [name for name in ORDER if name != "version"]


def test_help_lists_every_command_in_order() -> None:
    done = CliRunner().invoke(app, ["--help"])

    assert done.exit_code == 0
    places = [done.output.index(f" {name} ") for name in ORDER]
    assert len(set(places)) == len(ORDER)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_an_example(name: str) -> None:
    done = CliRunner().invoke(app, [name, "--help"])

    assert done.exit_code == 0
    assert f"graftd {name}" in done.output.partition("Examples")[2]


def test_every_option_has_help() -> None:
    import typer

    group = typer.main.get_command(app)
    without = [
        f"{name} {parameter.name}"
        for name, command in group.commands.items()  # type: ignore[attr-defined]
        for parameter in command.params
        if parameter.name not in {"help", "id_"} and not getattr(parameter, "help", None)
    ]

    assert without == []


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys\n"
        "from stream.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numba', 'numpy', 'pydantic', 'pyarrow', 'scipy') if m in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_module_can_be_run() -> None:
    assert find_spec("stream.cli.__main__") is not None
    command = [sys.executable, "-m", "stream.cli", "version", "--output", "jsonl"]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert '"data_directory_format":1' in done.stdout
