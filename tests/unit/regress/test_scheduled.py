"""A scheduled history: the nights of a timer, judged by the real command, with a regression planted in it."""

import random
from datetime import timedelta
from pathlib import Path

import pytest
from lxml import etree

from plimsoll.lab.experiment.folder import ExperimentFolder
from plimsoll.lab.schedule.night import run_night
from tests.support.comparable import FIRST, OLD_IS_FINE, folder_of, regress, write_night
from tests.support.programs import ROOT
from tests.support.stand_ins import LAB, python_program, scheduled

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
