"""The driver `libvirt` on a real libvirt: two clones of one guest, a replay against one, and nothing left."""

import asyncio
import json
import os
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.lab.clones.libvirt import Libvirt, LibvirtSettings
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.errors import LabError
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Room, Step
from tests.support.disks import LABEL, clear, emulated, left_of_tests, need_disks
from tests.support.guests import domain, need_libvirt, virsh
from tests.support.programs import LONGEST_S, Replay, open_to_all

BASE = f"libvirt-test-base-{os.getpid()}"
LOG = '192.0.2.{} - - [10/Oct/2000:13:55:3{} -0700] "GET {} HTTP/1.1" 200 24 "-" "curl/8"\n'


def define(name: str, folder: Path, efi: bool = False) -> None:
    """Defines the guest, with its files in `folder`."""
    xml = folder / "base.xml"
    xml.write_text(domain(name, folder, efi))
    done = virsh("define", str(xml))
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A domain that is shut off; a folder for disks that QEMU's user may read."""
    need_libvirt()
    folder = tmp_path_factory.mktemp("libvirt")
    open_to_all(folder)
    define(BASE, folder)
    yield folder
    ours = [name for name in names() if re.match(rf"plimsoll-\w+{os.getpid()}--", name)]
    for name in (BASE, *ours):  # of tests that failed
        virsh("destroy", name)
        virsh("undefine", name, "--nvram")


def settings(**keys: object) -> LibvirtSettings:
    given = {"driver": "libvirt", "base": BASE, "stop_timeout_s": 60, "start_timeout_s": 300}
    return LibvirtSettings.model_validate(given | keys)


def place(base: Path, name: str) -> Place:
    folder = base / name
    folder.mkdir(mode=0o755)
    return Place(str(folder))


def names() -> set[str]:
    return set(virsh("list", "--all", "--name").stdout.split())


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=LONGEST_S) as reply:  # noqa: S310
        text: str = reply.read().decode()
        return text


def digest(path: Path) -> bytes:
    return path.read_bytes()


def test_two_clones_of_one_base_serve_and_leave_nothing(base: Path, tmp_path: Path, replay: Replay) -> None:
    machine = LocalMachine()
    fast, slow = place(base, "fast"), place(base, "slow")
    stranger = f"plimsoll-vt{os.getpid()}--fastx"
    before = digest(base / "base.qcow2")

    async def run() -> None:
        label = f"plimsoll-vt{os.getpid()}"
        full = await Libvirt.prepare(settings(), f"{label}--fast", fast, machine)
        linked = await Libvirt.prepare(settings(full=False), f"{label}--slow", slow, machine)
        other = await Libvirt.prepare(settings(full=False), stranger, fast, machine)
        runners = {clone: StepRunner(machine) for clone in (full, linked, other)}
        for clone in (full, linked):
            assert await clone.find(machine) == []
        await runners[other].do(other.create())
        for clone, runner in runners.items():
            if clone is not other:
                await runner.do(clone.create())
                await runner.do(clone.reset(restore=False))
                url = clone.target(runner.captured).url
                assert get(url) == "<p>a site on a disk</p>\n"
                assert [get(f"{url}/cgi-bin/add") for _ in range(3)] == ["1\n", "2\n", "3\n"]
        assert {f"{label}--fast", f"{label}--slow"} <= set(virsh("list", "--name").stdout.split())
        assert "full" in full.describe()

        url = full.target(runners[full].captured).url
        log = tmp_path / "access.log"
        log.write_text("".join(LOG.format(i, i, "/" if i % 2 else "/index.html") for i in range(6)))
        done = await asyncio.to_thread(replay, "--target", url, "--speed", "10", str(log))
        assert done.returncode == 0, done.stderr
        summary = json.loads(next((tmp_path / "results").glob("*/summary.json")).read_text())
        assert summary["requests"]["ok"] == 6

        await runners[full].do(full.stop())
        await runners[full].do(full.stop())
        await runners[full].do(full.reset(restore=False))
        assert get(f"{url}/cgi-bin/add") == "4\n", "what was written is there after a start"
        for clone in (full, linked):
            await runners[clone].do(clone.reset(restore=True))
            assert get(f"{clone.target(runners[clone].captured).url}/cgi-bin/add") == "1\n", (
                "as it was created"
            )

        for clone in (full, linked):
            found = await clone.find(machine)
            assert [one.what.split()[1] for one in found] == ["virtual", "folder"]
            for _ in range(2):
                for one in found:
                    await runners[clone].do(one.remove)
            assert await clone.find(machine) == []
            await runners[clone].do(clone.destroy())
        assert stranger in names(), "somebody else's, with nearly the same name"
        assert sorted(path.name for path in Path(fast.folder).iterdir()) == [stranger]
        await runners[other].do(other.destroy())

    asyncio.run(run())
    assert not [name for name in names() if name.startswith(f"plimsoll-vt{os.getpid()}")]
    assert list(Path(fast.folder).iterdir()) == list(Path(slow.folder).iterdir()) == []
    assert digest(base / "base.qcow2") == before, "the base is as it was"


