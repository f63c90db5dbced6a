"""The command line of graftd."""

from stream.cli import asking, configuring, exporting, keeping, measuring, running
from stream.cli.app import app


def main() -> None:
    """Run the command that the process was started with, and exit."""
    app(prog_name="graftd")


__all__ = ["app", "asking", "configuring", "exporting", "keeping", "main", "measuring", "running"]
