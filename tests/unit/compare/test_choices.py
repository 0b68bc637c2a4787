"""What is chosen after results are known, runs, gates or candidates, is said and weighs in the verdict."""

import json
import os
import shutil
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from plimsoll.analysis.compare.looks import LOOKS_FILE, DecisionLook, remember_look
from plimsoll.cli import main
from tests.support.comparable import BACKENDS, finding_names, gated, runs_of, write_both, write_gates
from tests.support.rundir import change

Words = tuple[str | Path, ...]
_REPEATS = 6


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of two backends, the candidate a third faster; each run says which of how many it is."""
    folder = write_both(tmp_path_factory.mktemp("base"), 0.67, _REPEATS)
    for number, run in enumerate(sorted((folder / "runs").iterdir()), 1):
        change(run, experiment={"name": "move", "run": number, "of": 2 * _REPEATS})
    return folder


def ask(*words: str | Path) -> dict[str, Any]:
    """Compare by the command; return its JSON."""
    result = CliRunner().invoke(main, ["compare", *map(str, words), "--json"])
    assert result.exit_code in (0, 1, 3), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def both(folder: Path) -> Words:
    return (folder, *BACKENDS)


def limits(folder: Path, ratio: float = 1.1) -> Words:
    return ("--gates", write_gates(folder, gated(f"metric: p99, at_most_ratio: {ratio}")))


def leave_out(folder: Path, *numbers: int) -> Path:
    for number in numbers:
        shutil.rmtree(next((folder / "runs").glob(f"{number:04d}-*")))
    return folder


def copy(folder: Path, *numbers: int) -> Path:
    """Copy all runs but those of these numbers to another folder, and return that."""
    place = folder / "a copy"
    for run in (folder / "runs").iterdir():
        if int(run.name[:4]) not in numbers:
            shutil.copytree(run, place / run.name)
    return place


def split(folder: Path) -> Words:
    """Copy the runs of each side to a folder of its own."""
    places = [folder / "sides" / backend for backend in BACKENDS[1::2]]
    for backend, place in zip(BACKENDS[1::2], places, strict=True):
        for run in runs_of(folder, backend):
            shutil.copytree(run, place / run.name)
    return tuple(places)


def look_early(folder: Path) -> Words:
    """Decide on a copy of the first four repeats, then on all six."""
    ask(*both(copy(folder, 9, 10, 11, 12)))
    return both(folder)


def try_gates(folder: Path, *ratios: float) -> Words:
    for ratio in ratios:
        ask(*both(folder), *limits(folder, ratio))
    return (*both(folder), *limits(folder))


def try_another_candidate(folder: Path) -> Words:
    more = write_both(folder / "more", 0.67, _REPEATS, first=20, names=("old", "xfs"))
    for run in runs_of(more, "xfs"):
        shutil.copytree(run, folder / "runs" / run.name)
    ask(folder, "--baseline", "sata", "--candidate", "xfs")
    return both(folder)


class Choice(NamedTuple):
    """What is chosen, and how, which returns the words of the command; the only finding, and what it says.

    `first` is done to the experiment before, in both cases.
    """

    what: str
    choose: Callable[[Path], Words]
    kind: str
    says: str
    verdict: str = "PASS"
    first: Callable[[Path], Path] = lambda folder: folder


LACKS = "the experiment move has 10 of its 12 runs here; it lacks 3, 4."
CHOICES = [
    Choice("two runs left out", lambda f: both(leave_out(f, 3, 4)), "unfinished", LACKS),
    Choice("of the folder of runs", lambda f: both(leave_out(f, 3, 4) / "runs"), "unfinished", LACKS),
    Choice("of a copy of the runs", lambda f: both(copy(f, 3, 4)), "unfinished", LACKS),
    Choice("of a folder a side", lambda f: split(leave_out(f, 3, 4)), "unfinished", LACKS),
    Choice(
        "one run of a folder a side",
        lambda f: split(leave_out(f, 3)),
        "unequal-runs",
        "The experiment has 6 runs of replay on sata and 5 on nvme",
        "INCONCLUSIVE",
    ),
    Choice(
        "runs are added after a look at a copy of the first",
        look_early,
        "another-look",
        "This is look 2 at these runs",
    ),
    Choice(
        "a run that does not please is left out of a copy",
        lambda f: (ask(*both(f)), both(copy(f, 3, 4)))[1],
        "another-look",
        "This is look 2 at these runs",
        "INCONCLUSIVE",
        lambda f: leave_out(f, 11, 12),
    ),
    Choice(
        "gates are written after a look",
        lambda f: try_gates(f, 1.5),
        "other-gates",
        "judged by 2 sets of gates, with these, and these were written after that",
    ),
    Choice(
        "so many gates are tried that one would pass by chance",
        lambda f: try_gates(f, 1.2, 1.3, 1.4),
        "other-gates",
        "each may make 1/4 of the errors that are allowed.",
        "INCONCLUSIVE",
        lambda f: leave_out(f, 9, 10, 11, 12),
    ),
    Choice(
        "one of two candidates",
        try_another_candidate,
        "other-candidates",
        "2 candidates, with this one, and the level of a verdict is its own. The PASS holds for the one that",
    ),
]


@pytest.mark.parametrize("choice", CHOICES, ids=[choice.what for choice in CHOICES])
def test_a_choice_is_said(
    base: Path, tmp_path: Path, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the choice the verdict is PASS; the choice, and only it, changes findings and verdict."""
    folders = [choice.first(shutil.copytree(base, tmp_path / name)) for name in ("honest", "chosen")]
    gates = limits(folders[0]) if "gates" in choice.what else ()
    honest = ask(*both(folders[0]), *gates)
    assert honest["verdict"] == "PASS"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    found = ask(*choice.choose(folders[1]))
    more = finding_names(found) - finding_names(honest)
    assert choice.kind in more
    assert more <= {choice.kind, "unfinished"}  # a run that is left out is missing, too
    assert choice.says in " ".join(each["text"] for each in found["findings"])
    assert found["verdict"] == choice.verdict


