"""`plimsoll import accesslog`: what becomes of a log with durations, and what is then said of it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.analysis.exchange.accesslog import _words, accesslog
from plimsoll.cli import main
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import REPLAY, need

FORMAT = '%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T'


def log_of(path: Path, requests: int, day: int = 1, took_s: float = 0.05) -> Path:
    """Write a log of a request a second; each twentieth takes ten times as long."""
    with path.open("w", encoding="utf-8") as out:
        for i in range(requests):
            at = f"{day + i // 86400:02}/Nov/2026:{i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02} +0000"
            took = took_s * (10 if i % 20 == 19 else 1)
            out.write(f'192.0.2.{i % 9} - - [{at}] "GET /a.jpg?n={i} HTTP/1.1" 200 9 "-" "UA" {took:.3f}\n')
    return path


def imported(log: Path, out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    need(REPLAY)
    command = [sys.executable, "-m", "plimsoll", "import", "accesslog", str(log), "--format", FORMAT]
    return subprocess.run([*command, "--out", str(out), *words], capture_output=True, text=True, check=False)


def test_a_log_becomes_a_run_that_the_report_reads(tmp_path: Path) -> None:
    done = imported(log_of(tmp_path / "a.log", 5000), tmp_path / "out", "--target", "https://a.example")
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "out" / "latest")
    assert run.facts.from_log
    assert run.facts.target is not None
    assert run.facts.started_at is not None
    assert (run.facts.target.url, run.status, run.requests.count) == ("https://a.example", "complete", 5000)
    first_s = run.facts.started_at.timestamp() + 0.05
    assert 0 <= first_s - 1793491200 < 1, "the first line is of the first second of November"
    told = CliRunner().invoke(main, ["report", str(run.path), "--json"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.output)["runs"][0]["response_ms"]["p99.9"] == 500.0
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "is not a load test: an access log says that this was served." in page
    assert "not sent" not in page


def test_two_imports_are_compared_as_weeks(tmp_path: Path) -> None:
    for day, side in ((1, "before"), (8, "after")):
        log = log_of(tmp_path / f"{side}.log", 3000, day)
        done = imported(log, tmp_path / side, "--backend", side)
        assert done.returncode == 0, done.stderr
    told = CliRunner().invoke(main, ["compare", str(tmp_path / "before"), str(tmp_path / "after")])
    assert told.exit_code == 3
    assert "before has 1 day; a verdict takes 14" in told.output
    assert "× 1.00" in told.output


def test_a_kill_leaves_a_run_that_says_so_and_the_next_import_is_whole(tmp_path: Path) -> None:
    program = need(REPLAY)
    log = log_of(tmp_path / "a.log", 200_000)
    words = [program, "import", str(log), "--format", FORMAT, "--out", str(tmp_path / "out"), "--quiet"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while process.poll() is None and not list((tmp_path / "out").glob("*/requests.npy")):
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    (cut,) = (tmp_path / "out").glob("*-accesslog-a")
    assert json.loads((cut / "run.json").read_text())["status"] == "running"
    assert not (tmp_path / "out" / "latest").exists()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    whole = RunDirectory.open(tmp_path / "out" / "latest")
    assert (whole.status, whole.requests.count) == ("complete", 200_000)
    assert whole.path.resolve() != cut.resolve()


@pytest.mark.parametrize(
    ("why", "given", "words"),
    [
        ("a text is a flag and its value in one word", {"format": "%h -x"}, ["--format=%h -x"]),
        ("what was not given is left out", {"tz": None, "include": (), "strict_hosts": False}, []),
        ("each of a list", {"route": ("a=b", "c=d")}, ["--route=a=b", "--route=c=d"]),
        ("a flag alone", {"allow_untimed": True}, ["--allow-untimed"]),
    ],
)
def test_options_become_flags_of_the_program(why: str, given: dict[str, object], words: list[str]) -> None:
    assert _words(given) == words, why


def test_every_option_of_the_command_is_a_flag_of_the_program() -> None:
    program = need(REPLAY)
    text = subprocess.run([program, "import", "--help"], capture_output=True, text=True, check=False).stdout
    for option in accesslog.params:
        for flag in option.opts:
            if flag.startswith("--"):
                assert flag in text.replace("[no-]", ""), flag
