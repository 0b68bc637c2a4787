"""`fileio`, `precondition` and `cache` of lab.yml, on real file systems: all once, also after kills."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.lab.disks.caches import COLD, CacheState, with_caches
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from tests.support.disks import left_in, left_of
from tests.support.labs import (
    RAFT,
    carried_out,
    end_when,
    experiment_of,
    lines_of,
    need_lab,
    own_name,
    planned,
    plimsoll,
    run_lab,
    runs_of,
    status_of,
    write_lab,
)
from tests.support.programs import wait_for
from tests.support.servers import Nginx

NAME = own_name("volumes")
MIB = 1 << 20
HEAD = """
name: $name
out: $folder/out
work: $folder/work
scenarios:
  - scenario: replay
    options: {log: "$log", rate: 20}
phases: {before_s: 0.3, during_s: 0.5, after_s: 0.3}
warmup_s: 0.2
limits: {settle_s: 0, retry_s: 0}
observe: {observe: [cpu]}
repeats: 1
"""
FILEIO = f"""{HEAD}
fileio: {{tests: [seqwr, rndrd], threads: [1], file_size: 16M, time_s: 1}}
backends:
  - name: ext4
    disk: {{kind: emulated, filesystem: ext4, size_bytes: 512M, bytes_per_s: 200M}}
    clone: {{driver: raft, target: "$url"}}
    tuning: {{vm: {{swappiness: 33}}}}
  - name: zfs
    disk: {{kind: emulated, filesystem: zfs, size_bytes: 512M}}
    clone: {{driver: raft, target: "$url"}}
  - name: real
    clone: {{driver: static, target: "$url"}}
