"""False evidence and doubtful circumstances of two sides: they are said, or nothing is decided."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.analysis.compare.looks import LOOKS_FILE
from plimsoll.analysis.evidence.checks import RunGroup, merge_alike
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.rundir.check import records_sha256
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import (
    REQUESTS,
    change_side,
    compare_json,
    finding_names,
    gated,
    instant,
    judged,
    reasons,
    runs_of,
    write_both,
    write_comparable,
)
from tests.support.programs import ROOT
from tests.support.rundir import change, change_records

P99 = gated("metric: p99, at_most_ratio: 1.1")
TAIL = gated("metric: p99.9, at_most_ratio: 1.1")  # 15 slow ones of 1,500 are beyond its p99
REPLAY_GATES = gated("phase: during, at_most_ratio: 1.1")


def _copies(folder: Path) -> None:
    """One run of a side, four times."""
    for side in ("sata", "nvme"):
        first, *others = runs_of(folder, side)
        for path in others:
            facts = json.loads((path / "run.json").read_text())
            shutil.rmtree(path)
            shutil.copytree(first, path)
            change(path, **{key: facts[key] for key in ("repeat", "started_at", "ended_at")})


def _relabelled(folder: Path) -> None:
    for one, other in zip(runs_of(folder, "sata"), runs_of(folder, "nvme"), strict=True):
        shutil.copy(one / "requests.npy", other / "requests.npy")


def _shards(folder: Path) -> None:
    for number, path in enumerate(runs_of(folder)):
        change(path, shard={"index": number, "of": 4, "segment": f"{number}/4:{number + 1}/4"})


def _load(folder: Path, **settings: object) -> None:
    same: dict[str, object] = {
        "timeout_s": 60.0,
        "max_connections": None,
        "clients": "log",
        "headers": {},
        "program_version": "1",
    }
    for side, changed in (("sata", {}), ("nvme", settings)):
        for path in runs_of(folder, side):
            change(path, load={"digest": str(changed), "settings": same | changed})


def _swapped(folder: Path) -> None:
    """Two sides' records, each in the directory of the other."""
    for path in runs_of(folder, "*"):
        summary = json.loads((path / "summary.json").read_text())
        summary["records_sha256"] = records_sha256(RunDirectory.open(path).requests)
        (path / "summary.json").write_text(json.dumps(summary))
    for one, other in zip(runs_of(folder, "sata"), runs_of(folder), strict=True):
        kept = (one / "requests.npy").read_bytes()
        shutil.copy(other / "requests.npy", one / "requests.npy")
        (other / "requests.npy").write_bytes(kept)


BADLY_MERGED = {
    "of": ["a", "b"],
    "placed_by": "started_at",
    "says": [{"level": "bad", "text": "instance 3 of 4 is missing"}],
}
REFUSED: list[tuple[str, Callable[[Path], object], str]] = [
    ("one run of each side, copied into four folders", _copies, "copy"),
    ("the baseline, copied and called the candidate", _relabelled, "copy"),
    ("four unmerged shards of one run", _shards, "shard"),
    (
        "two runs on one target at the same time",
        lambda p: change(runs_of(p)[0], ended_at=instant(9)),
        "overlap",
    ),
    ("what merge called bad", lambda p: change(runs_of(p)[0], merged=BADLY_MERGED), "merged-badly"),
    ("records of two backends, swapped", _swapped, "other-records"),
    ("another time-out", lambda p: _load(p, timeout_s=1.0), "other-load"),
    ("another cap on connections", lambda p: _load(p, max_connections=28), "other-load"),
    ("clients spread", lambda p: _load(p, clients="proxies' spread over 250"), "other-load"),
    ("another header", lambda p: _load(p, headers={"cookie": "9f86d0"}), "other-load"),
]


@pytest.mark.parametrize(("what", "spoil", "name"), REFUSED, ids=[row[0] for row in REFUSED])
@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, "PASS"), (5.0, "FAIL")])
def test_nothing_is_decided_on_false_runs(
    tmp_path: Path, what: str, spoil: Callable[[Path], object], name: str, ratio: float, verdict: str
) -> None:
    write_both(tmp_path, ratio)
    assert compare_json(tmp_path, TAIL)["verdict"] == verdict, "without the fault"
    (tmp_path / LOOKS_FILE).unlink()
    shutil.rmtree(tmp_path / ".state")
    spoil(tmp_path)
    found = compare_json(tmp_path, TAIL)
    assert found["exit"] == 3, what
    assert name in finding_names(found)
    assert {gate["verdict"] for gate in found["gates"]} == {"INCONCLUSIVE"}
    found_texts = [finding for finding in found["findings"] if finding["name"] == name]
    assert all(finding["runs"] and finding["remedy"] for finding in found_texts)


