"""The observers of pools read what OpenZFS 2.1.11 and 2.3.9 printed (tests/fixtures/openzfs)."""

import pytest

from plimsoll.lab.observers import kstat, poolstate, poolwaits, vdevs
from plimsoll.lab.observers.observer import END, FileSource
from plimsoll.lab.observers.poolstate import Leaf
from tests.support.programs import ROOT

OPENZFS = ROOT / "tests" / "fixtures" / "openzfs"
RECORDED = OPENZFS / "observers-2.1.11"


def _text(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text(encoding="utf-8")


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
    source.sample([_text("zil").replace("    4619", "    4600")], 0)
    values = source.sample([_text("zil")], 1_000_000_000)
    figures = dict(zip((column.name for column in source.columns), values, strict=True))
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


VERSIONS = ["2.1.11", "2.3.9"]


@pytest.mark.parametrize("version", VERSIONS)
def test_all_groups_of_a_version_are_read(version: str) -> None:
    texts = [(OPENZFS / version / name).read_text() for name in ("txgs", "txgs-later")]
    assert [len(kstat.parse_groups(text)) for text in texts] == [len(text.splitlines()) - 1 for text in texts]
    assert {"S", "C", "O"} <= {group.state for text in texts for group in kstat.parse_groups(text)}
    groups = kstat.Groups(["rec"])
    first, later = (groups.read(("", "", text)) for text in texts)
    assert later["rec txg"] > first["rec txg"]
    assert later["rec stime"] > 0


@pytest.mark.parametrize(("version", "written"), [("2.1.11", False), ("2.3.9", True)])
def test_what_went_to_a_slog(version: str, written: bool) -> None:
    source = FileSource("zil", kstat.ZIL_COLUMNS, kstat.read_kstat, kstat.ZIL_PATHS)
    for at, name in enumerate(("zil-slog", "zil-slog-later")):
        values = source.sample([(OPENZFS / version / name).read_text()], at * 1_000_000_000)
    figures = dict(zip((column.name for column in source.columns), values, strict=True))
    assert (figures["slog_bytes_per_s"] or 0) > 1e6
    assert (figures["slog_written_bytes_per_s"] is not None) is written


@pytest.mark.parametrize("version", VERSIONS)
def test_histograms_of_a_version(version: str) -> None:
    taker = poolwaits.HistogramReader()
    blank = "\t".join(["0"] * 10)
    for bucket in range(37):
        taker.add("rec" if not bucket else "")
        taker.add(f"{(1 << bucket + 1) - 1}\t{blank}")
    taker.add(END)
    taker.take()
    for line in [*(OPENZFS / version / "iostat-w").read_text().splitlines(), END]:
        taker.add(line)
    found = taker.take()
    assert (found.gauge("rec total_wait write p50") or 0) > 0
    assert found.gauge("rec total_wait read p50") is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_device_is_a_vdev_of_no_mirror(version: str) -> None:
    (status,) = poolstate.parse_status((OPENZFS / version / "zpool-status-slog").read_text())
    one, two, slow = (f"/dev/disk/by-id/virtio-{name}-part1" for name in ("one", "two", "slow"))
    assert status.leaves == (Leaf(one, "mirror-0"), Leaf(two, "mirror-0"), Leaf(slow, ""))
    # The recording is without -P, and so with short names.
    leaves = {"rec": [Leaf(leaf.name[16:-6], leaf.group) for leaf in status.leaves]}
    taker = vdevs.VdevReader(leaves)
    for line in (OPENZFS / version / "iostat-v-l-slog").read_text().splitlines():
        taker.add(line)
    taken = taker.take()
    assert (taken.gauge("rec/virtio-slow write wait") or 0) > 1e6
    assert (taken.gauge("rec write behind") or 0) > 1e5


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("what", "state"), [("scrub", (1, 0, 0)), ("resilver", (0, 1, 0)), ("trim", (0, 0, 2))]
)
def test_what_runs_on_a_pool(version: str, what: str, state: tuple[int, int, int]) -> None:
    (found,) = poolstate.parse_status((OPENZFS / version / f"zpool-status-{what}").read_text())
    assert (found.scrub, found.resilver, found.trimmed) == state
