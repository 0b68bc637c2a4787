"""Tuning of a real disk, which the program that tuned it does not live to put back."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.tuning import JournalPlace, put_back
from plimsoll.lab.tuning.keys import SCHEDULERS_OWN
from tests.support.programs import LONGEST_S, ROOT, need

APPLY = """
import asyncio, json, os, signal, sys
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.tuning import JournalPlace, Tuning, apply_tuning

wanted = Tuning.model_validate({"disks": {sys.argv[1]: json.loads(sys.argv[3])}})
asyncio.run(apply_tuning(LocalMachine(), wanted, JournalPlace(sys.argv[2])))
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


def _killed(device: str, journal: JournalPlace, wish: dict[str, object]) -> None:
    """Tune `device` as `wish` says, by a program that dies before it can put anything back."""
    ran = subprocess.run(
        [sys.executable, "-c", APPLY, device, journal.label, json.dumps(wish)],
        cwd=ROOT,
        timeout=LONGEST_S,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL


def test_a_disk_is_as_it_was_after_the_program_was_killed(loop: str) -> None:
    before, journal = _queue(loop), JournalPlace(f"plimsoll-tuning--{os.getpid()}")
    if "mq-deadline" not in before["scheduler"]:
        pytest.skip("this kernel has no mq-deadline")
    wish = {"scheduler": "mq-deadline", "nr_requests": 64, "read_ahead_kb": 2048, "fifo_batch": 32}
    _killed(loop, journal, wish)
    tuned = _queue(loop)
    assert "[mq-deadline]" in tuned["scheduler"]
    assert (tuned["nr_requests"], tuned["read_ahead_kb"]) == ("64", "2048")
    assert _own(loop)["fifo_batch"] == "32"
    asyncio.run(put_back(LocalMachine(), journal))
    assert _queue(loop) == before
    assert not Path(journal.path).exists()


def _own(device: str) -> dict[str, str]:
    folder = Path("/sys/block") / device / "queue" / "iosched"
    return {name: (folder / name).read_text().strip() for name in SCHEDULERS_OWN}


KILLED_ON = [
    ("its own settings", {"fifo_batch": 32, "front_merges": 0, "read_expire": 100, "write_expire": 9000}),
    ("another scheduler, which takes them with it", {"scheduler": "none"}),
]


@pytest.mark.parametrize(("what", "wish"), KILLED_ON, ids=[row[0] for row in KILLED_ON])
def test_a_scheduler_has_its_own_settings_back(loop: str, what: str, wish: dict[str, object]) -> None:
    queue, journal = Path("/sys/block") / loop / "queue", JournalPlace(f"plimsoll-tuning--{os.getpid()}")
    if "mq-deadline" not in _queue(loop)["scheduler"]:
        pytest.skip("this kernel has no mq-deadline")
    (queue / "scheduler").write_text("mq-deadline")
    (queue / "iosched" / "fifo_batch").write_text("7")
    before = _own(loop)
    _killed(loop, journal, wish)
    assert not (queue / "iosched" / "fifo_batch").exists() or _own(loop) != before, what
    asyncio.run(put_back(LocalMachine(), journal))
    assert (before["fifo_batch"], _own(loop)) == ("7", before)
    assert "[mq-deadline]" in _queue(loop)["scheduler"]
