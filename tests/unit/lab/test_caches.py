"""`cache` in lab.yml: the steps that bring it about, what is refused, and the ARC's limits put back."""

import asyncio
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.lab.disks import caches as arc
from plimsoll.lab.disks import make_disk
from plimsoll.lab.disks.caches import CacheState, can_be_cold, with_caches
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.run import cache_facts
from plimsoll.lab.names import Label
from tests.support.labfile import parse_lab
from tests.support.programs import DOCS
from tests.support.scripted import ScriptedMachine

MIB = 1 << 20
EXT4 = {"kind": "emulated", "filesystem": "ext4", "size_bytes": "1G"}
OWN_POOL = {"kind": "emulated", "filesystem": "zfs", "size_bytes": "1G"}
FOLDER = {"kind": "folder", "path": "/srv/lab"}
POOL = {"kind": "folder", "path": "/tank/lab", "dataset": "tank/lab"}
QEMU = {"driver": "qemu", "image": "/srv/debian.qcow2"}
STATIC = {"driver": "static", "target": "http://127.0.0.1:9"}

SYNC, DROP = "write everything out", "drop the page cache"
EXPORT = ["export the pool, which empties its cache", "import it"]
READ = "read all files of the site"
ARC = [
    "unmount the clone's datasets, and mount them again",
    "lower the limits of ZFS's cache (ARC) until it is empty, and put them back",
]


def lab_of(cache: CacheState | None, *backends: tuple[dict[str, Any] | None, dict[str, Any]]) -> Lab:
    entries = [
        {"name": f"b{number}", "clone": clone} | ({"disk": at} if at else {})
        for number, (at, clone) in enumerate(backends)
    ]
    data: dict[str, Any] = {"name": "lab", "backends": entries} | ({"cache": cache} if cache else {})
    data["scenarios"] = [{"scenario": "replay", "options": {"log": "access.log"}}]
    return parse_lab(yaml.safe_dump(data, sort_keys=False))


