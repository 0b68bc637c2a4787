"""Experiments of many shapes, killed at random instants: nothing left, nothing twice, tuning back.

Twenty times each, or PLIMSOLL_KILLS=3 times; PLIMSOLL_KILL_SEED=7 at other instants.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.disks import left_in, left_of
from tests.support.programs import REPLAY, ROOT, need
from tests.support.servers import Nginx

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("PLIMSOLL_KILLS", "20"))
SEED = int(os.environ.get("PLIMSOLL_KILL_SEED", "20"))
PLIMSOLL = [sys.executable, "-m", "tests.support.raft"]
NAME = f"many-{os.getpid() % 10000}"
_LONGEST_S = 12  # until a kill: about as long as a backend takes to be made, and two runs
JOURNALS = Path("/var/lib/plimsoll/tuning")
TUNED = (Path("/proc/sys/vm/swappiness"), Path("/proc/sys/vm/dirty_expire_centisecs"))

HEAD = """
name: {name}
out: {folder}/out
work: {folder}/work
phases: {{before_s: 0.3, during_s: 1.2, after_s: 0.3}}
warmup_s: 0.2
limits: {{settle_s: 0, retry_s: 0}}
observe: {{observe: [cpu, diskstats]}}
"""
BACKENDS = """
backends:
  - name: ext4
    disk: {{kind: emulated, filesystem: ext4, size_bytes: 512M, bytes_per_s: 200M}}
    clone: {{driver: raft, target: "{url}"}}
    tuning: {{vm: {{swappiness: 33}}}}
  - name: zfs
    disk: {{kind: emulated, filesystem: zfs, size_bytes: 512M}}
    clone: {{driver: raft, target: "{url}"}}
    tuning: {{vm: {{dirty_expire_centisecs: 2900}}}}
    saturator: {{kind: zfs-send, mode: incremental, rate_bytes_per_s: 4M}}
saturator: {{kind: fio, size_bytes: 4M}}
"""
# Each: what it is, the file, and how many run directories it comes to.
LABS: list[tuple[str, str, int]] = [
    (
        "two scenarios on two disks",
        HEAD
        + BACKENDS
        + """
scenarios:
  - scenario: replay
    options: {{log: "{log}", rate: 20}}
  - scenario: download
    options: {{path: /page.html}}
repeats: 2
""",
        8,
    ),
    (
        "factors, on clones that are shared and that are not",
        HEAD
        + BACKENDS
        + """
factors:
  - {{name: swappiness, values: [10, 90]}}
  - {{name: recordsize, values: [16K, 128K], backends: [zfs]}}
scenarios:
  - scenario: replay
    options: {{log: "{log}", rate: 20}}
repeats: 1
""",
        6,
    ),
    (
        "two together, with a factor",
        HEAD
        + BACKENDS
        + """
factors:
  - {{name: swappiness, values: [10, 90]}}
scenarios:
  - name: rush
    together:
      - {{scenario: replay, options: {{log: "{log}", rate: 20}}}}
      - {{scenario: download, options: {{path: /page.html, iterations: 20}}}}
repeats: 1
""",
        8,
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    for program in (REPLAY, "zpool", "losetup", "fio"):
        need(program)
    if os.geteuid() != 0:
        pytest.skip("needs root: make test-lab")
    yield tmp_path
    _plimsoll("clean", tmp_path / "lab.yml")
    shutil.rmtree(tmp_path / "work", ignore_errors=True)


def _plimsoll(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*PLIMSOLL, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=ROOT)


def _killed(words: list[str], after_s: float) -> bool:
    """Run plimsoll and kill it after that time; whether it still ran."""
    process = subprocess.Popen(
        [*PLIMSOLL, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=ROOT,
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after_s)
    still = process.poll() is None
    process.send_signal(signal.SIGKILL)
    status = process.wait()
    assert still or status == 0
    return still


def _settings() -> list[int]:
    return [int(path.read_text()) for path in TUNED]


def _runs(directory: Path) -> list[dict[str, Any]]:
    """Every run directory of the experiment, and what its run.json says."""
    return [json.loads(path.read_text()) for path in sorted((directory / "runs").rglob("run.json"))]


@pytest.mark.parametrize(("text", "count"), [row[1:] for row in LABS], ids=[row[0] for row in LABS])
def test_killed_many_times_each_run_is_there_once_and_the_host_as_it_was(
    text: str, count: int, folder: Path, nginx: Nginx
) -> None:
    file = folder / "lab.yml"
    log = ROOT / "examples" / "access.log"
    file.write_text(text.format(name=NAME, folder=folder, url=nginx.url, log=log))
    draw, before, kills = random.Random(SEED), _settings(), 0
    while kills < KILLS:
        goes_on = any((folder / "out").glob(f"{NAME}-*/journal.jsonl"))
        words = ["run", "--resume", str(file)] if goes_on else ["run", str(file)]
        if _killed(words, draw.uniform(0.3, _LONGEST_S)):
            kills += 1
        elif goes_on:  # it came to its end: the further kills hit another of the same name
            _is_whole(folder, count)
            shutil.move(folder / "out", folder / f"done-{kills}")
    goes_on = any((folder / "out").glob(f"{NAME}-*/journal.jsonl"))
    done = _plimsoll("run", *(["--resume"] if goes_on else []), file, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["not_done"] == []
    _is_whole(folder, count)
    assert left_of(NAME) == []
    assert left_in(folder / "work") == []
    assert _settings() == before
    assert not list(JOURNALS.glob(f"plimsoll-{NAME}--*"))


def _is_whole(folder: Path, count: int) -> None:
    # One that was killed before it began has a folder and no journal.
    (directory,) = (path.parent for path in (folder / "out").glob(f"{NAME}-*/journal.jsonl"))
    runs = _runs(directory)
    assert len(runs) == count
    assert {run["status"] for run in runs} == {"complete"}
    each = Counter((run["backend"], run["scenario"], run["repeat"], run["experiment"]["run"]) for run in runs)
    assert set(each.values()) == {1}, "nothing twice"
    lines = [json.loads(line) for line in (directory / "journal.jsonl").read_text().splitlines()]
    finished = Counter(line["run"] for line in lines if line["what"] == "run finished")
    assert max(finished.values()) == 1
    assert all(run["storage"]["tuning"] for run in runs)
    for path in (directory / "runs").rglob("events.jsonl"):
        assert '"phase": "stop"' in path.read_text()
