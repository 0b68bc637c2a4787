"""Scrubs, resilvers and replications of real pools: they work, are stopped, are killed, and leave nothing."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lab.disks.disk import DataLocation, Disk
from plimsoll.lab.disks.removal import MIRROR
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.saturators import aim_saturator, find_saturator_kind, make_saturator
from plimsoll.lab.saturators.saturator import Runner
from plimsoll.lab.saturators.scrub import MARK
from plimsoll.lab.steps.runner import StepRunner
from tests.support.disks import LABEL, clear, emulated, left_of_tests, need_disks, run
from tests.support.labs import plimsoll, write_lab
from tests.support.programs import awaited, need
from tests.support.saturators import (
    BY,
    LAB,
    NOWHERE,
    SETTINGS,
    fill,
    is_whole_story,
    kill_when,
    snapshots,
    until_bytes,
    working,
)
from tests.support.servers import receiving

FILE_BYTES = 32 << 20
SLOW: dict[str, Any] = {"bytes_per_s": 6_000_000}  # a scan of that file takes some seconds


@pytest.fixture
def second(tmp_path: Path) -> Iterator[str]:
    """Another pool, with a dataset that is somebody's; ZFS runs."""
    name, file = f"second{os.getpid()}", tmp_path / "second.img"
    yield name
    subprocess.run([need("zpool"), "destroy", name], capture_output=True, check=False)
    file.unlink(missing_ok=True)


def make_second(name: str, folder: Path) -> None:
    file = folder / "second.img"
    with file.open("wb") as image:
        image.truncate(512 << 20)
    zfs("pool", "create", "-o", "cachefile=none", "-O", "mountpoint=none", name, str(file))
    zfs("fs", "create", f"{name}/backup")


