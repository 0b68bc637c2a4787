"""What real OpenZFS printed (tests/fixtures/openzfs) is read as the lab assumes it."""

import subprocess
from pathlib import Path

import pytest

from plimsoll.lab.facts import facts
from plimsoll.lab.observers import kstat, zpool
from plimsoll.lab.saturators.scrub import SCAN, percent_done
from plimsoll.lab.saturators.send import discard_command
from plimsoll.lab.saturators.zfs_send import estimated_bytes, progress_bytes
from tests.support.programs import ROOT

RECORDED = ROOT / "tests" / "fixtures" / "openzfs"
VERSIONS = sorted(path.name for path in RECORDED.iterdir() if (path / "SOURCES").exists())


@pytest.fixture(params=VERSIONS)
def recorded(request: pytest.FixtureRequest) -> Path:
    """What one version of OpenZFS printed."""
    return RECORDED / str(request.param)


def text(recorded: Path, name: str) -> str:
    return (recorded / name).read_text()


def test_each_recording_says_which_command_printed_it(recorded: Path) -> None:
    named = {line.partition("\t")[0] for line in text(recorded, "SOURCES").splitlines()}
    assert named == {path.name for path in recorded.iterdir()} - {"SOURCES"}


@pytest.mark.parametrize("name", ["send-slow.err", "send-incremental.err"])
def test_the_bytes_of_a_send_are_read(recorded: Path, name: str) -> None:
    lines = text(recorded, name).splitlines()
    (estimate,) = [found for line in lines if (found := estimated_bytes(line)) is not None]
    sent = [found for line in lines if (found := progress_bytes(line)) is not None]
    assert len(sent) >= 5
    assert sent == sorted(sent)
    assert 0 < sent[-1] <= estimate * 1.1


def test_the_first_version_refuses_to_send_to_dev_null() -> None:
    assert "Writing directly to /dev/{null,zero} files" in text(RECORDED / "2.1.11", "send-full.err")


@pytest.mark.parametrize(
    ("script", "status", "says"),
    [
        ('[ ! /dev/fd/1 -ef /dev/null ] || { echo "cannot send: Invalid argument" >&2; exit 1; }', 0, ""),
        ("echo size >&2; head -c 300000 /dev/zero", 0, "size\n"),
        ("echo no such dataset >&2; exit 3", 3, "no such dataset\n"),
        ("kill -9 $$", 137, ""),
    ],
    ids=["it is not /dev/null", "what it says is heard", "its status counts", "its end counts"],
)
def test_a_stream_is_thrown_away_and_its_sender_is_heard(script: str, status: int, says: str) -> None:
    done = subprocess.run(discard_command(["sh", "-c", script]), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in done.stderr


def test_a_pool_s_figures_are_read_each_second_and_those_of_its_parts_are_another_s(recorded: Path) -> None:
    found = [zpool.parse(line) for line in text(recorded, "iostat-l").splitlines()]
    assert [one[0] for one in found if one] == ["rec"] * 3
    for one in found:
        assert one is not None
        assert {"allocated", "writes", "write bytes", "write wait", "write disk wait"} <= set(one[1])
        assert one[1]["allocated"] > 10**6


def test_the_cache_s_figures_are_there_by_the_names_that_columns_use(recorded: Path) -> None:
    found = kstat.parse_kstat(text(recorded, "arcstats"))
    names = {"hits", "misses", "size", "c", "c_min", "c_max", "data_size", "metadata_size", "l2_size"}
    names |= {"demand_data_misses", "demand_metadata_misses", "prefetch_data_misses", "memory_throttle_count"}
    assert names <= set(found)
    assert found["c_min"] <= found["c"] <= found["c_max"]


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("zpool-status", ("mirror × 2",)),
        ("zpool-status-slog", ("mirror × 2", "logs disk")),
        ("zpool-status-trim", ("mirror × 2",)),
        ("zpool-status-degraded", ("mirror × 2",)),
    ],
)
def test_the_layout_of_a_pool_is_read(recorded: Path, name: str, layout: tuple[str, ...]) -> None:
    assert facts.pool_layout(text(recorded, name))[0] == layout


@pytest.mark.parametrize(
    ("name", "under_way"),
    [
        ("zpool-status", False),
        ("zpool-status-scrub", True),
        ("zpool-status-scrub-paused", True),
        ("zpool-status-scrub-canceled", False),
        ("zpool-status-scrub-done", False),
        ("zpool-status-resilver", True),
        ("zpool-status-resilver-done", False),
    ],
)
def test_a_scan_that_is_under_way_is_seen(recorded: Path, name: str, under_way: bool) -> None:
    said = f'{SCAN}\nzpool() {{ cat "$2"; }}\nscan "$1" | grep -Eq "$under_way"'
    done = subprocess.run(["/bin/sh", "-c", said, "sh", recorded / name], check=False, timeout=60)
    assert (done.returncode == 0) == under_way
    shares = [percent_done(line) for line in text(recorded, name).splitlines()]
    assert any(share is not None for share in shares) == under_way


def test_properties_are_read(recorded: Path) -> None:
    rows = {line.split("\t")[1]: line.split("\t")[2] for line in text(recorded, "zfs-get").splitlines()}
    assert {*facts.PROPERTIES} <= set(rows)
    assert facts.parse_ratio(rows["compressratio"]) is not None
    assert f"zfs-kmod-{facts.parse_line(text(recorded, 'version-file'))}\n" in text(recorded, "zfs-version")
