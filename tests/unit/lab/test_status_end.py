"""When an experiment will end: the instant moves evenly, whatever its parts really take."""

from itertools import pairwise
from pathlib import Path

import pytest

from plimsoll.lab.experiment.design import plan_runs
from plimsoll.lab.experiment.folder import make_folder
from plimsoll.lab.experiment.status.watch import StatusReader
from tests.support.scripted import STARTS, ScriptedExperiment, lab_of

LOOK_S = 5.0


@pytest.mark.parametrize(
    ("says", "parts", "most"),
    [
        ("all takes what is guessed", {}, 0.01),
        ("a clone takes three minutes to be made", {"make": 180.0}, 0.03),
        ("a restart takes a minute", {"before": 60.0}, 0.03),
        ("neither clones nor restarts take any time", {"before": 1.0, "make": 1.0}, 0.04),
        ("a run is put away slowly", {"after": 25.0}, 0.03),
        ("the load ends later than planned", {"load": 280.0}, 0.03),
    ],
)
def test_the_end_moves_by_little_from_look_to_look(
    says: str, parts: dict[str, float], most: float, tmp_path: Path
) -> None:
    script = ScriptedExperiment(tmp_path, False, **parts)
    ends = script.ends_seen(LOOK_S)
    whole_s = (script.ended_at - STARTS).total_seconds()
    moves = [abs((b - a).total_seconds()) / whole_s for a, b in pairwise(ends)]
    assert max(moves) <= most, f"{says}: moved by {max(moves):.1%}"
    error = abs((ends[-1] - script.ended_at).total_seconds())
    assert error <= 0.03 * whole_s
    middle = ends[len(ends) // 2]
    assert abs((middle - script.ended_at).total_seconds()) <= 0.15 * whole_s


def test_a_scenario_that_decides_itself_has_no_end_until_one_has_ended(tmp_path: Path) -> None:
    script = ScriptedExperiment(tmp_path, open_end=True, load=300.0)
    looks = script.looks(LOOK_S)
    first = next(i for i, look in enumerate(looks) if look.runs.finished == 1)
    assert {look.ends_at for look in looks[: first - 60]} == {None}
    assert all(look.ends_at is not None for look in looks[first:])


def test_runs_that_were_set_aside_take_no_time(tmp_path: Path) -> None:
    folder = make_folder(lab_of(tmp_path))
    watch = StatusReader(folder, lambda: STARTS)
    with folder.journal.lock():
        folder.journal.note("begun")
        whole = watch.read()
        folder.journal.note("set aside", backend="two", why="it burns")
        less = watch.read()
    assert whole.left_s is not None
    assert less.left_s is not None
    assert less.left_s < 0.6 * whole.left_s
    assert (less.runs.left, less.runs.set_aside) == (4, 4)
    assert less.set_aside == {"two": "it burns"}


def test_a_look_begins_at_a_journal_that_is_there_already(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    folder = make_folder(lab)
    assert StatusReader(folder).read().state == "not begun"
    folder.journal.note("begun")
    folder.journal.note("run begun", run=plan_runs(lab)[0].name, backend="one")
    look = StatusReader(folder).read()
    assert look.state == "stopped"  # killed: nobody holds the journal
    assert look.resume == f"plimsoll run --resume {folder.path}"
    assert look.now is None
    assert look.ends_at is None
    folder.journal.note("ended", finished=0, not_done=8)
    assert StatusReader(folder).read().state == "unfinished"
