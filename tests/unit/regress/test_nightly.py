"""`make regression` and the nights of a timer: one night, one exit code."""

import os
import random
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from lxml import etree

from plimsoll.lab.experiment.folder import ExperimentFolder
from plimsoll.lab.schedule.night import run_night
from tests.support.comparable import FIRST, OLD_IS_FINE, folder_of, regress, write_night
from tests.support.programs import ROOT
from tests.support.stand_ins import LAB, python_program, scheduled

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


NIGHTS, PLANTED = 17, 12
BEFORE = 9  # that are in the history already
# The experiments were made before; each night finds the next one done. What judges them is the real thing.
_PLIMSOLL = """\
import json, os, sys
from pathlib import Path
if sys.argv[1] == "run":
    ready = sorted(Path({ready!r}).iterdir())[0]
    folder = Path({results!r}) / ready.name
    ready.rename(folder)
    print(json.dumps({{"directory": str(folder), "exit_reason": "finished"}}))
    sys.exit(0)
os.execv(sys.executable, [sys.executable, "-m", "plimsoll", *sys.argv[1:]])
"""


@pytest.mark.slow
def test_a_planted_regression_is_red_in_exit_codes_and_junit_files_and_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, results, messages = tmp_path / "ready", tmp_path / "results", tmp_path / "messages.txt"
    results.mkdir()
    (tmp_path / "lab.yml").write_text(LAB)
    noise = random.Random(11)
    for number in range(NIGHTS):
        level_ms = 50 * (1.6 if number >= PLANTED else 1)
        tails = {"nvme": level_ms * noise.lognormvariate(0, 0.05), "sata": 80 * noise.lognormvariate(0, 0.05)}
        write_night(ready, number, tails)
        ExperimentFolder(folder_of(ready, number)).journal.note("ended")
    python_program(tmp_path / "plimsoll", _PLIMSOLL.format(ready=str(ready), results=str(results)))
    note = tmp_path / "note"
    note.write_text(f'#!/bin/sh\necho "$PLIMSOLL_VERDICT $PLIMSOLL_SUBJECT" >>"{messages}"\n')
    note.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    schedule, place = scheduled(
        tmp_path,
        options=("--notify-command", str(note), *OLD_IS_FINE),
        calendar="*-*-* 02:00:00 UTC",
        installed_at=FIRST + timedelta(days=BEFORE, hours=-1),
    )
    Path(schedule.out).mkdir(parents=True)
    for number in range(BEFORE):
        assert regress(Path(schedule.history), folder_of(ready, number)).exit_code == 0
        folder_of(ready, number).rename(folder_of(results, number))
    exits, junit = [], []
    for number in range(BEFORE, NIGHTS):
        at = FIRST + timedelta(days=number, seconds=1)
        night = run_night(schedule, place, True, lambda at=at: at)  # type: ignore[misc]
        assert night is not None
        exits.append(night.exit)
        junit.append(etree.parse(Path(schedule.out) / "junit.xml").getroot())

    found = exits.index(1)
    assert PLANTED + 2 <= BEFORE + found <= PLANTED + 4, exits
    assert exits == [0] * found + [1] * (len(exits) - found), "red until it is mended or accepted"
    failures = [
        [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None]
        for root in junit
    ]
    assert [number for number, names in enumerate(failures) if names] == [*range(found, len(exits))]
    assert all("nvme" in str(name) for names in failures for name in names)
    said = messages.read_text().splitlines()
    assert len(said) == 1
    assert said[0].startswith("worse")