def test_every_half_made_state_is_found_and_removed(base: Path) -> None:
    machine, name = LocalMachine(), f"plimsoll-vh{os.getpid()}--hdd"
    where = place(base, "half")

    async def run() -> None:
        clone = await Libvirt.prepare(settings(source="lease"), name, where, machine)
        steps: list[Step] = [*clone.create(), *clone.reset(restore=False)[:2]]
        for n in range(1, len(steps) + 1):
            await StepRunner(machine).do(steps[:n])
            found = await clone.find(machine)
            assert bool(found) == (not isinstance(steps[n - 1], Room)), steps[n - 1]
            for one in found:
                await StepRunner(machine).do(one.remove)
            assert await clone.find(machine) == []

    asyncio.run(run())
    assert name not in names()
    assert list(Path(where.folder).iterdir()) == []


def test_a_domain_with_our_name_that_is_not_ours_is_left(base: Path) -> None:
    machine, name = LocalMachine(), f"plimsoll-vs{os.getpid()}--hdd"
    where = place(base, "strange")
    xml = base / "strange.xml"
    xml.write_text(
        virsh("dumpxml", BASE).stdout.replace(f"<name>{BASE}", f"<name>{name}").replace("uuid>", "x>")
    )
    assert virsh("define", str(xml)).returncode == 0

    async def run() -> None:
        clone = await Libvirt.prepare(settings(), name, where, machine)
        assert await clone.find(machine) == []
        with pytest.raises(LabError, match="it does not have the lab's mark, so it stays"):
            await StepRunner(machine).do(clone.destroy())

    try:
        asyncio.run(run())
        assert name in names()
    finally:
        virsh("undefine", name)


def test_a_base_that_runs_is_refused_and_its_clone_can_be_looked_for(base: Path) -> None:
    machine, where = LocalMachine(), place(base, "runs")

    async def run() -> None:
        missing = await Libvirt.prepare(settings(base="nobody"), "plimsoll-vr--hdd", where, machine)
        assert await missing.find(machine) == []
        with pytest.raises(LabError, match=r"cannot clone nobody: .*failed to get domain 'nobody'"):
            missing.create()
        virsh("start", BASE)
        runs = await Libvirt.prepare(settings(), "plimsoll-vr--hdd", where, machine)
        with pytest.raises(LabError, match="it is running, and must be shut off: virsh shutdown"):
            runs.create()

    try:
        asyncio.run(run())
    finally:
        virsh("destroy", BASE)


@pytest.mark.slow
def test_a_clone_of_a_guest_with_uefi_has_its_own_variables(base: Path) -> None:
    machine, where, name = LocalMachine(), place(base, "uefi"), f"plimsoll-ve{os.getpid()}--hdd"
    folder = base / "uefi-base"
    folder.mkdir(mode=0o755)
    define(f"{BASE}-efi", folder, efi=True)

    async def run() -> None:
        for ran in (False, True):  # a base that never ran has none to copy
            clone = await Libvirt.prepare(settings(base=f"{BASE}-efi"), name, where, machine)
            runner = StepRunner(machine)
            try:
                await runner.do(clone.create())
                assert (Path(where.folder, name) / "nvram.fd").exists() == ran
                await runner.do(clone.reset(restore=False))
                assert get(clone.target(runner.captured).url) == "<p>a site on a disk</p>\n"
                assert (Path(where.folder, name) / "nvram.fd").exists()
            finally:
                await runner.do(clone.destroy())
            assert await clone.find(machine) == []
            virsh("start", f"{BASE}-efi")
            virsh("destroy", f"{BASE}-efi")

    try:
        asyncio.run(run())
    finally:
        virsh("undefine", f"{BASE}-efi", "--nvram")
    assert list(Path(where.folder).iterdir()) == []


@pytest.mark.slow
def test_a_clone_on_an_emulated_disk_is_under_its_limits(base: Path) -> None:
    need_disks("ext4")
    machine, disk = LocalMachine(), emulated("ext4", base / "work", "512M", bytes_per_s="20M")
    name = LABEL.of("ext4")

    async def run() -> None:
        runner = StepRunner(machine)
        clone = await Libvirt.prepare(settings(), name, disk.place(), machine)
        try:
            await runner.do([*disk.create(), *clone.create(), *disk.limit(), *clone.reset(restore=False)])
            assert get(clone.target(runner.captured).url) == "<p>a site on a disk</p>\n"
            pid = Path(f"/run/libvirt/qemu/{name}.pid").read_text().strip()
            members = Path(runner.captured["disk_group"], "cgroup.procs").read_text().split()
            assert pid in members
            await runner.do([*clone.reset(restore=True), *clone.stop()])
        finally:
            removed = await clear(machine, clone.find, disk.find)
        assert [line.split()[1] for line in removed[:2]] == ["virtual", "folder"]
        assert await clone.find(machine) == await disk.find(machine) == []

    asyncio.run(run())
    assert left_of_tests(base / "work") == []
