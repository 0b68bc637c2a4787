"""The lab on OpenZFS itself, in a virtual machine: experiments, tuning, saturators, kills (docs/zfs-vm.md).

Part of `make test-lab-full`, since the image takes long to make: PLIMSOLL_SLOW=1.
"""

import csv
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.guests import SITES, ZfsVm, log_of
from tests.support.programs import PLIMSOLL, ROOT, eventually, killed

KILLS = 5
SEED = int(os.environ.get("PLIMSOLL_KILL_SEED", "20"))
_LONGEST_S = 20  # until a kill: about as long as a run takes there
LONG = {
    "before_s": 2,
    "during_s": 30,
    "after_s": 2,
}  # a second there is short where the processor is emulated
PARAMETERS = "/sys/module/zfs/parameters"

pytestmark = pytest.mark.slow


def lab(vm: ZfsVm, folder: Path, name: str, **more: Any) -> Path:
    """A lab.yml: the two sites, replayed, while each dataset is sent."""
    backends = [
        {
            "name": site,
            "host": "vm",
            "disk": {
                "kind": "folder",
                "path": f"/tank/{site}",
                "dataset": f"tank/lab/{site}",
                "devices": ["vdb"],
            },
            "clone": {"driver": "static", "target": url},
            "tuning": {"zfs": {"zfs_txg_timeout": 2}, "datasets": {"@disk": {"logbias": "throughput"}}},
            "saturator": {"kind": "zfs-send", "dataset": f"tank/lab/{site}", "rate_bytes_per_s": "1M"},
        }
        for site, url in vm.sites.items()
    ]
    said = {
        "name": name,
        "out": str(folder / "out"),
        "work": "/var/tmp/plimsoll-work",
        "hosts": [{"name": "vm", **vm.host}],
        "backends": backends,
        "scenarios": [
            {"scenario": "replay", "options": {"log": str(log_of(folder / "access.log")), "rate": 10}}
        ],
        "phases": {"before_s": 2, "during_s": 6, "after_s": 2},
        "warmup_s": 0,
        "limits": {"settle_s": 0},
        "observe": {"observe": ["arcstats", "zpool", "diskstats", "pressure", "cpu", "memory"]},
        "repeats": 2,
    }
    path = folder / "lab.yml"
    path.write_text(yaml.safe_dump(said | more))
    return path


def plimsoll(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(PLIMSOLL), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)


def snapshots(vm: ZfsVm) -> list[str]:
    return vm.run("zfs", "list", "-H", "-t", "snapshot", "-o", "name").split()


