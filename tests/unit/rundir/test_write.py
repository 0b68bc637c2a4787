"""What Python writes, the readers read; and nothing is lost when the writer is killed."""

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.evidence.summary import summarise
from plimsoll.rundir.events import spans
from plimsoll.rundir.facts import Program, RunFacts, RunTarget
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import HEADER_BYTES, RECORD, Request
from plimsoll.rundir.write import RunWriter
from tests.support.programs import FIXTURES, ROOT
from tests.support.rundir import load_records

FACTS = RunFacts(
    scenario="save-article",
    target=RunTarget(url="http://127.0.0.1:8080"),
    loop="closed",
    program=Program(name="scenario", version="1", locust="2"),
)


def write(directory: Path) -> RunWriter:
    run = RunWriter(directory, FACTS, summarise)
    run.request(Request(due_ns=5, total_us=1500, route="log in", status=302, bytes=7, ttfb_us=1200))
    run.request(
        Request(due_ns=9, total_us=1 << 40, route="save", status=403, error="nonce_expired", iteration=3)
    )
    run.failed_step("save", "nonce_expired", "at ?_wpnonce=abcdef", iteration=3)
    run.measure("image ready", 12.5, "ms", iteration=1)
    run.measure("image ready", 14.5, "ms", iteration=2)
    return run


def test_a_run_written_here_is_read_like_any_other(tmp_path: Path) -> None:
    write(tmp_path).finish("complete")
    run = RunDirectory.open(tmp_path)
    assert run.status == "complete"
    assert run.facts.program.model_dump()["locust"] == "2"
    assert run.routes == ["log in", "save"]
    records = load_records(run.path)
    assert [run.error_name(number) for number in records["error"]] == ["none", "nonce_expired"]
    assert records["total_us"].tolist() == [1500, 0xFFFFFFFF], "what does not fit is the largest there is"
    assert records["line"].tolist() == [0, 3]
    assert records["logged_bytes"].tolist() == [-1, -1]
    assert measure_figures(run).requests == 2
    assert spans(run.events, 1.0) == []
    assert "abcdef" not in (tmp_path / "events.jsonl").read_text()


def test_the_summary_has_the_keys_of_the_format(tmp_path: Path) -> None:
    write(tmp_path).finish("complete")
    summary = json.loads((tmp_path / "summary.json").read_text())
    theirs = json.loads((FIXTURES / "run-go" / "summary.json").read_text())
    assert summary.keys() - {"measures"} == theirs.keys()
    for key in theirs.keys() - {"format", "duration_s", "records_sha256"}:
        assert summary[key].keys() - {"censored"} == theirs[key].keys() - {"censored"}, key
    ready = {"unit": "ms", "count": 2, "sum": 27.0, "mean": 13.5, "min": 12.5, "max": 14.5}
    assert summary["measures"]["image ready"] == ready | {"p50": 12.5, "p90": None, "p99": None}
    assert summary["response_ms"]["p99.9"] is None


@pytest.mark.parametrize("at_once", [True, False])
def test_the_summary_has_the_sum_of_all_records(tmp_path: Path, at_once: bool) -> None:
    with RunWriter(tmp_path, FACTS, summarise, at_once=at_once) as run:
        for i in range(3):
            run.request(Request(due_ns=i, total_us=i, route="page"))
        run.records(np.zeros(5, dtype=RECORD))
        run.finish("complete")
    written = (tmp_path / "requests.npy").read_bytes()[512:]
    assert len(written) == 8 * RECORD.itemsize
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["records_sha256"] == sha256(written).hexdigest()


def test_run_json_has_the_keys_of_the_format(tmp_path: Path) -> None:
    write(tmp_path).finish("complete")
    mine = json.loads((tmp_path / "run.json").read_text())
    theirs = json.loads((FIXTURES / "run-go" / "run.json").read_text())
    assert mine.keys() - {"scenario_settings"} == theirs.keys() - {"load"}  # it is whose who sends it
    assert mine["started_at"].endswith("Z")


def test_a_run_without_requests_has_a_summary_of_nulls(tmp_path: Path) -> None:
    RunWriter(tmp_path, FACTS, summarise).finish("failed", "wrong password")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["requests"]["sent"] == 0
    assert summary["records_sha256"] == sha256().hexdigest(), "the sum of nothing"
    assert set(summary["response_ms"].values()) == {None}
    assert json.loads((tmp_path / "run.json").read_text())["reason"] == "wrong password"


def test_a_run_that_was_left_is_failed_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), RunWriter(tmp_path, FACTS, summarise):
        raise RuntimeError("the server went away")
    facts = json.loads((tmp_path / "run.json").read_text())
    assert (facts["status"], facts["reason"]) == ("failed", "the server went away")


def test_routes_are_bounded(tmp_path: Path) -> None:
    run = RunWriter(tmp_path, FACTS, summarise, at_once=False)
    for number in range(200):
        run.request(Request(due_ns=number, total_us=1, route=f"step {number}"))
    run.finish("complete")
    names = json.loads((tmp_path / "routes.json").read_text())
    assert len(names) == 65
    assert names[-1] == "other"


def test_kill_9_loses_no_record(tmp_path: Path) -> None:
    script = f"""
import os, signal
from pathlib import Path
from tests.unit.rundir.test_write import write
write(Path({str(tmp_path / "run")!r}))
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (tmp_path / "run" / "requests.npy").stat().st_size == HEADER_BYTES + 2 * RECORD.itemsize
    run = RunDirectory.open(tmp_path / "run", now_s=2e9)
    assert (run.status, measure_figures(run).requests, len(run.events)) == ("interrupted", 2, 4)


def test_a_record_of_an_import_starts_when_the_run_did(tmp_path: Path) -> None:
    started = datetime(2026, 11, 20, 10, tzinfo=UTC)
    RunWriter(tmp_path, FACTS.model_copy(update={"started_at": started}), summarise).finish("complete")
    assert '"2026-11-20T10:00:00.000000Z"' in (tmp_path / "run.json").read_text()


def test_room_for_the_end_of_a_run_is_held_while_it_lasts(tmp_path: Path) -> None:
    run = write(tmp_path)
    assert (tmp_path / ".reserve").stat().st_size == 64 << 10
    run.finish("complete")
    assert not (tmp_path / ".reserve").exists()


FILL = """
import resource, signal, sys
from pathlib import Path
from plimsoll.common.errors import OutputError
from plimsoll.rundir.records import Request
from tests.unit.rundir.test_write import write

run = write(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
failures = 0
for number in range(2000):
    try:
        run.event("note", text="x" * 100)
        run.request(Request(due_ns=number, total_us=1, route="save", status=200))
    except OutputError:
        failures += 1
resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
run.finish("complete")
print(failures)
"""


@pytest.mark.parametrize("room_bytes", [20_000, 20_001, 50_000])
def test_a_run_whose_disk_is_full_has_failed_and_says_so_once(tmp_path: Path, room_bytes: int) -> None:
    command = [sys.executable, "-c", FILL, str(tmp_path), str(room_bytes)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n", "what cannot be written is told once, not for each request"
    run = RunDirectory.open(tmp_path)
    assert run.status == "failed"
    assert run.facts.reason
    assert "cannot be written: File too large; choose another folder with --out" in run.facts.reason
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert lines[-1]["phase"] == "stop", "and no half line stands before it"
    assert measure_figures(run).requests == run.requests.count > 2
