"""Run directories of both formats: read alike, merged with each other, and written in format 2."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.evidence.summary import summarise
from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.cli import main
from plimsoll.rundir.check import check_records
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import (
    RECORD,
    RECORD_V1,
    UNKNOWN_LATE_US,
    Records,
    RecordTail,
    Request,
    late_us,
    with_all_columns,
)
from plimsoll.rundir.write import RunWriter
from tests.support.programs import FIXTURES
from tests.support.rundir import COLUMNS_V1, header, load_records, records, write_instance, write_run

V1, V2 = FIXTURES / "run-go", FIXTURES / "run-go-v2"  # one run of bin/replay, in either format
QUEUED = 16


def _read(run: Path) -> Records:
    return np.concatenate([block.copy() for block in RunDirectory.open(run).requests.blocks()])


def _tail(run: Path) -> Records:
    return np.concatenate(list(RecordTail(run / "requests.npy").records()))


def _tail_from_its_end(run: Path) -> Records:
    tail = RecordTail(run / "requests.npy", most=300)
    found = np.concatenate(list(tail.records()))
    assert (tail.skipped, len(found)) == (1000, 300)
    return found


@pytest.mark.parametrize(("run", "layout"), [(V1, RECORD_V1), (V2, RECORD)], ids=["format 1", "format 2"])
@pytest.mark.parametrize("read", [_read, _tail, _tail_from_its_end])
def test_either_format_is_read_as_numpy_reads_it(
    run: Path, layout: np.dtype[np.void], read: Callable[[Path], Records]
) -> None:
    found, whole = read(run), load_records(run)
    assert found.dtype == whole.dtype == layout
    assert (found == whole[-len(found) :]).all()
    assert json.loads((run / "run.json").read_text())["format"] == (1 if layout is RECORD_V1 else 2)


def test_the_columns_of_format_1_are_the_first_of_format_2() -> None:
    assert (load_records(V2)[list(COLUMNS_V1)] == load_records(V1)).all()
    assert (RECORD.itemsize, RECORD_V1.itemsize) == (81, 68)


LATENESS = (
    ("format 2 has it of what waited", V2, True, 60),
    ("and of what did not, where it is the whole lag", V2, False, None),
    ("format 1 does not know it of what waited", V1, True, UNKNOWN_LATE_US),
    ("and the lag of what did not is all the generator's", V1, False, None),
)


@pytest.mark.parametrize(("says", "run", "queued", "value"), LATENESS, ids=[row[0] for row in LATENESS])
def test_lateness_of_either_format(says: str, run: Path, queued: bool, value: int | None) -> None:
    table = load_records(run)
    of = ((table["flags"] & QUEUED) != 0) == queued
    assert of.any(), says
    assert (late_us(table)[of] == (table["lag_us"][of] if value is None else value)).all(), says
    assert (with_all_columns(table)["late_us"] == late_us(table)).all()


def test_format_1_knows_no_page_and_nothing_of_what_answered() -> None:
    old, new = with_all_columns(load_records(V1)), load_records(V2)
    for name in ("served", "page", "paused_us"):
        assert new[name].any()
        assert not old[name].any()


@pytest.mark.parametrize("run", [V1, V2])
def test_records_of_either_format_keep_their_sum(run: Path) -> None:
    opened = RunDirectory.open(run)
    assert opened.summary
    assert opened.summary.records_sha256
    assert check_records(opened.requests, opened.summary) is None


def test_figures_of_either_format_are_the_same() -> None:
    old, new = (measure_figures(RunDirectory.open(run)).as_json() for run in (V1, V2))
    assert new.pop("served") == json.loads((V2 / "summary.json").read_text())["served"]
    assert old == new


def write_v1(path: Path, table: Records) -> Path:
    """Write records as format 1 has them into the run directory `path`."""
    old = table[list(COLUMNS_V1)].astype(list(COLUMNS_V1.items()))
    (path / "requests.npy").write_bytes(header(COLUMNS_V1, len(old)) + old.tobytes())
    facts = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(facts | {"format": 1}))
    return path


MERGED = (
    ("both of format 1", (1, 1)),
    ("the first of format 1", (1, 2)),
    ("the second of format 1", (2, 1)),
    ("both of format 2", (2, 2)),
)


@pytest.mark.parametrize(("says", "formats"), MERGED, ids=[row[0] for row in MERGED])
def test_shards_of_both_formats_are_one_run_of_format_2(
    tmp_path: Path, says: str, formats: tuple[int, int]
) -> None:
    shards = []
    for number, form in enumerate(formats):
        flags = np.where(np.arange(100) % 10 == 0, QUEUED, 0)
        table = records(100, client=number, lag_us=900, late_us=np.where(flags, 50, 900), flags=flags, page=7)
        shards.append(write_run(tmp_path / str(number), table, summary={}))
        if form == 1:
            write_v1(shards[-1], table)
    merge_shards(shards, tmp_path / "whole")
    facts, found = json.loads((tmp_path / "whole" / "run.json").read_text()), load_records(tmp_path / "whole")
    assert (facts["format"], found.dtype, len(found)) == (2, RECORD, 200), says
    for number, form in enumerate(formats):
        own = found[found["client"] == number]
        waited = (own["flags"] & QUEUED) != 0
        assert set(own["late_us"][waited]) == {UNKNOWN_LATE_US if form == 1 else 50}, says
        assert set(own["late_us"][~waited]) == {900}, says
        assert set(own["page"]) == {0 if form == 1 else 7}, says


def test_instances_of_a_replay_may_be_of_both_formats(tmp_path: Path) -> None:
    for index in range(4):
        write_instance(tmp_path / str(index), index)
    write_v1(tmp_path / "2", records(100))
    done = CliRunner().invoke(main, ["merge", str(tmp_path), "--out", str(tmp_path / "whole"), "--json"])
    assert done.exit_code == 0, done.output
    assert len(load_records(tmp_path / "whole")) == 400


@pytest.mark.parametrize("to", ["csv", "parquet", "hdr"])
def test_a_run_of_format_1_is_exported_as_one_of_format_2(tmp_path: Path, to: str) -> None:
    table = records(500, lag_us=40, late_us=40)
    new = write_run(tmp_path / "new", table, summary={})
    old = write_v1(write_run(tmp_path / "old", table, summary={}), table)
    for run in (old, new):
        done = CliRunner().invoke(main, ["export", str(run), "--to", to, "--out", str(run / "out")])
        assert done.exit_code == 0, done.output
    assert (old / "out").read_bytes() == (new / "out").read_bytes()


def test_what_is_written_is_of_format_2(tmp_path: Path) -> None:
    facts = RunFacts.model_validate({"format": 1, "scenario": "download"})
    with RunWriter(tmp_path / "run", facts, summarise) as run:
        run.request(Request(due_ns=0, total_us=1000, route="page", status=200, lag_us=30))
        run.records(load_records(V1)[:10])
        run.finish("complete")
    found = load_records(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["format"] == 2
    assert (found.dtype, len(found), found["late_us"][0]) == (RECORD, 11, 30)
    assert [found[name].any() for name in ("served", "page", "paused_us")] == [False] * 3
    opened = RunDirectory.open(tmp_path / "run")
    assert check_records(opened.requests, opened.summary) is None
