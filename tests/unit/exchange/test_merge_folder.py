"""A merge is written whole or not at all, whatever ends it; what a report says of it."""

import json
import os
import signal
import subprocess
import sys
import tracemalloc
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.checks import unfit
from plimsoll.analysis.evidence.measure import measure_run
from plimsoll.analysis.evidence.summary import summarise
from plimsoll.analysis.exchange import merge as merging
from plimsoll.analysis.exchange.importing import in_order
from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.cli import main
from plimsoll.common.errors import OutputError
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import RECORD, RequestFile
from plimsoll.rundir.write import RunWriter
from tests.support.programs import ROOT
from tests.support.rundir import INSTANCES, header, records, write_instance, write_instances, write_run


def test_what_exists_is_not_written_over(tmp_path: Path) -> None:
    write_instances(tmp_path / "shards")
    (tmp_path / "there").mkdir()
    result = CliRunner().invoke(main, ["merge", str(tmp_path / "shards"), "--out", str(tmp_path / "there")])
    assert result.exit_code == 2
    assert "there: exists already; give another place with --out" in result.stderr
    assert not list((tmp_path / "there").iterdir())


def test_a_shard_is_not_written_over(tmp_path: Path) -> None:
    shards = write_instances(tmp_path)
    with pytest.raises(OutputError, match="exists already"):
        merge_shards(shards, shards[1])


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    shards = write_instances(tmp_path / "shards")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/run: cannot be written: .*; choose another place"):
        merge_shards(shards, tmp_path / "file" / "run")


def test_the_folder_that_holds_the_shards_becomes_the_run(tmp_path: Path) -> None:
    """As Locust's master makes it: its shards lie in the run directory that they become."""
    shards = write_instances(tmp_path / "run" / "shards")
    merge_shards(shards, tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "complete"
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith(".")]
    with pytest.raises(OutputError, match="exists already"):
        merge_shards(shards, tmp_path / "run")


@pytest.mark.parametrize("inside", [False, True])
def test_an_interrupt_leaves_nothing(tmp_path: Path, inside: bool) -> None:
    shards = write_instances(tmp_path / "run" / "shards")
    out = tmp_path / "run" if inside else tmp_path / "new"
    before = sorted(tmp_path.rglob("*"))

    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge_shards(shards, out, interrupt)
    assert sorted(tmp_path.rglob("*")) == before


def test_ctrl_c_ends_the_command_and_leaves_nothing(tmp_path: Path) -> None:
    write_instances(tmp_path / "shards")
    program = f"""
import os, signal
from plimsoll.cli import main
from plimsoll.analysis.exchange import merge
told = merge.copy_events
def copy_events(*given):
    os.kill(os.getpid(), signal.SIGINT)
    told(*given)
merge.copy_events = copy_events
main(["merge", {str(tmp_path / "shards")!r}, "--out", {str(tmp_path / "run")!r}])
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True)
    assert ended.returncode == 1, ended.stderr
    assert b"Aborted" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]


def test_kill_9_leaves_no_run(tmp_path: Path) -> None:
    write_instances(tmp_path / "shards")
    program = f"""
import os, signal
from plimsoll.cli import main
from plimsoll.analysis.exchange import merge
merge.copy_events = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(["merge", {str(tmp_path / "shards")!r}, "--out", {str(tmp_path / "run")!r}])
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["shards"]
    assert merge_shards([tmp_path / "shards"], tmp_path / "run").facts.status == "complete", (
        "the next one goes well"
    )


def test_progress_ends_where_it_said_it_would(tmp_path: Path) -> None:
    shards = write_instances(tmp_path / "shards")
    seen: list[tuple[int, int]] = []
    merge_shards(shards, tmp_path / "run", lambda done, total: seen.append((done, total)))
    assert {total for _, total in seen} == {1200}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == 1200


