"""The observers of pools read what OpenZFS 2.1.11 printed (tests/fixtures/openzfs)."""

import pytest

from lab.observers import poolstate, poolstatus, poolwaits, txg, vdevs, zil
from lab.observers.observer import Source
from lab.observers.poolstatus import Leaf
from lab.observers.watch import END
from tests.support.paths import ROOT

RECORDED = ROOT / "tests" / "fixtures" / "openzfs" / "observers-2.1.11"


def _text(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text(encoding="utf-8")


def test_a_group_that_is_still_syncing_counts_as_long_as_it_has() -> None:
    groups = txg.Groups(["obs"])
    reading = groups.read((_text("zil"), _text("dmu_tx"), _text("txgs-syncing")))
    # Born at 321.23 s, open, quiesced and waiting for 0.38 s, read at 322.20 s.
    assert reading["obs stime"] == 322_203_149_380 - 321_230_971_370 - 382_224_700
    assert reading["obs txg"] == 134
    assert reading["dmu_tx_dirty_delay"] == 0


def test_a_group_that_ended_counts_once() -> None:
    groups = txg.Groups(["obs"])
    lines = _text("txgs-syncing").splitlines(keepends=True)
    groups.read((_text("zil"), "", "".join(lines[:5])))
    reading = groups.read(("", "", "".join(lines)))
    assert reading["obs stime"] == 626_872_090
    assert reading["obs ndirty"] == 3_293_184
    assert reading["obs nwritten"] == 2_335_744 + 5_159_936


def test_the_zil_s_counters() -> None:
    source = Source("zil", zil.COLUMNS, zil.read, zil.PATHS)
    source.sample([_text("zil").replace("    4619", "    4600")], 0)
    values = source.sample([_text("zil")], 1_000_000_000)
    figures = dict(zip((column.name for column in source.columns), values, strict=True))
    assert figures["commits_per_s"] == 19
    assert figures["pool_bytes_per_s"] == 0
    assert figures["pool_written_bytes_per_s"] is None


def test_waits_of_what_was_written_between_two_calls() -> None:
    taker = poolwaits.Histograms()
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
    status = poolstatus.parse(_text("status"))
    leaves = {each.pool: each.leaves for each in status}
    assert leaves == {
        "obs": (Leaf("/root/obs-a.img", "mirror-0"), Leaf("/root/obs-b.img", "mirror-0")),
        "rec": (Leaf("/dev/vdb1", "mirror-0"), Leaf("/dev/vdc1", "mirror-0")),
    }
    taker = vdevs.VdevLines(leaves)
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
