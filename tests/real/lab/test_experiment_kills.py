"""An experiment on real disks, killed at random instants: it is finished all the same, and nothing stays.

Twenty times, or PLIMSOLL_KILLS=3 times; PLIMSOLL_KILL_SEED=7 at other instants.
"""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.disks import left_in, left_of
from tests.support.programs import PLIMSOLL, REPLAY, ROOT, killed, need
from tests.support.site import Filled, need_docker

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("PLIMSOLL_KILLS", "20"))
SEED = int(os.environ.get("PLIMSOLL_KILL_SEED", "20"))
_LONGEST_S = 45  # until a kill: about as long as a backend takes to be made, and its first run
NAME = f"kill-{os.getpid() % 10000}"
LAB = """
name: {name}
out: {folder}/out
work: {folder}/work
site: {{data: {data}}}
backends:
  - name: zfs
    disk: {{kind: emulated, filesystem: zfs, size_bytes: 3G, bytes_per_s: 200M}}
    clone: {{driver: compose}}
  - name: ext4
    disk: {{kind: emulated, filesystem: ext4, size_bytes: 3G, bytes_per_s: 200M}}
    clone: {{driver: compose}}
    saturator: {{kind: fio, size_bytes: 16M}}
    tuning: {{vm: {{swappiness: 33}}}}
scenarios:
  - scenario: replay
    options: {{log: {log}, rate: 20}}
saturator: {{kind: zfs-send, mode: incremental}}
phases: {{before_s: 1, during_s: 3, after_s: 1}}
warmup_s: 0.5
limits: {{settle_s: 0}}
repeats: 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    for program in (REPLAY, "zpool", "losetup", "fio"):
        need(program)
    need_docker()
    yield tmp_path
    subprocess.run([PLIMSOLL, "clean", tmp_path / "lab.yml"], timeout=300, check=False)
    shutil.rmtree(tmp_path / "work", ignore_errors=True)


def swappiness() -> int:
    return int(Path("/proc/sys/vm/swappiness").read_text())


def test_killed_at_random_instants_it_finishes_and_leaves_nothing(folder: Path, filled: Filled) -> None:
    file = folder / "lab.yml"
    log = ROOT / "examples" / "access.log"
    file.write_text(LAB.format(name=NAME, folder=folder, data=filled.folder, log=log))
    draw, before = random.Random(SEED), swappiness()
    begin, resume = ["run", str(file)], ["run", "--resume", str(file)]
    experiments = 0
    for number in range(KILLS):
        goes_on = any((folder / "out").glob(f"{NAME}-*/journal.jsonl"))
        # What is finished is not begun again, so the later kills hit another experiment of the same name.
        if not killed(resume if goes_on else begin, draw.uniform(0.5, _LONGEST_S)) and goes_on:
            experiments += 1
            shutil.move(folder / "out", folder / f"done-{experiments}")
        if number % 2 == 1:
            cleaned = subprocess.run([PLIMSOLL, "clean", file], capture_output=True, text=True, timeout=300)
            assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
            assert left_of(NAME) == []
            assert left_in(folder / "work") == []
            assert swappiness() == before
    goes_on = any((folder / "out").glob(f"{NAME}-*/journal.jsonl"))
    done = subprocess.run(
        [PLIMSOLL, *(resume if goes_on else begin), "--json"], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert len(outcome["finished"]) == 4
    assert outcome["not_done"] == []
    runs = sorted(path.name for path in (Path(outcome["directory"]) / "runs").iterdir())
    assert runs == outcome["finished"]
    for run in runs:
        events = (Path(outcome["directory"]) / "runs" / run / "events.jsonl").read_text()
        assert '"phase": "start"' in events
        assert '"phase": "stop"' in events
    assert left_of(NAME) == []
    assert left_in(folder / "work") == []
    assert swappiness() == before
