"""Results of `plimsoll fileio` in a report: throughput and p99.9 by threads."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.report import make_report
from plimsoll.common.errors import RunDirectoryError
from tests.support.experiment import write_experiment
from tests.unit.report.test_comparison import figures_of, text_of

THREADS = (1, 8, 12, 16, 20, 24, 32)
TESTS = ("rndrd", "seqrd", "rndwr", "seqwr", "rndrw")


def cell(volume: str, test: str, threads: int, **more: Any) -> dict[str, Any]:
    fast = 20 if volume == "nvme-mirror" else 1
    found = {
        "volume": volume,
        "threads": threads,
        "file_size_bytes": 64 << 30,
        "block_bytes": 16384,
        "test": test,
        "time_s": 30,
        "direct": True,
        "reads": 1000,
        "writes": 0,
        "fsyncs": 0,
        "throughput_mib_per_s": 40.0 * fast * threads**0.5 * (3 if "seq" in test else 1),
        "iops": 1000.0,
        "execution_s": 30.0,
        "events": 1000,
        "p999_ms": 20 / fast * threads**0.4,
        "p999_low_ms": 1.0,
        "p999_high_ms": 2.0,
    }
    return found | more


def cells(volumes: Sequence[str] = ("nvme-mirror", "slow-disk")) -> list[dict[str, Any]]:
    return [cell(v, test, threads) for v in volumes for test in TESTS for threads in THREADS]


def write_cells(path: Path, lines: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"\n{json.dumps(line)}\n" for line in lines))
    return path


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
    assert figure["layout"]["xaxis"]["categoryarray"] == [str(number) for number in THREADS]
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
    assert len(make_report(given, tmp_path / "report.html").fileio) == 70


def test_results_alone_make_a_report_of_their_own(tmp_path: Path) -> None:
    made = make_report([write_cells(tmp_path / "results.jsonl", cells())])
    assert made.path == tmp_path / "report.html"
    assert figures_of(made).keys() == {"fileio"}
    assert "Volumes measured with sysbench" in text_of(made)
    assert "Response times" not in text_of(made)


def test_what_the_command_prints_as_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "printed.json"
    path.write_text(json.dumps({"format": 1, "cells": cells()}, indent=2))
    assert len(make_report([path]).fileio) == 70


def test_an_experiments_folder_stands_for_its_runs_and_what_lies_beside_them(tmp_path: Path) -> None:
    runs = write_experiment(tmp_path / "runs", 1)
    write_cells(tmp_path / "fileio-nvme.jsonl", cells())
    for given in ([tmp_path], [tmp_path / "runs"], runs):
        made = make_report(given, tmp_path / "report.html")
        assert len(made.runs) == 2
        assert len(made.fileio) == 70, given


def test_a_run_alone_has_nothing_of_the_results_beside_it(tmp_path: Path) -> None:
    runs = write_experiment(tmp_path, 1)
    write_cells(tmp_path / "fileio.jsonl", cells())
    assert make_report(runs[:1]).fileio == []


def test_of_two_cells_alike_the_later_counts_and_other_sizes_have_lines_of_their_own(tmp_path: Path) -> None:
    lines = [
        cell("v", "rndrd", 1, throughput_mib_per_s=1.0),
        cell("v", "rndrd", 1, throughput_mib_per_s=2.0),
        cell("v", "rndrd", 1, direct=False),
    ]
    made = make_report([write_cells(tmp_path / "f.jsonl", lines)])
    names = {trace["name"] for trace in figures_of(made)["fileio"]["data"]}
    assert names == {"v, 64 GiB in blocks of 16 KiB, O_DIRECT", "v, 64 GiB in blocks of 16 KiB"}
    assert made.fileio[0].throughput_mib_per_s == 2.0


def test_too_few_events_for_p999_leave_a_gap_and_no_zero(tmp_path: Path) -> None:
    lines = [cell("v", "rndrd", 1, p999_ms=None), cell("v", "rndrd", 8)]
    figure = figures_of(make_report([write_cells(tmp_path / "f.jsonl", lines)]))["fileio"]
    assert [trace["y"][0] for trace in figure["data"]] == [40.0, None]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"volume": "v", "thre', "it was cut off"),
        (json.dumps(cell("v", "rndrd", 1, throughput_mib_per_s=float("nan"))), "NaN is no throughput"),
        (json.dumps(cell("v", "rndrd", 0)), "nothing has no threads"),
        (json.dumps(cell("v", "rndrd", 1, iops="many")), "a word is no number"),
        ("[1]", "a list is no cell"),
    ],
)
def test_damaged_lines_are_named_and_the_others_drawn(tmp_path: Path, line: str, why: str) -> None:
    path = write_cells(tmp_path / "f.jsonl", cells())
    path.write_text(path.read_text() + line + "\n")
    made = make_report([path])
    assert len(made.fileio) == 70
    assert "one line is not a finished cell" in text_of(made), why


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(RunDirectoryError, match="contains no result of plimsoll fileio"):
        make_report([tmp_path / "other.json"])


def test_hostile_names_of_volumes_and_tests_are_text(tmp_path: Path) -> None:
    attack = "<img src=x onerror=window.owned=1>"
    made = make_report([write_cells(tmp_path / "f.jsonl", [cell(attack, attack, 1)])])
    assert "<img" not in json.dumps(figures_of(made))
    assert "<img" not in text_of(made)
