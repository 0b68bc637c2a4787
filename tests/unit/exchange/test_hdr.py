"""`plimsoll export --to hdr`: what HdrHistogram's own library reads, and what `bin/replay` writes."""

import json
import zlib
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.exchange.exporting import export_run
from plimsoll.analysis.exchange.hdrlog import LARGEST, encode_counts, hdr_blocks, slot_upper_us, slots_of
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import WARMUP
from tests.support.programs import FIXTURES
from tests.support.rundir import records, traffic, write_run

RUN_GO = FIXTURES / "run-go"


def library(values: list[int]) -> HdrHistogram:
    histogram = HdrHistogram(1, LARGEST, 3)
    for value in values:
        histogram.record_value(value)
    return histogram


def intervals(log: Path) -> list[tuple[str, HdrHistogram]]:
    lines = log.read_text().splitlines()[5:]
    return [
        (head, HdrHistogram.decode(payload)) for head, _, payload in (line.rpartition(",") for line in lines)
    ]


def test_it_is_the_log_that_the_replay_wrote(tmp_path: Path) -> None:
    export_run(RUN_GO, "hdr", tmp_path / "x.hlog")
    ours, theirs = intervals(tmp_path / "x.hlog"), intervals(RUN_GO / "latency.hlog")
    assert [head for head, _ in ours] == [head for head, _ in theirs]
    for (head, mine), (_, its) in zip(ours, theirs, strict=True):
        assert mine.equals(its), head
    heads = [(path.read_text().splitlines()[:5]) for path in (tmp_path / "x.hlog", RUN_GO / "latency.hlog")]
    assert heads[0] == heads[1]


def test_its_lines_are_those_that_the_replay_writes(tmp_path: Path) -> None:
    """replay/record/hdrlog_test.go reads the same file."""
    fixture = json.loads((FIXTURES / "hdr.json").read_text())
    table = records(len(fixture["records"]))
    for name in ("due_ns", "lag_us", "total_us"):
        table[name] = [record[name] for record in fixture["records"]]
    table["flags"] = [WARMUP if record["warmup"] else 0 for record in fixture["records"]]
    run = RunDirectory.open(write_run(tmp_path / "run", table, started_at=fixture["started_at"]))
    text = b"".join(piece for _, piece in hdr_blocks(run)).decode()
    assert [_unpacked(line) for line in text.splitlines()] == fixture["lines"]


def _unpacked(line: str) -> str:
    head, _, payload = line.rpartition(",")
    return f"{head},{zlib.decompress(b64decode(payload)[8:]).hex()}" if line.startswith("Tag=") else line


VALUES = st.lists(st.one_of(st.integers(0, LARGEST), st.integers(0, 5000)), min_size=1, max_size=60)


@given(VALUES)
def test_the_library_decodes_what_is_encoded(values: list[int]) -> None:
    found = slots_of(np.array(values))
    decoded = HdrHistogram.decode(encode_counts(np.bincount(found).astype(np.int64)))
    expected = library(values)
    assert decoded.get_total_count() == len(values)
    assert decoded.equals(expected)
    assert slot_upper_us(int(found.max())) == expected.get_max_value()
    for value, slot in zip(values, found.tolist(), strict=True):
        assert value <= slot_upper_us(slot) <= value + max(value // 1000, 0)


def test_long_runs_of_zeros_and_large_counts_are_encoded() -> None:
    counts = np.zeros(int(slots_of(np.array([LARGEST]))[0]) + 1, dtype=np.int64)
    counts[[0, 2, 3, 300, len(counts) - 1]] = [1, 127, 1 << 40, 64, 5]
    decoded = HdrHistogram.decode(encode_counts(counts))
    assert decoded.get_total_count() == int(counts.sum())


def test_intervals_do_not_depend_on_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDirectory.open(write_run(tmp_path / "run", traffic(30, 40), summary={}))
    whole = b"".join(piece for _, piece in hdr_blocks(run))
    blocks = type(run.requests).blocks
    monkeypatch.setattr(type(run.requests), "blocks", lambda self: blocks(self, 7))
    assert b"".join(piece for _, piece in hdr_blocks(run)) == whole


def test_warm_up_is_left_out_and_hours_count_as_one(tmp_path: Path) -> None:
    table = records(3, flags=[8, 0, 0], total_us=[5, 4_000_000_000, 10], lag_us=[0, 4_000_000_000, 0])
    run = write_run(tmp_path / "run", table, summary={})
    export_run(run, "hdr", tmp_path / "x.hlog")
    found = intervals(tmp_path / "x.hlog")
    assert [(head.split(",")[0], histogram.get_total_count()) for head, histogram in found] == [
        ("Tag=response", 2),
        ("Tag=service", 2),
    ]
    assert found[0][1].get_max_value() >= LARGEST


def test_a_run_without_a_start_begins_at_the_epoch(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(3), summary={}, started_at=None)
    export_run(run, "hdr", tmp_path / "x.hlog")
    assert (
        "#[StartTime: 0.000 (seconds since epoch), 1970-01-01T00:00:00Z]" in (tmp_path / "x.hlog").read_text()
    )
