"""Whole experiments on hosts that exist (no root): each run once, watched, extended, killed."""

import os
import pty
import random
import re
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.labs import (
    APART,
    carried_out,
    end_when,
    experiment_of,
    go_on,
    need_lab,
    own_name,
    planned,
    plimsoll,
    run_lab,
    runs_of,
    status_of,
    write_lab,
)
from tests.support.programs import ACCESS_LOG, LONGEST_S, free_port, killed, open_to_all, wait_for
from tests.support.servers import Nginx, Prometheus, queries

pytestmark = pytest.mark.usefixtures("apart")

LAB = """
name: $name
out: $folder/out
backends:
  - name: one
    clone: {driver: static, target: "$one", reset: [[touch, "$folder/out/reset-one"]]}
  - name: two
    clone: {driver: static, target: "$two"}
scenarios:
  - scenario: replay
    options: {log: "$log", rate: 50}
  - scenario: download
    options: {path: /page.html}
phases: {before_s: 0.3, during_s: 0.4, after_s: 0.3}
warmup_s: 0.2
limits: {settle_s: 0, failures: 2, retry_s: 0}
observe: {observe: [cpu, memory]}
repeats: 2
"""
_CURSOR = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def lab_yml(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    need_lab()
    servers = []
    for name in ("one", "two"):
        root = tmp_path_factory.mktemp(name)
        open_to_all(root)
        servers.append(Nginx(root))
    yield write_lab(tmp_path, own_name("test"), LAB, one=servers[0].url, two=servers[1].url)
    for server in servers:
        server.stop()


def change(lab_yml: Path, **texts: str) -> None:
    """Write other values for some keys that stand in it once, or more often."""
    text = lab_yml.read_text()
    for key, value in texts.items():
        text, found = re.subn(rf"\b{key}: [\d.]+", f"{key}: {value}", text)
        assert found, key
    lab_yml.write_text(text)


def test_every_run_is_done_once_as_planned_and_carries_what_the_lab_knows(lab_yml: Path) -> None:
    _, commands = planned(lab_yml)
    outcome, _ = run_lab(lab_yml)
    assert len(outcome["finished"]) == 8
    assert outcome["not_done"] == []
    order = [name.split("--")[1] for name in outcome["finished"]]
    assert order[::2] == order[1::2], "each backend goes through all scenarios"
    assert Counter(order[::2]) == {"one": 2, "two": 2}, "a block"
    experiment = experiment_of(lab_yml)
    for name, run in zip(outcome["finished"], runs_of(experiment), strict=True):
        assert run["status"] == "complete"
        assert (run["experiment"]["block"], run["experiment"]["looks"]) == (1, "end")
        assert run["backend"] in name
        assert run["experiment"]["of"] == 8
        assert run["storage"]["clone"]["driver"] == "static"
        assert run["storage"]["facts"]["kernel"]
        assert run["phases"] == {"warmup_s": 0.2, "before_s": 0.3, "during_s": 0.4, "after_s": 0.3}
        assert (experiment / "runs" / name / "host.csv").read_text().startswith("t_ns,cpu.")
    assert Path(outcome["report"]).stat().st_size > 10_000
    assert (lab_yml.parent / "out" / "reset-one").exists()

    def without_attempt(words: list[str]) -> list[str]:
        return ["${attempt}" if "/attempts/" in word else word for word in words]

    assert [without_attempt(words) for words in carried_out(experiment)] == commands


@pytest.mark.slow
def test_killed_at_any_instant_it_goes_on_and_finishes_each_run_once(lab_yml: Path) -> None:
    draw = random.Random(4)
    for _ in range(5):
        killed(["run", *go_on(lab_yml)], draw.uniform(0.5, 6), APART)
    outcome, _ = run_lab(*go_on(lab_yml))
    assert len(outcome["finished"]) == 8
    assert len(runs_of(experiment_of(lab_yml))) == 8


def test_ctrl_c_ends_it_well_and_says_how_to_go_on(lab_yml: Path) -> None:
    change(lab_yml, repeats="1")
    with begun(lab_yml, "run 2") as process:
        process.send_signal(signal.SIGINT)
        _, text = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 1
    assert "plimsoll run --resume" in text
    assert plimsoll("run", "--resume", experiment_of(lab_yml)).returncode == 0
    assert len(runs_of(experiment_of(lab_yml))) == 4


def begun(lab_yml: Path, line: str, *options: str) -> "subprocess.Popen[str]":
    """An experiment that has said a line with these words."""
    command: list[str | Path] = [*APART, "run", lab_yml, *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr
    assert any(line in text for text in process.stderr), f"it ended without {line}"
    return process


def test_a_backend_that_fails_is_set_aside_and_the_others_go_on(lab_yml: Path) -> None:
    text = lab_yml.read_text().replace('reset: [[touch, "', 'timeout_s: 5, reset: [["false", "')
    notes = lab_yml.parent / "notes"
    notify = f"""notify: {{command: sh -c 'echo $PLIMSOLL_VERDICT >> "{notes}"'}}\n"""
    lab_yml.write_text(text + notify)
    outcome, said = run_lab(lab_yml, status=1)
    assert list(outcome["set_aside"]) == ["one"]
    assert notes.read_text().splitlines() == ["run failed", "run failed", "set aside", "unfinished"]
    assert {name.split("--")[1] for name in outcome["finished"]} == {"two"}
    failed = [line for line in said.splitlines() if " failed: " in line]
    assert " of 8 failed: replay on one, repeat 1, try 1: " in failed[0]
    assert failed[0].endswith(f". Output: {experiment_of(lab_yml) / 'commands.jsonl'}")
    assert len(outcome["finished"]) == len(outcome["not_done"]) == 4


def test_two_experiments_on_one_host_exclude_each_other(lab_yml: Path) -> None:
    change(lab_yml, during_s="600")
    with begun(lab_yml, "run 1") as first:
        second = plimsoll("run", lab_yml)
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=LONGEST_S)
    assert second.returncode == 2
    assert "another experiment uses this machine (experiment test-" in second.stderr
    assert len(list((lab_yml.parent / "out").glob("test-*"))) == 1, "the second left none"


# Some of it fails, and is tried again; or there is more to do.


@pytest.fixture
def broken_yml(lab_yml: Path) -> Path:
    """An experiment whose second scenario has a log that is none."""
    (lab_yml.parent / "broken.log").write_text("this is no log\n" * 30)
    broken = f'replay\n    name: broken\n    options: {{log: "{lab_yml.parent}/broken.log", rate: 50}}'
    text = lab_yml.read_text().replace("download\n    options: {path: /page.html}", broken)
    lab_yml.write_text(text.replace("retry_s: 0", "retry_s: 0.1"))
    return lab_yml


def mend(broken_yml: Path) -> None:
    (broken_yml.parent / "broken.log").write_bytes(ACCESS_LOG.read_bytes())


def kinds(names: list[str]) -> list[str]:
    return sorted({"--".join(name.split("-", 1)[1].split("--")[:2]) for name in names})


def test_a_scenario_that_always_fails_takes_nothing_else_with_it_and_can_be_tried_again(
    broken_yml: Path,
) -> None:
    outcome, said = run_lab(broken_yml, status=1)
    assert kinds(outcome["finished"]) == ["replay--one", "replay--two"]
    assert len(outcome["finished"]) == len(outcome["not_done"]) == 4
    assert sorted(outcome["set_aside"]) == ["broken on one", "broken on two"]
    assert "broken on one: failed 1 time in a row; trying again in 0.1 s." in said
    assert "broken on one: set aside after 2 failures in a row; the rest goes on." in said
    assert f"plimsoll run --retry-set-aside {outcome['directory']}" in said

    mend(broken_yml)
    resumed, _ = run_lab("--resume", broken_yml, status=1)
    assert sorted(resumed["set_aside"]) == ["broken on one", "broken on two"]
    again, _ = run_lab("--retry-set-aside", outcome["directory"])
    assert again["set_aside"] == {}
    assert len(again["finished"]) == 8


def test_an_experiment_is_extended_and_what_it_has_stays(broken_yml: Path) -> None:
    mend(broken_yml)
    whole = broken_yml.read_text()
    second = whole[whole.index("  - name: two") : whole.index("scenarios:")]
    broken_yml.write_text(whole.replace(second, "").replace("repeats: 2", "repeats: 1"))
    first, _ = run_lab(broken_yml)
    runs = Path(first["directory"]) / "runs"
    before = {path: path.stat().st_mtime_ns for path in runs.glob("*/*") if path.is_file()}
    assert len(first["finished"]) == 2

    broken_yml.write_text(whole)
    unchanged, said = run_lab("--resume", broken_yml)
    assert unchanged["finished"] == first["finished"]
    assert "repeats: 2 in the file, 1 in this experiment: ignored; --extend takes it over." in said
    assert (
        "backends.two: there in the file, none in this experiment: ignored; --extend takes it over." in said
    )

    change(broken_yml, during_s="0.5")
    refused = plimsoll("run", "--extend", broken_yml)
    assert refused.returncode == 2
    assert "phases.during_s: 0.5 in the file, 0.4 in this experiment" in refused.stderr
    assert "put it back, or start a new experiment" in refused.stderr

    broken_yml.write_text(whole)
    extended, said = run_lab("--extend", broken_yml)
    assert extended["directory"] == first["directory"]
    assert extended["finished"][:2] == first["finished"]
    assert [name.split("--")[1:] for name in extended["finished"][2:]] == [
        *[["two", "1"]] * 2,  # what its half block lacks, then the other half as it is drawn
        *[["one", "2"]] * 2,
        *[["two", "2"]] * 2,
    ]
    assert "6 runs more, 8 in all." in said
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert runs_of(runs.parent)[-1]["experiment"]["of"] == 8
    again, _ = run_lab("--resume", first["directory"])
    assert again["finished"] == extended["finished"]


# It is watched from other processes while it lasts, and after it was killed.


def until_measuring(lab_yml: Path) -> dict[str, Any]:
    """What is told of the run whose load has begun."""
    found: dict[str, Any] = {}

    def measures() -> bool:
        found.clear()
        found.update(status_of(lab_yml).get("now") or {"phase": None})
        return bool(found["phase"] == "load" and found["load"] and found["load"][0]["requests_per_s"])

    wait_for("a run's load", measures)
    return found


@pytest.fixture
def slow_yml(lab_yml: Path) -> Path:
    """An experiment of two runs that last long enough to be looked at."""
    change(lab_yml, during_s="10", repeats="1", rate="300")
    text = lab_yml.read_text().replace("  - scenario: download\n    options: {path: /page.html}\n", "")
    lab_yml.write_text(text)
    return lab_yml


def test_a_killed_experiment_runs_no_more_says_how_to_go_on_and_goes_on_on_a_terminal(slow_yml: Path) -> None:
    running: dict[str, Any] = {}

    def is_watched() -> bool:
        running.update(now=until_measuring(slow_yml), text=plimsoll("status", slow_yml))
        return True

    end_when(("run", slow_yml), is_watched)
    assert [running["now"][key] for key in ("scenario", "number", "try")] == ["replay", 1, 1]
    assert running["text"].returncode == 0
    assert re.search(r"run [12] of 2: replay on (one|two), repeat 1", running["text"].stdout)
    assert "ends       about " in running["text"].stdout
    experiment = experiment_of(slow_yml)
    dead = plimsoll("status", experiment)
    assert dead.returncode == 1
    assert "nothing runs: it was stopped or killed before its end" in dead.stdout
    assert f"plimsoll run --resume {experiment}" in dead.stdout
    assert status_of(slow_yml)["now"] is None
    is_shown_in_place(*shown_on_a_terminal("run", "--resume", experiment))
    ended = status_of(slow_yml)
    assert ended["state"] == "finished"
    assert ended["runs"] == {"total": 2, "finished": 2, "left": 0, "set_aside": 0, "failed_tries": 0}
    assert ended["report"]


def test_a_change_is_a_line_with_its_time_but_on_a_terminal_shown_in_place(slow_yml: Path) -> None:
    watch = ["status", str(slow_yml), "--watch"]
    with subprocess.Popen([*APART, "run", slow_yml], stderr=subprocess.PIPE, text=True) as process:
        until_measuring(slow_yml)
        with subprocess.Popen([*APART, *watch], stdout=subprocess.PIPE, text=True) as watching:
            shown = shown_on_a_terminal(*watch)
            watched, _ = watching.communicate(timeout=LONGEST_S)
        _, said = process.communicate(timeout=LONGEST_S)
    assert watching.returncode == 0
    for text in (watched, said):
        assert "\x1b" not in text
        assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", line) for line in text.splitlines())
        assert "run 2 of 2: replay on two, repeat 1; load, 0:0" in text
    assert "finished: 2 of 2 finished, 0 left" in watched.splitlines()[-1]
    is_shown_in_place(*shown)


def is_shown_in_place(status: int, shown: bytes) -> None:
    assert status == 0
    assert _CURSOR.search(shown)
    plain = _CURSOR.sub(b"", shown).decode()
    assert "run 2 of 2: replay on two, repeat 1" in plain
    assert re.search(r"load       [\d.]+ requests/s, p99.9 so far", plain)
    assert re.search(r"ends       about \d\d:\d\d, in \d+", plain)


def shown_on_a_terminal(*words: str | Path) -> tuple[int, bytes]:
    """Run plimsoll there. Return how it ended, and all that was shown."""
    main, side = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "30"}
    with subprocess.Popen([*APART, *words], stdout=side, stderr=side, stdin=side, env=environment) as process:
        os.close(side)
        shown = read_until_closed(main, process)
    return process.returncode, shown