STATES = [
    ("by default as ever", EXT4, None, "default", [SYNC, DROP]),
    ("by default the pool of an emulated disk is exported", OWN_POOL, None, "default", [SYNC, *EXPORT, DROP]),
    ("by default the ARC of a pool that exists stays", POOL, None, "default", [SYNC, DROP]),
    ("cold: ext4", EXT4, "cold", "cold", [SYNC, DROP]),
    ("cold: a folder", FOLDER, "cold", "cold", [SYNC, DROP]),
    ("cold: a pool of the lab's own", OWN_POOL, "cold", "cold", [SYNC, *EXPORT, DROP]),
    ("cold: a pool that exists", POOL, "cold", "cold", [SYNC, DROP, *ARC]),
    ("warm: emptied first, so that each run finds the same", EXT4, "warm", "warm", [SYNC, DROP, READ]),
    ("warm: a pool", POOL, "warm", "warm", [SYNC, DROP, READ]),
    ("as-is: nothing is done", OWN_POOL, "as-is", "as-is", []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("at", "cache", "state", "how"), [row[1:] for row in STATES], ids=[r[0] for r in STATES]
)
def test_the_steps_of_each_state_are_those_in_run_json(
    at: dict[str, Any], cache: CacheState | None, state: str, how: list[str]
) -> None:
    lab = lab_of(cache, (at, {"driver": "compose"}))
    backend = lab.backends[0]
    assert backend.disk
    place = make_disk(backend.disk, Label("lab"), "b0", lab.work).place()
    assert cache_facts(lab, backend, place, "plimsoll-lab--b0") == {"cache": {"state": state, "how": how}}
    assert [step.says for step in with_caches(cache, place, "plimsoll-lab--b0").cold] == how


def test_of_a_site_that_exists_only_what_is_wanted_is_known() -> None:
    for cache, facts in ((None, {}), ("as-is", {"cache": {"state": "as-is", "how": []}})):
        lab = lab_of(cache, (None, STATIC))  # type: ignore[arg-type]
        assert cache_facts(lab, lab.backends[0], None, "x") == facts


def test_a_guest_may_start_cold_and_any_site_as_it_is() -> None:
    assert lab_of("cold", (EXT4, QEMU)).cache == "cold"
    assert lab_of("as-is", (EXT4, QEMU), (None, STATIC)).cache == "as-is"


def test_lab_check_looks_whether_a_cache_that_others_share_can_be_emptied() -> None:
    looked = {}
    for name, at in (("pool", POOL), ("own", OWN_POOL), ("ext4", EXT4)):
        backend = lab_of("cold", (at, {"driver": "compose"})).backends[0]
        assert backend.disk
        looked[name] = can_be_cold(make_disk(backend.disk, Label("lab"), "b0", "/w").place(), "b0")
    assert looked["own"] == looked["ext4"] == []
    assert [one.problem for one in looked["pool"]] == ["cache: cold is not possible on b0"]


class Host:
    """A host's files of ZFS, with the limits that it was told and the data that its ARC holds."""

    def __init__(self, folder: Path, least: str, most: str, data_mib: int) -> None:
        self.least, self.most = folder / "zfs_arc_min", folder / "zfs_arc_max"
        self.stats, self.drop = folder / "arcstats", folder / "drop_caches"
        self.kept = folder / "plimsoll-arc-limits"
        self.files = (self.least, self.most, self.stats, self.kept)
        self.least.write_text(f"{least}\n")
        self.most.write_text(f"{most}\n")
        self.drop.touch()
        rows = {"size": data_mib * MIB, "c_min": 512 * MIB, "c_max": 8192 * MIB, "data_size": data_mib * MIB}
        text = "9 1 0x01 123 33456 5151509466 1234567890\nname type data\n"
        self.stats.write_text(text + "".join(f"{name} 4 {value}\n" for name, value in rows.items()))

    def command(self, wait_s: int) -> list[str]:
        return ["sh", "-c", arc.EMPTY, "sh", *map(str, self.files), str(self.drop), str(wait_s)]

    def lowered(self) -> "subprocess.Popen[bytes]":
        """Begin to empty the ARC, and return when the limits are low."""
        process = subprocess.Popen(self.command(100), start_new_session=True)
        until_s = time.monotonic() + 20
        while self.most.read_text() != f"{65 * MIB}\n" and time.monotonic() < until_s:
            time.sleep(0.02)
        assert self.limits == (32 * MIB, 65 * MIB)
        return process

    def shrink(self) -> None:
        self.stats.write_text(self.stats.read_text().replace(f"data_size 4 {900 * MIB}", "data_size 4 1"))

    @property
    def limits(self) -> tuple[int, int]:
        return int(self.least.read_text()), int(self.most.read_text())


def test_the_arc_is_emptied_and_its_limits_put_back(tmp_path: Path) -> None:
    host = Host(tmp_path, str(600 * MIB), str(7000 * MIB), data_mib=12)
    done = subprocess.run(host.command(0), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert host.limits == (600 * MIB, 7000 * MIB)
    assert host.drop.read_text() == "3\n"


def test_a_default_stays_one(tmp_path: Path) -> None:
    host = Host(tmp_path, "0", "0", data_mib=12)
    assert subprocess.run(host.command(0), check=False).returncode == 0
    assert host.limits == (0, 0), "ZFS takes the sizes that were written just before for what 0 stands for"


def test_an_arc_that_does_not_shrink_is_reported_and_its_limits_are_put_back(tmp_path: Path) -> None:
    host = Host(tmp_path, "0", str(7000 * MIB), data_mib=900)
    done = subprocess.run(host.command(1), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the ARC still holds 900 MiB" in done.stderr
    assert host.limits == (0, 7000 * MIB)


def test_called_off_it_puts_them_back_too(tmp_path: Path) -> None:
    host = Host(tmp_path, "0", str(7000 * MIB), data_mib=900)
    process = host.lowered()
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(20) == 143
    assert host.limits == (0, 7000 * MIB)


@pytest.mark.parametrize("was", [("0", str(7000 * MIB)), ("0", "0"), (str(600 * MIB), str(7000 * MIB))])
@pytest.mark.parametrize("by", ["the next cold run", "clean"])
def test_killed_the_limits_it_found_are_put_back(tmp_path: Path, was: tuple[str, str], by: str) -> None:
    host = Host(tmp_path, *was, data_mib=900)
    process = host.lowered()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)
    assert host.limits == (32 * MIB, 65 * MIB)
    host.shrink()
    put_back = ["sh", "-c", arc.PUT_BACK, "sh", *map(str, host.files)]
    command = host.command(0) if by == "the next cold run" else put_back
    assert subprocess.run(command, check=False).returncode == 0
    assert host.limits == (int(was[0]), int(was[1]))
    assert not host.kept.exists()


def test_lab_clean_finds_lowered_limits_on_a_pool_that_exists() -> None:
    settings = lab_of("cold", (POOL, {"driver": "compose"})).backends[0].disk
    assert settings
    pool = make_disk(settings, Label("lab"), "b0", "/w")
    there = asyncio.run(pool.find(ScriptedMachine()))
    assert [(one.what, one.backend) for one in there] == [("lowered limits of ZFS's cache (ARC)", "b0")]
    assert asyncio.run(pool.find(ScriptedMachine(lambda _: (1, "", "")))) == []


@pytest.mark.parametrize("script", [arc.CAN_SHRINK, arc.EMPTY], ids=["by check", "by the run"])
def test_where_zfs_has_no_limits_it_is_refused_in_a_sentence(script: str, tmp_path: Path) -> None:
    names = ("zfs_arc_min", "zfs_arc_max", "arcstats", "kept", "drop_caches")
    command = ["sh", "-c", script, "sh", *(str(tmp_path / name) for name in names), "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "others share the pool's cache (ARC), and this ZFS, like zfs-fuse, has no limits to lower"
    )
    assert done.stderr.count("\n") == 1


def test_the_example_of_the_docs_is_right() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (DOCS / "caches.md").read_text(encoding="utf-8"), re.DOTALL)
    assert parse_lab(example).cache == "warm"
