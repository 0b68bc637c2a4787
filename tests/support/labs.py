"""A lab.yml on hosts that exist, `plimsoll` on it until its end or until a signal, and what is there then."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import pytest

from tests.support.programs import (
    ACCESS_LOG,
    LONGEST_S,
    PLIMSOLL,
    REPLAY,
    ROOT,
    need,
    skip_or_fail,
    wait_for,
)

Program = tuple[str, ...]
RAFT: Program = (sys.executable, "-m", "tests.support.raft")  # knows the driver raft, too
APART: Program = (sys.executable, "-m", "tests.support.apart")  # runs beside others, since it makes no disks
usual: Program = (str(PLIMSOLL),)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Experiments of the test exclude none of other tests."""
    monkeypatch.setattr(sys.modules[__name__], "usual", APART)


TUNING_JOURNALS = Path("/var/lib/plimsoll/tuning")


def need_lab(*programs: str, as_root: bool = False) -> None:
    """Skip the test where a replay or one of these programs is missing, fail it in the lab's own CI."""
    need(REPLAY)
    for program in programs:
        need(program)
    if as_root and os.geteuid() != 0:
        skip_or_fail("needs root: make test-lab")


def own_name(name: str) -> str:
    """An experiment's name that no other test session on this machine has."""
    return f"{name}-{os.getpid() % 10000}"


def write_lab(folder: Path, name: str, text: str, **values: object) -> Path:
    """Write lab.yml: `text` with $name, $folder, $log and `values` filled in."""
    path = folder / "lab.yml"
    path.write_text(Template(text).safe_substitute(name=name, folder=folder, log=ACCESS_LOG, **values))
    return path


def plimsoll(
    *words: str | Path, program: Program | None = None, timeout_s: float = LONGEST_S
) -> subprocess.CompletedProcess[str]:
    """Run it to its end; its exit code is the caller's to judge."""
    command = [*(program or usual), *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)


def run_lab(
    *words: str | Path, status: int = 0, program: Program | None = None, timeout_s: float = LONGEST_S
) -> tuple[dict[str, Any], str]:
    """What `plimsoll run --json` prints of how it ended, with that status, and what it said meanwhile."""
    done = plimsoll("run", *words, "--json", program=program, timeout_s=timeout_s)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout), done.stderr


def end_when(
    words: tuple[str | Path, ...],
    holds: Callable[[], object],
    how: signal.Signals = signal.SIGKILL,
    program: Program | None = None,
    after_s: float = 0,
) -> str:
    """Run it, and end it by a signal so long after `holds`. Return what it said."""
    command = [*(program or usual), *words]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        wait_for("it is there, or over", lambda: holds() or process.poll() is not None)
        time.sleep(after_s)
        still_runs = process.poll() is None
        process.send_signal(how)
        _, text = process.communicate(timeout=LONGEST_S)
    assert still_runs, f"it ended before it was to be ended: {text}"
    return text


def experiment_of(lab_yml: Path) -> Path:
    """The folder of the one experiment that began; of one that was killed before, there is no journal."""
    (found,) = (path.parent for path in (lab_yml.parent / "out").glob("*/journal.jsonl"))
    return found


def go_on(lab_yml: Path) -> tuple[str | Path, ...]:
    """The words after `plimsoll run` that begin it, or go on with what has begun."""
    has_begun = any((lab_yml.parent / "out").glob("*/journal.jsonl"))
    return ("--resume", lab_yml) if has_begun else (lab_yml,)


def runs_of(experiment: Path) -> list[dict[str, Any]]:
    """What each run.json says, also those of members."""
    return [json.loads(path.read_text()) for path in sorted((experiment / "runs").rglob("run.json"))]


def lines_of(path: Path) -> list[dict[str, Any]]:
    """What the whole lines of a file of JSON lines say; nothing while it is not there."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.rpartition("\n")[0].splitlines() if line]


def carried_out(experiment: Path, backend: str | None = None) -> list[list[str]]:
    """The words of each command that was, on that backend or on all."""
    lines = [line for line in lines_of(experiment / "commands.jsonl") if "words" in line]
    return [line["words"] for line in lines if backend in (None, line.get("backend"))]


def planned(lab_yml: Path, program: Program | None = None) -> tuple[dict[str, Any], list[list[str]]]:
    """What `plimsoll check --plan --json` prints, and the words of each of its commands."""
    plan = json.loads(plimsoll("check", "--plan", lab_yml, "--json", program=program).stdout)
    steps = [step for chapter in plan["chapters"] for step in chapter["steps"]]
    return plan, [step["words"] for step in steps if "words" in step]


def status_of(experiment: Path, program: Program | None = None) -> dict[str, Any]:
    """What `plimsoll status --json` prints; nothing before there is an experiment."""
    text = plimsoll("status", experiment, "--json", program=program).stdout
    found: dict[str, Any] = json.loads(text) if text else {}
    return found
