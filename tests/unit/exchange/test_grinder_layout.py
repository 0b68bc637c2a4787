"""Headers of data logs, and whatever may stand below them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.exchange.grinder import GrinderNames, find_test_names
from plimsoll.analysis.exchange.grinder_log import (
    TEST,
    DataLog,
    GrinderRows,
    Layout,
    NoLayoutError,
    done_ms,
    parse_header,
)
from plimsoll.analysis.exchange.importing import ImportingError, in_order

PLAIN = "Thread, Run, Test, Start time (ms since Epoch), Test time, Errors"
HTTP = (
    "HTTP response code, HTTP response length, HTTP response errors, Time to resolve host, "
    "Time to establish connection, Time to first byte"
)
LAYOUTS = [
    ("no plugin", PLAIN, "0,0,1,1,1,0", {"errors": 5}, False),
    ("the plugin of before 3.3", f"{PLAIN}, {HTTP}", "0," * 11 + "0", {"status": 6, "first_ms": 11}, True),
    ("the plugin", f"{PLAIN}, {HTTP}, New connections", "0," * 12 + "0", {"connections": 12}, True),
    ("a column of the script's, last", f"{PLAIN}, Rows", "0," * 6 + "0", {"errors": 5}, False),
    ("and first", f"{PLAIN}, Rows, {HTTP}", "0," * 12 + "0", {"status": 7}, True),
    (
        "a comma in its name",
        f"{PLAIN}, Rows, sold, {HTTP}",
        "0," * 12 + "0",
        {"status": 7, "first_ms": 12},
        True,
    ),
    ("a comma in the last one's name", f"{PLAIN}, {HTTP}, Rows, sold", "0," * 12 + "0", {"status": 6}, True),
    ("no line yet", f"{PLAIN}, Rows, sold", None, {"errors": 5}, False),
]


@pytest.mark.parametrize(("why", "header", "first", "places", "http"), LAYOUTS)
def test_a_header_says_where_columns_stand(
    why: str, header: str, first: str | None, places: dict[str, int], http: bool
) -> None:
    found = parse_header(header, first)
    assert {name: found.places[name] for name in places} == places, why
    assert found.http == http


@given(st.text())
def test_no_header_breaks_it(header: str) -> None:
    with pytest.raises(NoLayoutError):
        parse_header(header, "0, 0")


LINES = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.lists(st.one_of(st.integers().map(str), st.floats().map(str), st.just(" ")), max_size=9).map(
            ", ".join
        ),
        st.tuples(
            *[st.integers(0, 9)] * 3, st.integers(1, 1 << 40), st.integers(0, 1 << 40), st.integers(0, 2)
        ).map(lambda values: ", ".join(map(str, values))),
    ),
    max_size=12,
)


@given(lines=LINES, tail=st.sampled_from(["", "\n"]))
def test_no_line_breaks_it(tmp_path_factory: pytest.TempPathFactory, lines: list[str], tail: str) -> None:
    path = tmp_path_factory.mktemp("log") / "x-0-data.log"
    path.write_bytes("\n".join([PLAIN, "0, 0, 1, 5, 5, 0", *lines]).encode(errors="replace") + tail.encode())
    log = DataLog(path)
    tests = np.concatenate([*log, np.empty(0, dtype=TEST)])
    assert len(tests) == log.requests >= (1 if lines or tail else 0)
    assert len(log.broken) == min(log.broken_count, 10)
    for name in ("thread", "time_ms", "errors"):
        assert (tests[name] >= 0).all()
    assert (tests["start_ms"] > 0).all()


@given(st.binary(max_size=300))
def test_no_bytes_break_it(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("log") / "x-0-data.log"
    path.write_bytes(content)
    with pytest.raises(ImportingError):
        list(DataLog(path))


ROWS = st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 50), st.integers(0, 1)), max_size=60)


def rows_as_tests(rows: list[tuple[int, int, int]]) -> GrinderRows:
    tests = np.zeros(len(rows), dtype=TEST)
    for at, (start, time, errors) in enumerate(rows):
        tests[at]["start_ms"], tests[at]["time_ms"], tests[at]["errors"] = start, time, errors
    return tests


def in_blocks(tests: GrinderRows, size: int) -> Iterator[GrinderRows]:
    return (tests[start : start + size] for start in range(0, len(tests), size))


@given(st.lists(ROWS, max_size=4), st.integers(1, 7))
def test_merging_loses_nothing_and_keeps_order(workers: list[list[tuple[int, int, int]]], size: int) -> None:
    logs = []
    for rows in workers:
        tests = rows_as_tests(rows)
        logs.append(tests[np.argsort(done_ms(tests), kind="stable")])
    whole = list(in_order([in_blocks(log, size) for log in logs], 7, done_ms))
    found = np.concatenate([*whole, np.empty(0, dtype=TEST)])
    assert (np.diff(done_ms(found)) >= 0).all(), "each log is in order, so is all of it"
    assert sorted(found.tolist()) == sorted(row for log in logs for row in log.tolist())


@given(st.lists(ROWS, max_size=4), st.integers(1, 7))
def test_logs_out_of_order_lose_nothing_either(workers: list[list[tuple[int, int, int]]], size: int) -> None:
    logs = [rows_as_tests(rows) for rows in workers]
    found = np.concatenate(
        [*in_order([in_blocks(log, size) for log in logs], 7, done_ms), np.empty(0, dtype=TEST)]
    )
    assert sorted(found.tolist()) == sorted(row for log in logs for row in log.tolist())


def test_fast_and_slow_reading_agree() -> None:
    place = parse_header(PLAIN, None)
    assert isinstance(place, Layout)
    values = np.array([[1, 2, 3, 4, 5, 6], [1, 2, -3, 4, 5, 0]], dtype=float)
    whole = place.tests(values)
    assert whole is not None
    assert whole["test"].tolist() == [3, -3]
    assert place.tests(values[:, :5]) is None, "too few columns"


def test_a_hostile_workers_log_names_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "x-0.log").write_bytes(
        b'Test 1  1  0 "before the table"\n\xff\xfe Final statistics for this process: \n'
        b'Test 2  1  0  "=cmd|\x1b[31m"\n(Test 3 1 "a "quoted" one"\nTest 99999999999 1 "too long a number"\n'
    )
    found = find_test_names(tmp_path / "x-0-data.log")
    assert found.descriptions == {2: "=cmd|\x1b[31m", 3: 'a "quoted" one'}
    assert found.composite == {3}


@given(st.dictionaries(st.integers(-9, 9), st.text(max_size=60), max_size=12))
def test_two_tests_never_share_a_name(descriptions: dict[int, str]) -> None:
    names = GrinderNames(descriptions)
    called = [names.of(number) for number in descriptions]
    assert len(set(called)) == len(called)
    assert [names.of(number) for number in descriptions] == called, "and keep it"
