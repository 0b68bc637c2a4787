"""The site in containers on disks of files, for real: cloned, changed, brought back, gone."""

import contextlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from plimsoll.lab.clones.compose import Compose, ComposeSettings
from plimsoll.lab.clones.golden import Golden, SiteSettings
from plimsoll.lab.disks.disk import Disk
from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Command, Step
from tests.support.disks import LABEL, clear, cut_off, emulated, first, need_disks, run
from tests.support.programs import ROOT
from tests.support.site import Site, left_behind, need_docker
from tests.support.site import run as output_of


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """The site that is copied; or the folder that PLIMSOLL_GOLDEN names, to write tests."""
    need_docker()
    data = os.environ.get("PLIMSOLL_GOLDEN") or str(request.getfixturevalue("filled").folder)
    return Golden(SiteSettings(data=data), "/var/lib/plimsoll", str(ROOT))


def clone_on(disk: Disk, filesystem: str, golden: Golden) -> Compose:
    settings = ComposeSettings(driver="compose", buffer_pool="64M", php_children=2)
    return Compose(settings, LABEL.of(filesystem), disk.place(), golden)


def site_of(clone: Compose, filesystem: str, runner: StepRunner) -> Site:
    folder = Path(clone.describe()["folder"])
    return Site(LABEL.of(filesystem), clone.target(runner.captured).url, folder)


def changed(site: Site) -> tuple[list[list[str]], bool]:
    """The mark in the database, and whether there is one among the files."""
    rows = site.sql("SELECT option_value FROM wp_options WHERE option_name = 'lab_was_here'")
    return rows, (site.folder / "wordpress" / "lab-was-here.txt").exists()


@pytest.mark.parametrize(
    "filesystem", [*(pytest.param(one, marks=pytest.mark.slow) for one in ("ext4", "btrfs")), "zfs"]
)
def test_a_clone_is_brought_back_and_leaves_nothing(filesystem: str, golden: Golden, work: Path) -> None:
    need_disks(filesystem)
    disk = emulated(filesystem, work, "4G", bytes_per_s="100M")
    clone = clone_on(disk, filesystem, golden)

    async def life(machine: LocalMachine) -> None:
        runner = StepRunner(machine)
        await runner.do([*disk.create(), *clone.create(), *disk.limit()])
        assert left_behind(LABEL.of(filesystem)) == [], "made, not started"
        await runner.do(clone.reset(restore=False))
        site = site_of(clone, filesystem, runner)
        assert site.browser().ask("/").status == 200
        assert outside(site.name, runner.captured["disk_group"]) == [], "all of it is under the disk's limits"
        site.sql("INSERT INTO wp_options (option_name, option_value) VALUES ('lab_was_here', 'yes')")
        (site.folder / "wordpress" / "lab-was-here.txt").touch()
        assert changed(site) == ([["yes"]], True)

        await runner.do(clone.reset(restore=True))
        site = site_of(clone, filesystem, runner)
        assert changed(site) == ([], False), "as it was when it was cloned"
        assert site.browser().ask("/").status == 200

        if filesystem == "ext4":  # the lab dies in the middle
            (site.folder / "wordpress" / "lab-was-here.txt").touch()
            await cut_off(clone.reset(restore=False), f"{site.name}-php", runner)
            assert (site.folder / "wordpress" / "lab-was-here.txt").exists(), "it was not brought back"
            await clear(machine, clone.find, disk.find)
        else:
            await runner.do([*clone.stop(), *clone.stop(), *clone.destroy()])
            assert await clone.find(machine) == []
            await runner.do(disk.destroy())
        assert left_behind(site.name) == []

    run(life)


def outside(site: str, group: str) -> list[str]:
    """Processes of the site that are not members of the group: those of its containers' namespaces."""
    members = (Path(group) / "cgroup.procs").read_text().split()
    containers = output_of("docker", "ps", "-q", "--filter", f"label=plimsoll.site={site}").stdout.split()
    inits = output_of("docker", "inspect", "-f", "{{.State.Pid}}", *containers).stdout.split()
    assert len(inits) == len(containers) >= 6
    namespaces = {Path(f"/proc/{init}/ns/pid").readlink() for init in inits}
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if (process / "ns" / "pid").readlink() in namespaces and process.name not in members:
                found.append((process / "comm").read_text())
    return found


@pytest.mark.parametrize(
    ("filesystem", "parts"),
    [
        ("ext4", {}),
        pytest.param("btrfs", {}, marks=pytest.mark.slow),
        pytest.param("zfs", {}, marks=pytest.mark.slow),
        pytest.param("zfs", {"@database": {"recordsize": "16384"}, "@web": {}}, marks=pytest.mark.slow),
    ],
    ids=["ext4", "btrfs", "zfs", "zfs with datasets for parts"],
)
def test_cut_off_after_any_step_nothing_is_left(
    filesystem: str, parts: dict[str, dict[str, str]], work: Path, tmp_path: Path
) -> None:
    need_docker()
    need_disks(filesystem)
    small = tmp_path / "small"
    (small / "mysql").mkdir(parents=True)
    (small / "site.json").write_text("{}")
    golden = Golden(SiteSettings(data=str(small)), str(work), str(ROOT))
    disk = emulated(filesystem, work)
    place = replace(disk.place(), cold=())  # a pool that is exported is a matter of disks
    clone = Compose(ComposeSettings(driver="compose"), LABEL.of(filesystem), place, golden, parts)
    steps = [step for step in [*clone.create(), *clone.reset(restore=True)] if _is_of_data(step)]

    async def cut_offs(machine: LocalMachine) -> None:
        await StepRunner(machine).do(disk.create())
        for count in range(len(steps) + 1):
            await first(machine, steps, count)
            found = await clone.find(machine)
            await clear(machine, clone.find)
            assert await clone.find(machine) == []
            for one in found:
                await StepRunner(machine).do(one.remove)  # once more does no harm
            there = {path.name for path in Path(disk.place().folder).iterdir()}
            assert there <= {"lost+found"}, f"cut off after {count} steps: {steps[count - 1].says}"
        await clear(machine, disk.find)

    run(cut_offs)


def _is_of_data(step: Step) -> bool:
    """Whether it changes data; there is no site in this folder that could be started."""
    programs = {"mkdir", "cp", "btrfs", "zfs", "mountpoint", "sh"}
    return isinstance(step, Command) and step.words[0] in programs and "docker" not in " ".join(step.words)


def test_a_site_that_runs_is_not_copied(golden: Golden, work: Path) -> None:
    """What MariaDB has open would be no database in the copy."""
    busy = clone_on(emulated("ext4", work), "ext4", golden).create()[0]

    async def life(machine: LocalMachine) -> None:
        await StepRunner(machine).do([busy])
        label = ["--label", f"plimsoll.backend={golden.folder}", "--network", "none"]
        started = await machine.run(
            ["docker", "run", "-d", "--rm", *label, "--entrypoint", "sleep", "plimsoll-site", "600"]
        )
        try:
            with pytest.raises(MachineError, match="make site-down KEEP=1"):
                await StepRunner(machine).do([busy])
        finally:
            await machine.run(["docker", "rm", "-f", started.out.strip()])

    run(life)
