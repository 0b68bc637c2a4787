"""Real disks of files, for the tests of the lab: what makes them, work on them, and what must not be left."""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lab.clones.golden import containers
from plimsoll.lab.clones.sitedata import SiteData
from plimsoll.lab.disks import make_disk
from plimsoll.lab.disks.disk import Disk
from plimsoll.lab.disks.emulated import EmulatedDisk
from plimsoll.lab.machine import LocalMachine, Machine
from plimsoll.lab.names import Label
from plimsoll.lab.saturators import find_saturator_kind
from plimsoll.lab.saturators.saturator import SaturatorSettings
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Remains, Step
from tests.support.programs import LONGEST_S, eventually, need

LABEL = Label(f"t{os.getpid()}")  # two test sessions on one machine do not meet
PROGRAMS = {
    "ext4": ["mkfs.ext4"],
    "xfs": ["mkfs.xfs"],
    "btrfs": ["mkfs.btrfs", "btrfs"],
    "zfs": ["zpool", "zfs"],
}
FILESYSTEMS = list(PROGRAMS)
BLKIO = Path("/sys/fs/cgroup/blkio")


def slow_but(*each_merge: str) -> list[object]:
    """The rows of all file systems: those that each merge tests, and the others, which are slow."""
    return [one if one in each_merge else pytest.param(one, marks=pytest.mark.slow) for one in FILESYSTEMS]


def need_disks(filesystem: str) -> None:
    """Skips the test where such a disk cannot be made, fails it in the lab's own CI."""
    for program in ["losetup", "lsblk", "findmnt", *PROGRAMS[filesystem]]:
        need(program)
    if os.getuid() != 0:
        pytest.skip("loop devices are root's")


def emulated(filesystem: str, work: Path, size: str = "512M", **limits: Any) -> Disk:
    """A disk of the backend that is called as its file system."""
    settings = EmulatedDisk.model_validate(
        {"kind": "emulated", "filesystem": filesystem, "size_bytes": size, **limits}
    )
    return make_disk(settings, LABEL, filesystem, str(work))


def remove_leftovers(settings: SaturatorSettings, label: str) -> list[str]:
    """Remove what is found of a saturator on this machine, twice, which does no harm; return what it was."""
    kind = find_saturator_kind(settings)

    async def remove() -> list[str]:
        async with here() as machine:
            found = await kind.find(machine, settings, label, "ssd")
            for one in found * 2:
                await StepRunner(machine).do(one.remove)
            assert await kind.find(machine, settings, label, "ssd") == []
            return [one.what for one in found]

    return asyncio.run(remove())


@asynccontextmanager
async def here() -> AsyncIterator[LocalMachine]:
    """This machine."""
    machine = LocalMachine()
    try:
        yield machine
    finally:
        await machine.close()


def run(work: Callable[[LocalMachine], Coroutine[Any, Any, None]]) -> None:
    """Does what is asynchronous on this machine."""

    async def all_of_it() -> None:
        async with here() as machine:
            await work(machine)

    asyncio.run(all_of_it())


Find = Callable[[Machine], Awaitable[list[Remains]]]


async def clear(machine: Machine, *finds: Find) -> list[str]:
    """Removes what is found, by each once, and returns what was."""
    removed = []
    for find in finds:
        for one in await find(machine):
            await StepRunner(machine).do(one.remove)
            removed.append(one.what)
    return removed


def remove_all(work: Path) -> None:
    """Removes what a test that failed left in `work`."""

    async def all_of_it(machine: LocalMachine) -> None:
        for filesystem in FILESYSTEMS:
            disk = emulated(filesystem, work)
            site = SiteData(disk.place(), LABEL.of(filesystem), "/nowhere")
            folder, name = site.folder, LABEL.of(filesystem)
            await clear(
                machine,
                lambda there, name=name, folder=folder: containers(there, name, folder, "x"),  # type: ignore[misc]
                disk.find,
            )

    run(all_of_it)


async def first(machine: Machine, steps: Sequence[Step], count: int) -> None:
    """Carries out the first steps, and forgets all about them."""
    await StepRunner(machine).do(steps[:count])


def left_of_tests(work: Path) -> list[str]:
    """Everything on this machine that bears the tests' label or lies in `work`."""
    loops = _out("losetup", "--list", "--json", "--output", "NAME,MAJ:MIN,BACK-FILE")
    devices = json.loads(loops)["loopdevices"] if loops else []
    free = [one["maj:min"].strip() for one in devices if "plimsoll-" not in (one["back-file"] or "")]
    own = [one for one in devices if str(work) in (one["back-file"] or "")]
    own += [one for one in devices if one["back-file"] in {lower["name"] for lower in own}]
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(work) in line]
    pools = [name for name in _out("zpool", "list", "-H", "-o", "name").split() if LABEL.experiment in name]
    daemons = [line for line in _out("pgrep", "-a", "-x", "zfs-fuse").splitlines() if str(work) in line]
    limits = [line for number in free for line in limits_of(number)]
    files = sorted(str(path) for path in work.rglob("*")) if work.exists() else []
    return [str(one) for one in [*own, *mounts, *pools, *daemons, *limits, *files]]


def limits_of(number: str) -> list[str]:
    """The limits that a device (major:minor) is under, where the machine has cgroup v1."""
    lines = [line for file in BLKIO.glob("*throttle*device") for line in file.read_text().splitlines()]
    return [line for line in lines if line.split()[0] == number]


def _out(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False).stdout
    except FileNotFoundError:
        return ""


# What is there of an experiment on this machine, looked for without the project's own means.


def left_of(name: str) -> list[str]:
    """Every loop device, mount, pool, container, network, control group and process called after `name`."""
    mark = f"plimsoll-{name}--"
    found = []
    for what, command in {
        "loop device": ["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"],
        "mount": ["cat", "/proc/mounts"],
        "pool": ["zpool", "list", "-H", "-o", "name"],
        "container": ["docker", "ps", "-a", "--format", "{{.Names}}"],
        "network": ["docker", "network", "ls", "--format", "{{.Name}}"],
        "process": ["ps", "-eo", "pid,args"],
    }.items():
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        except FileNotFoundError:
            continue
        found += [f"{what}: {line.strip()}" for line in done.stdout.splitlines() if mark in line]
    found += [f"control group: {path}" for path in Path("/sys/fs/cgroup").rglob(f"*{mark}*")]
    return found


def left_in(work: Path) -> list[str]:
    """What lies in the lab's folder, but for the site that is copied."""
    return (
        [path.name for path in work.iterdir() if not path.name.startswith("golden-")] if work.exists() else []
    )


# The lab's steps, carried out in part: whoever did them died.


async def cut_off(steps: list[Step], container: str, runner: StepRunner) -> None:
    """Carry out `steps`, and die as soon as a container of that name is another than it was."""

    def there() -> str:
        return _out("docker", "ps", "-q", "--filter", f"name=^{container}")

    before = there()
    doing = asyncio.create_task(runner.do(steps))

    def runs() -> bool:
        return there() not in ("", before) or doing.done()

    assert await asyncio.to_thread(eventually, runs, 600)
    assert not doing.done(), doing.exception() if doing.done() else ""
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
