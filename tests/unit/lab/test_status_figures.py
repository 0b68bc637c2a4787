"""The figures of a run that grows: read once, and true."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from plimsoll.lab.experiment.status.running import (
    OVER,
    Activity,
    AttemptReader,
    DiskLatencies,
    GrowingRun,
    Latencies,
    PlannedPhase,
    SaturatorProgress,
)
from plimsoll.lab.experiment.status.text import load_text
from plimsoll.rundir.records import RECORD, WARMUP, Records, Tail, header

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
    tail = Tail(path)
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
    tail = Tail(path)
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
