"""A schedule by the real cron: Debian's, with root's crontab, which is put back."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plimsoll.lab.schedule.timers import local_zone
from tests.support.programs import LONGEST_S, ROOT, skip_or_fail, wait_for
from tests.support.stand_ins import program


def _crontab() -> bytes | None:
    done = subprocess.run(["/usr/bin/crontab", "-l"], capture_output=True)
    return None if done.returncode else done.stdout


def _put(text: bytes | None) -> None:
    words = ["-r"] if text is None else ["-"]
    subprocess.run(["/usr/bin/crontab", *words], input=text, capture_output=True)


@pytest.fixture
def cron() -> Iterator["subprocess.Popen[bytes]"]:
    """The daemon, while a crontab of root's is made that is put back."""
    if not shutil.which("crontab") or not shutil.which("cron") or os.geteuid() != 0:
        skip_or_fail("needs cron and root")
    before = _crontab()
    # `schedule install --cron` refuses a machine where no cron runs.
    cron = subprocess.Popen(["/usr/sbin/cron", "-f"], stderr=subprocess.PIPE)
    try:
        yield cron
    finally:
        cron.terminate()
        cron.communicate(timeout=LONGEST_S)
        _put(before)


def _plimsoll(*words: str, at: Path) -> subprocess.CompletedProcess[str]:
    state = ["--state", str(at / "state")]
    command = [sys.executable, "-m", "plimsoll", "schedule", *words, *state]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True, timeout=LONGEST_S)


MINE = b"# mine: 5\\% \xc3\xa9 \xff\nPLIMSOLL_TEST=1\n\n1 2 3 4 *\techo hello  % input\n"


@pytest.mark.usefixtures("cron")
def test_the_real_crontab_keeps_what_is_in_it(tmp_path: Path) -> None:
    program(tmp_path)
    _put(MINE)
    done = _plimsoll("install", "lab.yml", "--cron", "--on-calendar", "Mon..Fri 03:30", at=tmp_path)
    assert done.returncode == 0, done.stderr
    there = _crontab()
    assert there is not None
    assert there.startswith(MINE)
    assert b"\n30 3 * * 1,2,3,4,5 " in there
    assert _plimsoll("status", at=tmp_path).returncode == 0
    assert _plimsoll("remove", "quiet", at=tmp_path).returncode == 0
    assert _crontab() == MINE
    _put(None)
    assert _plimsoll("install", "lab.yml", "--cron", at=tmp_path).returncode == 0
    assert _plimsoll("remove", "quiet", at=tmp_path).returncode == 0
    assert _crontab() is None


@pytest.mark.slow
def test_cron_runs_the_night(cron: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    """In a folder whose name cron and the shell would both read, were it not quoted."""
    folder = tmp_path / "50% of $HOME's"
    folder.mkdir()
    fake = program(folder)
    _put(None)
    soon = datetime.now(local_zone()) + timedelta(seconds=75)
    done = _plimsoll("install", "lab.yml", "--cron", "--at", f"{soon:%H:%M}", at=folder)
    assert done.returncode == 0, done.stderr
    # What cron calls is the real program; the experiment and its judgement are told by a file
    definition = folder / "state" / "quiet" / "schedule.json"
    schedule = json.loads(definition.read_text())
    called = schedule["program"]
    definition.write_text(json.dumps(schedule | {"program": [str(fake)]}))
    assert called[0] != str(fake)
    nights = folder / "state" / "quiet" / "nights.json"

    def has_passed() -> bool:
        assert cron.poll() is None, "cron ended: does another one run?"
        return nights.exists() and '"passed"' in nights.read_text()

    wait_for("the night has passed", has_passed)
    night = json.loads(nights.read_text())["nights"][-1]
    assert night["outcome"] == "passed"
    assert datetime.fromisoformat(night["due"]) == soon.replace(second=0, microsecond=0).astimezone(UTC)
    definition.write_text(json.dumps(schedule))
    told = _plimsoll("status", at=folder)
    assert told.returncode == 0, told.stdout
    assert _plimsoll("remove", "quiet", "--purge", at=folder).returncode == 0
    assert _crontab() is None
