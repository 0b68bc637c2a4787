"""Tuning of a real disk, which the program that tuned it does not live to put back."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.machine import LocalMachine
from lab.tuning import JournalPlace, put_back
from tests.support.paths import ROOT
from tests.support.programs import need

APPLY = """
import asyncio, os, signal, sys
from lab.machine import LocalMachine
from lab.tuning import JournalPlace, Tuning, apply

wish = {"scheduler": "mq-deadline", "nr_requests": 64, "read_ahead_kb": 2048}
wanted = Tuning.model_validate({"disks": {sys.argv[1]: wish}})
asyncio.run(apply(LocalMachine(), wanted, JournalPlace(sys.argv[2])))
os.kill(os.getpid(), signal.SIGKILL)
"""
FILES = ("scheduler", "nr_requests", "read_ahead_kb", "wbt_lat_usec")


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """A loop device of our own, by the kernel's name."""
    losetup = need("losetup")
    if os.geteuid() != 0:
        pytest.skip("needs root: make test-lab")
    backing = tmp_path / "disk"
    with backing.open("wb") as file:
        file.truncate(16 << 20)
    made = subprocess.run(
        [losetup, "--find", "--show", str(backing)], capture_output=True, text=True, check=True
    )
    yield Path(made.stdout.strip()).name
    subprocess.run([losetup, "--detach", made.stdout.strip()], check=True)


def _queue(device: str) -> dict[str, str]:
    folder = Path("/sys/block") / device / "queue"
    return {name: (folder / name).read_text().strip() for name in FILES}


def test_a_disk_is_as_it_was_after_the_program_was_killed(loop: str) -> None:
    before, journal = _queue(loop), JournalPlace(f"plimsoll-tuning--{os.getpid()}")
    if "mq-deadline" not in before["scheduler"]:
        pytest.skip("this kernel has no mq-deadline")
    ran = subprocess.run(
        [sys.executable, "-c", APPLY, loop, journal.label], cwd=ROOT, timeout=60, check=False
    )
    assert ran.returncode == -signal.SIGKILL
    tuned = _queue(loop)
    assert "[mq-deadline]" in tuned["scheduler"]
    assert (tuned["nr_requests"], tuned["read_ahead_kb"]) == ("64", "2048")
    asyncio.run(put_back(LocalMachine(), journal))
    assert _queue(loop) == before
    assert not Path(journal.path).exists()
