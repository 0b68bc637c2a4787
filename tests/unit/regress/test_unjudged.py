"""What is not judged is never "nothing worse": nights that are missing, unfit, failed, or no evidence."""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.evidence.measure import measure_run
from plimsoll.analysis.evidence.run import WHOLE
from plimsoll.analysis.regress.intake import add_runs, select_readable
from plimsoll.analysis.regress.nights import ExperimentHistory, NightSeries, build_series
from plimsoll.analysis.regress.store import open_history
from plimsoll.lab.experiment.folder import Journal
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import HEADER_BYTES, RECORD
from tests.support.comparable import LAB, folder_of, regress, write_night
from tests.support.programs import ROOT
from tests.support.rundir import change

LONG = 13  # nights: more than any look back that there was
NOTE = ["--note", "sold in October", "--by", "Ada"]


def history_of(folder: Path, nights: int = 3) -> Path:
    history = folder / "history.sqlite"
    for number in range(nights):
        night = write_night(folder / "results", number, {"nvme": 40, "sata": 90}, count=1000)
        assert regress(history, night).exit_code == 0
    return history


def codes_of(folder: Path, history: Path, **more: Any) -> list[int]:
    """The exit codes of many nights on two backends."""
    return [
        regress(
            history, write_night(folder / "results", 3 + number, {"nvme": 40, "sata": 90}, count=1000, **more)
        ).exit_code
        for number in range(LONG)
    ]


UNFIT = [
    ("every run is limited by the generator", {"generator_limited": True}),
    ("every run failed", {"status": "failed"}),
]


@pytest.mark.parametrize(("what", "facts"), UNFIT, ids=[row[0] for row in UNFIT])
def test_nights_without_a_fit_run_are_never_well(tmp_path: Path, what: str, facts: dict[str, Any]) -> None:
    history = history_of(tmp_path)
    assert set(codes_of(tmp_path, history, **facts)) == {3}, what
    result = regress(history)
    assert "CANNOT BE JUDGED" in result.output
    assert "the last was nightly-20260103T020000Z" in " ".join(result.output.split())


