"""The status of an experiment: the figures of a run that grows, read once; when all ends; its words."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from pydantic.fields import FieldInfo

from plimsoll.lab.experiment.design import plan_runs
from plimsoll.lab.experiment.folder import make_folder
from plimsoll.lab.experiment.status.forecast import AFTER_S, BEFORE_S, MAKE_S
from plimsoll.lab.experiment.status.running import (
    FEWEST,
    OVER,
    Activity,
    AttemptReader,
    DiskLatencies,
    GrowingRun,
    Latencies,
    PlannedPhase,
    SaturatorProgress,
)
from plimsoll.lab.experiment.status.text import lines, load_text
from plimsoll.lab.experiment.status.watch import Runs, State, Status, StatusReader
from plimsoll.rundir.records import RECORD, WARMUP, Records, RecordTail, Tail, header
from tests.support.programs import DOCS
from tests.support.scripted import STARTS, ScriptedExperiment, lab_of

EDGES_S = (1.0, 5.0)


def records(count: int, per_s: float = 100.0, total_us: int = 5000, from_s: float = 0.0) -> Records:
    table = np.zeros(count, dtype=RECORD)
    table["due_ns"] = ((from_s + np.arange(count) / per_s) * 1e9).astype("i8")
    table["total_us"] = total_us
    table["status"] = 200
    return table


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    facts = {"format": 1, "scenario": "replay", "started_at": "2026-11-22T20:00:00Z"}
    (path / "run.json").write_text(json.dumps(facts))
    (path / "requests.npy").write_bytes(header(0))
    return path


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_each_byte_of_a_file_that_grows_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, read, pread = tmp_path / "requests.npy", 0, os.pread

    def counted(descriptor: int, count: int, offset: int) -> bytes:
        nonlocal read
        read += len(data := pread(descriptor, count, offset))
        return data

    monkeypatch.setattr(os, "pread", counted)
    tail = RecordTail(path)
    assert list(tail.records()) == []  # it is not there yet
    append(path, header(0))
    found = 0
    for _ in range(20):
        append(path, records(500).tobytes())
        found += sum(len(block) for block in tail.records())
    assert found == 10_000
    assert read == 10_000 * RECORD.itemsize


def test_half_a_record_or_line_waits_for_the_other_half(tmp_path: Path) -> None:
    path, data = tmp_path / "requests.npy", records(2).tobytes()
    append(path, header(0) + data[:100])
    tail = RecordTail(path)
    assert [len(block) for block in tail.records()] == [1]
    append(path, data[100:])
    assert [len(block) for block in tail.records()] == [1]
    lines = Tail(tmp_path / "lines")
    append(tmp_path / "lines", b"one\ntw")
    assert lines.lines() == [b"one"]
    append(tmp_path / "lines", b"o\n")
    assert lines.lines() == [b"two"]


@pytest.mark.parametrize("scale", [1.0, 300.0, 90_000.0])
def test_the_p999_is_that_of_the_records_within_a_fifth_of_a_percent(scale: float) -> None:
    random = np.random.default_rng(7)
    times = (scale * random.lognormal(3, 1.2, 20_000)).astype(np.uint32)
    so_far = Latencies()
    for part in np.array_split(times, 7):
        so_far.add(part)
    exact_ms = float(np.quantile(times, 0.999, method="inverted_cdf")) / 1000
    assert so_far.p999_ms() == pytest.approx(exact_ms, rel=0.0021, abs=0.0011)


def test_fewer_than_a_thousand_requests_have_no_p999(run: Path) -> None:
    load = GrowingRun(run, EDGES_S)
    assert load.started_at is not None
    append(run / "requests.npy", records(999).tobytes())
    assert load.read(10).p999_ms is None
    append(run / "requests.npy", records(1).tobytes())
    assert load.read(10).p999_ms == pytest.approx(5.0, rel=0.003)


def test_failures_are_never_fast(run: Path) -> None:
    table = records(2000)
    table["error"][:10] = 1
    append(run / "requests.npy", table.tobytes())
    figures = GrowingRun(run, EDGES_S).read(20)
    assert figures.failures == 10
    assert figures.p999_ms is None  # it is one of them, and nobody knows when it would have been answered


def test_figures_are_of_the_last_seconds_of_the_phase_and_without_the_warm_up(run: Path) -> None:
    table = records(6000, per_s=100.0)
    table["flags"][:100] = WARMUP
    table["total_us"][:100] = 9_000_000
    during = table["due_ns"] >= EDGES_S[1] * 1e9
    table["total_us"][during] = 40_000
    append(run / "requests.npy", table.tobytes())
    figures = GrowingRun(run, EDGES_S).read(60.0)
    assert figures.requests == 6000
    assert figures.requests_per_s == pytest.approx(100.0, rel=0.02)
    assert figures.phase_p999_ms == pytest.approx(40.0, rel=0.003)
    assert figures.p999_ms == pytest.approx(40.0, rel=0.003)


def test_the_saturator_is_read_from_its_events(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    saturation = SaturatorProgress(path)
    assert saturation.read(1.0) is None
    for t_s, event in (
        (2.0, {"event": "zfs-send", "phase": "start"}),
        (3.0, {"event": "zfs-send bytes", "bytes_per_s": 120_000_000}),
        (3.5, {"event": "zfs-send retry", "error": "gone"}),
    ):
        append(path, json.dumps({"t_ns": t_s * 1e9, **event}).encode() + b"\n")
    append(path, b'[1]\nno JSON\n{"t_ns": null}\n')
    now = saturation.read(4.0)
    assert now is not None
    assert (now.kind, now.works, now.bytes_per_s, now.retries) == ("zfs-send", True, 120e6, 1)
    later = saturation.read(60.0)
    assert later is not None
    assert later.bytes_per_s is None  # nothing came for a minute
    append(path, b'{"t_ns": 61e9, "event": "zfs-send", "phase": "stop", "bytes": 5}\n')
    stopped = saturation.read(61.0)
    assert stopped is not None
    assert not stopped.works


def test_the_latencies_of_disks_are_means_of_the_last_seconds(tmp_path: Path) -> None:
    path = tmp_path / "host.csv"
    disks = DiskLatencies(path)
    assert disks.read() == []
    append(path, b"t_ns,cpu.idle_percent,diskstats.sda_read_latency_ms,diskstats.sda_write_latency_ms\n")
    for second in range(10):
        append(path, f"{second},90,{second if second > 4 else 500},\n".encode())
    (disk,) = disks.read()
    assert (disk.device, disk.read_ms, disk.write_ms) == ("sda", 7.0, None)


def test_a_member_that_begins_later_says_in_how_many_seconds(run: Path) -> None:
    attempt = run.parent
    member = attempt / "author" / "a-run"
    (attempt / "author").mkdir()
    run.rename(member)
    running = AttemptReader(attempt, [PlannedPhase(OVER, 0.0, None)], {"author": 30.0})
    started_at = datetime(2026, 11, 22, 20, tzinfo=UTC)
    said = []
    for t_s in (12.0, 31.0):
        doing = Activity(what="measuring", since_s=0)
        running.read(started_at + timedelta(seconds=t_s), doing)
        (figures,) = doing.load
        said.append((figures.waits_s, load_text(figures)))
    assert said[0] == (18.0, "begins in 0:18")
    assert said[1][0] is None


LOOK_S = 5.0


@pytest.mark.parametrize(
    ("says", "parts", "most"),
    [
        ("all takes what is guessed", {}, 0.01),
        ("a clone takes three minutes to be made", {"make": 180.0}, 0.03),
        ("a restart takes a minute", {"before": 60.0}, 0.03),
        ("neither clones nor restarts take any time", {"before": 1.0, "make": 1.0}, 0.04),
        ("a run is put away slowly", {"after": 25.0}, 0.03),
        ("the load ends later than planned", {"load": 280.0}, 0.03),
    ],
)
def test_the_end_moves_by_little_from_look_to_look(
    says: str, parts: dict[str, float], most: float, tmp_path: Path
) -> None:
    script = ScriptedExperiment(tmp_path, False, **parts)
    ends = script.ends_seen(LOOK_S)
    whole_s = (script.ended_at - STARTS).total_seconds()
    moves = [abs((b - a).total_seconds()) / whole_s for a, b in pairwise(ends)]
    assert max(moves) <= most, f"{says}: moved by {max(moves):.1%}"
    error = abs((ends[-1] - script.ended_at).total_seconds())
    assert error <= 0.03 * whole_s
    middle = ends[len(ends) // 2]
    assert abs((middle - script.ended_at).total_seconds()) <= 0.15 * whole_s


def test_a_scenario_that_decides_itself_has_no_end_until_one_has_ended(tmp_path: Path) -> None:
    script = ScriptedExperiment(tmp_path, open_end=True, load=300.0)
    looks = script.looks(LOOK_S)
    first = next(i for i, look in enumerate(looks) if look.runs.finished == 1)
    assert {look.ends_at for look in looks[: first - 60]} == {None}
    assert all(look.ends_at is not None for look in looks[first:])


def test_runs_that_were_set_aside_take_no_time(tmp_path: Path) -> None:
    folder = make_folder(lab_of(tmp_path))
    watch = StatusReader(folder, lambda: STARTS)
    with folder.journal.lock():
        folder.journal.note("begun")
        whole = watch.read()
        folder.journal.note("set aside", backend="two", why="it burns")
        less = watch.read()
    assert whole.left_s is not None
    assert less.left_s is not None
    assert less.left_s < 0.6 * whole.left_s
    assert (less.runs.left, less.runs.set_aside) == (4, 4)
    assert less.set_aside == {"two": "it burns"}


def test_a_look_begins_at_a_journal_that_is_there_already(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    folder = make_folder(lab)
    assert StatusReader(folder).read().state == "not begun"
    folder.journal.note("begun")
    folder.journal.note("run begun", run=plan_runs(lab)[0].name, backend="one")
    look = StatusReader(folder).read()
    assert look.state == "stopped"  # killed: nobody holds the journal
    assert look.resume == f"plimsoll run --resume {folder.path}"
    assert look.now is None
    assert look.ends_at is None
    folder.journal.note("ended", finished=0, not_done=8)
    assert StatusReader(folder).read().state == "unfinished"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        (State, Status.model_fields["state"]),
        (Activity.model_fields["what"].annotation, Activity.model_fields["what"]),
    ],
    ids=["state", "what"],
)
def test_a_key_names_all_of_its_values(values: Any, field: FieldInfo) -> None:
    """Its description is what docs/status.md says of it."""
    assert re.findall("`([^`]+)`", field.description or "") == [*get_args(values)]


def test_the_guesses_are_those_of_the_page() -> None:
    text = (DOCS / "status.md").read_text(encoding="utf-8")
    assert f"({MAKE_S:g} s, {BEFORE_S:g} s, {AFTER_S:g} s;" in re.sub(r"\s+", " ", text)
    assert f"under {FEWEST:,} requests there is none" in text


def test_what_a_machine_said_cannot_steer_the_terminal() -> None:
    runs = Runs(total=1, finished=0, left=0, set_aside=1, failed_tries=3)
    status = Status(
        experiment="one",
        directory="results/one",
        state="unfinished",
        begun_at=None,
        ended_at=None,
        runs=runs,
        now=None,
        last_failure=None,
        set_aside={"nvme": "\x1b[2J gone\nplimsoll: all is well"},
        ends_at=None,
        left_s=None,
        resume=None,
        report=None,
    )
    shown = lines(status)
    assert r"\x1b[2J gone\x0aplimsoll: all is well" in shown[-1]
    assert not any("\x1b" in line or "\n" in line for line in shown)
