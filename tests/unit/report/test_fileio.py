"""Results of `plimsoll fileio` in a report: throughput and p99.9 by threads, and what each fsync took."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.report.making import make_report
from plimsoll.common.errors import RunDirectoryError
from tests.support.experiment import FILEIO_THREADS, cell, cells, write_cells, write_experiment
from tests.support.pages import figures_of, text_of


def test_results_in_the_folder_are_drawn_in_the_colours_of_the_backends(tmp_path: Path) -> None:
    write_experiment(tmp_path, 1)
    write_cells(tmp_path / "fileio.jsonl", cells(("slow-disk", "nvme-mirror", "spare")))
    made = make_report([tmp_path])
    figure = figures_of(made)["fileio"]
    colours = {trace["name"]: trace["line"]["color"] for trace in figure["data"]}
    assert colours == {
        "nvme-mirror": "var(--run-1)",
        "slow-disk": "var(--run-2)",
        "spare": "var(--run-3)",
    }
    assert len(figure["data"]) == 3 * 5 * 2, "each volume in each test, throughput and p99.9"
    assert figure["layout"]["xaxis"]["type"] == "category"
    assert figure["layout"]["xaxis"]["categoryarray"] == [str(number) for number in FILEIO_THREADS]
    shown = [trace["name"] for trace in figure["data"] if trace["showlegend"]]
    assert len(shown) == len(set(shown)) == 3
    assert "64 GiB in blocks of 16 KiB, O_DIRECT" in text_of(made)
    assert len(made.as_json()["fileio"]) == 105  # type: ignore[arg-type]


def test_a_table_has_all_cells_with_the_volumes_side_by_side(tmp_path: Path) -> None:
    lines = [
        cell("sata", "rndrd", 8, throughput_mib_per_s=12.34, iops=789.6, p999_ms=3210.5),
        cell("sata", "rndrd", 1, p999_ms=None),
        cell("nvme", "rndrd", 8, throughput_mib_per_s=1234.0, iops=78976.0, p999_ms=0.876),
        cell("nvme", "seqwr", 8, direct=False),
        cell("nvme", "rndwr", 8),
    ]
    text = text_of(make_report([write_cells(tmp_path / "f.jsonl", lines)]))
    table = text[text.index("The volumes, cell by cell") :]
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr.*?</tr>", table)]
    volumes = [
        "sata",
        "nvme, 64 GiB in blocks of 16 KiB, O_DIRECT",
        "nvme, 64 GiB in blocks of 16 KiB",
    ]
    assert found[0][1:] == [f"{unit}: {name}" for unit in ("MiB/s", "p99.9 (ms)") for name in volumes]
    assert [row[0].replace("\N{NO-BREAK SPACE}", " ") for row in found[1:5]] == [
        "random reads, 1",
        "random reads, 8",
        "random writes, 8",
        "sequential writes, 8",
    ]
    assert found[1][4] == "–", "too few events are no zero"
    assert found[2][1:] == ["12.3", "1,230", "–", "3,210.5", "0.88", "–"], "a dash where nothing was measured"


def test_an_experiment_whose_scenarios_run_together_finds_what_lies_beside_its_runs(tmp_path: Path) -> None:
    write_experiment(tmp_path / "runs" / "0001-rush--one--1", 1)
    (tmp_path / "runs" / "0001-rush--one--1" / "together.json").write_text("{}")
    write_cells(tmp_path / "fileio.jsonl", cells())
    given = [tmp_path / "runs" / "0001-rush--one--1"]
    assert len(make_report(given, tmp_path / "report.html").volumes.cells) == 70


def test_results_alone_make_a_report_of_their_own(tmp_path: Path) -> None:
    made = make_report([write_cells(tmp_path / "results.jsonl", cells())])
    assert made.path == tmp_path / "report.html"
    assert figures_of(made).keys() == {"fileio"}
    assert "Volumes measured with sysbench" in text_of(made)
    assert "Response times" not in text_of(made)


def test_what_the_command_prints_as_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "printed.json"
    path.write_text(json.dumps({"format": 1, "cells": cells()}, indent=2))
    assert len(make_report([path]).volumes.cells) == 70


def test_an_experiments_folder_stands_for_its_runs_and_what_lies_beside_them(tmp_path: Path) -> None:
    runs = write_experiment(tmp_path / "runs", 1)
    write_cells(tmp_path / "fileio-nvme.jsonl", cells())
    for given in ([tmp_path], [tmp_path / "runs"], runs):
        made = make_report(given, tmp_path / "report.html")
        assert len(made.runs) == 2
        assert len(made.volumes.cells) == 70, given


def test_a_run_alone_has_nothing_of_the_results_beside_it(tmp_path: Path) -> None:
    runs = write_experiment(tmp_path, 1)
    write_cells(tmp_path / "fileio.jsonl", cells())
    assert make_report(runs[:1]).volumes.cells == []


def test_of_two_cells_alike_the_later_is_drawn_and_other_sizes_have_lines_of_their_own(
    tmp_path: Path,
) -> None:
    lines = [
        cell("v", "rndrd", 1, throughput_mib_per_s=1.0),
        cell("v", "rndrd", 1, throughput_mib_per_s=2.0),
        cell("v", "rndrd", 1, direct=False),
    ]
    made = make_report([write_cells(tmp_path / "f.jsonl", lines)])
    names = {trace["name"] for trace in figures_of(made)["fileio"]["data"]}
    assert names == {"v, 64 GiB in blocks of 16 KiB, O_DIRECT", "v, 64 GiB in blocks of 16 KiB"}
    assert made.volumes.cells[0].throughput_mib_per_s == 2.0


def test_too_few_events_for_p999_leave_a_gap_and_no_zero(tmp_path: Path) -> None:
    lines = [cell("v", "rndrd", 1, p999_ms=None), cell("v", "rndrd", 8)]
    figure = figures_of(make_report([write_cells(tmp_path / "f.jsonl", lines)]))["fileio"]
    assert [trace["y"][0] for trace in figure["data"]] == [40.0, None]


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(RunDirectoryError, match="contains no result of plimsoll fileio"):
        make_report([tmp_path / "other.json"])


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
    assert [one.syncs for one in made.volumes.syncs] == [2, 30_000, 30_000]
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


DAMAGED = [
    ("a line that was cut off", '{"volume": "v", "thre'),
    ("NaN is no throughput", cell("v", "rndrd", 1, throughput_mib_per_s=float("nan"))),
    ("nothing has no threads", cell("v", "rndrd", 0)),
    ("a word is no number", cell("v", "rndrd", 1, iops="many")),
    ("a list is no cell", [1]),
    ("fio has no threads of nothing", sync("v", threads=0)),
    ("a negative time", sync("v", sync_ms={"p50": -1.0})),
    ("a list is no times", sync("v", sync_ms=[1])),
    ("NaN is no rate", sync("v", iops=float("nan"))),
]


@pytest.mark.parametrize(("why", "line"), DAMAGED, ids=[row[0] for row in DAMAGED])
def test_damaged_lines_are_named_and_the_others_shown(tmp_path: Path, why: str, line: Any) -> None:
    path = write_cells(tmp_path / "f.jsonl", [*cells(), etcd("v")])
    with path.open("a") as file:
        file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
    made = make_report([path])
    assert (len(made.volumes.cells), len(made.volumes.syncs)) == (70, 1)
    assert "one line is not a finished cell" in text_of(made), why


def test_hostile_names_are_text(tmp_path: Path) -> None:
    attack = "<img src=x onerror=window.owned=1>"
    words = sync("sata", preset=attack, test=attack, call=attack, engine=attack)
    for lines in ([cell(attack, attack, 1)], [sync(attack), words]):
        made = make_report([write_cells(tmp_path / "f.jsonl", lines)])
        assert "<img" not in text_of(made)
        assert "<img" not in json.dumps(figures_of(made))
    assert "one line is not a finished cell" in text_of(made), "words that fio does not have are none"
