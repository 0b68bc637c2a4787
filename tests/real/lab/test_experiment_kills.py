"""Experiments of many shapes on real disks, killed at random instants: all done, nothing left, nothing twice.

Twenty times each, or PLIMSOLL_KILLS=3 times; PLIMSOLL_KILL_SEED=7 at other instants.
"""

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.disks import left_in, left_of
from tests.support.labs import (
    RAFT,
    TUNING_JOURNALS,
    experiment_of,
    go_on,
    lines_of,
    need_lab,
    own_name,
    plimsoll,
    run_lab,
    runs_of,
    write_lab,
)
from tests.support.programs import killed
from tests.support.servers import Nginx
from tests.support.site import Filled

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("PLIMSOLL_KILLS", "20"))
SEED = int(os.environ.get("PLIMSOLL_KILL_SEED", "20"))
NAME = own_name("kills")
TUNED = (Path("/proc/sys/vm/swappiness"), Path("/proc/sys/vm/dirty_expire_centisecs"))

HEAD = """
name: $name
out: $folder/out
work: $folder/work
phases: {before_s: 0.3, during_s: 1.2, after_s: 0.3}
warmup_s: 0.2
limits: {settle_s: 0, retry_s: 0}
observe: {observe: [cpu, diskstats]}
"""
BACKENDS = """
backends:
  - name: ext4
    disk: {kind: emulated, filesystem: ext4, size_bytes: 512M, bytes_per_s: 200M}
    clone: {driver: raft, target: "$url"}
    tuning: {vm: {swappiness: 33}}
  - name: zfs
    disk: {kind: emulated, filesystem: zfs, size_bytes: 512M}
    clone: {driver: raft, target: "$url"}
    tuning: {vm: {dirty_expire_centisecs: 2900}}
    saturator: {kind: zfs-send, mode: incremental, rate_bytes_per_s: 4M}
saturator: {kind: fio, size_bytes: 4M}
"""
SITES = """
name: $name
out: $folder/out
work: $folder/work
site: {data: $data}
backends:
  - name: zfs
    disk: {kind: emulated, filesystem: zfs, size_bytes: 3G, bytes_per_s: 200M}
    clone: {driver: compose}
    tuning: {vm: {dirty_expire_centisecs: 2900}}
  - name: ext4
    disk: {kind: emulated, filesystem: ext4, size_bytes: 3G, bytes_per_s: 200M}
    clone: {driver: compose}
    saturator: {kind: fio, size_bytes: 16M}
    tuning: {vm: {swappiness: 33}}
saturator: {kind: zfs-send, mode: incremental}
phases: {before_s: 1, during_s: 3, after_s: 1}
warmup_s: 0.5
limits: {settle_s: 0}
"""
REPLAY = '{scenario: replay, options: {log: "$log", rate: 20}}'
FACTORS = "factors:\n  - {name: swappiness, values: [10, 90]}\n"
RECORDSIZE = "  - {name: recordsize, values: [16K, 128K], backends: [zfs]}\n"
DISKS = HEAD + BACKENDS
# Each: what it is, the file, how many run directories it comes to, and the longest time until a kill: about
# as long as a backend takes to be made, and two runs.
LABS: list[tuple[str, str, int, float]] = [
    (
        "two scenarios on two disks",
        f"{DISKS}repeats: 2\nscenarios: [{REPLAY}, {{scenario: download, options: {{path: /page.html}}}}]\n",
        8,
        12,
    ),
    (
        "factors, on clones that are shared and that are not",
        f"{DISKS}repeats: 1\nscenarios: [{REPLAY}]\n{FACTORS}{RECORDSIZE}",
        6,
        12,
    ),
    (
        "two together, with a factor",
        f"{DISKS}repeats: 1\n{FACTORS}scenarios:\n  - name: rush\n    together:\n      - {REPLAY}\n"
        "      - {scenario: download, options: {path: /page.html, iterations: 20}}\n",
        8,
        12,
    ),
    ("clones of a site", f"{SITES}repeats: 2\nscenarios: [{REPLAY}]\n", 4, 45),
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    need_lab("zpool", "losetup", "fio", as_root=True)
    yield tmp_path
    plimsoll("clean", tmp_path / "lab.yml", program=RAFT)
    shutil.rmtree(tmp_path / "work", ignore_errors=True)


def tuned() -> list[int]:
    return [int(path.read_text()) for path in TUNED]


def is_clean(folder: Path, before: list[int]) -> None:
    assert left_of(NAME) == []
    assert left_in(folder / "work") == []
    assert tuned() == before
    assert not list(TUNING_JOURNALS.glob(f"plimsoll-{NAME}--*"))


@pytest.mark.parametrize(
    ("text", "count", "longest_s"), [row[1:] for row in LABS], ids=[row[0] for row in LABS]
)
def test_killed_many_times_each_run_is_there_once_and_the_host_as_it_was(
    request: pytest.FixtureRequest, text: str, count: int, longest_s: float, folder: Path, nginx: Nginx
) -> None:
    has_site = "$data" in text
    filled: Filled | None = request.getfixturevalue("filled") if has_site else None
    file = write_lab(folder, NAME, text, url=nginx.url, data=filled and filled.folder)
    draw, before, kills = random.Random(SEED), tuned(), 0
    while kills < KILLS:
        words = go_on(file)
        if killed(["run", *words], draw.uniform(0.3, longest_s), RAFT):
            kills += 1
        elif words[0] == "--resume":  # it came to its end: the further kills hit another of the same name
            is_whole(file, count)
            shutil.move(folder / "out", folder / f"done-{kills}")
        if has_site and kills % 2 == 1:
            cleaned = plimsoll("clean", file, program=RAFT)
            assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
            is_clean(folder, before)
    outcome, _ = run_lab(*go_on(file), program=RAFT)
    assert outcome["not_done"] == []
    is_whole(file, count)
    runs = {path.name for path in (experiment_of(file) / "runs").iterdir()}
    assert runs == set(outcome["finished"])
    is_clean(folder, before)


def is_whole(file: Path, count: int) -> None:
    directory = experiment_of(file)
    runs = runs_of(directory)
    assert len(runs) == count
    assert {run["status"] for run in runs} == {"complete"}
    each = Counter((run["backend"], run["scenario"], run["repeat"], run["experiment"]["run"]) for run in runs)
    assert set(each.values()) == {1}, "nothing twice"
    finished = Counter(
        line["run"] for line in lines_of(directory / "journal.jsonl") if line["what"] == "run finished"
    )
    assert max(finished.values()) == 1
    assert all(run["storage"]["tuning"] for run in runs)
    for path in (directory / "runs").rglob("events.jsonl"):
        events = path.read_text()
        assert '"phase": "start"' in events
        assert '"phase": "stop"' in events
