"""A run directory from a stranger: none of its files hangs a command, fills the memory or gives NaN."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from plimsoll.cli import main
from plimsoll.rundir import events
from plimsoll.rundir.names import READ
from tests.support.comparable import write_comparable
from tests.support.experiment import add_events
from tests.support.programs import ROOT
from tests.support.rundir import header

PATIENCE_S, ROOM_BYTES = 30, 2 << 30
GATES = "gates:\n  - {scenario: replay, metric: p99.9, at_most_ratio: 1.1}\n"

COMMANDS: dict[str, list[str]] = {
    "report": ["report", "RUN", "--out", "page.html"],
    "compare": ["compare", "RUN", "OTHER"],
    "signoff": ["signoff", "RUN", "OTHER", "--gates", "gates.yml", "--out", "signed"],
    "regress": ["regress", "RUN", "--new", "--history", "h.sqlite"],
    "merge": ["merge", "RUN", "--out", "merged"],
    "export": ["export", "RUN", "--to", "csv", "--out", "requests.csv"],
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run to be spoilt, beside one that is whole."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("plimsoll.analysis.signoff.pdf.find_chromium", lambda: None)  # it needs more room
    (tmp_path / "gates.yml").write_text(GATES)
    write_comparable(tmp_path / "other", "nvme", 1, 2, 50)
    return write_comparable(tmp_path / "run", "sata", 1, 1, 50)


def _zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _folder(path: Path) -> None:
    path.mkdir()


NO_FILES: list[tuple[str, Callable[[Path], None], str]] = [
    ("a link to a device without an end", _zeros, "is a device, and only a regular file is read"),
    ("a pipe that nobody writes into", _pipe, "is a named pipe, and only a regular file is read"),
    ("a link to such a pipe", _link_to_a_pipe, "is a named pipe, and only a regular file is read"),
    ("a folder", _folder, "is a folder, and only a regular file is read"),
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", READ)
def test_only_regular_files_are_read(run: Path, command: str, name: str) -> None:
    for what, put, says in NO_FILES:
        _away(run / name)
        _away(run / "elsewhere")
        put(run / name)
        done = _call(COMMANDS[command])
        assert done.exit_code == 2, f"{what} as {name}: {done.output}"
        assert f"run/{name}: {says}: put back the file that the run wrote" in done.stderr, what
        assert done.stderr.count("\n") == 1, "one sentence"


@pytest.mark.parametrize("name", READ)
def test_a_link_to_a_regular_file_is_read(run: Path, name: str) -> None:
    (run / "host.csv").write_text("t_ns,cpu.busy_percent\n0,1\n")
    (run / name).rename(run.parent / "kept elsewhere")
    (run / name).symlink_to("../kept elsewhere")
    assert _call(COMMANDS["report"]).exit_code == 0


# A hole takes no room on the disk, and all of it in memory.
LARGE = [
    ("run.json", "run.json: is larger than 16 MiB"),
    ("routes.json", "routes.json: is larger than 16 MiB"),
    ("errors.json", "errors.json: is larger than 16 MiB"),
    ("summary.json", "summary.json: is larger than 16 MiB"),
    ("events.jsonl", "events.jsonl: is larger than 64 MiB"),
    ("requests.npy", "of memory, and this machine has"),
]


@pytest.mark.parametrize(("name", "says"), LARGE)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_file_is_larger_than_a_run_makes_it(run: Path, command: str, name: str, says: str) -> None:
    (run / name).write_bytes(header() if name == "requests.npy" else b"")
    os.truncate(run / name, 1 << 42)
    done = _call(COMMANDS[command])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
    assert says in done.stderr


def test_a_host_csv_without_an_end_is_left_out_with_a_word(run: Path) -> None:
    (run / "host.csv").write_text("t_ns,diskstats.sda_read_latency_ms\n")
    os.truncate(run / "host.csv", 1 << 42)
    done = _call(["report", "RUN", "OTHER", "--out", "page.html"])
    assert done.exit_code == 0
    assert "host.csv: is larger than 1024 MiB" in Path("page.html").read_text()


def test_more_events_than_any_run_has_are_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_MOST_EVENTS", 1000)
    (run / "events.jsonl").write_text('{"t_ns":0,"event":"a"}\n' * 1001)
    done = _call(COMMANDS["compare"])
    assert done.exit_code == 2
    assert "holds more than 1,000 events" in done.stderr


NO_FIGURES: list[tuple[str, Any]] = [
    ("two whose sum overflows", 1e308),
    ("two whose sum is minus infinity", -1e308),
    ("infinity", float("inf")),
    ("NaN", float("nan")),
    ("a whole number that no float holds", 10**400),
    ("so little that what is divided by it overflows", 1e-308),
]


@pytest.mark.parametrize(("what", "value"), NO_FIGURES, ids=[row[0] for row in NO_FIGURES])
def test_a_measure_that_is_no_figure_is_named_as_damaged(run: Path, what: str, value: Any) -> None:
    add_events(
        run, *({"t_ns": t, "event": "measure", "name": "tea", "value": value, "unit": "ms"} for t in (1, 2))
    )
    done = _call([*COMMANDS["report"], "--json"])
    assert done.exit_code == 0, what
    assert json.loads(done.stdout, parse_constant=pytest.fail)["runs"][0]["measures"] == {}
    assert "Values of tea in events.jsonl are not usable numbers" in Path("page.html").read_text()
    for command in ("compare", "signoff", "regress", "export"):
        done = _call(COMMANDS[command])
        assert done.exit_code in (0, 3), f"{command}: {done.output}"
        assert done.exception is None or isinstance(done.exception, SystemExit)
    assert _call(COMMANDS["merge"]).exit_code == 0
    merged = _call(["report", "merged", "--out", "merged.html"])
    assert merged.exit_code == 0
    assert "Values of tea in events.jsonl are not usable numbers" in Path("merged.html").read_text(), (
        "merging mends nothing"
    )


KEYS: list[tuple[str, str, Any, str]] = [
    ("run.json", "warmup_s", float("nan"), "warmup_s: is not a usable number"),
    ("run.json", "warmup_s", 1e300, "warmup_s: is not a usable number"),
    ("run.json", "warmup_s", 1e12, "warmup_s: "),
    (
        "run.json",
        "scenario_settings",
        {"rate": [1, float("inf")]},
        "scenario_settings.rate.1: is not a usable number",
    ),
    ("run.json", "experiment", {"name": "x", "of": 1 << 63}, "experiment.of: "),
    ("run.json", "experiment", {"name": "x", "of": 10**400}, "experiment.of: is not a usable number"),
    ("run.json", "started_at", "0001-01-01T00:00:00+14:00", "started_at: "),
    ("run.json", "scenario", "", "scenario: "),
    ("summary.json", "duration_s", float("inf"), "duration_s: is not a usable number"),
    ("summary.json", "requests", {"sent": -1}, "requests.sent: "),
    (
        "summary.json",
        "measures",
        {"tea": {"unit": "ms", "mean": float("nan")}},
        "measures.tea.mean: is not a usable number",
    ),
    ("summary.json", "records_sha256", "abc", "records_sha256: "),
]


@pytest.mark.parametrize(("name", "key", "value", "says"), KEYS)
def test_every_figure_of_a_json_file_is_finite(run: Path, name: str, key: str, value: Any, says: str) -> None:
    (run / name).write_text(json.dumps(json.loads((run / name).read_text()) | {key: value}))
    for command in COMMANDS.values():
        done = _call(command)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
        assert f"run/{name}: {says}" in done.stderr


def test_an_instant_without_a_zone_is_in_utc(run: Path) -> None:
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"started_at": facts["started_at"].removesuffix("Z")}))
    for command in COMMANDS.values():
        done = _call(command)
        assert done.exit_code in (0, 3), done.output


def test_names_beside_a_grinder_log_are_read_in_the_same_way(run: Path) -> None:
    _away(run / "routes.json")
    _pipe(run / "routes.json")
    (run / "grinder-0-data.log").write_text(
        "Thread, Run, Test, Start time (ms since Epoch), Test time, Errors\n0, 0, 1, 1795216080623, 1, 0\n"
    )
    done = _call(["import", "grinder", "run/grinder-0-data.log", "--out", "imported"])
    assert done.exit_code == 2
    assert "routes.json: is a named pipe" in done.stderr


@pytest.mark.parametrize("name", ["run.json", "events.jsonl"])
def test_the_command_itself_stays_small(run: Path, name: str) -> None:
    _away(run / name)
    _zeros(run / name)
    done = subprocess.run(
        [sys.executable, "-m", "plimsoll", "report", "run"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (ROOM_BYTES, ROOM_BYTES)),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2
    assert f"{name}: is a device" in done.stderr


def _call(words: list[str]) -> Result:
    """Call the command on the run and the other, with little room and no patience."""
    paths = {"RUN": "run", "OTHER": "other"}
    with _in_bounds():
        return CliRunner().invoke(main, [paths.get(word, word) for word in words])


@contextmanager
def _in_bounds() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (used + ROOM_BYTES, hard))
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _too_long(*_: object) -> None:
    raise TimeoutError("it hangs")


def _away(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
