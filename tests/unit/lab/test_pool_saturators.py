"""`scrub` and `resilver`: what they run and read, with programs that stand in for ZFS."""

import asyncio
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.disks.removal import remove_files
from plimsoll.lab.experiment.clean import remove_leftovers
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.rig import build_rig
from plimsoll.lab.machine import Line
from plimsoll.lab.saturators import AnySaturator, aim_saturator
from plimsoll.lab.saturators.resilver import RESILVER, detach_command, resilver_command
from plimsoll.lab.saturators.scrub import SCRUB, ScanProgress, percent_done, scrub_command, stop_command
from tests.support.labfile import parse_lab
from tests.support.programs import ROOT, awaited
from tests.support.scripted import ScriptedMachine, ScriptedProcess, at_work
from tests.support.stand_ins import STATUS, Zfs

settings_of = TypeAdapter[Any](AnySaturator).validate_python
EMULATED = DataLocation("/srv/plimsoll-move--hdd/mnt", "plimsoll-move--hdd/site")


@pytest.mark.parametrize(
    ("file", "percent", "says"),
    [
        ("openzfs-2.1-scrub", 7.04, "a scrub"),
        ("openzfs-2.1-resilver", 0.0, "a resilver that has only looked so far"),
        ("openzfs-2.1-paused", 7.04, "a paused scrub"),
        ("openzfs-2.1-done", None, "one that is over"),
        ("openzfs-2.3-scrub", 18.53, "a scrub, whose rate of scanning is no longer reported"),
        ("openzfs-2.3-resilver", 86.72, "a resilver"),
        ("openzfs-2.3-ran-over", None, "a counter that ran over is no figure"),
        ("openzfs-2.3-canceled", None, "one that was stopped"),
        ("zfs-fuse-scrub", 36.56, "a scrub of zfs-fuse"),
        ("zfs-fuse-resilver", 57.56, "a resilver of zfs-fuse"),
    ],
)
def test_the_share_that_is_done(file: str, percent: float | None, says: str) -> None:
    lines = (STATUS / f"{file}.txt").read_text(encoding="utf-8").splitlines()
    found = [done for line in lines if (done := percent_done(line)) is not None]
    assert found == ([] if percent is None else [percent]), says


@pytest.mark.parametrize(
    "line",
    [
        "\t1.02T copied out of 2.00T at 51.0M/s, 51.00% done, 05:00:00 to go",
        "\t1.02T / 2.00T copied at 51.0M/s, 51.00% done, 05:00:00 to go",
        "\t0B repaired, 7.04% donehalf",
        "\t0B repaired, ٧.٠٤% done",
        "7.04% done",
    ],
)
def test_the_share_of_something_else_is_not_taken(line: str) -> None:
    assert percent_done(line) is None


def test_bytes_are_the_share_of_what_the_pool_holds() -> None:
    figures = ScanProgress()
    said = ["total 2000", "\t0B repaired, 7.04% done, 03:20:22 to go", "config:"]
    assert [figures.read(Line("out", line, 0)) for line in said] == [0, 141, None]
    assert figures.read(Line("err", "total 5000", 0)) is None
    assert figures.total_bytes == 2000


@pytest.fixture
def zfs(tmp_path: Path) -> Zfs:
    made = Zfs(tmp_path)
    made.status("openzfs-2.1-done")
    return made


@pytest.mark.parametrize("version", ["2.1", "2.3"])
def test_a_scrub_is_followed_to_its_end(version: str, zfs: Zfs) -> None:
    zfs.after(f"openzfs-{version}-scrub")
    done = zfs.run(scrub_command("tank", "move--hdd"))
    assert done.returncode == 0, done.stderr
    figures = ScanProgress()
    read = [figures.read(Line("out", line, 0)) for line in done.stdout.splitlines()]
    assert read == [0, 70 if version == "2.1" else 185]
    assert figures.total_bytes == 1000, "all of it at the end"
    set_, *rest = zfs.changes
    assert re.fullmatch(r"zfs set plimsoll:scrub=move--hdd [0-9]+ tank", set_), "the mark comes first"
    assert rest == ["zpool scrub tank"]


@pytest.mark.parametrize(
    "theirs", ["openzfs-2.1-scrub", "openzfs-2.1-paused", "openzfs-2.3-resilver", "zfs-fuse-scrub"]
)
def test_what_somebody_else_began_is_left_alone(theirs: str, zfs: Zfs) -> None:
    zfs.status(theirs)
    done = zfs.run(scrub_command("tank", "move--hdd"))
    assert done.returncode == 1
    assert "under way or paused: let it end, or stop it: zpool scrub -s tank" in done.stderr
    assert zfs.changes == []
    seen = zfs.run(SCRUB.checks(settings_of({"kind": "scrub", "pool": "tank"}))[1].words)
    assert (seen.returncode, seen.stderr) == (1, done.stderr), "check says the same"


