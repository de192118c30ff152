"""Common parts of the tests, which run on the installed wheel."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def examples() -> Path:
    return ROOT / "examples"


def script() -> list[str]:
    """Returns the program `wf` that the wheel installs."""
    own = Path(sys.executable).parent / ("wf.exe" if os.name == "nt" else "wf")
    assert own.exists(), "the wheel installs no program"
    return [str(own)]


def wf(*arguments: str, **options) -> subprocess.CompletedProcess:
    """Runs the program `wf`."""
    return subprocess.run([*script(), *arguments], capture_output=True, text=True, **options)


def wf_json(*arguments: str, **options) -> dict:
    """Returns the last object that `wf … --json` prints."""
    done = wf(*arguments, "--json", **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])