def test_failures_under_another_load_show_nothing(tmp_path: Path) -> None:
    _load(write_both(tmp_path), timeout_s=1.0)
    change_side(tmp_path, "nvme", slice(REQUESTS // 2), status=500, total_us=300, ttfb_us=250)
    found = compare_json(tmp_path, P99)
    assert found["verdict"] == "INCONCLUSIVE"
    assert finding_names(found) >= {"other-load", "more-failures"}


def test_another_version_is_a_doubt(tmp_path: Path) -> None:
    _load(write_both(tmp_path), program_version="2")
    found = compare_json(tmp_path, P99)
    assert found["verdict"] == "PASS"
    assert "other-version" in finding_names(found)


def test_true_evidence_has_no_finding(tmp_path: Path) -> None:
    _load(write_both(tmp_path))
    found = compare_json(tmp_path, P99)
    assert (found["verdict"], found["findings"]) == ("PASS", [])


def test_a_run_of_another_backend_is_no_copy(tmp_path: Path) -> None:
    write_both(tmp_path)
    write_comparable(tmp_path / "runs" / "0099", "xfs", 1, 99, 50.0)
    shutil.copy(runs_of(tmp_path)[0] / "requests.npy", tmp_path / "runs" / "0099" / "requests.npy")
    assert compare_json(tmp_path, P99)["findings"] == []


def _same_clock(folder: Path) -> None:
    for path in (folder / "runs").iterdir():
        change(path, started_at=instant(0), ended_at=None)


def _began(folder: Path, minutes: Callable[[int, int], int]) -> None:
    """Let runs begin `minutes(side, repeat)` after the first, and last a minute."""
    for side, backend in enumerate(("sata", "nvme")):
        for repeat, path in enumerate(runs_of(folder, backend)):
            began = minutes(side, repeat)
            change(path, started_at=instant(began), ended_at=instant(began + 1))


def _one_after_the_other(folder: Path) -> None:
    _began(folder, lambda side, repeat: 100 * side + 2 * repeat)


def _numbers(folder: Path) -> None:
    for number, path in enumerate(sorted((folder / "runs").iterdir())):
        change(path, experiment={"name": "move", "run": 8 - number, "of": 8})


def _download(folder: Path, tail: float, called: str = "download") -> None:
    load = {"digest": "d", "settings": {"scenario": "download"}}
    write_both(folder, scenario=called, first=100, load=load)
    for path in runs_of(folder):
        if called in path.name:
            change_records(path, total_us=int(1000 * tail))


def _emulated(folder: Path) -> None:
    for path in runs_of(folder):
        change(path, storage={"emulated": "like a rotating disk", "facts": {"kernel": "6.2"}})


DOUBTFUL: list[tuple[str, Callable[[Path], object], str]] = [
    ("all began at once", _same_clock, "say that they began at once, so their order is not known"),
    (
        "one does not say when",
        lambda p: change(runs_of(p)[0], started_at=None),
        "do not all say when they began",
    ),
    (
        "the baseline always first",
        lambda p: _began(p, lambda side, repeat: 4 * repeat + 2 * side),
        "baseline came first in every repeat",
    ),
    ("one side after the other", _one_after_the_other, "All runs of the baseline came first"),
    (
        "two at the same time",
        lambda p: change(runs_of(p)[0], ended_at=instant(9), target={"url": "http://127.0.0.1:8080/"}),
        "had ended: they disturbed",
    ),
    (
        "it ended before the run began",
        lambda p: change(runs_of(p)[1], ended_at=instant(-9)),
        "ended before it began",
    ),
    ("the clock was set", _numbers, "began in another order than their experiment's"),
    ("the download differs", lambda p: _download(p, 1.2), "The control experiment differs"),
    ("another scenario has no gate", lambda p: None, "No gate looks at visitors"),
    ("emulated storage", _emulated, "nvme is emulated (like a rotating disk)"),
    (
        "another generator",
        lambda p: change(runs_of(p)[0], host={"hostname": "elsewhere"}),
        "the load came from different machines: hostname (nvme elsewhere / generator)",
    ),
    (
        "another version of it",
        lambda p: change(runs_of(p)[0], program={"name": "replay", "version": "9"}),
        "programs had different versions: version (nvme 9 / 0.1.0)",
    ),
    (
        "runs that are still to come",
        lambda p: change(runs_of(p)[0], experiment={"name": "m", "run": 1, "of": 40}),
        "of its 40 runs here; it lacks",
    ),
]


@pytest.mark.parametrize(("what", "spoil", "says"), DOUBTFUL, ids=[row[0] for row in DOUBTFUL])
def test_doubts_are_said(tmp_path: Path, what: str, spoil: Callable[[Path], object], says: str) -> None:
    write_both(tmp_path)
    if "no gate" in what:
        write_both(tmp_path, scenario="visitors", first=50)
    spoil(tmp_path)
    found = judged(tmp_path, REPLAY_GATES)
    assert any(says in warning for warning in found.warnings), found.warnings
    assert found.verdict == "PASS", "a warning forbids no verdict"


@pytest.mark.parametrize("called", ["download", "control"])
def test_the_control_experiment_is_no_gate_and_quiet_where_it_agrees(tmp_path: Path, called: str) -> None:
    write_both(tmp_path)
    _download(tmp_path, 1.01, called)
    found = judged(tmp_path)
    assert {each.gate.scenario for each in found.judged} == {"replay"}
    assert found.warnings == []


def test_gates_may_ask_for_runs_that_alternate(tmp_path: Path) -> None:
    write_both(tmp_path)
    gates = "interleaved: true\n" + REPLAY_GATES
    assert judged(tmp_path, gates).verdict == "PASS"
    _one_after_the_other(tmp_path)
    assert judged(tmp_path, REPLAY_GATES).verdict == "PASS"
    found = judged(tmp_path, gates)
    assert found.verdict == "INCONCLUSIVE"
    assert "do not alternate in time" in reasons(found)


def test_the_table_of_findings_is_that_of_the_enum() -> None:
    text = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8").split("## All findings")[1]
    rows = re.findall(r"^\| `(.+?)` \| (\w+) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    assert [tuple(row) for row in rows] == [
        (kind.label, kind.level.value, kind.meaning, kind.remedy) for kind in FindingKind
    ]


def test_every_name_is_one_kind() -> None:
    names = [kind.label for kind in FindingKind]
    assert len(set(names)) == len(names)


ALIKE: list[tuple[str, FindingKind, list[tuple[str, str]], list[str]]] = [
    (
        "ranges of figures",
        FindingKind.GENERATOR_LATE,
        [("a1", "took 5 ms of 1,200 requests, p99.9 4 %."), ("b1", "took 1.2 s of 98 requests, p99.9 4 %.")],
        ["2 of 4 runs: each took 5 ms–1.2 s of 98–1,200 requests, p99.9 4 %."],
    ),
    (
        "all runs of a side",
        FindingKind.GENERATOR_LATE,
        [("a1", "took 5 ms."), ("a2", "took 7 ms.")],
        ["2 of 2 runs of a: each took 5–7 ms."],
    ),
    (
        "what disqualifies names its runs",
        FindingKind.KILLED,
        [("a1", "was killed."), ("b2", "was killed.")],
        ["2 of 4 runs (a1, b2): each was killed."],
    ),
    (
        "names and versions are no figures",
        FindingKind.GENERATOR_LATE,
        [("a1", "had nginx 1.2.3."), ("a2", "had nginx 1.2.4."), ("b1", "had tank1."), ("b2", "had tank2.")],
        ["a1 had nginx 1.2.3.", "a2 had nginx 1.2.4.", "b1 had tank1.", "b2 had tank2."],
    ),
]


@pytest.mark.parametrize(("what", "kind", "found", "said"), ALIKE, ids=[row[0] for row in ALIKE])
def test_what_runs_have_in_common_is_said_once(
    what: str, kind: FindingKind, found: list[tuple[str, str]], said: list[str]
) -> None:
    findings = [Finding(kind, f"{run} {text}", (run,)) for run, text in found]
    groups = [RunGroup(" of a", ["a1", "a2"]), RunGroup("", ["a1", "a2", "b1", "b2"])]
    merged = merge_alike(findings, groups)
    assert [each.text for each in merged] == said, what
    assert [run for each in merged for run in each.runs] == [run for run, _ in found]
