"""Nights that are no evidence are not judged, and never better: the gatekeeper, beside the nights before."""

import json
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.rundir.records import HEADER_BYTES, RECORD
from tests.support.comparable import folder_of, regress, write_night
from tests.support.rundir import change

NIGHTS = 4
NOTE = ["--note", "we replay at the door now", "--by", "Ada"]
Records = np.ndarray[Any, np.dtype[Any]]


def history_of(folder: Path) -> Path:
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
    history = history_of(tmp_path)
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
    history, gates = history_of(tmp_path), tmp_path / "gates.yml"
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
    history = history_of(tmp_path)
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
    assert "by Ada: we replay at the door now" in " ".join(result.output.split())
    night = write_night(tmp_path / "results", NIGHTS + 3, {"nvme": 40})
    assert regress(history, night).exit_code == 3, "and the old one is another now"


def test_a_night_that_is_a_copy_of_the_last_one_is_no_evidence(tmp_path: Path) -> None:
    history = history_of(tmp_path)
    copy = folder_of(tmp_path / "results", NIGHTS)
    shutil.copytree(folder_of(tmp_path / "results", NIGHTS - 1), copy)
    for run in (copy / "runs").iterdir():
        change(run, started_at="2026-01-05T02:03:00Z", ended_at="2026-01-05T02:04:00Z")
    result = regress(history, copy)
    assert result.exit_code == 3
    assert "is a copy of the other" in " ".join(result.output.split())


def test_nights_that_are_added_at_once_are_looked_at_one_by_one(tmp_path: Path) -> None:
    history = history_of(tmp_path)
    nights = [write_night(tmp_path / "results", NIGHTS + at, {"nvme": 40}) for at in range(3)]
    rewritten(nights[1], not_found)
    result = regress(history, *nights, "--json")
    assert result.exit_code == 0
    (experiment,) = json.loads(result.stdout)["experiments"]
    assert {each["nights"] for each in experiment["series"]} == {NIGHTS + 2}