def zfs(program: str, *words: str) -> str:
    done = subprocess.run([need(f"z{program}"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def scan(pool: str) -> str:
    lines = zfs("pool", "status", pool).splitlines()
    return next(line.strip() for line in lines if line.strip().startswith(("scan:", "scrub:")))


def marked(pool: str) -> str:
    return zfs("fs", "get", "-H", "-o", "value", "-s", "local", MARK, pool)


async def made(machine: LocalMachine, disk: Disk, file_bytes: int = FILE_BYTES) -> tuple[str, DataLocation]:
    """A pool on that disk, as slow as it is to be, and what a clone on it would be aimed at."""
    runner, place = StepRunner(machine), disk.place()
    await runner.do(disk.create())
    fill(Path(place.folder) / "file", file_bytes)
    await runner.do(disk.limit())
    return str(place.pool), DataLocation(place.folder, place.dataset)


def aimed(settings: dict[str, Any], at: DataLocation) -> Any:
    return aim_saturator(SETTINGS.validate_python(settings), at)


def test_a_pool_is_scrubbed_until_it_is_stopped(work: Path) -> None:
    need_disks("zfs")
    disk = emulated("zfs", work, bytes_per_s="16M")
    events: list[dict[str, Any]] = []

    async def life(machine: LocalMachine) -> None:
        pool, at = await made(machine, disk)
        async with working(machine, aimed({"kind": "scrub"}, at), events.append):
            await until_bytes(events, FILE_BYTES * 3 // 2)
            await awaited("a scrub", lambda: "in progress" in scan(pool))
            assert marked(pool).startswith(BY)
        assert "in progress" not in scan(pool)
        assert marked(pool) == ""
        await clear(machine, disk.find)

    run(life)
    is_whole_story(events, "scrub")
    assert left_of_tests(work) == []


def test_a_scrub_of_somebody_else_goes_on(work: Path) -> None:
    need_disks("zfs")
    disk = emulated("zfs", work, **SLOW)

    async def life(machine: LocalMachine) -> None:
        pool, at = await made(machine, disk)
        zfs("pool", "scrub", pool)
        settings = aimed({"kind": "scrub", "retries": 0}, at)
        busy = make_saturator(machine, settings, BY, lambda event: None)
        assert isinstance(busy, Runner)
        await busy.start()
        await awaited("it fails", lambda: busy.failure)
        await busy.stop()
        assert busy.failure and "let it end" in busy.failure
        assert "in progress" in scan(pool)
        checks = find_saturator_kind(settings).checks(settings)
        answers = [(await machine.run(one.words, check=False)).status for one in checks]
        assert answers == [0, 1], "check says it too"
        await clear(machine, disk.find)

    run(life)


def test_a_pool_is_resilvered_until_it_is_stopped(work: Path) -> None:
    need_disks("zfs")
    disk = emulated("zfs", work, bytes_per_s="16M")
    events: list[dict[str, Any]] = []
    mirror = Path(disk.place().folder).parent / MIRROR

    async def life(machine: LocalMachine) -> None:
        pool, at = await made(machine, disk)
        before = zfs("pool", "status", pool).partition("config:")[2]
        async with working(machine, aimed({"kind": "resilver"}, at), events.append):
            await until_bytes(events, FILE_BYTES * 3 // 2)
            await awaited("a resilver", lambda: "resilver in progress" in scan(pool))
            assert str(mirror) in zfs("pool", "status", pool)
        assert zfs("pool", "status", pool).partition("config:")[2] == before
        assert not mirror.exists()
        await clear(machine, disk.find)

    run(life)
    is_whole_story(events, "resilver")
    assert left_of_tests(work) == []


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """This machine as a host over SSH that receives: its keys of a sink."""
    yield from receiving(tmp_path, monkeypatch)


@pytest.mark.parametrize("to", ["local", pytest.param("remote", marks=pytest.mark.slow)])
def test_what_is_new_goes_to_another_pool(
    to: str, work: Path, second: str, tmp_path: Path, host: dict[str, Any]
) -> None:
    need_disks("zfs")
    disk = emulated("zfs", work)
    events: list[dict[str, Any]] = []
    received, arrived = f"{second}/backup/plimsoll-{BY}", list[dict[str, Any]]()

    def note(event: dict[str, Any]) -> None:
        (arrived if event["event"] == "zfs-replicate received bytes" else events).append(event)

    async def life(machine: LocalMachine) -> None:
        _, at = await made(machine, disk)
        make_second(second, tmp_path)
        zfs("fs", "snapshot", f"{at.dataset}@mine")
        sink = (host if to == "remote" else {"to": "local"}) | {"into": f"{second}/backup"}
        settings = {"kind": "zfs-replicate", "interval_s": 1, "keep": 2, "sink": sink}
        named = SETTINGS.validate_python(settings | {"dataset": at.dataset})
        for one in find_saturator_kind(named).checks(named):
            await machine.run(one.words)
        async with working(machine, aimed(settings, at), note):
            await until_bytes(events, FILE_BYTES * 9 // 10)
            fill(Path(str(at.folder)) / "later", FILE_BYTES)
            await until_bytes(events, FILE_BYTES * 3 // 2)
            await awaited("the fifth", lambda: f"plimsoll-{BY}-000005" in str(snapshots(received)))
            assert 1 <= len(snapshots(received)) <= 4, "two, one that comes, one that goes"
            assert 1 <= len(snapshots(str(at.dataset))) <= 5
        assert snapshots(str(at.dataset)) == [f"{at.dataset}@mine"], "somebody else's stays"
        assert zfs("fs", "list", "-H", "-o", "name", "-r", second).split() == [second, f"{second}/backup"]
        zfs("pool", "destroy", second)
        await clear(machine, disk.find)

    run(life)
    is_whole_story(events, "zfs-replicate")
    took_bytes = sum(event["bytes_per_s"] for event in arrived)
    assert (took_bytes >= FILE_BYTES * 3 // 2) == (to == "remote"), "what a host takes is counted there"
    assert left_of_tests(work) == []


def test_a_scrub_whose_lab_was_killed_is_found_and_stopped(work: Path) -> None:
    need_disks("zfs")
    disk = emulated("zfs", work, **SLOW)

    async def life(machine: LocalMachine) -> None:
        pool, at = await made(machine, disk, FILE_BYTES * 2)
        await kill_when('{"kind": "scrub"}', at, lambda: "in progress" in scan(pool))
        assert "in progress" in scan(pool), "ZFS goes on with it"
        settings = aimed({"kind": "scrub"}, at)
        find = find_saturator_kind(settings).find
        assert await find(machine, settings, "another", "zfs") == []
        remains = await find(machine, settings, BY, "zfs")
        assert [one.what for one in remains] == [f"the scrub of {pool}, or its mark there"]
        for _ in range(2):  # twice does no harm
            await StepRunner(machine).do(remains[0].remove)
        assert "in progress" not in scan(pool)
        assert await find(machine, settings, BY, "zfs") == []
        await clear(machine, disk.find)

    run(life)
    assert left_of_tests(work) == []


@pytest.mark.slow
@pytest.mark.parametrize("then", ["begun again", "imported anew", "removed"])
def test_a_resilver_whose_lab_was_killed(then: str, work: Path) -> None:
    need_disks("zfs")
    disk = emulated("zfs", work, **SLOW)
    mirror = Path(disk.place().folder).parent / MIRROR

    async def life(machine: LocalMachine) -> None:
        pool, at = await made(machine, disk)
        before = zfs("pool", "status", pool)
        await kill_when('{"kind": "resilver"}', at, lambda: "resilver in progress" in scan(pool))
        assert str(mirror) in zfs("pool", "status", pool)
        if then == "imported anew":
            await StepRunner(machine).do(disk.place().cold)
        if then != "removed":
            async with working(machine, aimed({"kind": "resilver"}, at), print):
                await awaited("a resilver", lambda: "resilver in progress" in scan(pool))
            assert str(mirror) not in zfs("pool", "status", pool)
            assert not mirror.exists()
            assert len(zfs("pool", "status", pool).splitlines()) == len(before.splitlines())
        await clear(machine, disk.find)

    run(life)
    assert left_of_tests(work) == []


@pytest.mark.slow
def test_a_replication_whose_lab_was_killed_is_found_on_both_ends(
    work: Path, second: str, tmp_path: Path
) -> None:
    need_disks("zfs")
    disk = emulated("zfs", work, **SLOW)
    received = f"{second}/backup/plimsoll-{BY}"

    async def life(machine: LocalMachine) -> None:
        await made(machine, disk)  # so that ZFS runs
        make_second(second, tmp_path)
        mounted = tmp_path / "mine"
        zfs("fs", "create", "-o", f"mountpoint={mounted}", f"{second}/mine")
        fill(mounted / "file")
        zfs("fs", "snapshot", f"{second}/mine@mine")
        sink = f'{{"to": "local", "into": "{second}/backup"}}'
        text = f'{{"kind": "zfs-replicate", "dataset": "{second}/mine", "interval_s": 1, "sink": {sink}}}'
        own = f"@plimsoll-{BY}-0"
        await kill_when(text, NOWHERE, lambda: "000003" in str(snapshots(second)))
        assert own in str(snapshots(f"{second}/mine"))
        settings = SETTINGS.validate_json(text)
        find = find_saturator_kind(settings).find
        assert await find(machine, settings, "another", "zfs") == []
        remains = await find(machine, settings, BY, "zfs")
        assert remains[-1].what == f"the dataset {received}"
        assert all(one.what.startswith(f"the snapshot {second}/mine{own}") for one in remains[:-1])
        for one in remains:
            await StepRunner(machine).do(one.remove)
        assert await find(machine, settings, BY, "zfs") == []
        assert snapshots(second) == [f"{second}/mine@mine"]
        zfs("pool", "destroy", second)
        await clear(machine, disk.find)

    run(life)


@pytest.mark.slow
def test_lab_clean_ends_what_a_kill_left_on_pools_that_are_not_the_labs(
    work: Path, second: str, tmp_path: Path
) -> None:
    """By the command, with a lab.yml that was begun with another saturator than it names now."""
    need_disks("zfs")
    disk = emulated("zfs", work, **SLOW)
    lab_yml = tmp_path / "lab.yml"

    def cleaned(*words: str) -> str:
        done = plimsoll("clean", lab_yml, *words)
        return done.stdout + done.stderr

    async def life(machine: LocalMachine) -> None:
        pool, at = await made(machine, disk, FILE_BYTES * 2)
        write_lab(tmp_path, LABEL.experiment, LAB, kind="scrub", keys=f"pool: {pool}")
        await kill_when('{"kind": "scrub"}', at, lambda: "in progress" in scan(pool))
        assert f"the scrub of {pool}, or its mark there" in cleaned("--dry-run")
        assert "in progress" in scan(pool), "only looked"
        cleaned()
        assert "in progress" not in scan(pool)
        assert marked(pool) == ""
        assert "scrub" not in cleaned("--dry-run")
        make_second(second, tmp_path)
        sink = f'{{"to": "local", "into": "{second}/backup"}}'
        text = f'{{"kind": "zfs-replicate", "interval_s": 1, "sink": {sink}}}'
        await kill_when(text, at, lambda: f"plimsoll-{BY}-0" in str(snapshots(second)))
        keys = f"dataset: {at.dataset}, sink: {{to: local, into: {second}/backup}}"
        write_lab(tmp_path, LABEL.experiment, LAB, kind="zfs-replicate", keys=keys)
        assert f"the dataset {second}/backup/plimsoll-{BY}" in cleaned("--dry-run")
        cleaned()
        assert zfs("fs", "list", "-H", "-o", "name", "-r", second).split() == [second, f"{second}/backup"]
        zfs("pool", "destroy", second)
        await clear(machine, disk.find)

    run(life)
    assert left_of_tests(work) == []
