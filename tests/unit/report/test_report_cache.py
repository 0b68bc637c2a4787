"""ZFS's cache in a report: hits, size, compress ratio; nothing where there is no ZFS."""

import re
from pathlib import Path

import numpy as np
import pytest

from plimsoll.analysis.report import make_report
from tests.support.experiment import BEFORE_S, DURING_S, FAST, facts_of_host, write_experiment
from tests.support.rundir import change
from tests.unit.report.test_comparison import figures_of, text_of


def with_arc(run: Path, hits: float, during: float, empty: bool = False) -> None:
    """Add arcstats to host.csv; the first second of what is counted is empty, as of an observer."""
    lines = (run / "host.csv").read_text().splitlines()
    found = [f"{lines[0]},arcstats.hit_percent,arcstats.size_bytes"]
    for second, line in enumerate(lines[1:]):
        busy = BEFORE_S <= second < BEFORE_S + DURING_S
        hit = "" if empty or not second else f"{during if busy else hits}"
        found.append(f"{line},{hit},{'' if empty else 3 << 30}")
    (run / "host.csv").write_text("\n".join(found) + "\n")


def on_zfs(run: Path, ratio: object = 1.4) -> None:
    facts = facts_of_host(rotational=False)
    facts["pools"] = [{"pool": "tank", "layout": ["mirror"]}]
    facts["datasets"][0]["compress_ratio"] = ratio
    change(run, storage={"emulated": None, "facts": facts})


def test_hits_and_size_are_drawn_since_the_saturator_started(tmp_path: Path) -> None:
    for number, run in enumerate(write_experiment(tmp_path, 2)):
        with_arc(run, 99.0, 60.0 + number)
    figures = figures_of(make_report([tmp_path]))
    figure, quiet = figures["host-arc-0"], figures["host-arc-0-quiet"]
    assert figure["layout"]["yaxis"]["title"]["text"] == "ARC hits (%)"
    lines = {trace["name"]: trace for trace in figure["data"] if trace.get("showlegend", True)}
    assert lines.keys() == {"nvme-mirror", "slow-disk (emulated)"}
    fast = dict(zip(lines["nvme-mirror"]["x"], lines["nvme-mirror"]["y"], strict=True))
    assert fast[-0.5] == 99.0
    assert fast[0.5] == pytest.approx(np.mean([60.0, 63.0])), "the mean of its repeats, first and last"
    assert quiet["layout"]["yaxis"]["title"]["text"] == "ARC size (GiB)", "it never changed"
    assert {value for trace in quiet["data"] for value in trace["y"] if value is not None} == {3.0}


@pytest.mark.parametrize("empty", [True, False], ids=["empty columns", "no columns"])
def test_without_arcstats_nothing_is_drawn(tmp_path: Path, empty: bool) -> None:
    for run in write_experiment(tmp_path, 2):
        if empty:
            with_arc(run, 99.0, 60.0, empty=True)
    made = make_report([tmp_path])
    assert not [key for key in figures_of(made) if key.startswith("host-arc")]
    assert "(ARC)" not in text_of(made), "not every host has ZFS"


def test_zfs_without_arcstats_is_said(tmp_path: Path) -> None:
    paths = write_experiment(tmp_path, 2, [("fuse", FAST), ("module", FAST)])
    for run in paths:
        on_zfs(run)
    for run in (paths[1], paths[2]):
        with_arc(run, 99.0, 60.0)
    text = text_of(make_report([tmp_path]))
    assert "fuse lies on ZFS, but nothing is known of its cache (ARC): zfs-fuse has no arcstats" in text
    assert "module lies on ZFS" not in text


@pytest.mark.parametrize(
    ("ratios", "cells"),
    [
        ((1.4, 1.4, 1.4, 1.4), ("1.4", "1.4")),
        ((1.4, 2.0, 2.5, 1.6), ("1.4 to 1.6", "2 to 2.5")),
        ((1.4, None, "x", 1.4), ("1.4", "–")),
        ((-1.0, 2.0, 2.0, True), ("–", "2")),
    ],
    ids=["the same", "it changes", "one knows none", "no figures"],
)
def test_the_compress_ratio_stands_among_the_facts(
    tmp_path: Path, ratios: tuple[object, ...], cells: tuple[str, str]
) -> None:
    paths = write_experiment(tmp_path, 2, [("a", FAST), ("b", FAST)])
    for run, ratio in zip(paths, ratios, strict=True):  # in the order a b b a
        on_zfs(run, ratio)
    text = text_of(make_report([tmp_path]))
    row = re.search(r"<td>compress ratio</td><td>(.*?)</td><td>(.*?)</td>", text)
    assert row
    assert row.groups() == cells


def test_nothing_compresses_where_no_dataset_is_known(tmp_path: Path) -> None:
    for run in write_experiment(tmp_path, 2):
        change(run, storage={"facts": {"kernel": "6.1", "datasets": "none"}})
    assert "compress ratio" not in text_of(make_report([tmp_path]))
