"""The command as a process: exit codes, signals, locks, pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli_data import PEOPLE, fill

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds until a test gives a process up
GRAFTD = [sys.executable, "-m", "stream.cli"]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def graftd(*arguments: object, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GRAFTD, *map(str, arguments)],
        cwd=ROOT,
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*GRAFTD, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.05)


def outputs(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((data / "out").iterdir())}


def test_running_again_adds_nothing_and_more_input_adds_its_own(tmp_path: Path) -> None:
    data, people = fill(tmp_path), tmp_path / "people.csv"
    before = outputs(data)

    again = graftd("run", people, "-d", data, "--output", "json")

    assert json.loads(again.stdout)["processed"] == 0
    assert outputs(data) == before
    with people.open("a") as file:
        file.write("shop,9,Eve Stone,1 Fir Way,Linz,eve@stone.example\n")
    more = json.loads(graftd("run", people, "-d", data, "--output", "json").stdout)
    assert (more["processed"], more["created"]) == (1, 1)
    assert all(outputs(data)[name].startswith(text) for name, text in before.items())


def test_standard_input_is_an_input(tmp_path: Path) -> None:
    lines = '{"id":1,"name":"Ada Morgan"}\n{"id":2,"name":"Bela Novak"}\n'

    done = graftd("run", "-", "-d", tmp_path / "data", "--output", "json", given=lines)

    assert json.loads(done.stdout)["records"] == 2


def test_sigterm_ends_a_run_in_good_order(people: Path) -> None:
    data = people.with_name("data")
    process = start("run", people, "-d", data, "--follow", "--output", "json")
    assignments = data / "out" / "assignments.jsonl"
    wait_until(lambda: assignments.exists() and assignments.stat().st_size > 0)

    locked = graftd("run", people, "-d", data)
    beside = graftd("verify", data)
    with people.open("a") as file:
        file.write("shop,9,Eve Stone,1 Fir Way,Linz,eve@stone.example\n")
    wait_until(lambda: b'"id":"9"' in assignments.read_bytes())
    process.terminate()
    out, err = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, err
    assert json.loads(out) | {"records": 7, "stopped": True} == json.loads(out)
    assert locked.returncode == 73
    assert "another process" in locked.stderr
    assert beside.returncode == 0, beside.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_first_signal_asks_and_the_second_ends_at_once(number: signal.Signals) -> None:
    code = (
        "import os, sys\n"
        "from stream.cli.running import stopping\n"
        "with stopping() as stop:\n"
        f"    os.kill(os.getpid(), {number.value})\n"
        "    print(stop.is_set(), flush=True)\n"
        f"    os.kill(os.getpid(), {number.value})\n"
        "    print('still here', flush=True)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (128 + number, "True\n")


def test_error_is_one_message_and_an_exit_code(people: Path) -> None:
    people.with_name("graftd.yaml").write_text("feilds: {name: name}\n")

    done = graftd("run", people, "-d", people.parent, "-c", people.with_name("graftd.yaml"))

    assert (done.returncode, done.stdout) == (78, "")
    assert "unknown key" in done.stderr
    assert "Traceback" not in done.stderr


def test_reader_that_goes_away_is_no_error_message(tmp_path: Path) -> None:
    data = fill(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)

    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            [*GRAFTD, "export", "-d", str(data)],
            cwd=ROOT,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    assert done.stderr == ""
