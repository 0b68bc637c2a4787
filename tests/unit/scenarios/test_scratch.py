"""k6's folder in the temporary directory: gone at the end, and those of killed runs with the next."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from plimsoll.scenarios.k6.run import scratch_folder
from tests.support.programs import ROOT

HOLDS = """
import sys, time
from plimsoll.scenarios.k6.run import scratch_folder
with scratch_folder() as folder:
    (folder / "profile").mkdir()
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_killed_run_leaves_its_folder_to_the_next_one(temporary: Path) -> None:
    command = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        left = Path(process.stdout.readline().strip())
        with scratch_folder() as ours:
            assert left.is_dir(), "it is at work"
            assert ours.is_dir()
        process.send_signal(signal.SIGKILL)
    assert list(temporary.iterdir()) == [left], "nobody was there to remove it"
    with scratch_folder() as ours:
        assert list(temporary.iterdir()) == [ours]
    assert list(temporary.iterdir()) == []


def test_what_only_looks_like_such_a_folder_stays(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (temporary / "plimsoll-k6-link").symlink_to(elsewhere)
    (temporary / "plimsoll-k6-file").touch()
    with scratch_folder():
        pass
    assert sorted(path.name for path in temporary.iterdir()) == [
        "elsewhere",
        "plimsoll-k6-file",
        "plimsoll-k6-link",
    ]
