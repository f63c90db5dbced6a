"""The command `graftd`: how commands are declared, and what becomes of their errors.

Modules of commands import nothing slow until a command runs, so that help comes at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import typer
from typer.core import TyperGroup

from clustering.errors import GraftdError

SETTING_UP, RUNNING, ASKING, LOOKING_AFTER = "Set up", "Run", "Ask", "Look after"

# The order in which help lists the commands.
ORDER = (
    *("init", "validate", "train"),
    *("run", "export"),
    *("get", "search", "why", "how", "evaluate"),
    *("verify", "checkpoint", "restore", "version"),
)

_Command = TypeVar("_Command", bound=Callable[..., None])


class Commands(TyperGroup):
    """All commands; an error becomes one message on stderr and an exit code of sysexits.h."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, in the order of help."""
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        if os.environ.get("GRAFTD_DEBUG") == "1":
            return super().invoke(ctx)
        try:
            return super().invoke(ctx)
        except GraftdError as error:
            fail(str(error), error.exit_code)
        except (typer.TyperException, typer.Exit, typer.Abort, BrokenPipeError):
            raise  # typer's own
        except OSError as error:
            fail(str(error), 74)
        except Exception as error:  # noqa: BLE001  # the last resort before a traceback
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            advice = "this is a fault of graftd; set GRAFTD_DEBUG=1 to see where it happened"
            fail(f"{what}\n{advice}", GraftdError.exit_code)


def fail(message: str, exit_code: int) -> NoReturn:
    """Print an error and exit."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(exit_code)


def command(panel: str, *examples: str) -> Callable[[_Command], _Command]:
    """Declare a function as the command of its name. examples: command lines for its help."""
    lines = "\n\n".join(f"- `{example}`" for example in examples)

    def declare(function: _Command) -> _Command:
        name = function.__name__.rstrip("_")
        epilog = f"Examples:\n\n{lines}" if examples else None
        app.command(name, rich_help_panel=panel, epilog=epilog, no_args_is_help=False)(function)
        return function

    return declare


app = typer.Typer(
    cls=Commands,
    name="graftd",
    help="Keeps one answer up to date while records stream in: which of them are the same entity?",
    epilog="Errors exit with a number of sysexits.h: 2 usage, 65 bad data, 70 internal, 73 the data"
    " directory is in use, 74 storage, 78 configuration. GRAFTD_DEBUG=1 shows where one happened.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


__all__ = ["ASKING", "LOOKING_AFTER", "RUNNING", "SETTING_UP", "app", "command", "fail"]
