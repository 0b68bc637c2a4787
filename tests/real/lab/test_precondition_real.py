"""`precondition` and `cache` in lab.yml, on real file systems: steady, killed, taken over, removed."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lab.disks.caches import COLD, CacheState, with_caches
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from tests.support.disks import left_in, left_of
from tests.support.programs import LONGEST_S, REPLAY, ROOT, need, wait_for
from tests.support.servers import Nginx

PLIMSOLL = [sys.executable, "-m", "tests.support.raft"]
NAME = f"filled-{os.getpid() % 10000}"
MIB = 1 << 20
HEAD = """
name: {name}
out: {folder}/out
work: {folder}/work
precondition: {{fill_percent: 60, round_s: 1, most_rounds: 7, threads: 2}}
cache: cold
scenarios:
  - scenario: replay
    options: {{log: "{log}", rate: 20}}
phases: {{before_s: 0.3, during_s: 0.5, after_s: 0.3}}
warmup_s: 0.2
limits: {{settle_s: 0, retry_s: 0}}
observe: {{observe: [cpu]}}
repeats: 1
backends:
"""
CLONE = '    clone: {{driver: raft, caches: true, target: "{url}"}}\n'
EMULATED = (
    "  - name: ext4\n"
    "    disk: {{kind: emulated, filesystem: ext4, size_bytes: 512M, bytes_per_s: 100M}}\n"
    + CLONE
    + "  - name: zfs\n"
    "    disk: {{kind: emulated, filesystem: zfs, size_bytes: 512M}}\n" + CLONE
)
FOLDER = "  - name: there\n    disk: {{kind: folder, path: {folder}/mnt}}\n" + CLONE
POOL = "  - name: pool\n    disk: {{kind: folder, path: {folder}/pool, dataset: {name}-tank}}\n" + CLONE


def written(tmp_path: Path, url: str, backends: str) -> Path:
    for program in (REPLAY, "zpool", "losetup", "fio"):
        need(program)
    if os.geteuid() != 0:
        pytest.skip("needs root: make test-lab")
    file, log = tmp_path / "lab.yml", ROOT / "examples" / "access.log"
    file.write_text((HEAD + backends).format(name=NAME, folder=tmp_path, url=url, log=log))
    return file


@pytest.fixture
def emulated(tmp_path: Path, nginx: Nginx) -> Iterator[Path]:
    file = written(tmp_path, nginx.url, EMULATED)
    yield file
    plimsoll("clean", file)
    shutil.rmtree(tmp_path / "work", ignore_errors=True)


def run(*words: str | Path) -> str:
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def ext4(tmp_path: Path) -> Iterator[Path]:
    """A file system that exists: 400 MiB, at `mnt`."""
    if os.geteuid() != 0:
        pytest.skip("needs root: make test-lab")
    image, mounted = tmp_path / "disk.img", tmp_path / "mnt"
    run("truncate", "-s", "400M", image)
    run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", image)
    mounted.mkdir()
    run("mount", "-o", "loop", image, mounted)
    yield mounted
    run("umount", mounted)


@pytest.fixture
def existing(tmp_path: Path, nginx: Nginx, ext4: Path) -> Iterator[Path]:
    file = written(tmp_path, nginx.url, FOLDER)
    yield file
    plimsoll("clean", file)


def plimsoll(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*PLIMSOLL, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, cwd=ROOT)


def folder(file: Path) -> Path:
    return next((file.parent / "out").glob(f"{NAME}-*"), file)


def rounds_of(file: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in (folder(file) / "precondition.jsonl").read_text().splitlines()]
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return []


def killed(file: Path, words: list[str], rounds: int) -> None:
    """Kill plimsoll in the round after so many."""
    process = subprocess.Popen(
        [*PLIMSOLL, *words], stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT
    )
    wait_for("the round", lambda: len(rounds_of(file)) > rounds or process.poll() is not None)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=LONGEST_S)
    assert len(rounds_of(file)) >= rounds + 1, said


def test_volumes_are_full_and_used_in_each_run_and_nothing_is_left(emulated: Path) -> None:
    planned = json.loads(plimsoll("check", "--plan", emulated, "--json").stdout)
    says = [chapter["says"] for chapter in planned["chapters"]]
    assert says[:4] == [
        "make ext4",
        "fill the volume of ext4, and overwrite it until it is steady",
        "make zfs",
        "fill the volume of zfs, and overwrite it until it is steady",
    ]
    done = plimsoll("run", emulated, "--json")
    assert done.returncode == 0, done.stderr
    rounds = rounds_of(emulated)
    for volume in ("ext4", "zfs"):
        own = [one for one in rounds if one["volume"] == volume]
        assert [one["round"] for one in own] == list(range(len(own)))
        assert 6 <= len(own) <= 8, "the filling, and five to seven rounds"
        assert 150 * MIB < own[0]["bytes"] < 310 * MIB, "60 % of 512 MiB, less what the file system takes"
        assert own[-1]["steady"] or own[-1]["round"] == 7
        for path in folder(emulated).glob(f"runs/*--{volume}--*/run.json"):
            storage = json.loads(path.read_text())["storage"]
            assert storage["precondition"]["rounds"] == own[-1]["round"]
            assert storage["cache"]["state"] == "cold"
            exported = "export the pool, which empties its cache" in storage["cache"]["how"]
            assert exported is (volume == "zfs")
    page = (folder(emulated) / "report.html").read_text()
    assert "How the volumes were filled and overwritten" in page
    assert "zfs, round 5" in page
    status = json.loads(plimsoll("status", folder(emulated), "--json").stdout)
    assert status["state"] == "finished"
    assert (status["precondition"]["volumes"], status["precondition"]["done"]) == (2, 2)
    assert left_of(NAME) == []
    assert left_in(emulated.parent / "work") == []


@pytest.mark.slow
def test_a_filling_on_a_disk_that_exists_outlives_a_kill(existing: Path) -> None:
    killed(existing, ["run", str(existing)], 2)
    (filling,) = existing.parent.glob("mnt/*.filling")
    (data,) = filling.glob("data")
    inode, before = data.stat().st_ino, rounds_of(existing)
    killed(existing, ["run", "--resume", str(existing)], len(before))
    assert data.stat().st_ino == inode, "it was taken over"
    done = plimsoll("run", "--resume", existing, "--json")
    assert done.returncode == 0, done.stderr
    rounds = rounds_of(existing)
    assert [one["round"] for one in rounds] == list(range(len(rounds))), "no round twice"
    assert len({one["filling"] for one in rounds}) == 1
    assert list(existing.parent.glob("mnt/*plimsoll*")) == [], "removed at the end"


@pytest.mark.slow
def test_what_a_kill_left_is_listed_and_cleaned(existing: Path) -> None:
    killed(existing, ["run", str(existing)], 1)
    listed = plimsoll("clean", existing, "--list").stdout
    assert f"there on local: the filling in {existing.parent}/mnt/plimsoll-{NAME}--there.filling" in listed
    assert plimsoll("clean", existing).returncode == 0
    assert list(existing.parent.glob("mnt/*plimsoll*")) == []


def test_a_volume_that_is_full_by_itself_fails_its_runs_and_says_why(existing: Path, ext4: Path) -> None:
    (ext4 / "others").write_bytes(b"x" * (250 * MIB))
    done = plimsoll("run", existing, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["finished"] == []
    assert "precondition.fill_percent: the volume is 60 % full already" in done.stderr
    assert (ext4 / "others").stat().st_size == 250 * MIB


def destroyed(pool: str) -> bool:
    destroy, look = ["zpool", "destroy", pool], ["zpool", "list", pool]
    subprocess.run(destroy, capture_output=True, check=False)
    return subprocess.run(look, capture_output=True, check=False).returncode != 0


def test_a_cache_that_others_share_is_not_emptied(tmp_path: Path, nginx: Nginx) -> None:
    file = written(tmp_path, nginx.url, POOL)
    if Path("/proc/spl/kstat/zfs/arcstats").exists():
        pytest.skip("this ZFS has limits of its ARC")
    image, daemon = tmp_path / "pool.img", tmp_path / "daemon"
    run("truncate", "-s", "300M", image)
    command = ["zpool", "list"]
    started = subprocess.run(command, capture_output=True, check=False).returncode != 0
    if started:
        run("zfs-fuse", "--pidfile", daemon)
        wait_for("ZFS runs", lambda: not subprocess.run(command, capture_output=True, check=False).returncode)
    try:
        run("zpool", "create", "-m", tmp_path / "pool", f"{NAME}-tank", image)
        done = plimsoll("check", file)
        assert done.returncode == 1
        assert "cache: cold is not possible on pool: others share the pool's cache (ARC)" in done.stdout
    finally:
        wait_for("the pool is gone, which zfs-fuse may call busy at first", lambda: destroyed(f"{NAME}-tank"))
        if started:
            pid = int(daemon.read_text())
            os.kill(pid, signal.SIGTERM)
            wait_for("zfs-fuse has ended, so that the next test can start it", lambda: _has_ended(pid))


def _has_ended(pid: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()  # its parent has not taken notice yet
    except OSError:
        return True


CACHES: list[tuple[CacheState | None, float | None]] = [(None, 0), ("cold", 0), ("warm", 1), ("as-is", None)]


@pytest.mark.parametrize(("state", "share"), CACHES)
def test_the_page_cache_holds_what_the_state_says(
    state: CacheState | None, share: float | None, ext4: Path
) -> None:
    data = ext4 / "clone" / "sub folder" / "data"
    data.parent.mkdir(parents=True)
    data.write_bytes(os.urandom(8 * MIB))
    os.sync()
    run("dd", f"if={data}", "of=/dev/null", "bs=1M", "count=2", "status=none")
    before = resident(data)
    steps = with_caches(state, Place(str(ext4), cold=COLD), "clone").cold

    async def carried_out() -> None:
        machine = LocalMachine()
        await StepRunner(machine).do(steps)
        await machine.close()

    asyncio.run(carried_out())
    assert resident(data) == (before if share is None else share * 8 * MIB)


def resident(path: Path) -> int:
    """Return how much of a file the page cache holds."""
    return int(run("fincore", "--bytes", "--noheadings", "--output", "RES", path) or 0)
