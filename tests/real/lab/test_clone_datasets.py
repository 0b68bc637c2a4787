"""A clone with its database and its web files on datasets of their own: made, sent, killed, gone."""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lab.clones.sitedata import SiteData
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.saturators import aim_saturator
from plimsoll.lab.steps.runner import StepRunner
from tests.support.disks import clear, emulated, left_in, left_of, need_disks, run
from tests.support.labs import (
    carried_out,
    end_when,
    experiment_of,
    lines_of,
    need_lab,
    own_name,
    plimsoll,
    run_lab,
    runs_of,
    write_lab,
)
from tests.support.programs import need
from tests.support.saturators import (
    FILE_BYTES,
    SETTINGS,
    fill,
    is_whole_story,
    snapshots,
    until_bytes,
    working,
)
from tests.support.site import need_docker

PARTS = {"@database": {"recordsize": "16384"}, "@web": {"recordsize": "65536", "compression": "gzip"}}
FOLDERS = ["mysql", "wordpress", "static", "forum"]


def zfs_get(dataset: str, name: str) -> tuple[str, str]:
    """A property's value and where it has it from."""
    words = [need("zfs"), "get", "-H", "-p", "-o", "value,source", name, dataset]
    value, source = (
        subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip().split("\t")
    )
    return value, source.split(" ")[0]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A site's folders with a file in each, the database's owned by somebody."""
    for name in [*FOLDERS, "tmp"]:
        (tmp_path / "small" / name).mkdir(parents=True)
        fill(tmp_path / "small" / name / "file", FILE_BYTES // 6)
    os.chown(tmp_path / "small" / "mysql", 101, 102)
    (tmp_path / "small" / "mysql").chmod(0o700)
    return tmp_path / "small"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        pytest.param({}, "in full, again and again", marks=pytest.mark.slow),
        ({"mode": "incremental"}, "what is new"),
        pytest.param({"rate_bytes_per_s": 8 << 20}, "no faster than asked", marks=pytest.mark.slow),
    ],
)
def test_all_of_a_clone_is_sent_and_none_of_the_snapshots_stays(
    settings: dict[str, Any], says: str, work: Path, small: Path
) -> None:
    need_disks("zfs")
    disk = emulated("zfs", work)
    site = SiteData(replace(disk.place(), cold=()), "site", str(small), parts=PARTS)

    async def life(machine: LocalMachine) -> None:
        runner = StepRunner(machine)
        await runner.do([*disk.create(), *site.make()])
        kept = sorted(snapshots(str(site.data.dataset)))
        assert kept == sorted(f"{one}@plimsoll-pristine" for one in [site.data.dataset, *site.data.part_of])
        owner = (Path(site.folder) / "mysql").stat()
        assert (owner.st_uid, owner.st_gid, owner.st_mode & 0o777) == (101, 102, 0o700)
        events: list[dict[str, Any]] = []
        said = aim_saturator(SETTINGS.validate_python({"kind": "zfs-send", **settings}), site.data)
        async with working(machine, said, events.append):
            await until_bytes(events, FILE_BYTES * 5 // 6 * 9 // 10)
            if "mode" in settings:
                fill(Path(site.folder) / "wordpress" / "later", FILE_BYTES // 2)
            await until_bytes(events, FILE_BYTES * 5 // 4)
        is_whole_story(events, "zfs-send")
        assert sorted(snapshots(str(site.data.dataset))) == kept

        (Path(site.folder) / "wordpress" / "later").touch()
        (Path(site.folder) / "mysql" / "file").unlink()
        await runner.do(site.restore())
        assert sorted(one.name for one in (Path(site.folder) / "wordpress").iterdir()) == ["file"]
        assert (Path(site.folder) / "mysql" / "file").exists()
        assert len(await clear(machine, lambda there: site.find(there, "zfs"))) == 1
        assert list(Path(site.place.folder).iterdir()) == []
        await clear(machine, disk.find)

    run(life)


LAB = """
name: $name
out: $folder/out
work: $folder/work
site: {data: $data}
backends:
  - name: zfs
    disk: {kind: emulated, filesystem: zfs, size_bytes: 3G}
    clone: {driver: compose}
    tuning:
      datasets:
        "@database": {recordsize: 16K, logbias: throughput}
        "@web": {recordsize: 64K}