def test_a_scrub_that_somebody_stops_is_a_failure(zfs: Zfs) -> None:
    zfs.after("openzfs-2.3-scrub")
    zfs.next("openzfs-2.3-canceled")
    done = zfs.run(scrub_command("tank", "move--hdd"))
    assert (done.returncode, done.stderr) == (1, "tank: somebody stopped it\n")


BEGAN = 1795307041  # Sun Nov 22 00:24:01 2026 UTC, as the fixture has it


@pytest.mark.parametrize(
    ("mark", "status", "changes", "says"),
    [
        (
            f"move--hdd {BEGAN}",
            "openzfs-2.1-scrub",
            ["zpool scrub -s tank", "zfs inherit"],
            "ours is stopped",
        ),
        (
            f"move--hdd {BEGAN - 2}",
            "openzfs-2.1-scrub",
            ["zpool scrub -s tank", "zfs inherit"],
            "a bit later",
        ),
        (f"move--hdd {BEGAN - 86400}", "openzfs-2.1-scrub", ["zfs inherit"], "one that began days later"),
        (f"move--hdd {BEGAN}", "openzfs-2.1-done", ["zfs inherit"], "ours came to its end"),
        (f"move--hdd {BEGAN}", "openzfs-2.1-paused", ["zfs inherit"], "somebody paused it, and may need it"),
        (f"move--hdd {BEGAN}", "openzfs-2.1-resilver", ["zfs inherit"], "a resilver is nobody's to stop"),
        ("move--hdd 1", "zfs-fuse-scrub", ["zpool scrub -s tank", "zfs inherit"], "zfs-fuse says no start"),
        (f"move--ssd {BEGAN}", "openzfs-2.1-scrub", [], "another backend's"),
        (f"move--hdd2 {BEGAN}", "openzfs-2.1-scrub", [], "a label that begins alike"),
        ("", "openzfs-2.1-scrub", [], "no mark"),
    ],
)
def test_only_the_labs_own_scrub_is_stopped(
    mark: str, status: str, changes: list[str], says: str, zfs: Zfs
) -> None:
    zfs.status(status)
    if mark:
        zfs.mark(mark)
    done = zfs.run(stop_command("tank", "move--hdd"))
    assert done.returncode == 0, done.stderr
    assert zfs.changes == [line.replace("inherit", "inherit plimsoll:scrub tank") for line in changes], says


@pytest.mark.parametrize(
    ("status", "label", "found"),
    [(0, "move--hdd", ["the scrub of tank, or its mark there"]), (1, "move--hdd", [])],
)
def test_a_scrub_that_was_left_is_found_by_its_mark(status: int, label: str, found: list[str]) -> None:
    settings = settings_of({"kind": "scrub", "pool": "tank"})
    machine = ScriptedMachine(lambda command: (status, "", ""))
    remains = asyncio.run(SCRUB.find(machine, settings, label, "hdd"))
    assert [one.what for one in remains] == found
    assert asyncio.run(SCRUB.find(machine, settings_of({"kind": "scrub"}), label, "hdd")) == []


@pytest.mark.parametrize("kind", ["scrub", "resilver"])
def test_it_works_again_and_again_and_puts_back(kind: str) -> None:
    events: list[dict[str, Any]] = []
    begun: list[ScriptedProcess] = []

    def begin(command: Sequence[str]) -> ScriptedProcess:
        lines = [Line("out", "total 1000", 0), Line("out", "\t0B repaired, 50.00% done", 0)]
        begun.append(ScriptedProcess(lines, None if begun else 0))
        return begun[-1]

    async def drive() -> ScriptedMachine:
        machine = ScriptedMachine(begun=begin)
        settings = aim_saturator(settings_of({"kind": kind}), EMULATED)
        async with at_work(machine, settings, "l", events):
            await awaited("a second round", lambda: len(begun) == 2)
        return machine

    machine = asyncio.run(drive())
    assert begun[1].stopped
    assert (events[0]["event"], events[-1]["bytes"]) == (kind, 1000 + 500)
    pool, folder = "plimsoll-move--hdd", "/srv/plimsoll-move--hdd"
    put_back = stop_command(pool, "l") if kind == "scrub" else detach_command(pool, folder)
    work = scrub_command(pool, "l") if kind == "scrub" else resilver_command(pool, folder)
    assert machine.ran == [tuple(one) for one in (put_back, work, work, put_back)]


