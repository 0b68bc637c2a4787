"""What OpenZFS 2.1.11 and 2.3.9 printed (tests/fixtures/openzfs) is read as the lab assumes it."""

import subprocess
from pathlib import Path

import pytest

from plimsoll.lab.facts import facts
from plimsoll.lab.observers import kstat, poolstate, poolwaits, vdevs, zpool
from plimsoll.lab.observers.observer import END, FileSource
from plimsoll.lab.observers.poolstate import Leaf
from plimsoll.lab.saturators.scrub import SCAN, percent_done
from plimsoll.lab.saturators.zfs_send import estimated_bytes, progress_bytes
from tests.support.programs import ROOT
from tests.support.recorded import sampled

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


def _text(name: str) -> str:
    return (RECORDED / "observers-2.1.11" / f"{name}.txt").read_text(encoding="utf-8")


def test_a_group_that_is_still_syncing_counts_as_long_as_it_has() -> None:
    groups = kstat.Groups(["obs"])
    reading = groups.read((_text("zil"), _text("dmu_tx"), _text("txgs-syncing")))
    # Born at 321.23 s, open, quiesced and waiting for 0.38 s, read at 322.20 s.
    assert reading["obs stime"] == 322_203_149_380 - 321_230_971_370 - 382_224_700
    assert reading["obs txg"] == 134
    assert reading["dmu_tx_dirty_delay"] == 0


def test_a_group_that_ended_counts_once() -> None:
    groups = kstat.Groups(["obs"])
    lines = _text("txgs-syncing").splitlines(keepends=True)
    groups.read((_text("zil"), "", "".join(lines[:5])))
    reading = groups.read(("", "", "".join(lines)))
    assert reading["obs stime"] == 626_872_090
    assert reading["obs ndirty"] == 3_293_184
    assert reading["obs nwritten"] == 2_335_744 + 5_159_936


def test_the_zil_s_counters() -> None:
    source = FileSource("zil", kstat.ZIL_COLUMNS, kstat.read_kstat, kstat.ZIL_PATHS)
    figures = sampled(source, [_text("zil").replace("    4619", "    4600")], [_text("zil")])
    assert figures["commits_per_s"] == 19
    assert figures["pool_bytes_per_s"] == 0
    assert figures["pool_written_bytes_per_s"] is None


def test_waits_of_what_was_written_between_two_calls() -> None:
    taker = poolwaits.HistogramReader()
    for name in ("waits-before", "waits-after"):
        for line in [*_text(name).splitlines(), END]:
            taker.add(line)
        pair = taker.take()
    figures = {column.name: column.formula(pair) for column in poolwaits.columns(["obs"])}
    assert figures["obs_read_max_ms"] is None
    assert figures["obs_write_p50_ms"] == pytest.approx(8.388607)
    assert figures["obs_write_p99_ms"] == figures["obs_write_max_ms"] == pytest.approx(536.870911)
    assert figures["obs_write_disk_p50_ms"] == pytest.approx(1.048575)


def test_disks_of_two_pools() -> None:
    status = poolstate.parse_status(_text("status"))
    leaves = {each.pool: each.leaves for each in status}
    assert leaves == {
        "obs": (Leaf("/root/obs-a.img", "mirror-0"), Leaf("/root/obs-b.img", "mirror-0")),
        "rec": (Leaf("/dev/vdb1", "mirror-0"), Leaf("/dev/vdc1", "mirror-0")),
    }
    taker = vdevs.VdevReader(leaves)
    for line in _text("vdevs").splitlines()[:8]:
        taker.add(line)
    pair = taker.take()
    figures = {column.name: column.formula(pair) for column in vdevs.columns(leaves)}
    assert figures["obs/root-obs-b.img_write_latency_ms"] == pytest.approx(126.913853)
    assert figures["obs_write_behind_ms"] == pytest.approx(28.436974 - 0.813465)
    assert figures["rec_write_behind_ms"] is None
    assert figures["rec/vdb1_writes_per_s"] == 0


def test_the_state_of_two_pools() -> None:
    found = poolstate.parse(_text("list") + _text("status"))
    assert found["obs capacity"] == 29
    assert found["rec fragmentation"] == 20
    assert {
        found[f"{pool} {what}"] for pool in ("obs", "rec") for what in ("scrub", "resilver", "health")
    } == {0}


def test_all_groups_of_a_version_are_read(recorded: Path) -> None:
    texts = [text(recorded, name) for name in ("txgs", "txgs-later")]
    assert [len(kstat.parse_groups(text)) for text in texts] == [len(text.splitlines()) - 1 for text in texts]
    assert {"S", "C", "O"} <= {group.state for text in texts for group in kstat.parse_groups(text)}
    groups = kstat.Groups(["rec"])
    first, later = (groups.read(("", "", text)) for text in texts)
    assert later["rec txg"] > first["rec txg"]
    assert later["rec stime"] > 0


def test_what_went_to_a_slog(recorded: Path) -> None:
    source = FileSource("zil", kstat.ZIL_COLUMNS, kstat.read_kstat, kstat.ZIL_PATHS)
    figures = sampled(source, *([text(recorded, name)] for name in ("zil-slog", "zil-slog-later")))
    assert (figures["slog_bytes_per_s"] or 0) > 1e6
    assert (figures["slog_written_bytes_per_s"] is not None) is (recorded.name != "2.1.11")


def test_histograms_of_a_version(recorded: Path) -> None:
    taker = poolwaits.HistogramReader()
    blank = "\t".join(["0"] * 10)
    for bucket in range(37):
        taker.add("rec" if not bucket else "")
        taker.add(f"{(1 << bucket + 1) - 1}\t{blank}")
    taker.add(END)
    taker.take()
    for line in [*text(recorded, "iostat-w").splitlines(), END]:
        taker.add(line)
    found = taker.take()
    assert (found.gauge("rec total_wait write p50") or 0) > 0
    assert found.gauge("rec total_wait read p50") is None


def test_a_log_device_is_a_vdev_of_no_mirror(recorded: Path) -> None:
    (status,) = poolstate.parse_status(text(recorded, "zpool-status-slog"))
    one, two, slow = (f"/dev/disk/by-id/virtio-{name}-part1" for name in ("one", "two", "slow"))
    assert status.leaves == (Leaf(one, "mirror-0"), Leaf(two, "mirror-0"), Leaf(slow, ""))
    # The recording is without -P, and so with short names.
    leaves = {"rec": [Leaf(leaf.name[16:-6], leaf.group) for leaf in status.leaves]}
    taker = vdevs.VdevReader(leaves)
    for line in text(recorded, "iostat-v-l-slog").splitlines():
        taker.add(line)
    taken = taker.take()
    assert (taken.gauge("rec/virtio-slow write wait") or 0) > 1e6
    assert (taken.gauge("rec write behind") or 0) > 1e5


@pytest.mark.parametrize(
    ("what", "state"), [("scrub", (1, 0, 0)), ("resilver", (0, 1, 0)), ("trim", (0, 0, 2))]
)
def test_what_runs_on_a_pool(recorded: Path, what: str, state: tuple[int, int, int]) -> None:
    (found,) = poolstate.parse_status(text(recorded, f"zpool-status-{what}"))
    assert (found.scrub, found.resilver, found.trimmed) == state