scenarios:
  - scenario: replay
    options: {log: $log, rate: 20}
saturator: {kind: zfs-send}
phases: {before_s: 1, during_s: $during_s, after_s: 1}
warmup_s: 0.5
limits: {settle_s: 0}
repeats: 1
"""
NAME = own_name("parts")
DATASET = f"plimsoll-{NAME}--zfs/site/plimsoll-{NAME}--zfs"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    need_lab("zpool", "losetup")
    need_docker()
    yield tmp_path
    plimsoll("clean", tmp_path / "lab.yml")
    shutil.rmtree(tmp_path / "work", ignore_errors=True)


def killed_while_it_sends(file: Path, rounds: int) -> None:
    """Runs plimsoll, and kills it when the saturator sends the database for that many a time."""

    def sends() -> bool:
        events = [path.read_text() for path in file.parent.glob("out/*/attempts/*/lab-events.jsonl")]
        has_sent = any("zfs-send bytes" in text for text in events)
        return has_sent and sends_of(file)[f"{DATASET}/mysql"] >= rounds

    end_when(("run", file), sends)


def sends_of(file: Path) -> Counter[str]:
    """How often an experiment has begun to send each dataset."""
    commands = [words for path in file.parent.glob("out/*") for words in carried_out(path)]
    return Counter(words[-1].partition("@")[0] for words in commands if "send" in words)


@pytest.fixture
def data(request: pytest.FixtureRequest) -> str:
    """The site that is copied; or the folder that PLIMSOLL_GOLDEN names, to write tests."""
    return os.environ.get("PLIMSOLL_GOLDEN") or str(request.getfixturevalue("filled").folder)


@pytest.mark.slow
def test_all_of_a_clone_goes_with_an_experiment_that_is_killed(folder: Path, data: str) -> None:
    file = write_lab(folder, NAME, LAB, data=data, during_s=3600)  # until it is killed
    mounted = folder / "work" / f"plimsoll-{NAME}--zfs" / "mnt" / f"plimsoll-{NAME}--zfs"
    killed_while_it_sends(file, rounds=2)

    assert {DATASET, *(f"{DATASET}/{one}" for one in FOLDERS)} <= sends_of(file).keys()
    assert zfs_get(f"{DATASET}/mysql", "recordsize") == ("16384", "local")
    assert zfs_get(f"{DATASET}/mysql", "logbias") == ("throughput", "local"), "set for the run"
    assert zfs_get(f"{DATASET}/wordpress", "recordsize") == ("65536", "local")
    assert zfs_get(f"{DATASET}/wordpress", "logbias")[0] == "latency"
    assert zfs_get(DATASET, "recordsize") == ("131072", "default")
    on = {one: (mounted / one).stat().st_dev for one in ("mysql/ibdata1", "wordpress/index.php", "site.json")}
    assert len(set(on.values())) == 3, "each is on a file system of its own"
    assert any("plimsoll-parts" in one and f"{DATASET}/static@" in one for one in snapshots(DATASET))

    cleaned = plimsoll("clean", file)
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    assert left_of(NAME) == []
    assert left_in(folder / "work") == []


@pytest.mark.slow
def test_an_experiment_that_was_killed_goes_on_with_a_clone_of_datasets(folder: Path, data: str) -> None:
    file = write_lab(folder, NAME, LAB, data=data, during_s=20)  # of which the first second sends something
    killed_while_it_sends(file, rounds=1)
    run_lab("--resume", file)
    assert left_of(NAME) == []
    assert left_in(folder / "work") == []

    experiment = experiment_of(file)
    (run,) = runs_of(experiment)
    facts = run["storage"]["facts"]["datasets"]
    assert [(one["part"], one["properties"]["recordsize"]) for one in facts] == [
        (None, "128K"),
        ("@database", "16K"),
        *[("@web", "64K")] * 3,
    ]
    assert {one["key"]: one["set"] for one in run["storage"]["tuning"]} == {
        "datasets.@database.recordsize": "16384",
        "datasets.@database.logbias": "throughput",
        "datasets.@web.recordsize": "65536",
    }
    (path,) = experiment.glob("runs/*/events.jsonl")
    (stop,) = (one for one in lines_of(path) if one["event"] == "zfs-send" and one.get("phase") == "stop")
    assert stop["bytes"] > 0
