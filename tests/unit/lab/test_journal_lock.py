"""Whether an experiment is being carried out is seen from its journal, also after a kill -9."""

import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment import folder
from plimsoll.lab.experiment.folder import ExperimentFolder, Journal

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
