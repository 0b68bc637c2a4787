"""An experiment is watched from another process while it lasts, and after it was killed (no root)."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.real.lab.test_experiment import folder, plimsoll
from tests.real.lab.test_experiment import lab_yml as lab_yml
from tests.real.lab.test_experiment import two_nginx as two_nginx
from tests.support.programs import LONGEST_S, PLIMSOLL, wait_for

_CURSOR = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def slow_yml(lab_yml: Path) -> Path:
    """Return an experiment of two runs that last long enough to be looked at."""
    text = lab_yml.read_text().replace("during_s: 0.4", "during_s: 10").replace("repeats: 2", "repeats: 1")
    text = text.replace("  - scenario: download\n    options: {path: /page.html}\n", "")
    lab_yml.write_text(text.replace("rate: 50", "rate: 300"))
    return lab_yml


def status(lab_yml: Path) -> dict[str, Any]:
    done = plimsoll("status", lab_yml, "--json")
    return json.loads(done.stdout) if done.stdout else {}


def until_measuring(lab_yml: Path, phase: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def measures() -> bool:
        found.clear()
        found.update(status(lab_yml).get("now") or {"phase": None})
        return bool(found["phase"] == phase and found["load"] and found["load"][0]["requests_per_s"])

    wait_for(f"phase {phase}", measures)
    return found


def test_a_killed_experiment_runs_no_more_says_how_to_go_on_and_goes_on_on_a_terminal(slow_yml: Path) -> None:
    with subprocess.Popen([PLIMSOLL, "run", slow_yml], stderr=subprocess.PIPE, text=True) as process:
        now = until_measuring(slow_yml, "load")
        assert now["scenario"] == "replay"
        assert now["number"] == 1
        assert now["try"] == 1
        running = plimsoll("status", slow_yml)
        assert running.returncode == 0
        assert re.search(r"run [12] of 2: replay on (one|two), repeat 1", running.stdout)
        assert "ends       about " in running.stdout
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed = plimsoll("status", folder(slow_yml))
    assert killed.returncode == 1
    assert "nothing runs: it was stopped or killed before its end" in killed.stdout
    assert f"plimsoll run --resume {folder(slow_yml)}" in killed.stdout
    assert status(slow_yml)["now"] is None
    _is_shown_in_place(*_on_a_terminal("run", "--resume", folder(slow_yml)))
    ended = status(slow_yml)
    assert ended["state"] == "finished"
    assert ended["runs"] == {"total": 2, "finished": 2, "left": 0, "set_aside": 0, "failed_tries": 0}
    assert ended["report"]


def test_a_change_is_a_line_with_its_time_but_on_a_terminal_shown_in_place(slow_yml: Path) -> None:
    watch = ["status", str(slow_yml), "--watch"]
    with subprocess.Popen([PLIMSOLL, "run", slow_yml], stderr=subprocess.PIPE, text=True) as process:
        until_measuring(slow_yml, "load")
        with subprocess.Popen([PLIMSOLL, *watch], stdout=subprocess.PIPE, text=True) as watching:
            shown = _on_a_terminal(*watch)
            watched, _ = watching.communicate(timeout=LONGEST_S)
        _, said = process.communicate(timeout=LONGEST_S)
    assert watching.returncode == 0
    for text in (watched, said):
        assert "\x1b" not in text
        assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", line) for line in text.splitlines())
        assert "run 2 of 2: replay on two, repeat 1; load, 0:0" in text
    assert "finished: 2 of 2 finished, 0 left" in watched.splitlines()[-1]
    _is_shown_in_place(*shown)


def _is_shown_in_place(status: int, shown: bytes) -> None:
    assert status == 0
    assert _CURSOR.search(shown)
    plain = _CURSOR.sub(b"", shown).decode()
    assert "run 2 of 2: replay on two, repeat 1" in plain
    assert re.search(r"load       [\d.]+ requests/s, p99.9 so far", plain)
    assert re.search(r"ends       about \d\d:\d\d, in \d+", plain)


def _on_a_terminal(*words: str | Path) -> tuple[int, bytes]:
    """Run plimsoll there. Return how it ended, and all that was shown."""
    main, side = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "30"}
    with subprocess.Popen(
        [PLIMSOLL, *words], stdout=side, stderr=side, stdin=side, env=environment
    ) as process:
        os.close(side)
        shown = _read(main, process)
    return process.returncode, shown


def _read(main: int, process: "subprocess.Popen[bytes]") -> bytes:
    """Return all that it writes to the terminal until it ends."""
    shown = b""
    until_s = time.monotonic() + LONGEST_S
    while time.monotonic() < until_s:
        if select.select([main], [], [], 0.5)[0]:
            try:
                shown += os.read(main, 1 << 16)
            except OSError:  # the other side is closed
                break
        elif process.poll() is not None:
            break
    return shown