def read_until_closed(main: int, process: "subprocess.Popen[bytes]") -> bytes:
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


# A real Prometheus scrapes it while it lasts: its runs by backend, and its saturator.

_SATURATOR = """
saturator:
  kind: command
  start: [sh, -c, "i=0; while :; do i=$((i + 1000000)); echo $i bytes; sleep 0.2; done"]
  progress: ^(?P<bytes>\\d+) bytes
  cleanup: ["true"]
"""
_OF_A_REPLAY_ITSELF = {"Open connections A"}


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def prometheus(tmp_path: Path, port: int) -> Iterator[Prometheus]:
    server = Prometheus(tmp_path / "prometheus", port)
    yield server
    server.stop()


def test_the_runs_are_shown_by_backend(lab_yml: Path, port: int, prometheus: Prometheus) -> None:
    change(lab_yml, during_s="5", repeats="1")
    lab_yml.write_text(lab_yml.read_text() + _SATURATOR)
    asked = {name: query for name, query in queries().items() if name not in _OF_A_REPLAY_ITSELF}
    for backend in ("one", "two"):
        for scenario in ("replay", "download"):
            asked[f"{scenario} on {backend}"] = (
                f'sum(rate(plimsoll_requests_total{{backend="{backend}",scenario="{scenario}"}}[5s])) > 0'
            )
    done = plimsoll("run", lab_yml, "--metrics", f"127.0.0.1:{port}")
    assert done.returncode == 0, done.stderr
    assert f"Live figures: http://127.0.0.1:{port}/metrics" in done.stderr
    found = {name for name, query in asked.items() if prometheus.ask_of_all(query)}
    assert found == asked.keys(), f"nothing was found for {sorted(asked.keys() - found)}"
    assert len(runs_of(experiment_of(lab_yml))) == 4