def host_columns(run: Path) -> dict[str, list[float]]:
    """Each column of host.csv, without what is empty."""
    with (run / "host.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows if row[name]] for name in rows[0]}


def runs_of(folder: Path) -> list[Path]:
    return sorted((folder / "out").glob("*/runs/*"))


def test_two_record_sizes_are_compared_with_figures_of_the_real_arc(vm: ZfsVm, tmp_path: Path) -> None:
    file = lab(vm, tmp_path, "records", repeats=1, phases=LONG)
    checked = plimsoll("check", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = plimsoll("run", file, "--json")
    assert done.returncode == 0, done.stderr
    runs = runs_of(tmp_path)
    assert len(runs) == len(SITES)
    for run in runs:
        facts = json.loads((run / "run.json").read_text())
        site = facts["backend"]
        host = facts["storage"]["facts"]
        assert host["zfs_version"].startswith("2.")
        assert host["arc_c_max_bytes"] > 0
        (pool,) = host["pools"]
        assert (pool["pool"], pool["layout"]) == ("tank", ["disk"])
        (dataset,) = host["datasets"]
        assert dataset["properties"]["recordsize"] == f"{site[1:]}K"
        assert dataset["properties"]["logbias"] == "throughput"
        columns = host_columns(run)
        assert max(columns["arcstats.size_bytes"]) > 0
        assert max(columns["arcstats.hits_per_s"]) > 0
        assert columns["zpool.tank_allocated_bytes"]
        events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
        assert [one["phase"] for one in events if one["event"] == "zfs-send"] == ["start", "stop"]
        assert max(one["bytes_per_s"] for one in events if one["event"] == "zfs-send bytes") > 0
    report = next((tmp_path / "out").glob("*/report.html")).read_text()
    assert "arcstats.hit_percent" in report or "ARC" in report
    as_it_was(vm)


def test_killed_again_and_again_it_is_finished_and_leaves_nothing(vm: ZfsVm, tmp_path: Path) -> None:
    name = f"kills-{os.getpid() % 10000}"
    file = lab(vm, tmp_path, name, repeats=3)  # long enough for so many kills
    draw, kills = random.Random(SEED), 0
    while kills < KILLS:
        goes_on = any((tmp_path / "out").glob("*/journal.jsonl"))
        words = ["run", "--resume", str(file)] if goes_on else ["run", str(file)]
        if not killed(words, draw.uniform(1, _LONGEST_S)):
            break
        kills += 1
    assert kills >= 2
    done = plimsoll("run", "--resume", file, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["not_done"] == []
    runs = [json.loads((run / "run.json").read_text()) for run in runs_of(tmp_path)]
    assert [run["status"] for run in runs] == ["complete"] * 3 * len(SITES)
    as_it_was(vm)
    # One more, killed while it sends; nobody resumes it.
    second = tmp_path / "second"
    second.mkdir()
    file = lab(vm, second, name, phases={"before_s": 1, "during_s": 300, "after_s": 1})
    sends_yet = lambda: any(name in one for one in snapshots(vm))  # noqa: E731
    killed_when(["run", str(file)], sends_yet)
    cleaned = plimsoll("clean", file)
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    as_it_was(vm)
    assert vm.left(name) == []
    again = plimsoll("clean", file)
    assert again.returncode == 0, again.stdout + again.stderr


def as_it_was(vm: ZfsVm) -> None:
    """No snapshot of the lab's is there, and what was tuned is back."""
    assert [name for name in snapshots(vm) if "plimsoll" in name] == []
    assert vm.run("cat", f"{PARAMETERS}/zfs_txg_timeout").strip() == "5"
    for site in SITES:
        words = ("zfs", "get", "-H", "-o", "value,source", "logbias", f"tank/lab/{site}")
        assert vm.run(*words).split() == ["latency", "default"]


def killed_when(words: list[str], condition: Callable[[], bool]) -> None:
    """Run plimsoll, and kill it when the condition holds."""
    process = subprocess.Popen(
        [PLIMSOLL, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert eventually(condition, 300)
    finally:
        process.kill()
        process.wait()


RAFT = [sys.executable, "-m", "tests.support.raft"]
ZFS = {"kind": "emulated", "filesystem": "zfs", "size_bytes": "512M"}
# Each: the backend's name, its disk, its saturator, and the event that shows it at work.
WORK: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("send", ZFS, {"kind": "zfs-send"}, "zfs-send bytes"),
    ("increments", ZFS, {"kind": "zfs-send", "mode": "incremental"}, "zfs-send bytes"),
    ("scrub", ZFS, {"kind": "scrub"}, "scrub bytes"),
    ("resilver", ZFS, {"kind": "resilver"}, "resilver bytes"),
    (
        "replicate",
        ZFS,
        {"kind": "zfs-replicate", "interval_s": 2, "sink": {"to": "local", "into": "tank/lab"}},
        "zfs-replicate bytes",
    ),
    (
        "ext4",
        {"kind": "emulated", "filesystem": "ext4", "size_bytes": "512M", "bytes_per_s": "20M"},
        {"kind": "fio", "size_bytes": "4M"},
        "fio bytes",
    ),
]


@pytest.mark.parametrize(("backend", "disk", "saturator", "at_work"), WORK, ids=[row[0] for row in WORK])
def test_a_disk_that_the_lab_makes_there_is_worked_on_and_removed(
    backend: str, disk: dict[str, Any], saturator: dict[str, Any], at_work: str, vm: ZfsVm, tmp_path: Path
) -> None:
    name = f"made-{os.getpid() % 10000}"
    clone = {"driver": "raft", "target": vm.sites["r16"]}
    backends = [{"name": backend, "host": "vm", "disk": disk, "clone": clone, "saturator": saturator}]
    file = lab(vm, tmp_path, name, backends=backends, repeats=1, phases=LONG)
    command = [*RAFT, "run", str(file), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    (run,) = runs_of(tmp_path)
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert max((one["bytes_per_s"] for one in events if one["event"] == at_work), default=0) > 0, events
    assert vm.left(name) == []


def test_volumes_are_full_and_caches_cold_on_pools_made_and_found(vm: ZfsVm, tmp_path: Path) -> None:
    name = f"cold-{os.getpid() % 10000}"
    limits = ("cat", f"{PARAMETERS}/zfs_arc_min", f"{PARAMETERS}/zfs_arc_max")
    before = vm.run(*limits)
    clone = {"driver": "raft", "caches": True, "target": vm.sites["r16"]}
    found = {"kind": "folder", "path": "/tank/r16", "dataset": "tank/lab/r16"}
    backends = [
        {"name": "made", "host": "vm", "disk": ZFS, "clone": clone},
        {"name": "found", "host": "vm", "disk": found, "clone": clone},
    ]
    filling = {
        "fill_percent": 30,
        "round_s": 2,
        "most_rounds": 5,
        "threads": 1,
        "backends": ["made", "found"],
    }
    more = {"backends": backends, "precondition": filling, "cache": "cold", "repeats": 1}
    done = subprocess.run(
        [*RAFT, "run", str(lab(vm, tmp_path, name, **more)), "--json"],
        capture_output=True,
        text=True,
        timeout=1500,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    runs = {facts["backend"]: facts["storage"] for facts in map(facts_of, runs_of(tmp_path))}
    assert set(runs) == {"made", "found"}
    for storage in runs.values():
        assert storage["precondition"]["rounds"] == 5
        assert storage["cache"]["state"] == "cold"
    assert "export the pool, which empties its cache" in runs["made"]["cache"]["how"]
    assert any("(ARC) until it is empty" in step for step in runs["found"]["cache"]["how"]), runs
    assert vm.run(*limits) == before
    assert vm.left(name) == []
    as_it_was(vm)


def facts_of(run: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((run / "run.json").read_text())
    return facts
