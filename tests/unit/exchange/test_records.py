"""`plimsoll export --to csv` and `--to parquet`: every record comes back, and hostile names do no harm."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.exchange.csvfile import COLUMNS, cell
from plimsoll.analysis.exchange.exporting import export_run
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import SERVED, UNKNOWN_LATE_US
from tests.support.programs import FIXTURES
from tests.support.rundir import COLUMNS as RECORD
from tests.support.rundir import COLUMNS_V1, load_records, records, traffic, write_run

RUN_GO, RUN_GO_V1 = FIXTURES / "run-go-v2", FIXTURES / "run-go"
FLAGS = {"reused": 1, "http2": 2, "tls": 4, "warmup": 8, "queued": 16, "client_queued": 128}


def rows_of_csv(run: Path, out: Path) -> list[dict[str, Any]]:
    export_run(run, "csv", out)
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = ("log", "route", "error", "served")
    return [
        {
            name: (value or None) if name in texts else bool(int(value)) if name in FLAGS else _whole(value)
            for name, value in row.items()
        }
        for row in rows
    ]


def _whole(value: str) -> int | None:
    return int(value) if value else None


def rows_of_parquet(run: Path, out: Path) -> list[dict[str, Any]]:
    export_run(run, "parquet", out)
    return list(parquet.read_table(out).to_pylist())


def record_of(row: dict[str, Any], run: RunDirectory) -> tuple[int, ...]:
    """The record that a row was made of."""
    logs = [log.path for log in run.facts.logs]
    made = {name: row[name] or 0 for name in RECORD if name in row}
    made["line"] = (row["line"] or 0) | (logs.index(row["log"]) << 48 if row["log"] else 0)
    made["logged_bytes"] = -1 if row["logged_bytes"] is None else row["logged_bytes"]
    made["route"], made["error"] = run.routes.index(row["route"]), run.errors.index(row["error"])
    made["served"] = SERVED.index(row["served"] or "unknown")
    made["late_us"] = UNKNOWN_LATE_US if row["late_us"] is None else row["late_us"]
    made["flags"] = sum(flag for name, flag in FLAGS.items() if row[name])
    return tuple(made[name] for name in RECORD)


@pytest.mark.parametrize("read", [rows_of_csv, rows_of_parquet])
def test_every_record_comes_back(tmp_path: Path, read: Any) -> None:
    rows = read(RUN_GO, tmp_path / "out")
    run = RunDirectory.open(RUN_GO)
    assert list(rows[0]) == list(COLUMNS)
    assert [record_of(row, run) for row in rows] == load_records(run.path).tolist()
    assert all(row["response_us"] == row["lag_us"] + row["total_us"] for row in rows)


@pytest.mark.parametrize("read", [rows_of_csv, rows_of_parquet])
def test_records_of_format_1_have_the_same_columns(tmp_path: Path, read: Any) -> None:
    """What they do not know is absent: the lateness of what waited, what answered, the page."""
    rows, run = read(RUN_GO_V1, tmp_path / "out"), RunDirectory.open(RUN_GO_V1)
    assert list(rows[0]) == list(COLUMNS)
    assert [record_of(row, run)[: len(COLUMNS_V1)] for row in rows] == load_records(run.path).tolist()
    for row in rows:
        assert row["late_us"] == (None if row["queued"] else row["lag_us"])
        assert (row["served"], row["page"], row["paused_us"]) == (None, None, 0)


SOME = st.lists(
    st.tuples(
        st.integers(0, 1 << 60),
        *[st.integers(0, (1 << 32) - 1)] * 6,
        st.integers(0, 1 << 40),
        st.integers(-1, 1 << 60),
        st.integers(0, (1 << 48) - 1),
        st.integers(0, (1 << 32) - 1),
        st.integers(0, 2),
        st.integers(0, 65535),
        st.integers(0, 65535),
        st.integers(0, 6),
        st.sampled_from([0, 1, 31, 144]),
        st.integers(0, (1 << 32) - 1),
        st.integers(0, 4),
        *[st.integers(0, (1 << 32) - 1)] * 2,
    ),
    min_size=1,
    max_size=20,
)


@given(SOME)
def test_any_record_comes_back(tmp_path_factory: pytest.TempPathFactory, some: list[tuple[int, ...]]) -> None:
    folder = tmp_path_factory.mktemp("run")
    table = np.array(some, dtype=list(RECORD.items()))
    run = RunDirectory.open(write_run(folder / "run", table, summary={}))
    by_csv, by_parquet = rows_of_csv(run.path, folder / "csv"), rows_of_parquet(run.path, folder / "parquet")
    assert [record_of(row, run) for row in by_csv] == table.tolist()
    assert [record_of(row, run) for row in by_parquet] == table.tolist()


@pytest.mark.slow
def test_many_blocks_are_one_file(tmp_path: Path) -> None:
    table = traffic(120, 300)
    run = write_run(tmp_path / "run", table, summary={}, routes=["a", "b", "c", "d"])
    by_csv, by_parquet = rows_of_csv(run, tmp_path / "csv"), rows_of_parquet(run, tmp_path / "parquet")
    assert len(table) > 30_000
    assert [row["due_ns"] for row in by_csv] == table["due_ns"].tolist()
    assert by_csv == by_parquet


def test_units_and_facts_are_in_the_parquet_file(tmp_path: Path) -> None:
    export_run(RUN_GO, "parquet", tmp_path / "x.parquet")
    schema = parquet.read_schema(tmp_path / "x.parquet")
    assert schema.field("ttfb_us").metadata[b"unit"] == b"us"
    facts = json.loads(schema.metadata[b"plimsoll"])
    assert (facts["scenario"], facts["status"]) == ("replay", "complete")


def test_a_scripted_run_has_iterations_and_no_log(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(2, line=[3, 0]), summary={}, logs=[])
    assert [(row["log"], row["line"]) for row in rows_of_csv(run, tmp_path / "c")] == [
        (None, 3),
        (None, None),
    ]
    assert [(row["log"], row["line"]) for row in rows_of_parquet(run, tmp_path / "p")] == [
        (None, 3),
        (None, None),
    ]


def test_a_name_that_is_missing_is_a_number(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(1, route=7, error=9), summary={}, routes=[])
    [row] = rows_of_csv(run, tmp_path / "c")
    assert (row["route"], row["error"]) == ("route 7", "error 9")


HOSTILE = [
    "=cmd|' /C calc'!A0",
    "+1",
    "-2+3",
    "@SUM(A1)",
    " \t=1+1",
    "＝1",
    'a "quoted", name',
    "two\r\nlines",
    "\x00\x1b[31m\u202e",
    "\ud800",
    "",
]


def test_hostile_names_are_text_and_nothing_else(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run", records(len(HOSTILE), route=range(len(HOSTILE))), summary={}, routes=HOSTILE
    )
    export_run(run, "csv", tmp_path / "x.csv")
    text = (tmp_path / "x.csv").read_text(encoding="utf-8")
    assert len(text.splitlines()) == len(HOSTILE) + 1, "a record, a line"
    routes = [row["route"] for row in csv.DictReader(text.splitlines())]
    assert all(not route.lstrip().startswith(tuple("=+-@＝")) for route in routes)
    assert routes[0] == "'=cmd|' /C calc'!A0"
    assert routes[6] == 'a "quoted", name'
    assert "\x1b" not in text and "\u202e" not in text
    export_run(run, "parquet", tmp_path / "x.parquet")
    names = parquet.read_table(tmp_path / "x.parquet")["route"].to_pylist()
    assert names[:9] == HOSTILE[:9], "as they are"
    assert names[9:] == ["?", ""]


@given(st.text())
def test_no_cell_is_a_formula_or_two_lines(text: str) -> None:
    shown = cell(text)
    assert not shown.lstrip().startswith(tuple("=+-@＝＋－＠"))
    assert len(shown.splitlines()) <= 1
