"""`make regression`: one night, one exit code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import ROOT

NIGHTLY = ROOT / "tools" / "nightly"
# Stands in for plimsoll: says what it was called with, and ends as it is told.
PROGRAM = """#!/bin/sh
echo "$@" >>"$(dirname "$0")/called"
case $1 in
run) printf '%s' "$SAYS"; exit "$RUN" ;;
regress) exit "$REGRESS" ;;
esac
"""
FOLDER = '{"directory": "results/a night", "report": null}'

ENDS = [
    ("all went well", FOLDER, 0, 0, 0),
    ("something is worse", FOLDER, 0, 1, 1),
    ("some runs failed, and the rest says it", FOLDER, 1, 3, 3),
    ("it could not begin", "", 2, 0, 2),
    ("it was interrupted", "", 1, 0, 1),
    ("it says nothing of a folder", "{}", 0, 0, 3),
]


@pytest.mark.parametrize(("what", "says", "run", "regress", "code"), ENDS, ids=[row[0] for row in ENDS])
def test_one_exit_code(tmp_path: Path, what: str, says: str, run: int, regress: int, code: int) -> None:
    program = tmp_path / "plimsoll"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (tmp_path / "python").symlink_to(sys.executable)
    settings = {"SAYS": says, "RUN": str(run), "REGRESS": str(regress), "HISTORY": "my.sqlite"}
    done = subprocess.run(
        [NIGHTLY, program, "lab.yml", "--junit", "x"], env=os.environ | settings, check=False
    )
    assert done.returncode == code, what
    called = (tmp_path / "called").read_text().splitlines()
    assert called[0] == "run --json lab.yml"
    assert called[1:] == (
        ["regress results/a night --history my.sqlite --junit x"] if "directory" in says else []
    )


def test_make_calls_it() -> None:
    words = ["make", "-n", "regression", "LAB=my.yml", "ARGS=--html x"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert 'tools/nightly ".venv/bin/plimsoll" "$LAB" --html x' in done.stdout
