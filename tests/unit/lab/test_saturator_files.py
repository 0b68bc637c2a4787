"""Files that saturators make: each its own, and found by name after a kill."""

import asyncio
import subprocess
import sys
from pathlib import Path

from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.saturators import fio
from plimsoll.lab.saturators.fio import Fio
from plimsoll.lab.steps.runner import StepRunner
from tests.support.programs import ROOT
from tests.support.scripted import ScriptedMachine

PACE = (sys.executable, "-m", "plimsoll.lab.saturators.copier")


def test_pace_follows_no_symbolic_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "link").symlink_to(victim)
    module = [*PACE, f"--to={tmp_path}/link", "--", "printf", "abc"]
    done = subprocess.run(module, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode != 0
    assert victim.read_text() == "precious"


def test_pace_writes_a_file_of_its_own_each_time(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "file").hardlink_to(victim)
    for text in ("abc", "de"):
        module = [*PACE, f"--to={tmp_path}/file", "--", "printf", text]
        subprocess.run(module, check=True, capture_output=True, timeout=60, cwd=ROOT)
        assert (tmp_path / "file").read_text() == text
    assert victim.read_text() == "precious"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_what_a_killed_fio_left_is_found_and_removed(tmp_path: Path) -> None:
    settings = Fio(kind="fio", folder=str(tmp_path), jobs=3)
    for name in ("plimsoll-nightly.0", "plimsoll-nightly.2", "plimsoll-nightly.9", "plimsoll-nightly2.0"):
        (tmp_path / name).write_text("")

    async def cleared() -> list[str]:
        machine = LocalMachine()
        found = await fio.FIO.find(machine, settings, "nightly", "ssd")
        for one in found * 2:  # twice does no harm
            await StepRunner(machine).do(one.remove)
        assert await fio.FIO.find(machine, settings, "nightly", "ssd") == []
        await machine.close()
        return [one.what for one in found]

    assert asyncio.run(cleared()) == [f"{tmp_path}/plimsoll-nightly.0, {tmp_path}/plimsoll-nightly.2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plimsoll-nightly.9", "plimsoll-nightly2.0"]


def test_fio_of_a_clone_whose_folder_nobody_knows_left_nothing_to_find() -> None:
    machine = ScriptedMachine(lambda command: (0, "/x\n", ""))
    assert asyncio.run(fio.FIO.find(machine, Fio(kind="fio"), "nightly", "ssd")) == []
