"""Bad input is named on the page: one row a kind. Never a silently thinner plot."""

import html
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.report import make_report
from tests.support.experiment import FAST, add_events, write_experiment
from tests.support.rundir import change
from tests.unit.report.test_comparison import text_of

Spoil = Callable[[Path], object]


def measure(value: Any, unit: str = "ms") -> dict[str, Any]:
    return {"t_ns": 10**9, "event": "measure", "name": "tea", "value": value, "unit": unit}


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def _cut_off(run: Path) -> None:
    data = (run / "requests.npy").read_bytes()
    (run / "requests.npy").write_bytes(data[:-20])


def _torn(run: Path) -> None:
    """A part of one more record than the summary counts."""
    with (run / "requests.npy").open("ab") as file:
        file.write(b"\0" * 20)


def _edit_host(run: Path, line: int, text: str) -> None:
    lines = (run / "host.csv").read_text().splitlines()
    lines[line] = text
    (run / "host.csv").write_text("\n".join(lines) + "\n")


def _move_host(run: Path) -> None:
    lines = (run / "host.csv").read_text().splitlines()
    moved = [f"{int(line.partition(',')[0]) + 3600 * 10**9},{line.partition(',')[2]}" for line in lines[1:]]
    (run / "host.csv").write_text("\n".join([lines[0], *moved]) + "\n")


def _without(run: Path, event: str) -> None:
    kept = [line for line in (run / "events.jsonl").read_text().splitlines() if event not in line]
    (run / "events.jsonl").write_text("\n".join(kept) + "\n")


def _empty(run: Path) -> None:
    for path in run.iterdir():
        path.unlink()


def _few_requests(run: Path) -> None:
    data = (run / "requests.npy").read_bytes()
    (run / "requests.npy").write_bytes(data[: 512 + 68 * 500])


# The first run of four (two backends, two repeats) is spoiled; this stands among the page's warnings.
KINDS: list[tuple[str, Spoil, str]] = [
    ("run.json is missing", lambda run: (run / "run.json").unlink(), "run.json is missing, without which"),
    ("an empty directory", _empty, "is empty: its run never began, or was removed"),
    ("a removed directory", shutil.rmtree, "3 of the 4 runs of experiment one-machine are here"),
    ("no records", lambda run: (run / "requests.npy").unlink(), "requests.npy is missing"),
    ("an empty requests.npy", lambda run: (run / "requests.npy").write_bytes(b""), "holds no request"),
    ("an empty run.json", lambda run: (run / "run.json").write_text(""), "is not JSON; it was cut off"),
    ("another format", lambda run: change(run, format=2), "is of format 2; this version"),
    (
        "a summary of another format",
        lambda run: (run / "summary.json").write_text('{"format": 9}'),
        "format 9",
    ),
    (
        "a truncated summary",
        lambda run: (run / "summary.json").write_text('{"for'),
        "summary.json: is not JSON",
    ),
    ("no summary", lambda run: (run / "summary.json").unlink(), "summary.json is missing"),
    ("a record that is cut off", _torn, "is truncated: the last record of requests.npy is cut off"),
    ("fewer records than sent", _cut_off, "were sent, and requests.npy holds"),
    ("an interrupted run", lambda run: change(run, status="interrupted"), "The run was interrupted."),
    (
        "a failed run",
        lambda run: change(run, status="failed", reason="no disk"),
        "The run failed (no disk)",
    ),
    ("a run that was killed", lambda run: change(run, status="running"), "The run has not ended yet"),
    ("another scenario", lambda run: change(run, scenario="download"), "download did not run on slow-disk."),
    (
        "unlike repeats",
        lambda run: (run / "run.json").unlink(),
        "not have the same number of runs of each backend: 2 of slow-disk, 1",
    ),
    ("NaN in a measure", lambda run: add_events(run, measure(float("nan"))), "Values of tea in events.jsonl"),
    ("a measure of two units", lambda run: add_events(run, measure(1), measure(1, "s")), "of a second unit"),
    (
        "a damaged event",
        lambda run: _append(run / "events.jsonl", "{x\n"),
        "1 line of events.jsonl cannot be",
    ),
    ("no name of a route", lambda run: (run / "routes.json").write_text("[]"), "no name for 1 route"),
    ("NaN in host.csv", lambda run: _edit_host(run, 3, "2500000000,90,NaN,500"), "1 field is not a number"),
    ("words in host.csv", lambda run: _edit_host(run, 3, "2500000000,a,b,500"), "2 fields are not numbers"),
    ("a short line in host.csv", lambda run: _edit_host(run, 3, "1,2"), "1 line with more or fewer fields"),
    ("host.csv of another program", lambda run: _edit_host(run, 0, "a,b"), "without the observers' counters"),
    ("no host.csv", lambda run: (run / "host.csv").unlink(), "nvme-mirror #1 has no counters of its disks"),
    ("the observer's clock", _move_host, "host.csv: only 0 of 80 samples lie within"),
    (
        "a clock that was set back",
        lambda run: change(run, ended_at="2026-11-20T00:00:00Z"),
        "before it began",
    ),
    ("a clock that was set", lambda run: change(run, ended_at="2026-11-20T00:02:09Z"), "the run took 9 s"),
    (
        "runs at the same time",
        lambda run: change(run, ended_at="2026-11-20T00:05:00Z"),
        "slow-disk #1 began before nvme-mirror #1 had ended",
    ),
    (
        "another order than the plan's",
        lambda run: change(run, started_at="2026-11-21T00:00:00Z", ended_at="2026-11-21T00:02:00Z"),
        "began in another order than the experiment's",
    ),
    ("no saturator", lambda run: _without(run, "zfs-send"), "nvme-mirror #1 has no saturator at all"),
    ("no throughput", lambda run: _without(run, "zfs-send bytes"), "has no throughput of a saturator"),
    ("too few requests", _few_requests, "too few requests for a point in the scatter"),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("sound")
    write_experiment(folder, 2)
    return _said(folder)


@pytest.mark.parametrize(("what", "spoil", "says"), KINDS, ids=[row[0] for row in KINDS])
def test_bad_input_is_named_on_the_page(
    tmp_path: Path, sound: str, what: str, spoil: Spoil, says: str
) -> None:
    assert says not in sound, "a sound experiment is not accused"
    spoil(write_experiment(tmp_path, 2)[0])
    assert says in _said(tmp_path), what


def _said(folder: Path) -> str:
    made = make_report([folder])
    text = html.unescape(text_of(made))
    json.dumps(made.as_json(), allow_nan=False)
    return text


def test_one_repeat_only_is_named(tmp_path: Path) -> None:
    write_experiment(tmp_path, 1)
    assert "ran only once on nvme-mirror and slow-disk" in _said(tmp_path)


def test_a_sound_experiment_has_no_warnings(tmp_path: Path) -> None:
    write_experiment(tmp_path, 2, [("a", FAST), ("b", FAST)])
    text = _said(tmp_path)
    assert 'id="warnings"' not in text


def test_hostile_names_in_warnings_are_text(tmp_path: Path) -> None:
    attack = "<img src=x onerror=window.owned=1>"
    run = write_experiment(tmp_path, 2)[0]
    add_events(run, measure("x") | {"name": attack})
    (tmp_path / f"{attack}").mkdir()
    made = make_report([tmp_path])
    assert "<img" not in text_of(made)
    assert "is empty" in text_of(made)
