"""What a comparison doubts: clocks, order, numbers, control experiments; it says so, or decides nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.comparable import REQUESTS, instant, judged, reasons, runs_of, write_both
from tests.support.rundir import change, records


def _same_clock(folder: Path) -> None:
    for path in (folder / "runs").iterdir():
        change(path, started_at=instant(0), ended_at=None)


def _no_clock(folder: Path) -> None:
    change(runs_of(folder)[0], started_at=None)


def _always_first(folder: Path) -> None:
    for backend, place in (("sata", 0), ("nvme", 1)):
        for repeat, path in enumerate(runs_of(folder, backend)):
            change(
                path, started_at=instant(4 * repeat + 2 * place), ended_at=instant(4 * repeat + 2 * place + 1)
            )


def _one_after_the_other(folder: Path) -> None:
    for backend, place in (("sata", 0), ("nvme", 100)):
        for repeat, path in enumerate(runs_of(folder, backend)):
            change(path, started_at=instant(place + 2 * repeat), ended_at=instant(place + 2 * repeat + 1))


def _numbers(folder: Path) -> None:
    for number, path in enumerate(sorted((folder / "runs").iterdir())):
        change(path, experiment={"name": "move", "run": 8 - number, "of": 8})


def _download(folder: Path, tail: float, called: str = "download") -> None:
    load = {"digest": "d", "settings": {"scenario": "download"}}
    write_both(folder, scenario=called, first=100, load=load)
    for path in runs_of(folder):
        if called in path.name:
            data = records(REQUESTS, total_us=int(1000 * tail))
            (path / "requests.npy").write_bytes((path / "requests.npy").read_bytes()[:512] + data.tobytes())


def _emulated(folder: Path) -> None:
    for path in runs_of(folder):
        change(path, storage={"emulated": "like a rotating disk", "facts": {"kernel": "6.2"}})


DOUBTFUL: list[tuple[str, Callable[[Path], object], str]] = [
    ("all began at once", _same_clock, "say that they began at once, so their order is not known"),
    ("one does not say when", _no_clock, "do not all say when they began"),
    ("the baseline always first", _always_first, "baseline came first in every repeat"),
    ("one side after the other", _one_after_the_other, "All runs of the baseline came first"),
    (
        "two at the same time",
        lambda p: change(runs_of(p)[0], ended_at=instant(9), target={"url": "http://another"}),
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
        "The load came from different machines",
    ),
    (
        "another version of it",
        lambda p: change(runs_of(p)[0], program={"name": "replay", "version": "9"}),
        "not of one load: program_version (0.1.0 / 9) differ",
    ),
    (
        "runs that are still to come",
        lambda p: change(runs_of(p)[0], experiment={"name": "m", "run": 1, "of": 40}),
        "of its 40 runs. To look early",
    ),
]
REPLAY_GATES = "gates:\n- {scenario: replay, phase: during, at_most_ratio: 1.1}\n"


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