@pytest.mark.parametrize(
    ("device", "mark", "says"),
    [
        (None, True, "on no emulated disk of the lab"),
        ("/dev/loop7", False, "on no emulated disk of the lab"),
        ("/dev/loop7", True, "is on /dev/mirror-0, not on the disk that the lab made"),
    ],
)
def test_a_pool_that_only_bears_such_a_name_is_refused(
    device: str | None, mark: bool, says: str, zfs: Zfs, tmp_path: Path
) -> None:
    folder = tmp_path / "plimsoll-a--b"
    (folder / "dev").mkdir(parents=True)
    if device:
        (folder / "dev" / "disk").symlink_to(device)
    if mark:
        (folder / ".plimsoll-disk").touch()
    zfs.status("openzfs-2.1-scrub")  # a mirror
    done = zfs.run(resilver_command("plimsoll-a--b", str(folder)))
    assert done.returncode == 1
    assert says in done.stderr
    assert zfs.changes == []


@pytest.mark.parametrize(
    ("line", "detached", "says"),
    [
        ("\t    FILE  ONLINE       0     0     0", "FILE", "by its path"),
        ("\t    FILE  ONLINE       0     0     0  (resilvering)", "FILE", "which it is filled by"),
        ("\t    77  UNAVAIL      0     0     0  was FILE", "77", "by its number, where it is out of sight"),
        ("\t    loop0  ONLINE       0     0     0", None, "it is gone"),
    ],
)
def test_a_second_side_is_taken_off(
    line: str, detached: str | None, says: str, zfs: Zfs, tmp_path: Path
) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    file = folder / "mirror.img"
    file.touch()
    (tmp_path / "status").write_text(f"  pool: p\nconfig:\n{line.replace('FILE', str(file))}\n")
    for _ in range(2):
        done = zfs.run(detach_command("p", str(folder)))
        assert done.returncode == 0, done.stderr
        assert not file.exists()
    name = (detached or "").replace("FILE", str(file))
    assert zfs.changes == ([f"zpool detach p {name}"] * 2 if detached else []), says


def test_a_second_side_goes_with_the_disk(tmp_path: Path) -> None:
    for name in ("mirror.img", "disk.img", ".plimsoll-disk"):
        (tmp_path / name).touch()
    subprocess.run(remove_files(str(tmp_path)).words, check=True)
    assert not tmp_path.exists()


def _lab(saturator_: dict[str, Any]) -> Lab:
    backend = {"name": "ssd", "clone": {"driver": "static", "target": "http://127.0.0.1:9"}}
    return Lab.model_validate(
        {
            "name": "nightly",
            "out": Path("/tmp"),
            "backends": [backend],
            "scenarios": [{"scenario": "download"}],
            "saturator": saturator_,
        }
    )


def test_what_a_killed_saturator_left_is_among_the_remains_of_its_backend() -> None:
    async def found(settings: dict[str, Any]) -> list[tuple[str, str]]:
        lab = _lab(settings)
        rig = await build_rig(lab, lab.backends[0], ScriptedMachine(), lambda *_: None)
        return [(one.what, one.backend) for one in await rig.find_remains()]

    marked = [("the scrub of tank, or its mark there", "ssd")]
    assert asyncio.run(found({"kind": "scrub", "pool": "tank"})) == marked
    assert asyncio.run(found({"kind": "scrub"})) == [], "of no pool that it knows"
    assert asyncio.run(found({"kind": "fio", "folder": "/srv"})) == []


def test_lab_clean_looks_for_what_earlier_files_of_the_name_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = _lab({"kind": "scrub", "pool": "rust"})
    now = _lab({"kind": "scrub", "pool": "tank"})
    monkeypatch.setattr("plimsoll.lab.experiment.clean.past_labs", lambda _lab: [now, before, now])
    monkeypatch.setattr("plimsoll.lab.experiment.clean.find_tunings", _none)
    monkeypatch.setattr("plimsoll.lab.experiment.clean.Machines", _Scripted)
    found = asyncio.run(remove_leftovers(now, remove=False, say=print))
    assert [one.what for one in found] == [
        ("the scrub of tank, or its mark there",),
        ("the scrub of rust, or its mark there",),
    ]


async def _none(*_: object) -> list[Any]:
    return []


class _Scripted:
    def __init__(self, _lab: Lab) -> None:
        pass

    def of(self, _backend: object) -> ScriptedMachine:
        return ScriptedMachine()

    async def close(self) -> None:
        pass


def test_the_example_is_right() -> None:
    file = ROOT / "examples" / "pool-work.yml"
    lab = parse_lab(file.read_text(encoding="utf-8"))
    assert [one.saturator.kind for one in lab.backends if one.saturator] == ["scrub", "resilver", "zfs-send"]


def test_lab_check_looks_at_a_pool_that_is_named() -> None:
    checks = SCRUB.checks(settings_of({"kind": "scrub", "pool": "rust"}))
    assert [one.problem.split(":")[0] for one in checks] == ["saturator.pool"] * 2
    assert RESILVER.checks(settings_of({"kind": "resilver"})) == []
