"""What an experiment's folder remembers: who carries it out, failures, tries, pauses."""

import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment import folder
from plimsoll.lab.experiment.folder import ExperimentFolder, Journal
from plimsoll.lab.experiment.labfile import Limits

_HOLDER = """
import sys, time
from pathlib import Path
from plimsoll.lab.experiment.folder import Journal
with Journal(Path(sys.argv[1])).lock():
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_journal_is_held_as_long_as_its_holder_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    assert not journal.is_locked
    with subprocess.Popen([sys.executable, "-c", _HOLDER, journal.path], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        assert journal.is_locked
        journal.note("begun")  # what is held can still be written
        monkeypatch.setattr(folder, "_LOOK_S", 0.1)
        with pytest.raises(LabError, match="another process is running this experiment"), journal.lock():
            pass
        process.kill()
    assert not journal.is_locked
    with journal.lock():
        assert Journal(journal.path).is_locked


def test_looking_whether_it_is_held_keeps_nobody_from_holding_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.note("begun")
    looked = [journal.is_locked for _ in range(3)]
    with journal.lock():
        assert looked == [False, False, False]


def test_the_output_of_a_failed_run_is_that_of_its_last_try(tmp_path: Path) -> None:
    folder = ExperimentFolder(tmp_path)
    folder.journal.note("run begun", run="one")
    assert folder.output("one") == tmp_path / "commands.jsonl"  # it came to no scenario
    attempt = folder.attempt("one")
    (attempt / "output.txt").touch()
    folder.journal.note("attempt", run="one", attempt=attempt.name)
    folder.journal.note("run begun", run="two")
    assert folder.output("one") == attempt / "output.txt"
    assert folder.journal.tries("one") == 1
    folder.journal.note("run begun", run="one")
    assert folder.output("one") == tmp_path / "commands.jsonl"  # the first try's is not the second's
    assert folder.journal.tries("one") == 2


def test_failures_count_in_a_row_and_for_each_backend(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    for what, backend in [
        ("run failed", "a"),
        ("run failed", "a"),
        ("run finished", "b"),
        ("run failed", "b"),
    ]:
        journal.note(what, backend=backend)
    assert (journal.failures("a"), journal.failures("b"), journal.failures("c")) == (2, 1, 0)
    journal.note("run finished", backend="a")
    assert journal.failures("a") == 0


def test_failures_count_by_scenario_on_each_backend_and_apart_from_the_backend_s_own(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.note("run failed", backend="a", scenario=None)
    journal.note("run failed", backend="a", scenario="upgrade")
    journal.note("run finished", backend="a", scenario="replay")
    journal.note("run failed", backend="a", scenario="upgrade")
    journal.note("run failed", backend="b", scenario="upgrade")
    assert journal.failures("a", "upgrade") == 2, "the other scenario's success changes nothing"
    assert journal.failures("a", "replay") == 0
    assert journal.failures("a") == 0, "it stood since, or no scenario would have begun"
    assert journal.failures("b", "upgrade") == 1
    journal.note("run finished", backend="a", scenario="upgrade")
    assert journal.failures("a", "upgrade") == 0


def test_what_was_set_aside_can_be_tried_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.note("run failed", backend="a", scenario="upgrade")
    journal.note("set aside", backend="a", scenario="upgrade", why="no mirror")
    journal.note("set aside", backend="b", scenario=None, why="no disk")
    assert journal.set_aside == {"upgrade on a": "no mirror", "b": "no disk"}
    journal.try_again()
    assert journal.set_aside == {}
    assert journal.failures("a", "upgrade") == 0
    journal.note("set aside", backend="b", scenario=None, why="still no disk")
    assert journal.set_aside == {"b": "still no disk"}


def test_a_journal_whose_last_line_was_cut_off_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.note("begun")
    journal.note("set aside", backend="a", why="it broke")
    with journal.path.open("ab") as file:
        file.write(b'{"what": "ended"')
    assert journal.set_aside == {"a": "it broke"}
    assert not journal.has_ended
    journal.note("run failed", backend="a")
    assert journal.failures("a") == 1


PAUSES = [
    ("the first is as the key says, and each is twice as long", {"retry_s": 10}, [10, 20, 40, 80]),
    ("it is bounded", {"retry_s": 200}, [200, 400, 600, 600]),
    ("a longer one stays", {"retry_s": 3000}, [3000, 3000, 3000, 3000]),
    ("none is none", {"retry_s": 0}, [0, 0, 0, 0]),
]


@pytest.mark.parametrize(("limits", "expected"), [row[1:] for row in PAUSES], ids=[row[0] for row in PAUSES])
def test_the_wait_between_tries_grows(limits: dict[str, float], expected: list[float]) -> None:
    assert [Limits.model_validate(limits).pause_s(failures) for failures in (1, 2, 3, 4)] == expected
