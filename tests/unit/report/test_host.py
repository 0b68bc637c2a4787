"""The host in a report: on the scatter's axis, with gaps where nobody knows, quiet rows folded; its cache."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.evidence.host_rows import SUBJECTS, HostRow
from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.report.sections.host import Binned, PhaseMean, RowFigures, TimeBins, change_weight
from plimsoll.common.files import read_regular_lines
from tests.support.experiment import (
    AFTER_S,
    BEFORE_S,
    DURING_S,
    FAST,
    add_arc,
    facts_of_host,
    write_experiment,
)
from tests.support.pages import check_figure, figures_of, text_of
from tests.support.programs import ROOT
from tests.support.rundir import change, traffic, write_run
from tests.support.stalls import OBSERVER_FAILED_S, arc_reclaim, healthy, write_host

SECONDS = (int(BEFORE_S), int(DURING_S), int(AFTER_S))
RECLAIMING = "reclaiming <i>pool</i>"
_SHOWN = "reclaiming &lt;i&gt;pool&lt;/i&gt;"


def test_host_csv_is_read_once_for_all_that_a_report_makes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hosts(tmp_path)
    read = Counter[Path]()

    def counted(path: Path, *limits: int) -> Iterator[bytes]:
        read[path] += 1
        return read_regular_lines(path, *limits)

    monkeypatch.setattr("plimsoll.rundir.hostfile.read_regular_lines", counted)
    made = make_report([tmp_path])
    assert len(read) == len(made.runs) > 1
    assert set(read.values()) == {1}


def write_hosts(folder: Path, repeats: int = 2, **more: Any) -> list[Path]:
    """Runs on a host that is healthy, and on one whose kernel does nothing but reclaim the ARC."""
    paths = write_experiment(folder, repeats, [("healthy", FAST), (RECLAIMING, FAST)], **more)
    for number, run in enumerate(paths):
        story = arc_reclaim if RECLAIMING[:6] in (run / "run.json").read_text() else healthy
        write_host(run, story, *SECONDS, seed=number)
    return paths


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("hosts")
    write_hosts(folder)
    return make_report([folder])


def _traces(figure: dict[str, Any], title: str, backend: str) -> list[dict[str, Any]]:
    layout = figure["layout"]
    name = next(
        key for key, each in layout.items() if key.startswith("yaxis") and each["title"]["text"] == title
    )
    yaxis = name.replace("axis", "")
    return [trace for trace in figure["data"] if trace["yaxis"] == yaxis and trace["name"] == backend]


def _line(figure: dict[str, Any], title: str, backend: str) -> dict[str, Any]:
    return next(trace for trace in _traces(figure, title, backend) if trace["line"].get("width") == 1.8)


def test_arc_reclaim_is_seen_at_a_glance(made: Report) -> None:
    text = text_of(made)
    glances = re.search(r'<ul class="glances">(.*?)</ul>', text, re.DOTALL)
    assert glances
    calm, reclaiming = re.findall(r"<li>(.*?)</li>", glances[1], re.DOTALL)
    assert "<b>healthy</b>: nothing stood out" in calm
    assert f"<b>{_SHOWN}</b>" in reclaiming
    assert re.search(r"system CPU 5(\.\d)? → 9\d %", reclaiming)
    assert re.search(r"available memory 8\.9 → 0\.\d+ GiB", reclaiming)
    assert "ARC size 12 → " in reclaiming
    assert "memory pressure 0 → " in reclaiming


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        ("cpu", ["system (%)", "user (%)", "blocked tasks"]),
        ("pressure", ["I/O, some (%)", "memory, some (%)", "memory, full (%)"]),
        ("arc", ["ARC hits (%)", "ARC size (GiB)", "misses/s", "throttled/s"]),
        ("disks", ["read (MB/s)", "written (MB/s)", "a read (ms)", "busy (%)"]),
        ("pools", ["read (MB/s)", "written (MB/s)", "a read (ms)"]),
        ("mariadb", ["queries/s", "threads running", "fsyncs/s"]),
    ],
)
def test_each_subject_has_its_rows_on_the_axis_of_the_scatter(
    made: Report, key: str, rows: list[str]
) -> None:
    figures = figures_of(made)
    figure = figures[f"host-{key}-0"]
    check_figure(figure)
    axes = [each["title"]["text"] for name, each in figure["layout"].items() if name.startswith("yaxis")]
    assert sorted(axes) == sorted(rows)
    scatter = figures["scatter-0"]["layout"]["xaxis"]
    assert figure["layout"]["xaxis"]["range"] == scatter["range"]
    assert figure["layout"]["xaxis"]["title"]["text"] == scatter["title"]["text"]
    band = figure["layout"]["shapes"][0]
    assert (band["x0"], band["x1"]) == (0, 40)
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["zfs send"]
    assert {trace["name"] for trace in figure["data"]} == {"healthy", _SHOWN}
    shown = [trace["name"] for trace in figure["data"] if trace.get("showlegend", True)]
    assert sorted(shown) == ["healthy", _SHOWN], "each backend once"


def test_an_observer_that_failed_leaves_a_gap(made: Report) -> None:
    line = _line(figures_of(made)["host-pressure-0"], "memory, some (%)", _SHOWN)
    first, last = (second - BEFORE_S for second in OBSERVER_FAILED_S)
    known = dict(zip(line["x"], line["y"], strict=True))
    gone = [x for x, y in known.items() if y is None and x > -BEFORE_S + 1]
    assert gone == [x for x in known if first <= x < last]
    assert line["connectgaps"] is False


def test_only_the_storages_own_disks_are_drawn(made: Report) -> None:
    line = _line(figures_of(made)["host-disks-0"], "read (MB/s)", "healthy")
    assert max(y for y in line["y"] if y is not None) < 500, "sda, which is not the storage's, reads 900 MB/s"


def test_the_target_of_the_arc_is_dotted(made: Report) -> None:
    traces = _traces(figures_of(made)["host-arc-0"], "ARC size (GiB)", _SHOWN)
    dotted = next(trace for trace in traces if trace["line"].get("dash") == "dot")
    assert min(y for y in dotted["y"] if y is not None) == pytest.approx(1.0, rel=0.2)


def test_quiet_ones_are_folded_away_and_it_says_why(made: Report) -> None:
    text = text_of(made)
    folded = text[text.index('<details class="quiet">') :]
    assert "steal (always 0)" in folded
    assert re.search(r"CPU pressure \(never above [\d.]+ %\)", folded)
    assert re.search(r"slab \(1\.\d+ to 1\.\d+ GiB\)", folded)
    assert 'id="figure-host-cpu-0-quiet"' in folded
    assert 'id="figure-host-cpu-0"' not in folded


def test_extremes_are_kept_however_long_the_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", traffic(3000, 1.0))
    lines = ["t_ns,cpu.system_percent"]
    lines += [f"{second * 10**9},{99 if second == 1234 else 3}" for second in range(3000)]
    (run / "host.csv").write_text("\n".join(lines) + "\n")
    figure = figures_of(make_report([run]))["host-cpu-0"]
    ground = next(trace for trace in figure["data"] if trace.get("fill") == "toself")
    assert max(y for y in ground["y"] if y is not None) == 99
    assert sum(len(trace["x"]) for trace in figure["data"]) < 1000
    assert figure["layout"]["xaxis"]["title"]["text"] == "minutes since the start of the run"


@pytest.mark.slow
def test_200_runs_do_not_make_the_page_heavy(tmp_path: Path) -> None:
    write_hosts(tmp_path, 100, per_s=5.0)
    made = make_report([tmp_path])
    assert len(made.runs) == 200
    figures = figures_of(made)
    points = {key: sum(len(t["x"]) for t in each["data"]) for key, each in figures.items() if "host" in key}
    assert sum(points.values()) <= 50_000, points
    assert made.path.stat().st_size < 8 << 20


def test_several_scenarios_fold_their_hosts(tmp_path: Path) -> None:
    write_hosts(tmp_path / "a", 1)
    write_hosts(tmp_path / "b", 1, scenario="visitors")
    text = text_of(make_report([tmp_path / "a", tmp_path / "b"]))
    assert text.count('<details class="host">') == 2
    assert "The host: visitors" in text


BAD: list[tuple[str, str]] = [
    ("no file of the observers", "a,b\n1,2\n"),
    ("an empty file", ""),
    ("a head alone", "t_ns,cpu.system_percent\n"),
    ("nothing but words", "t_ns,cpu.system_percent\nx,y\nnan,inf\n"),
    ("another program's columns", "t_ns,foo.bar_percent\n1,2\n"),
    ("times beyond all measure", "t_ns,cpu.system_percent\n1e300,5\n-1e300,5\n"),
    ("values beyond all measure", "t_ns,cpu.system_percent\n1000000000,1e300\n2000000000,-5\n"),
]


@pytest.mark.parametrize(("what", "content"), BAD, ids=[row[0] for row in BAD])
def test_what_says_nothing_of_the_host_is_not_drawn(tmp_path: Path, what: str, content: str) -> None:
    run = write_run(tmp_path / "run", traffic(60, 30))
    (run / "host.csv").write_text(content)
    made = make_report([run])
    assert not [key for key in figures_of(made) if key.startswith("host-")], what
    assert 'class="host"' not in text_of(made)


def test_names_of_devices_are_hostile(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", traffic(60, 30))
    name = '"diskstats.<img src=x>\x1b[31m_read_bytes_per_s"'
    rows = "\n".join(f"{second * 10**9},5e8" for second in range(60))
    (run / "host.csv").write_text(f"t_ns,{name}\n{rows}\n")
    made = make_report([run])
    assert "host-disks-0" in figures_of(made)
    assert "<img" not in text_of(made)


def test_a_jitter_of_the_clock_makes_no_gap() -> None:
    bins = TimeBins(0.0, 1.0, 10)
    line = Binned(bins)
    line.add(np.array([0.5, 1.01, 1.99, 3.01, 4.0, 6.5]), np.array([1.0, 2.0, 4.0, 6.0, 7.0, 9.0]))
    shown = [None if np.isnan(value) else float(value) for value in line.mean]
    assert shown == [1.0, 3.0, 5.0, 6.0, 7.0, None, 9.0, None, None, None], (
        "after 4.0 two seconds are missing"
    )


def _figures(before: float | None, during: float | None) -> RowFigures:
    bins = TimeBins(0.0, 1.0, 1)
    phases = {
        name: PhaseMean(mean, 1, mean)
        for name, mean in (("before", before), ("during", during))
        if mean is not None
    }
    return RowFigures(Binned(bins), Binned(bins), phases)


def _row(said: str) -> HostRow:
    return next(row for subject in SUBJECTS for row in subject.rows if row.said == said)


ALARMS: list[tuple[str, str, float | None, float | None, bool]] = [
    ("a processor that the kernel takes", "system CPU", 5, 92, True),
    ("one that has a little more to do", "system CPU", 5, 12, False),
    ("a cache that shrinks by a third", "ARC size", 12, 8, True),
    ("a cache that grows", "ARC size", 8, 12, False),
    ("a disk that takes ten times as long", "a disk read", 0.5, 5, True),
    ("one that does too, but is fast", "a disk read", 0.01, 0.1, False),
    ("what nobody knows from before", "system CPU", None, 92, False),
]


@pytest.mark.parametrize(
    ("what", "said", "before", "during", "stands_out"), ALARMS, ids=[a[0] for a in ALARMS]
)
def test_what_stands_out(
    what: str, said: str, before: float | None, during: float | None, stands_out: bool
) -> None:
    assert (change_weight(_row(said), _figures(before, during)) >= 1) is stands_out, what


def test_one_thread_of_many_processors_stands_out(tmp_path: Path) -> None:
    def reclaimer(busy: float) -> dict[str, float]:
        return {"cpu.system_percent": 0.3 + 6.25 * busy}

    for run in write_experiment(tmp_path, 1, [("a", FAST), ("b", FAST)]):
        write_host(run, reclaimer, *SECONDS)
        facts = json.loads((run / "run.json").read_text())
        facts["storage"]["facts"]["cpus"] = 16
        (run / "run.json").write_text(json.dumps(facts))
    made = make_report([tmp_path])
    assert re.search(r"system CPU 0\.[\d]+ → [\d.]+ % .*?\(of 16 processors: one is 6\.25 %\)", text_of(made))
    assert "host-cpu-0" in figures_of(made)


def test_pressure_of_writes_on_ext4_stands_out(tmp_path: Path) -> None:
    """A small machine, whose page cache takes what is written and whose disk does not keep up."""

    def written(busy: float) -> dict[str, float]:
        return {
            "memory.dirty_bytes": (0.02 + 0.5 * busy) * (1 << 30),
            "pressure.io_some_percent": 6 + 38 * busy,
            "pressure.io_full_percent": 3 + 26 * busy,
            "diskstats.nvme0n1_write_bytes_per_s": 4e5 + 3e7 * busy,
            "diskstats.nvme0n1_write_latency_ms": 0.6,
        }

    for run in write_experiment(tmp_path, 1, [("ext4", FAST)]):
        write_host(run, written, *SECONDS)
    glances = re.search(r'<ul class="glances">(.*?)</ul>', text_of(make_report([tmp_path])), re.DOTALL)
    assert glances
    for said in ("I/O pressure", "dirty memory", "disk writes"):
        assert said in glances[1], glances[1]


def test_every_row_is_made_of_columns_that_the_observers_write() -> None:
    known = re.findall(r"\| `([a-z]+\.\w+)` \|", (ROOT / "docs/observers.md").read_text())
    for subject in SUBJECTS:
        for row in subject.rows:
            for column in filter(None, (row.column, row.beside)):
                assert any(re.fullmatch(column, name) for name in known), row.said


def on_zfs(run: Path, ratio: object = 1.4) -> None:
    facts = facts_of_host(rotational=False)
    facts["pools"] = [{"pool": "tank", "layout": ["mirror"]}]
    facts["datasets"][0]["compress_ratio"] = ratio
    change(run, storage={"emulated": None, "facts": facts})


def test_hits_and_size_are_drawn_since_the_saturator_started(tmp_path: Path) -> None:
    for number, run in enumerate(write_experiment(tmp_path, 2)):
        add_arc(run, 99.0, 60.0 + number)
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
            add_arc(run, 99.0, 60.0, empty=True)
    made = make_report([tmp_path])
    assert not [key for key in figures_of(made) if key.startswith("host-arc")]
    assert "(ARC)" not in text_of(made), "not every host has ZFS"


def test_zfs_without_arcstats_is_said(tmp_path: Path) -> None:
    paths = write_experiment(tmp_path, 2, [("fuse", FAST), ("module", FAST)])
    for run in paths:
        on_zfs(run)
    for run in (paths[1], paths[2]):
        add_arc(run, 99.0, 60.0)
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