LENIENT = [
    ("10 % more", "metric: p99, at_most_ratio: 1.1", False),
    ("twice as long", "metric: p99, at_most_ratio: 2", False),
    ("110 for 110 %", "metric: p99, at_most_ratio: 110", True),
    ("5 % of failures", "metric: error share, at_most_share: 0.05", False),
    ("half of all requests", "metric: error share, at_most_share: 0.5", True),
]


@pytest.mark.parametrize(("what", "gate", "is_lenient"), LENIENT, ids=[row[0] for row in LENIENT])
def test_a_gate_that_keeps_hardly_anything_out_is_named(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, gate: str, is_lenient: bool
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = ask(*both(shutil.copytree(base, tmp_path / "x")), "--gates", write_gates(tmp_path, gated(gate)))
    assert ("lenient-gate" in finding_names(found)) is is_lenient, what


def test_when_the_gates_were_written_is_printed(base: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(base, tmp_path / "it")
    gates = limits(folder)
    for instant, says in (
        (0.0, "before the first of these runs began"),
        (4e9, "after the last of these runs had"),
    ):
        os.utime(gates[1], (instant, instant))
        page = tmp_path / "page.html"
        text = (
            CliRunner().invoke(main, ["compare", *map(str, (*both(folder), *gates, "--html", page))]).stdout
        )
        assert says in " ".join(text.split())
        assert says in page.read_text(encoding="utf-8")
        assert "Looks known here: none before this one." in page.read_text(encoding="utf-8")
        assert ask(*both(folder), *gates)["gates_written"]["after_runs"] is (instant > 0)
    assert ask(*both(folder))["gates_written"] is None
    assert ask(*both(folder), *gates)["looks_known_here"]


def test_what_is_remembered_is_the_users_own(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(base, tmp_path / "it")
    for variable, home in (("XDG_STATE_HOME", "state"), ("HOME", "home/.local/state")):
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.setenv(variable, str(tmp_path / home.partition("/")[0]))
        ask(*both(folder))
        file = tmp_path / home / "plimsoll" / LOOKS_FILE
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        monkeypatch.setenv("XDG_STATE_HOME", "relative, which does not count")


def test_a_memory_that_cannot_be_used_is_said(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(base, tmp_path / "it")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    found = ask(*both(folder))
    assert found["verdict"] == "PASS"
    (said,) = (each["text"] for each in found["findings"] if each["name"] == "look-not-remembered")
    assert said.startswith("This look was not remembered: ") and str(tmp_path / "file") in said


def test_looks_that_are_taken_at_once_are_all_remembered(tmp_path: Path) -> None:
    looks = [DecisionLook(frozenset({"a"}), frozenset({f"x{n}"}), "gates") for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda look: remember_look(look, tmp_path), looks))
    known, problems = remember_look(looks[0], tmp_path)
    assert (known.candidates, problems) == (24, [])
