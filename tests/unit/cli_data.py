"""Invented people for the tests of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from stream.cli import app

CONFIG = """\
fields:
  name: name
  street: text
  city: category
  email: email
"""

PEOPLE = """\
source,id,name,street,city,email
crm,1,Ada Morgan,12 Alder Lane,Bonn,ada.morgan@example.org
crm,2,Bela Novak,7 Birch Road,Graz,bela@novak.example
crm,3,Chidi Okafor,99 Cedar Street,Lagos,chidi.okafor@example.net
shop,1,Ada Morgan,12 Alder Lane,Bonn,
shop,7,Chidi Okafor,99 Cedar St,Lagos,chidi.okafor@example.net
shop,8,Dora Weiss,3 Elm Court,Wien,dora@weiss.example
"""

TRUTH = """\
source,id,cluster
crm,1,ada
shop,1,ada
crm,2,bela
crm,3,chidi
shop,7,chidi
shop,8,dora
"""


def graftd(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def as_json(*arguments: object) -> Any:
    """Run a command that must succeed; its result as data."""
    done = graftd(*arguments, "--output", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def fill(folder: Path, people: str = PEOPLE, config: str = CONFIG) -> Path:
    """A data directory that holds some people."""
    (folder / "people.csv").write_text(people)
    (folder / "graftd.yaml").write_text(config)
    data = folder / "data"
    done = graftd("run", folder / "people.csv", "-d", data, "-c", folder / "graftd.yaml")
    assert done.exit_code == 0, done.output
    return data