def peak_bytes_of_merging(folder: Path, each: int, window: int) -> int:
    """The most memory that putting the records of four shards in order takes, and writing them."""
    files = []
    for number in range(INSTANCES):
        path = folder / f"{each}-{number}.npy"
        table = records(1 << 16)
        with path.open("wb") as file:
            file.write(header())
            for start in range(0, each, len(table)):
                table["due_ns"] = np.arange(start, start + len(table)) * 1000 + number
                file.write(table[: each - start].tobytes())
        files.append(RequestFile.open(path))
    run = RunWriter(folder / f"run{each}", RunFacts(scenario="replay"), summarise, at_once=False)
    tracemalloc.start()
    streams = [(block.copy() for block in file.blocks(window)) for file in files]
    for block in in_order(streams, window):
        run.records(block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    run.abandon()
    assert (folder / f"run{each}" / "requests.npy").stat().st_size == 512 + INSTANCES * each * RECORD.itemsize
    return peak


@pytest.mark.slow
def test_the_memory_of_merging_does_not_grow_with_the_records(tmp_path: Path) -> None:
    window = 4096
    small, large = (peak_bytes_of_merging(tmp_path, each, window) for each in (75_000, 750_000))
    assert large < small * 1.1, "three million records take what three hundred thousand do"
    assert large < INSTANCES * window * RECORD.itemsize * 12, "a few times what is held back"


def test_the_window_of_a_merge_is_what_its_shards_are_read_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of some records, as it reads shards that are longer than what it holds of them."""
    monkeypatch.setattr(merging, "window_of", lambda _: 7)
    tables = [records(100, due_ns=np.arange(100) * 4_000_000 + n * 1_000_000) for n in range(INSTANCES)]
    shards = [write_instance(tmp_path / str(n), n, tables[n]) for n in range(INSTANCES)]
    merge_shards(shards, tmp_path / "run")
    due_ns = np.load(tmp_path / "run" / "requests.npy")["due_ns"]
    assert due_ns.tolist() == [n * 1_000_000 for n in range(400)]


def test_shards_of_one_process_each_merge_as_they_always_did(tmp_path: Path) -> None:
    """No instances of a replay: Locust's workers, whose directory's name says which they are."""
    for name in ("0", "1"):
        write_run(
            tmp_path / name,
            records(10),
            scenario="save-article",
            loop="closed",
            summary={"requests": {"total": 10, "sent": 10}},
        )
    result = CliRunner().invoke(main, ["merge", str(tmp_path), "--out", str(tmp_path / "run")])
    assert result.exit_code == 0, result.output
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert [(each["name"], each["index"], each["sent"]) for each in summary["instances"]] == [
        ("shard 0", None, 10),
        ("shard 1", None, 10),
    ]
    assert os.path.lexists(tmp_path / "run" / "run.json")


# A merged run is a run: reported with its instances, and judged by as any other.


LOAD = {"digest": "d", "settings": {"timeout_s": 30}}


def page_of(run: Path) -> str:
    result = CliRunner().invoke(main, ["report", str(run)])
    assert result.exit_code == 0, result.output
    return unescape((run / "report.html").read_text(encoding="utf-8"))


def test_the_report_shows_each_instance_and_what_the_merge_said(tmp_path: Path) -> None:
    write_instances(tmp_path / "shards")
    clock = {"synchronised": False, "max_error_ms": 16000.0}
    write_instance(
        tmp_path / "shards" / "1", 1, 40, status="running", shard={"clock": clock, "segment": "<b>1</b>"}
    )
    merge_shards([tmp_path / "shards"], tmp_path / "run")
    page = page_of(tmp_path / "run")
    assert "What each process or machine did" in page
    for cell in ("instance 4", "3/4:1", "killed", "not synchronised", "within 1 ms", "10:00:00.000000"):
        assert cell in page, cell
    assert "The clock of instance 2 is not synchronised: how far it is off is unknown." in page
    assert "was killed after 40 of its 100 requests; 60 unsent" in page
    raw = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert ">instance 2 of 4 (<b>" not in raw, "a segment is text from a run directory"


def test_answers_that_are_not_the_logs_are_said_of_all_instances_together(tmp_path: Path) -> None:
    cause = "The target has no such paths: is it the site of this log?"
    statuses = [[404] * 100, [404] * 99 + [304], [200] * 100, [301] * 10 + [404] * 90]
    for index, status in enumerate(statuses):
        table = records(100, status=status)
        table["logged_status"][:2] = 0, 499  # nobody knows, and nobody waited
        path = write_instance(tmp_path / "shards" / str(index), index, table, load=LOAD)
        if index == 1:
            summary = json.loads((path / "summary.json").read_text())
            summary["not_as_logged"] = f"97 of 98 answers are not those of the log: 404 for 200. {cause}"
            (path / "summary.json").write_text(json.dumps(summary))
    done = CliRunner().invoke(main, ["merge", str(tmp_path / "shards"), "--out", str(tmp_path / "run")])
    said = f"293 of 392 answers are not those of the log: 404 for 200 (285), 301 for 200 (8). {cause}"
    assert said in done.output
    assert done.output.count("wrong answer") == 3, "p50, p99 and the slowest"
    page = page_of(tmp_path / "run")
    assert said in page
    assert "≥ 30 s" not in page


def test_a_run_that_was_not_merged_has_no_such_table(tmp_path: Path) -> None:
    assert "What each process or machine did" not in page_of(write_run(tmp_path / "run", records(10)))


LATE = {"generator_limited": True, "generator_limited_reason": "it sent late"}
FIT: list[tuple[str, int, dict[str, Any], list[str]]] = [
    ("a whole one", 4, {}, []),
    (
        "one that lost an instance",
        3,
        {},
        [
            "was interrupted (instance 4 of 4 (3/4:1) is missing: its run directory was not given; all of "
            "its 100 requests count as unsent). Run it again, or take it out of the folder."
        ],
    ),
    (
        "one whose instance sent late",
        4,
        LATE,
        ["was limited by the load generator. Instance 3 of 4 (1/2:3/4): it sent late."],
    ),
]


@pytest.mark.parametrize(("why", "count", "third", "reasons"), FIT, ids=[row[0] for row in FIT])
def test_a_merged_run_is_compared_if_it_is_whole(
    tmp_path: Path, why: str, count: int, third: dict[str, Any], reasons: list[str]
) -> None:
    shards = write_instances(tmp_path / "shards")
    write_instance(shards[2], 2, **third)
    merge_shards(shards[:count], tmp_path / "run")
    found = unfit(measure_run(RunDirectory.open(tmp_path / "run")))
    assert found == reasons, why


def test_prometheus_is_told_nothing_of_what_nobody_knows(tmp_path: Path) -> None:
    write_instance(tmp_path / "shards" / "0", 0, status="running", shard={"planned": None})
    merge_shards([tmp_path / "shards"], tmp_path / "run")
    out = tmp_path / "metrics.prom"
    result = CliRunner().invoke(
        main, ["export", str(tmp_path / "run"), "--to", "prometheus", "--out", str(out)]
    )
    assert result.exit_code == 1, result.output
    assert "run_ended" not in out.read_text()
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["requests"]["unsent"] is None