def test_a_history_that_never_had_a_fit_run_is_not_well(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    night = write_night(tmp_path, 0, {"nvme": 40}, generator_limited=True)
    result = regress(history, night)
    assert result.exit_code == 3
    assert "replay on nvme: there was never a figure" in " ".join(result.output.split())


def backend_gone(folder: Path, nights: int = LONG) -> Path:
    history = history_of(folder)
    codes = [
        regress(history, write_night(folder / "results", 3 + at, {"nvme": 40}, count=1000)).exit_code
        for at in range(nights)
    ]
    assert set(codes) == {3}
    return history


def test_a_backend_that_runs_no_more_is_named_until_it_is_dropped(tmp_path: Path) -> None:
    history = backend_gone(tmp_path)
    said = " ".join(regress(history).output.split())
    assert "replay on sata, during: p99: no figure tonight: did not run" in said
    assert "--drop 'replay on sata'" in said
    result = regress(history, "--drop", "sata", *NOTE)
    assert result.exit_code == 0
    shown = " ".join(regress(history).output.split())
    assert "decided: dropped sata" in shown
    assert "by Ada: sold in October" in shown
    assert "replay on sata" not in shown
    night = write_night(tmp_path / "results", 3 + LONG, {"nvme": 40}, count=1000)
    assert regress(history, night).exit_code == 0, "it stays dropped"


@pytest.mark.parametrize("name", ["sata", "replay on sata", "nightly"])
def test_it_is_dropped_by_any_of_its_names(tmp_path: Path, name: str) -> None:
    history = backend_gone(tmp_path, 1)
    assert regress(history, "--drop", name, *NOTE).exit_code == 0


def test_a_phase_is_dropped_by_the_name_of_its_series(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    assert regress(history, write_night(tmp_path, 0, {"nvme": 40})).exit_code == 0
    other = regress(history, write_night(tmp_path, 1, {"nvme": 40}, saturator=None))
    assert other.exit_code == 3, "the saturator is a part of the load"
    result = regress(history, "--accept", *NOTE)
    assert result.exit_code == 3, "now it is the load that is meant, without a part of what was judged"
    assert "--drop 'replay on nvme, during: p99.9'" in " ".join(result.output.split())
    assert regress(history, "--drop", "replay on nvme, during: p99.9", *NOTE).exit_code == 0


def test_what_was_dropped_and_runs_again_is_judged_again(tmp_path: Path) -> None:
    history = backend_gone(tmp_path, 1)
    assert regress(history, "--drop", "sata", *NOTE).exit_code == 0
    both = {"nvme": 40, "sata": 90}
    assert regress(history, write_night(tmp_path / "results", 4, both, count=1000)).exit_code == 0
    result = regress(history, write_night(tmp_path / "results", 5, {"nvme": 40}, count=1000))
    assert result.exit_code == 3


def test_a_name_that_is_none_cannot_be_dropped(tmp_path: Path) -> None:
    history = backend_gone(tmp_path, 1)
    result = regress(history, "--drop", "floppy", *NOTE)
    assert result.exit_code == 2
    assert "there is nothing of this name; there are: nightly, replay, nvme" in result.stderr
    assert json.loads(regress(history, "--json").stdout)["experiments"][0]["decisions"] == []


def test_an_old_history_is_stale_by_the_real_command(tmp_path: Path) -> None:
    history = history_of(tmp_path)
    words = [sys.executable, "-m", "plimsoll", "regress", "--history", str(history)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stdout.split())
    assert "nightly-20260103T020000Z is the newest night, and began" in said
    assert "more than 36 h (--stale-after)" in said


AGES = [
    ("a night that is due", "36h", timedelta(hours=35), 0),
    ("a night that is overdue", "36h", timedelta(hours=37), 3),
    ("a weekend", "4d", timedelta(hours=72), 0),
    ("a night of the future", "36h", -timedelta(days=3), 3),
]


@pytest.mark.parametrize(("what", "after", "age", "code"), AGES, ids=[row[0] for row in AGES])
def test_how_old_the_newest_night_may_be(
    tmp_path: Path, what: str, after: str, age: timedelta, code: int
) -> None:
    began = datetime.now(UTC) - age
    night = write_night(tmp_path, 0, {"nvme": 40}, started_at=f"{began:%Y-%m-%dT%H:%M:%S.%fZ}")
    assert regress(tmp_path / "history.sqlite", night, "--stale-after", after).exit_code == code, what


def test_a_stale_history_is_one_message(tmp_path: Path) -> None:
    history, out = history_of(tmp_path), tmp_path / "out"
    notify = ["--notify-command", f"""sh -c 'cat >/dev/null; echo "$PLIMSOLL_SUBJECT" >>{out}'"""]
    for _ in range(3):
        assert regress(history, "--stale-after", "36h", *notify).exit_code == 3
    assert len(out.read_text().splitlines()) == 1


@pytest.mark.parametrize("text", ["0h", "yesterday", "36", "-3h", "1e9d"])
def test_a_duration_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    result = regress(tmp_path / "history.sqlite", "--stale-after", text)
    assert result.exit_code == 2
    assert "such as 45m, 36h or 10d" in result.stderr


def test_an_experiment_that_is_dropped_is_not_stale(tmp_path: Path) -> None:
    history = history_of(tmp_path)
    result = regress(history, "--stale-after", "36h", "--drop", "nightly", *NOTE)
    assert result.exit_code == 0
    assert "dropped nightly" in result.output


NIGHTS = 4
Records = np.ndarray[Any, np.dtype[Any]]


def nvme_history(folder: Path) -> Path:
    history = folder / "history.sqlite"
    for number in range(NIGHTS):
        assert regress(history, write_night(folder / "results", number, {"nvme": 40})).exit_code == 0
    return history


def rewritten(night: Path, how: Callable[[Records], None]) -> Path:
    """The night, with other records in each of its runs."""
    for run in (night / "runs").iterdir():
        file = run / "requests.npy"
        data = file.read_bytes()
        table = np.frombuffer(data[HEADER_BYTES:], dtype=RECORD).copy()
        how(table)
        file.write_bytes(data[:HEADER_BYTES] + table.tobytes())
    return night


def not_found(table: Records) -> None:
    quick = table[: len(table) * 9 // 10]
    quick["status"], quick["bytes"], quick["total_us"] = 404, 10, 300


def redirected(table: Records) -> None:
    table["status"][: len(table) * 9 // 10] = 302


def empty(table: Records) -> None:
    table["bytes"], table["total_us"] = 0, 300


def smaller(table: Records) -> None:
    table["bytes"] //= 3
    table["logged_bytes"] = -1


def unlogged(table: Records) -> None:
    table["logged_status"], table["logged_bytes"] = 0, -1


WRONG = [
    ("most answers are 404", not_found, 1, {"more-failures"}),
    ("all bodies are empty", empty, 1, {"empty-answers"}),
    ("the pages are others", smaller, 3, {"other-answers"}),
]


@pytest.mark.parametrize(("what", "how", "code", "names"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_answers_are_never_better(
    tmp_path: Path, what: str, how: Callable[[Records], None], code: int, names: set[str]
) -> None:
    history = nvme_history(tmp_path)
    for number in range(NIGHTS, NIGHTS + 3):
        result = regress(history, rewritten(write_night(tmp_path / "results", number, {"nvme": 40}), how))
        assert result.exit_code == code, f"{what}, night {number}"
    junit, html, markdown = (tmp_path / name for name in ("junit", "html", "markdown"))
    words: list[str | Path] = ["--junit", junit, "--html", html, "--markdown", markdown]
    document = json.loads(regress(history, "--json", *words).stdout)
    (experiment,) = document["experiments"]
    assert names <= {each["name"] for each in experiment["findings"]}
    assert {each["nights"] for each in experiment["series"]} == {NIGHTS}, "it is in no series"
    assert {each["state"] for each in experiment["series"]} == {"missing"}
    kind = "failure" if code == 1 else "error"
    cases = ET.fromstring(junit.read_bytes()).findall(f"testsuite/testcase/{kind}")  # noqa: S314 our own
    assert {case.get("type") for case in cases} >= {"evidence"}
    text = next(each["text"] for each in experiment["findings"] if each["name"] in names)
    start = text.split(":")[1].split("%")[0].strip()
    assert all(start in path.read_text().replace("\\", "") for path in (junit, html, markdown))
    night = write_night(tmp_path / "results", NIGHTS + 3, {"nvme": 40})
    assert regress(history, night).exit_code == 0, "and it is over when it is over"


def test_gates_without_answers_make_doubts_of_them(tmp_path: Path) -> None:
    history, gates = nvme_history(tmp_path), tmp_path / "gates.yml"
    gates.write_text("answers: false\ngates:\n  - {scenario: replay, metric: p50, at_most_ratio: 1.2}\n")
    night = rewritten(write_night(tmp_path / "results", NIGHTS, {"nvme": 40}), redirected)
    result = regress(history, night, "--gates", gates)
    assert result.exit_code == 0
    assert "doubt: replay: " in result.output


LOADS = [
    ("another seed", {"seed": 99}),
    ("another warm-up", {"warmup_s": 30.0}),
    ("no saturator", {"saturator": None}),
]


@pytest.mark.parametrize(("what", "facts"), LOADS, ids=[row[0] for row in LOADS])
def test_another_load_is_not_judged_until_it_is_accepted(
    tmp_path: Path, what: str, facts: dict[str, Any]
) -> None:
    history = nvme_history(tmp_path)
    for number in (NIGHTS, NIGHTS + 1):
        night = write_night(tmp_path / "results", number, {"nvme": 40}, **facts)
        result = regress(history, night)
        assert result.exit_code == 3, what
        said = " ".join(result.output.split())
        assert "no evidence: The runs of replay are not of one load" in said
        assert "plimsoll regress --accept --note WHY" in said
    drops = [] if "saturator" not in facts else ["--drop", "replay on nvme, during"]
    assert regress(history, "--accept", *drops, *NOTE).exit_code == 0
    night = write_night(tmp_path / "results", NIGHTS + 2, {"nvme": 40}, **facts)
    result = regress(history, night)
    assert result.exit_code == 0, "it is the load from then on"
    assert "by Ada: sold in October" in " ".join(result.output.split())
    night = write_night(tmp_path / "results", NIGHTS + 3, {"nvme": 40})
    assert regress(history, night).exit_code == 3, "and the old one is another now"


def test_a_night_that_is_a_copy_of_the_last_one_is_no_evidence(tmp_path: Path) -> None:
    history = nvme_history(tmp_path)
    copy = folder_of(tmp_path / "results", NIGHTS)
    shutil.copytree(folder_of(tmp_path / "results", NIGHTS - 1), copy)
    for run in (copy / "runs").iterdir():
        change(run, started_at="2026-01-05T02:03:00Z", ended_at="2026-01-05T02:04:00Z")
    result = regress(history, copy)
    assert result.exit_code == 3
    assert "is a copy of the other" in " ".join(result.output.split())


def test_nights_that_are_added_at_once_are_looked_at_one_by_one(tmp_path: Path) -> None:
    history = nvme_history(tmp_path)
    nights = [write_night(tmp_path / "results", NIGHTS + at, {"nvme": 40}) for at in range(3)]
    rewritten(nights[1], not_found)
    result = regress(history, *nights, "--json")
    assert result.exit_code == 0
    (experiment,) = json.loads(result.stdout)["experiments"]
    assert {each["nights"] for each in experiment["series"]} == {NIGHTS + 2}


def whole_series(file: Path) -> NightSeries:
    """The p99.9 of whole runs."""
    with open_history(file) as kept:
        past = ExperimentHistory(
            LAB, kept.nights(LAB), kept.runs(LAB), list(kept.figures(LAB, ["p99.9", "p99", "p50"])), [], []
        )
    return next(each for each in build_series(past) if each.key.phase == WHOLE)


@pytest.mark.parametrize(("timeout_s", "at_least"), [(30.0, 30_000.0), (None, None)])
def test_a_history_knows_what_is_censored(
    tmp_path: Path, timeout_s: float | None, at_least: float | None
) -> None:
    folder = write_night(tmp_path / "results", 1, {"nvme": 50.0}, errors=800, timeout_s=timeout_s)
    (path,) = (folder / "runs").iterdir()
    measured = measure_run(RunDirectory.open(path))
    with open_history(tmp_path / "h.sqlite") as kept:
        add_runs(kept, select_readable([tmp_path / "results"]))
        (row,) = kept.runs()
        loaded = kept.load(row)
    assert loaded.phases == measured.phases
    assert loaded.phases[WHOLE].response_ms.censored["p99.9"] == at_least
    assert loaded.phases[WHOLE].steps["page"].at_least == at_least
    assert {(WHOLE, "p99.9"), (WHOLE, "measure page")} <= row.censored
    assert ("during", "p99") in row.censored and ("before", "p50") in row.censored


def test_a_night_is_not_judged_by_the_repeats_that_did_not_fail(tmp_path: Path) -> None:
    results = tmp_path / "results"
    for number in range(3):
        write_night(results, number, {"nvme": 50.0}, repeats=2, timeout_s=30.0)
    last = write_night(results, 3, {"nvme": 10.0}, repeats=2, timeout_s=30.0)
    write_night(tmp_path / "failed", 3, {"nvme": 10.0}, repeats=2, timeout_s=30.0, errors=10)
    second = sorted((last / "runs").iterdir())[1]
    failed = sorted((tmp_path / "failed").glob("*/runs/*"))[1]
    for name in ("requests.npy", "summary.json"):
        (second / name).write_bytes((failed / name).read_bytes())
    with open_history(tmp_path / "h.sqlite") as kept:
        add_runs(kept, select_readable([results]))
    found = whole_series(tmp_path / "h.sqlite")
    assert found.key.metric == "p99.9", "a failing night does not make another figure the one to watch"
    assert [len(night.repeats) for night in found.nights] == [2, 2, 2, 0]
    assert found.nights[-1].why == f"{second.name} failed so often that the p99.9 is a failure's"


def test_a_night_of_an_experiment_that_still_runs_is_not_taken_in(tmp_path: Path) -> None:
    history = history_of(tmp_path)
    night = write_night(tmp_path / "results", 3, {"nvme": 40, "sata": 90}, count=1000)
    for given in (night, night / "runs", tmp_path / "results"):
        with Journal(night / "journal.jsonl").lock():
            result = regress(history, given)
        assert "its experiment still runs: add it when it has ended" in result.stderr
        assert night.name not in result.stdout
        assert result.exit_code == (0 if given == tmp_path / "results" else 2)
    assert regress(history, night).exit_code == 0
