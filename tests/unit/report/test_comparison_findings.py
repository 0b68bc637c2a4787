"""What makes a comparison doubtful is named on its page, a kind a row; so is what is not finished."""

import html
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.analysis.report.comparison_findings import check_controls, undone
from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.rundir.read import RunDirectory
from tests.support.experiment import FAST, SLOW, add_events, write_experiment, write_one
from tests.support.pages import text_of, warnings_of
from tests.support.rundir import RECORD_BYTES, change, records, write_run

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
    (run / "requests.npy").write_bytes(data[: 512 + RECORD_BYTES * 500])


def _gave_up(path: Path) -> None:
    events = (path / "events.jsonl").read_text()
    (path / "events.jsonl").write_text(
        events.replace('"bytes": 8589934592', '"bytes": 1, "error": "no space"')
    )


def _retried(path: Path) -> None:
    lines = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    for line in lines[5:8]:
        assert line["event"] == "zfs-send bytes"
        line["bytes_per_s"] = 0
    lines.insert(5, {"t_ns": lines[5]["t_ns"], "event": "zfs-send retry", "error": "pool is busy"})
    (path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


# The first run of four (two backends, two repeats) is spoiled; this stands among the page's warnings.
KINDS: list[tuple[str, Spoil, str]] = [
    ("run.json is missing", lambda run: (run / "run.json").unlink(), "run.json is missing, without which"),
    ("an empty directory", _empty, "is empty: its run never began, or was removed"),
    ("a removed directory", shutil.rmtree, "3 of the 4 runs of experiment one-machine are here"),
    ("no records", lambda run: (run / "requests.npy").unlink(), "requests.npy is missing"),
    ("an empty requests.npy", lambda run: (run / "requests.npy").write_bytes(b""), "holds no request"),
    ("an empty run.json", lambda run: (run / "run.json").write_text(""), "is not JSON; it was cut off"),
    ("another format", lambda run: change(run, format=3), "is of format 3; this version"),
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
    (
        "a clock that was set",
        lambda run: change(run, ended_at="2026-11-20T00:02:09Z"),
        "took 9 s by the clock on the wall",
    ),
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
    ("the saturator gave up", _gave_up, "had idle disks from then on when zfs-send gave up (no space)"),
    (
        "the saturator began again",
        _retried,
        "had zfs-send fail and begin again 1 time (3 of 40 s without load): pool is busy.",
    ),
    (
        "the host changed between two runs",
        lambda run: change(run, storage={"facts": {"kernel": "6.2"}}),
        "more than the storage differs: kernel (nvme-mirror 6.2 / 6.1.0-18)",
    ),
    (
        "all is warm-up",
        lambda run: write_run(run, records(9, flags=8)),
        "every request belongs to the warm-up",
    ),
    ("run.json is cut off", lambda run: (run / "run.json").write_text("{"), "is not JSON; it was cut off"),
    ("a format that cannot be read", lambda run: change(run, format=3), "cannot be read: "),
    ("no saturator", lambda run: _without(run, "zfs-send"), "nvme-mirror #1 has no saturator at all"),
    ("no throughput", lambda run: _without(run, "zfs-send bytes"), "has no throughput of a saturator"),
    ("too few requests", _few_requests, "too few requests for a point in the scatter"),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("sound")
    write_experiment(folder, 2)
    return html.unescape(text_of(_report(folder)))


@pytest.mark.parametrize(("what", "spoil", "says"), KINDS, ids=[row[0] for row in KINDS])
def test_bad_input_is_named_among_the_warnings_and_no_run_is_lost_in_silence(
    tmp_path: Path, sound: str, what: str, spoil: Spoil, says: str
) -> None:
    assert says not in sound, "a sound experiment is not accused"
    spoil(write_experiment(tmp_path, 2)[0])
    made = _report(tmp_path)
    assert says in html.unescape(warnings_of(made)), what
    assert len(made.runs) + len(made.unreadable) == (3 if spoil is shutil.rmtree else 4)


def _report(folder: Path) -> Report:
    made = make_report([folder])
    json.dumps(made.as_json(), allow_nan=False)
    return made


def test_a_route_without_a_name_is_a_minor_warning(tmp_path: Path) -> None:
    (write_experiment(tmp_path, 2)[0] / "routes.json").write_text("[]")
    made = _report(tmp_path)
    assert "no name for 1 route" in text_of(made)
    assert "no name for 1 route" not in warnings_of(made)


def test_one_repeat_only_is_named(tmp_path: Path) -> None:
    write_experiment(tmp_path, 1)
    assert "ran only once on nvme-mirror and slow-disk" in text_of(_report(tmp_path))


def test_a_sound_experiment_has_no_warnings(tmp_path: Path) -> None:
    write_experiment(tmp_path, 2, [("a", FAST), ("b", FAST | {"stall_ms": 40.4})])
    assert 'id="warnings"' not in text_of(_report(tmp_path))


def test_hostile_names_in_warnings_are_text(tmp_path: Path) -> None:
    attack = "<img src=x onerror=window.owned=1>"
    run = write_experiment(tmp_path, 2)[0]
    add_events(run, measure("x") | {"name": attack})
    (tmp_path / f"{attack}").mkdir()
    made = make_report([tmp_path])
    assert "<img" not in text_of(made)
    assert "is empty" in text_of(made)


BEGUN, ENDED = {"what": "begun"}, {"what": "ended"}
FAILED = {"what": "run failed", "run": "0003-replay--nvme--2", "backend": "nvme", "why": "no room.\nmore"}
ASIDE = {"what": "set aside", "backend": "nvme", "scenario": "replay", "why": "no room"}


@pytest.mark.parametrize(
    ("says", "done", "journal", "expected"),
    [
        ("all is done", 4, [BEGUN, ENDED], []),
        ("it runs on", 3, [BEGUN], ["Not finished: one has finished 3 of 4 runs, and has not ended."]),
        (
            "it was resumed after its end",
            4,
            [BEGUN, ENDED, BEGUN],
            ["Not finished: one has finished 4 of 4 runs, and has not ended."],
        ),
        ("it ended too early", 3, [BEGUN, ENDED], ["one ended with 3 of 4 runs."]),
        (
            "a try failed, and the next one did not",
            3,
            [BEGUN, FAILED | {"run": "0"}, ENDED],
            ["one ended with 3 of 4 runs."],
        ),
        (
            "what was set aside is named",
            3,
            [BEGUN, FAILED, ASIDE, ENDED],
            [
                "one ended with 3 of 4 runs.",
                "Set aside: replay on nvme: no room.",
                "Failed, and not repeated since: 0003-replay--nvme--2: no room.",
            ],
        ),
        (
            "what is tried again is set aside no more",
            3,
            [BEGUN, ASIDE, ENDED, {"what": "tried again"}, BEGUN],
            ["Not finished: one has finished 3 of 4 runs, and has not ended."],
        ),
    ],
)
def test_what_is_not_done_is_said(
    says: str, done: int, journal: list[dict[str, Any]], expected: list[str]
) -> None:
    assert undone("one", {str(number) for number in range(done)}, 4, journal) == expected, says


def test_a_report_made_midway_says_so_at_its_top(tmp_path: Path) -> None:
    folder = tmp_path / "one-machine-20261122T200000Z"
    for number, (backend, kind) in enumerate([("nvme", FAST), ("sata", SLOW)], 1):
        path = folder / "runs" / f"000{number}-replay--{backend}--1"
        write_one(path, backend, 1, number=(number, 8), **kind)
    (folder / "lab.json").write_text("{}")
    hostile = ASIDE | {"why": "<script>alert(1)</script>\x1b[2J"}
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (BEGUN, hostile)))
    report = make_report([folder])
    page = report.path.read_text()
    first = f"Not finished: {folder.name} has finished 2 of 8 runs, and has not ended."
    assert report.unfinished[0] == first
    assert page.index("<h1>") < page.index(first) < page.index('id="warnings"')
    assert "Set aside: replay on nvme: &lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J." in page
    assert "of the 8 runs of experiment" not in page  # said once
    with (folder / "journal.jsonl").open("a") as file:
        file.write('{"what": "ended"}\n')
    assert "Not finished: " not in make_report([folder / "runs"]).path.read_text()


@pytest.mark.parametrize(
    ("scenarios", "slower_us", "warned", "why"),
    [
        (("download", "download"), 1100, True, "ten percent are more than a few"),
        (("download", "download"), 1030, False, "three percent are not"),
        (("download", "save-article"), 9000, False, "only downloads are the control"),
    ],
)
def test_the_report_says_when_the_control_experiment_differs(
    tmp_path: Path, scenarios: tuple[str, str], slower_us: int, warned: bool, why: str
) -> None:
    times_us = (1000, slower_us)
    runs = []
    for number, (scenario, total_us) in enumerate(zip(scenarios, times_us, strict=True)):
        path = write_run(tmp_path / str(number), records(9, total_us=total_us), scenario=scenario, logs=[])
        opened = RunDirectory.open(path)
        runs.append(ReportRun.of(measure_in_detail(opened), number))
    assert bool(check_controls(runs)) == warned, why