"""
PRECONDITION = f"""{HEAD}
precondition: {{fill_percent: 60, round_s: 1, most_rounds: 7, threads: 2}}
cache: cold
backends:
"""
CLONE = '    clone: {driver: raft, caches: true, target: "$url"}\n'
EMULATED = (
    "  - name: ext4\n"
    f"    disk: {{kind: emulated, filesystem: ext4, size_bytes: 512M, bytes_per_s: 100M}}\n{CLONE}"
    "  - name: zfs\n"
    f"    disk: {{kind: emulated, filesystem: zfs, size_bytes: 512M}}\n{CLONE}"
)
FOLDER = f"  - name: there\n    disk: {{kind: folder, path: $folder/mnt}}\n{CLONE}"
POOL = f"  - name: pool\n    disk: {{kind: folder, path: $folder/pool, dataset: $name-tank}}\n{CLONE}"


def written(folder: Path, text: str, nginx: Nginx) -> Iterator[Path]:
    """The lab.yml, and what its experiment left cleaned away."""
    need_lab("zpool", "losetup", "sysbench", "fio", as_root=True)
    file = write_lab(folder, NAME, text, url=nginx.url)
    yield file
    plimsoll("clean", file, program=RAFT)
    shutil.rmtree(folder / "work", ignore_errors=True)


def nothing_is_left(file: Path) -> None:
    assert left_of(NAME) == []
    assert left_in(file.parent / "work") == []


@pytest.fixture
def lab_yml(tmp_path: Path, nginx: Nginx) -> Iterator[Path]:
    yield from written(tmp_path, FILEIO, nginx)


def end_after(words: tuple[str | Path, ...], file: Path, cells: int, how: signal.Signals) -> None:
    """End plimsoll when so many cells are finished, and the next one is measured."""
    end_when(("run", *words), lambda: len(cells_of(file)) >= cells, how, program=RAFT, after_s=0.3)


def cells_of(file: Path) -> list[dict[str, Any]]:
    return [cell for path in (file.parent / "out").glob("*/fileio.jsonl") for cell in lines_of(path)]


def is_whole(file: Path) -> None:
    """Each cell of each volume is there once, and nothing else is."""
    found = Counter((cell["volume"], cell["test"], cell["threads"]) for cell in cells_of(file))
    wanted = yaml.safe_load(file.read_text())["fileio"]
    assert set(found) == set(product(("ext4", "zfs"), wanted["tests"], wanted["threads"]))
    assert set(found.values()) == {1}, "nothing twice"
    nothing_is_left(file)


def test_the_plan_has_the_very_commands_that_are_carried_out_before_the_runs(lab_yml: Path) -> None:
    plan, _ = planned(lab_yml, program=RAFT)
    says = [chapter["says"] for chapter in plan["chapters"]]
    assert says[:4] == [
        "make ext4",
        "measure the volume of ext4 with sysbench fileio",
        "make zfs",
        "measure the volume of zfs with sysbench fileio",
    ]
    _, said = run_lab(lab_yml, program=RAFT)
    assert "fileio does not measure real: it has no disk in lab.yml." in said
    is_whole(lab_yml)
    experiment = experiment_of(lab_yml)
    for backend in ("ext4", "zfs"):
        chapter = plan["chapters"][says.index(f"measure the volume of {backend} with sysbench fileio")]
        wanted = words_of_sysbench([step["words"] for step in chapter["steps"]])
        assert words_of_sysbench(carried_out(experiment, backend)) == wanted
        assert len(wanted) == 1 + 1 + 2 + 1 + 2, "folder, files, cells, files after each seqwr, clean-up"
    page = (experiment / "report.html").read_text()
    assert "The volumes, cell by cell" in page
    assert "MiB/s: ext4" in page and "p99.9 (ms): zfs" in page
    status = status_of(experiment, program=RAFT)
    assert status["state"] == "finished"
    assert status["fileio"] == {"total": 4, "finished": 4, "failed": {}}


def words_of_sysbench(commands: list[list[str]]) -> list[list[str]]:
    """The words of sysbench, and of what makes and removes its own folder."""
    found = []
    for words in commands:
        if any("plimsoll-fileio" in word or word == "sysbench" for word in words):
            found += [words[words.index(one) :] for one in ("mkdir", "sysbench", "rmdir") if one in words][:1]
    return found


@pytest.mark.slow
def test_killed_twice_and_interrupted_each_cell_is_measured_once(lab_yml: Path) -> None:
    text = lab_yml.read_text().replace(
        "tests: [seqwr, rndrd], threads: [1]", "tests: [rndrd, seqwr, rndrw], threads: [1, 2]"
    )
    lab_yml.write_text(text)
    end_after((lab_yml,), lab_yml, 2, signal.SIGKILL)
    end_after(("--resume", lab_yml), lab_yml, 7, signal.SIGKILL)
    files = list((lab_yml.parent / "work").glob("*/mnt/*.fileio/*/test_file.*"))
    assert files, "kill -9 came while a cell was measured"
    end_after(("--resume", lab_yml), lab_yml, 9, signal.SIGINT)
    nothing_is_left(lab_yml)  # Ctrl-C removes everything at once
    status = status_of(experiment_of(lab_yml), program=RAFT)
    assert status["state"] == "stopped"
    assert 9 <= status["fileio"]["finished"] < 12
    outcome, _ = run_lab("--resume", lab_yml, program=RAFT)
    assert outcome["not_measured"] == {}
    is_whole(lab_yml)


def test_files_that_a_crash_left_are_cleaned(lab_yml: Path) -> None:
    end_after((lab_yml,), lab_yml, 1, signal.SIGKILL)
    listed = plimsoll("clean", lab_yml, "--dry-run", program=RAFT).stdout
    mounted = lab_yml.parent / "work" / f"plimsoll-{NAME}--ext4" / "mnt"
    assert f"ext4 on local: the test files in {mounted}/" in listed
    assert plimsoll("clean", lab_yml, program=RAFT).returncode == 0
    nothing_is_left(lab_yml)


def test_what_fails_is_told_and_the_runs_go_on_and_it_is_measured_later(
    lab_yml: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "bin" / "sysbench"
    broken.parent.mkdir()
    broken.write_text('#!/bin/sh\ncase " $* " in *" run "*) echo "FATAL: no such luck"; exit 1;; esac\n')
    broken.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
        outcome, said = run_lab(lab_yml, status=1, program=RAFT)
    assert outcome["not_done"] == []
    assert len(outcome["finished"]) == 3
    assert outcome["not_measured"].keys() == {"ext4", "zfs"}
    assert "zfs: fileio failed: seqwr with 1 thread" in said
    assert "FATAL: no such luck" in outcome["not_measured"]["zfs"]
    assert left_of(NAME) == []
    run_lab("--resume", lab_yml, program=RAFT)
    is_whole(lab_yml)


def test_an_experiment_can_be_extended_by_it(lab_yml: Path) -> None:
    text = lab_yml.read_text()
    lab_yml.write_text("".join(line for line in text.splitlines(True) if not line.startswith("fileio")))
    assert plimsoll("run", lab_yml, program=RAFT).returncode == 0
    assert cells_of(lab_yml) == []
    lab_yml.write_text(text)
    outcome, said = run_lab("--extend", lab_yml, program=RAFT)
    assert "fileio: there in the file, none in this experiment: taken over." in said
    assert len(outcome["finished"]) == 3
    is_whole(lab_yml)


# Volumes that are filled first, and caches.


@pytest.fixture
def emulated(tmp_path: Path, nginx: Nginx) -> Iterator[Path]:
    yield from written(tmp_path, PRECONDITION + EMULATED, nginx)


def run(*words: str | Path) -> str:
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def ext4(tmp_path: Path) -> Iterator[Path]:
    """A file system that exists: 400 MiB, at `mnt`."""
    need_lab(as_root=True)
    image, mounted = tmp_path / "disk.img", tmp_path / "mnt"
    run("truncate", "-s", "400M", image)
    run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", image)
    mounted.mkdir()
    run("mount", "-o", "loop", image, mounted)
    yield mounted
    run("umount", mounted)


@pytest.fixture
def existing(tmp_path: Path, nginx: Nginx, ext4: Path) -> Iterator[Path]:
    yield from written(tmp_path, PRECONDITION + FOLDER, nginx)


def rounds_of(file: Path) -> list[dict[str, Any]]:
    found = (file.parent / "out").glob("*/precondition.jsonl")
    return [one for path in found for one in lines_of(path)]


def kill_after(words: tuple[str | Path, ...], file: Path, rounds: int) -> None:
    """Kill plimsoll in the round after so many."""
    end_when(("run", *words), lambda: len(rounds_of(file)) > rounds, program=RAFT, after_s=0.3)


def test_volumes_are_full_and_used_in_each_run_and_nothing_is_left(emulated: Path) -> None:
    plan, _ = planned(emulated, program=RAFT)
    assert [chapter["says"] for chapter in plan["chapters"]][:4] == [
        "make ext4",
        "fill the volume of ext4, and overwrite it until it is steady",
        "make zfs",
        "fill the volume of zfs, and overwrite it until it is steady",
    ]
    run_lab(emulated, program=RAFT)
    rounds, experiment = rounds_of(emulated), experiment_of(emulated)
    for volume in ("ext4", "zfs"):
        own = [one for one in rounds if one["volume"] == volume]
        assert [one["round"] for one in own] == list(range(len(own)))
        assert 6 <= len(own) <= 8, "the filling, and five to seven rounds"
        assert 150 * MIB < own[0]["bytes"] < 310 * MIB, "60 % of 512 MiB, less what the file system takes"
        assert own[-1]["steady"] or own[-1]["round"] == 7
        for one in runs_of(experiment):
            if one["backend"] == volume:
                storage = one["storage"]
                assert storage["precondition"]["rounds"] == own[-1]["round"]
                assert storage["cache"]["state"] == "cold"
                exported = "export the pool, which empties its cache" in storage["cache"]["how"]
                assert exported is (volume == "zfs")
    page = (experiment / "report.html").read_text()
    assert "How the volumes were filled and overwritten" in page
    assert "zfs, round 5" in page
    status = status_of(experiment, program=RAFT)
    assert status["state"] == "finished"
    assert (status["precondition"]["volumes"], status["precondition"]["done"]) == (2, 2)
    nothing_is_left(emulated)


@pytest.mark.slow
def test_a_filling_on_a_disk_that_exists_outlives_a_kill(existing: Path) -> None:
    kill_after((existing,), existing, 2)
    (filling,) = existing.parent.glob("mnt/*.filling")
    (data,) = filling.glob("data")
    inode, before = data.stat().st_ino, rounds_of(existing)
    kill_after(("--resume", existing), existing, len(before))
    assert data.stat().st_ino == inode, "it was taken over"
    run_lab("--resume", existing, program=RAFT)
    rounds = rounds_of(existing)
    assert [one["round"] for one in rounds] == list(range(len(rounds))), "no round twice"
    assert len({one["filling"] for one in rounds}) == 1
    assert list(existing.parent.glob("mnt/*plimsoll*")) == [], "removed at the end"


@pytest.mark.slow
def test_what_a_kill_left_is_listed_and_cleaned(existing: Path) -> None:
    kill_after((existing,), existing, 1)
    listed = plimsoll("clean", existing, "--dry-run", program=RAFT).stdout
    assert f"there on local: the filling in {existing.parent}/mnt/plimsoll-{NAME}--there.filling" in listed
    assert plimsoll("clean", existing, program=RAFT).returncode == 0
    assert list(existing.parent.glob("mnt/*plimsoll*")) == []


def test_a_volume_that_is_full_by_itself_fails_its_runs_and_says_why(existing: Path, ext4: Path) -> None:
    (ext4 / "others").write_bytes(b"x" * (250 * MIB))
    outcome, said = run_lab(existing, status=1, program=RAFT)
    assert outcome["finished"] == []
    assert "precondition.fill_percent: the volume is 60 % full already" in said
    assert (ext4 / "others").stat().st_size == 250 * MIB


def succeeds(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def test_a_cache_that_others_share_is_not_emptied(tmp_path: Path, nginx: Nginx) -> None:
    need_lab("zpool", as_root=True)
    file = write_lab(tmp_path, NAME, PRECONDITION + POOL, url=nginx.url)
    if Path("/proc/spl/kstat/zfs/arcstats").exists():
        pytest.skip("this ZFS has limits of its ARC")
    image, daemon = tmp_path / "pool.img", tmp_path / "daemon"
    run("truncate", "-s", "300M", image)
    if started := not succeeds("zpool", "list"):
        run("zfs-fuse", "--pidfile", daemon)
        wait_for("ZFS runs", lambda: succeeds("zpool", "list"))
    try:
        run("zpool", "create", "-m", tmp_path / "pool", f"{NAME}-tank", image)
        done = plimsoll("check", file, program=RAFT)
        assert done.returncode == 1
        assert "cache: cold is not possible on pool: others share the pool's cache (ARC)" in done.stdout
    finally:
        wait_for("the pool is gone, which zfs-fuse may call busy at first", lambda: destroyed(f"{NAME}-tank"))
        if started:
            pid = int(daemon.read_text())
            os.kill(pid, signal.SIGTERM)
            wait_for("zfs-fuse has ended, so that the next test can start it", lambda: has_ended(pid))


def destroyed(pool: str) -> bool:
    succeeds("zpool", "destroy", pool)
    return not succeeds("zpool", "list", pool)


def has_ended(pid: int) -> bool:
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
    before = resident_bytes(data)
    steps = with_caches(state, Place(str(ext4), cold=COLD), "clone").cold

    async def carry_out() -> None:
        machine = LocalMachine()
        await StepRunner(machine).do(steps)
        await machine.close()

    asyncio.run(carry_out())
    assert resident_bytes(data) == (before if share is None else share * 8 * MIB)


def resident_bytes(path: Path) -> int:
    """Return how much of a file the page cache holds."""
    return int(run("fincore", "--bytes", "--noheadings", "--output", "RES", path) or 0)
