"""Results of `plimsoll fileio --fsync` in a report: beside sysbench's, and what each call took."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.report import make_report
from tests.support.experiment import write_experiment
from tests.unit.report.test_comparison import figures_of, text_of
from tests.unit.report.test_report_fileio import cell, write_cells

TIMES = {"mean": 1.0, "p50": 0.5, "p90": 0.9, "p95": 1.5, "p99": 9.5, "p99.9": 12.25, "max": 150.0}


def sync(volume: str, **more: Any) -> dict[str, Any]:
    found = {
        "volume": volume,
        "preset": None,
        "test": "seqwr",
        "call": "fdatasync",
        "engine": "sync",
        "block_bytes": 4096,
        "threads": 8,
        "file_size_bytes": 2 << 30,
        "time_s": 30,
        "direct": False,
        "fio": "fio-3.33",
        "writes": 30_001,
        "syncs": 30_000,
        "throughput_mib_per_s": 3.9,
        "iops": 1000.0,
        "execution_s": 30.0,
        "sync_ms": TIMES,
        "write_ms": TIMES | {"p50": 0.01, "p99.9": 0.25},
    }
    return found | more


def etcd(volume: str, **more: Any) -> dict[str, Any]:
    recipe = {"preset": "etcd", "threads": 1, "block_bytes": 2300, "file_size_bytes": 22 << 20}
    return sync(volume, **(recipe | {"time_s": None} | more))


def tables_of(text: str, title: str) -> list[list[str]]:
    table = text[text.index(title) :].partition("</table>")[0]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr.*?</tr>", table)]


def test_two_volumes_stand_side_by_side_sysbench_and_fsyncs_in_one_table(tmp_path: Path) -> None:
    few = TIMES | {"p99": None, "p99.9": None}
    lines = [
        cell("sata", "rndwr", 8, throughput_mib_per_s=12.34, p999_ms=3210.5),
        cell("nvme", "rndwr", 8, throughput_mib_per_s=1234.0, p999_ms=0.876),
        sync("sata", sync_ms=few),
        etcd("sata", sync_ms=TIMES | {"p99.9": 95.5}),
        etcd("nvme"),
        sync("nvme", engine="io_uring", direct=True),
    ]
    text = text_of(make_report([write_cells(tmp_path / "f.jsonl", lines)]))
    head, *rows = tables_of(text, "The volumes, cell by cell")
    assert head[1:] == ["MiB/s: sata", "MiB/s: nvme", "p99.9 (ms): sata", "p99.9 (ms): nvme"]
    assert {row[0].replace("\N{NO-BREAK SPACE}", " "): row[1:] for row in rows} == {
        "random writes, 8": ["12.3", "1,230", "3,210.5", "0.88"],
        "fdatasync, etcd&#39;s recipe": ["3.9", "3.9", "95.50", "12.25"],
        "fdatasync, sequential writes of 4 KiB, 8 threads, io_uring, O_DIRECT": ["–", "3.9", "–", "12.25"],
        "fdatasync, sequential writes of 4 KiB, 8 threads": ["3.9", "–", "–", "–"],
    }
    assert "p99.9 is that of these calls alone" in text


def test_what_a_call_took_stands_apart_from_the_writes_before_it(tmp_path: Path) -> None:
    lines = [etcd("sata", sync_ms=TIMES | {"p99.9": None}), etcd("nvme")]
    made = make_report([write_cells(tmp_path / "f.jsonl", lines)])
    head, first, second = tables_of(text_of(made), "What an fsync takes")
    times = ["p50", "p90", "p95", "p99", "p99.9", "max", "writes&#39; p50", "writes&#39; p99.9"]
    assert head[1:] == ["volume", "calls", *times]
    assert first[1:] == ["sata", "30,000", "0.50", "0.90", "1.50", "9.50", "–", "150.0", "0.01", "0.25"]
    assert second[1] == "nvme" and second[7] == "12.25"
    assert "fileio" not in figures_of(made), "sysbench's chart needs sysbench's cells"
    assert "Volumes measured with fio" in text_of(made)
    assert [one["sync_ms"]["p99.9"] for one in made.as_json()["fsync"]] == [None, 12.25]  # type: ignore[attr-defined]


def test_of_two_cells_alike_the_later_counts_and_other_sizes_have_rows_of_their_own(tmp_path: Path) -> None:
    lines = [sync("v", syncs=1), sync("v", syncs=2), sync("v", time_s=5), sync("v", file_size_bytes=1 << 30)]
    made = make_report([write_cells(tmp_path / "f.jsonl", lines)])
    assert [one.syncs for one in made.fsyncs] == [2, 30_000, 30_000]
    alike = "fdatasync, sequential writes of 4 KiB, 8 threads"
    rows = [row[0] for row in tables_of(text_of(made), "What an fsync takes")[1:]]
    assert rows == [f"{alike}, {how}" for how in ("1 GiB, 30 s", "2 GiB, 5 s", "2 GiB, 30 s")]


def test_an_experiment_shows_the_fsyncs_of_its_volumes(tmp_path: Path) -> None:
    runs = write_experiment(tmp_path / "runs", 1)
    lines = [cell("slow-disk", "rndwr", 8), etcd("slow-disk"), etcd("nvme-mirror")]
    write_cells(tmp_path / "fileio.jsonl", lines)
    made = make_report([tmp_path])
    assert len(made.runs) == len(runs)
    rows = tables_of(text_of(made), "What an fsync takes")[1:]
    assert [row[1] for row in rows] == ["slow-disk", "nvme-mirror"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (sync("v", threads=0), "nothing has no threads"),
        (sync("v", sync_ms={"p50": -1.0}), "a negative time"),
        (sync("v", sync_ms=[1]), "a list is no times"),
        (sync("v", iops=float("nan")), "NaN is no rate"),
    ],
)
def test_damaged_lines_are_named_and_the_others_shown(tmp_path: Path, line: dict[str, Any], why: str) -> None:
    made = make_report([write_cells(tmp_path / "f.jsonl", [etcd("v"), line])])
    assert len(made.fsyncs) == 1
    assert "one line is not a finished cell" in text_of(made), why


def test_hostile_names_are_text(tmp_path: Path) -> None:
    attack = "<img src=x onerror=window.owned=1>"
    words = sync("sata", preset=attack, test=attack, call=attack, engine=attack)
    made = make_report([write_cells(tmp_path / "f.jsonl", [sync(attack), words])])
    assert "<img" not in text_of(made)
    assert "<img" not in json.dumps(figures_of(made))
    assert "one line is not a finished cell" in text_of(made), "words that fio does not have are none"
