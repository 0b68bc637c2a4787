"""The fsync probe on a real file system that is frozen, and over SSH: no second of a stall is lost."""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.common.ssh import Access
from plimsoll.lab.machine import LocalMachine, Machine, SshMachine
from plimsoll.lab.observers import ObserverSettings
from plimsoll.lab.observers.fsync import FsyncProbe, ProbeFile, with_probe
from plimsoll.lab.observers.sampler import HostCsv, prepare_sampler
from plimsoll.rundir.hostfile import read_samples
from tests.support.programs import awaited, need
from tests.support.servers import Sshd

NAME = f"plimsoll-fsync-{os.getpid()}--ext4"


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    for program in ("mkfs.ext4", "fsfreeze", "mount"):
        need(program)
    image, folder = tmp_path / "image", tmp_path / "volume"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)  # noqa: S607
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)  # noqa: S607
    yield folder
    subprocess.run(["fsfreeze", "--unfreeze", folder], check=False, capture_output=True)  # noqa: S607
    subprocess.run(["umount", folder], check=True)  # noqa: S607


def _observed(machine: Machine, folder: Path, out: Path) -> tuple[dict[str, list[float]], list[str]]:
    """The samples of a host whose file system is frozen until two samples say so, and what was said."""
    said = list[str]()

    async def run() -> None:
        stop, settings = asyncio.Event(), ObserverSettings(observe=("fsync",))
        settings = with_probe(settings, FsyncProbe(machine, ProbeFile(str(folder), NAME)))
        sampler = await prepare_sampler(machine, settings, said.append)
        with HostCsv(out, sampler.columns) as file:
            running = asyncio.create_task(sampler.run(file, time.monotonic_ns(), stop))
            while not [line for line in out.read_text().splitlines()[1:] if "," in line.rstrip(",")]:
                await asyncio.sleep(0.05)
            subprocess.run(["fsfreeze", "--freeze", folder], check=True)  # noqa: S607
            await awaited("two samples wait", lambda: sum(total > 1000 for total in _totals(out)) >= 2)
            subprocess.run(["fsfreeze", "--unfreeze", folder], check=True)  # noqa: S607
            await awaited("it is over", lambda: _totals(out)[-1] < max(_totals(out)))
            stop.set()
            await running
        await machine.close()

    asyncio.run(run())
    columns = read_samples(out).columns
    return {name: values.tolist() for name, values in columns.items()}, said


def _totals(out: Path) -> list[float]:
    """What fsync took in each sample that is whole."""
    header, *rows = out.read_text().rpartition("\n")[0].splitlines()
    column = header.split(",").index("fsync.total_ms")
    return [float(row.split(",")[column] or 0) for row in rows]


def _sees_the_stall(columns: dict[str, list[float]], said: list[str]) -> None:
    totals = columns["fsync.total_ms"]
    waiting = [total for total in totals if total > 1000]
    assert len(waiting) >= 2, totals
    assert waiting == sorted(waiting), "longer in each second, until it ends"
    assert totals[-1] < waiting[-1], "and then it is over"
    assert said == []


def test_a_frozen_file_system_is_seen_in_each_second(volume: Path, tmp_path: Path) -> None:
    columns, said = _observed(LocalMachine(), volume, tmp_path / "host.csv")
    _sees_the_stall(columns, said)
    assert not list(volume.glob("plimsoll-*"))


def test_over_ssh_too_and_the_file_is_removed(volume: Path, sshd: Sshd, tmp_path: Path) -> None:
    user = sshd.remote.partition("@")[0]
    access = Access("127.0.0.1", user, sshd.port, sshd.key, sshd.known_hosts)
    columns, said = _observed(SshMachine("far", access), volume, tmp_path / "host.csv")
    _sees_the_stall(columns, said)
    assert not list(volume.glob("plimsoll-*"))
