"""`plimsoll import grinder`: real data logs of The Grinder 3.11, several workers, cut off and broken."""

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.evidence.run import RunStatistics
from plimsoll.analysis.exchange.grinder import GrinderNames, find_test_names, import_grinder
from plimsoll.analysis.exchange.grinder_log import (
    TEST,
    DataLog,
    GrinderRows,
    Layout,
    NoLayoutError,
    done_ms,
    parse_header,
)
from plimsoll.analysis.exchange.importing import ImportingError, ImportResult, in_order
from plimsoll.cli import main
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import REPLAY, ROOT, grinder_table, need
from tests.support.recorded import GRINDER_HEADER as HEADER
from tests.support.rundir import load_records

LOGS = ROOT / "tests" / "fixtures" / "grinder"
LOADED = [LOGS / "load-0-data.log", LOGS / "load-1-data.log"]
PLAIN = LOGS / "plain-0-data.log"
HTTP = (
    "HTTP response code, HTTP response length, HTTP response errors, Time to resolve host, "
    "Time to establish connection, Time to first byte"
)


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["import", "grinder", *map(str, args)])


def alone(log: Path, folder: Path) -> Path:
    """A copy of a log that nothing stands beside."""
    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(log, folder))


def written(path: Path, header: str, *rows: str, end: str = "\n") -> Path:
    path.write_text("\n".join([header, *rows]) + end)
    return path


def statistics(imported: ImportResult) -> RunStatistics:
    return measure_figures(RunDirectory.open(imported.directory))


@pytest.mark.parametrize("worker", ["load-0", "load-1", "plain-0"])
def test_its_own_table_says_the_same(tmp_path: Path, worker: str) -> None:
    table = grinder_table(LOGS / f"{worker}.log")
    imported = import_grinder([LOGS / f"{worker}-data.log"], tmp_path)
    opened, figures = RunDirectory.open(imported.directory), statistics(imported)
    ours = {"Totals": figures.total.grinder}
    by_number = {name: int(number) for number, name in descriptions(LOGS / f"{worker}.log").items()}
    for name, route in figures.routes.items():
        ours[f"Test {by_number[name.partition(' ')[2]]}"] = route.grinder
    assert imported.is_whole
    assert ours.keys() == table.keys(), opened.routes
    for name, (tests, errors, mtt, ttsd) in table.items():
        row = ours[name]
        assert (row.tests, row.errors) == (int(tests), int(errors)), name
        if row.tests:
            assert (f"{row.mtt_ms:.2f}", f"{row.ttsd_ms:.2f}") == (mtt, ttsd), name


def descriptions(worker_log: Path) -> dict[str, str]:
    return dict(re.findall(r'^Test (\d+) .*? "(.*)"$', worker_log.read_text(), re.MULTILINE))


def test_workers_are_one_run(tmp_path: Path) -> None:
    imported = import_grinder(LOADED, tmp_path, target="http://10.0.0.5")
    opened = RunDirectory.open(imported.directory)
    records = load_records(opened.path)
    assert imported.requests == len(records) == 150
    assert opened.facts.loop == "closed" and opened.facts.speed == "users 6"
    assert opened.facts.program.version == "3.11"
    assert opened.facts.target and opened.facts.target.url == "http://10.0.0.5"
    assert not records["lag_us"].any(), "due is the start"
    assert records["due_ns"].min() > 0, "the enclosing test began first"
    assert (np.diff(records["due_ns"] + records["total_us"].astype("i8") * 1000) >= 0).all(), "merged by time"
    assert sorted(np.unique(records["client"]).tolist()) == [0, 1, 2, 65536, 65537, 65538]
    assert sorted(np.unique(records["line"]).tolist()) == [1, 2, 3, 4, 5, 6], "runs, from 1"
    assert (records["logged_bytes"] == -1).all() and not records["logged_status"].any()
    assert opened.routes == ["Front page", 'Picture of a "ship", large', "Missing", "Wrong", "Refused"]


def test_an_enclosing_test_is_a_measure(tmp_path: Path) -> None:
    imported = import_grinder(LOADED, tmp_path)
    summary = json.loads((imported.directory / "summary.json").read_text())
    assert summary["measures"]["Visit"]["count"] == 36
    events = (imported.directory / "events.jsonl").read_text()
    assert events.count('"measure"') == 36


def test_columns_mean_what_the_run_format_says(tmp_path: Path) -> None:
    log = written(
        tmp_path / "x-0-data.log",
        f"{HEADER}, {HTTP}, New connections",
        "7, 2, 1, 1700000000010, 46, 0, 200, 2000, 0, 6, 43, 44, 1",
        "7, 2, 1, 1700000000100, 5, 0, 404, 12, 1, 0, 0, 3, 0",
        "7, 2, 1, 1700000000110, 5, 1, 500, 12, 1, 0, 0, 3, 0",
        "7, 2, 1, 1700000000120, 5, 1, 0, 0, 0, 0, 0, 0, 0",
        "7, 2, 1, 1700000000130, 5000000, 0, 200, 0, 0, 0, 0, 3, 0",
    )
    opened = RunDirectory.open(import_grinder([log], tmp_path / "results").directory)
    records = load_records(opened.path)
    first = records[0]
    assert [
        int(first[name]) for name in ("due_ns", "dns_us", "connect_us", "ttfb_us", "total_us", "bytes")
    ] == [
        0,
        6000,
        37_000,
        44_000,
        46_000,
        2000,
    ], "times count from the start of the test, each with the one before it"
    assert (first["client"], first["line"], first["flags"]) == (7, 3, 0)
    assert records["flags"].tolist() == [0, 1, 1, 0, 1], "of a test without a status nobody knows"
    kinds = [opened.error_name(number) for number in records["error"]]
    assert kinds == ["none", "none", "http_error", "other", "none"], "a status alone is no error"
    assert records["total_us"][-1] == 4294967295, "over 71 minutes"
    assert (
        opened.facts.started_at and opened.facts.started_at.isoformat() == "2023-11-14T22:13:20.010000+00:00"
    )


def test_without_the_plugin_only_times_are_known(tmp_path: Path) -> None:
    opened = RunDirectory.open(import_grinder([PLAIN], tmp_path).directory)
    records = load_records(opened.path)
    for unknown in ("status", "bytes", "ttfb_us", "dns_us", "connect_us", "flags", "error"):
        assert not records[unknown].any(), unknown
    assert sorted(records["total_us"].tolist()) == [3000, *[5000] * 3, *[6000] * 4, 7000, 8000]


def test_names_that_are_given_come_first(tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_text("# ours\n1 Home\n\n2=Ship\n3: Home\n-4, Nothing\n")
    result = run(*LOADED, "--names", names, "--out", tmp_path / "results")
    assert result.exit_code == 0, result.output
    opened = RunDirectory.open(tmp_path / "results" / "latest")
    assert opened.routes == ["Home", "Ship", "Home (test 3)", "Wrong", "Refused"]


def test_a_list_of_names_that_is_none_is_refused(tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_text("Home\n1 Ship\nx=3\n")
    result = run(*LOADED, "--names", names, "--out", tmp_path / "results")
    assert result.exit_code == 2
    assert "line 1: 'Home'" in result.output and "line 3: 'x=3'" in result.output
    assert not (tmp_path / "results").exists()


def test_without_names_tests_have_numbers_and_an_enclosing_one_is_suspected(tmp_path: Path) -> None:
    log = alone(LOADED[0], tmp_path / "alone")
    result = run(log, "--out", tmp_path / "results")
    assert result.exit_code == 0
    assert "18 tests 100 (test 100) had no HTTP status" in result.output
    assert "--composite 100" in result.output
    opened = RunDirectory.open(tmp_path / "results" / "latest")
    assert sorted(opened.routes) == ["test 1", "test 100", "test 2", "test 3", "test 4", "test 5"]
    told = import_grinder([log], tmp_path / "told", composite=[100])
    assert told.requests == 75
    assert any("became measures" in note for note in told.notes)


def test_logs_of_old_releases_have_their_names_elsewhere(tmp_path: Path) -> None:
    shutil.copy(LOADED[0], tmp_path / "data_host-0.log")
    shutil.copy(LOGS / "load-0.log", tmp_path / "out_host-0.log")
    opened = RunDirectory.open(import_grinder([tmp_path / "data_host-0.log"], tmp_path / "r").directory)
    assert "Front page" in opened.routes


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_gzip_and_windows_say_the_same(tmp_path: Path, end: str) -> None:
    text = LOADED[0].read_text().replace("\n", end)
    with gzip.open(tmp_path / "load-0-data.log.gz", "wb") as file:
        file.write(text.encode())
    with gzip.open(tmp_path / "load-0.log.gz", "wb") as file:
        file.write((LOGS / "load-0.log").read_bytes())
    zipped = import_grinder([tmp_path / "load-0-data.log.gz"], tmp_path / "a")
    plain = import_grinder([LOADED[0]], tmp_path / "b")
    ours, theirs = (RunDirectory.open(one.directory) for one in (zipped, plain))
    assert load_records(ours.path).tobytes() == load_records(theirs.path).tobytes()
    assert ours.routes == theirs.routes


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_gzip_file_that_is_cut_off_is_an_interrupted_run(tmp_path: Path, share: float) -> None:
    packed = gzip.compress(LOADED[0].read_bytes(), mtime=0)
    cut = tmp_path / "x-data.log.gz"
    cut.write_bytes(packed[: int(len(packed) * share)])
    imported = import_grinder([cut], tmp_path / "results", composite=[100])
    assert imported.status == "interrupted" and imported.reason and "gzip" in imported.reason
    assert 0 < imported.requests < 75


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    """`…, 0, 12` of `…, 0, 123` would read as a whole line."""
    log = written(
        tmp_path / "x-0-data.log",
        HEADER,
        "0, 0, 1, 1700000000000, 5, 0",
        "0, 1, 1, 1700000000009, 5, 0",
        end="",
    )
    result = run(log, "--out", tmp_path / "results")
    assert result.exit_code == 1
    opened = RunDirectory.open(tmp_path / "results" / "latest")
    assert (opened.status, opened.requests.count) == ("interrupted", 1)
    assert opened.facts.reason and "x-0-data.log: its last line is cut off" in opened.facts.reason


BROKEN = [
    ("letters", "0, 0, 1, soon, 5, 0", "line 3: its Start time (ms since Epoch) is 'soon'"),
    ("too few columns", "0, 0, 1", "line 3: has 3 columns, the others 6"),
    ("no number", "0, 0, 1, 1700000000000, NaN, 0", "line 3: its Test time is 'NaN'"),
    ("a negative time", "0, 0, 1, 1700000000000, -5, 0", "line 3: its Test time is '-5'"),
    ("half a millisecond", "0, 0, 1, 1700000000000, 0.5, 0", "line 3: its Test time is '0.5'"),
    ("an instant beyond all", "0, 0, 1, 9e18, 5, 0", "line 3: its Start time (ms since Epoch) is '9e18'"),
    ("what a power failure leaves", "\0" * 40, "line 3: has 1 columns"),
    ("a colour of the terminal", "\x1b[31m, 0, 1, 1, 1, 1", r"line 3: its Thread is '\x1b[31m'"),
]


@pytest.mark.parametrize(("why", "line", "says"), BROKEN)
def test_a_broken_line_is_named_and_the_rest_is_read(tmp_path: Path, why: str, line: str, says: str) -> None:
    good = [f"0, {at}, 1, 17000000000{at:02}, 5, 0" for at in range(20)]
    log = written(tmp_path / "x-0-data.log", HEADER, good[0], line, *good[1:])
    result = run(log, "--out", tmp_path / "results")
    assert result.exit_code == 1, why
    assert says in result.output
    assert "\x1b" not in result.output
    assert RunDirectory.open(tmp_path / "results" / "latest").requests.count == 20


def test_blank_lines_and_joined_logs_are_no_fault(tmp_path: Path) -> None:
    row = "0, 0, 1, 1700000000000, 5, 0"
    log = written(tmp_path / "x-0-data.log", HEADER, row, "", HEADER, row, "", "  ", row)
    imported = import_grinder([log], tmp_path / "results")
    assert (imported.is_whole, imported.requests) == (True, 3)
    only_blank = written(tmp_path / "y-0-data.log", HEADER, row, *[""] * 40_000)
    assert import_grinder([only_blank], tmp_path / "results").requests == 1


def test_clocks_that_disagree_are_told(tmp_path: Path) -> None:
    early = written(tmp_path / "a-0-data.log", HEADER, "0, 0, 1, 1600000000000, 5, 0")
    late = written(tmp_path / "b-0-data.log", HEADER, "0, 0, 1, 1700000000000, 5, 0")
    imported = import_grinder([late, early], tmp_path / "results")
    assert any("b-0-data.log begins after a-0-data.log has ended" in note for note in imported.notes)
    due_s = load_records(imported.directory)["due_ns"] // 10**9
    assert due_s.tolist() == [0, 100_000_000]


def test_very_many_tests_have_64_names(tmp_path: Path) -> None:
    log = written(
        tmp_path / "x-0-data.log", HEADER, *(f"0, 0, {at}, 17000{at:08}, 5, 0" for at in range(20_000))
    )
    opened = RunDirectory.open(import_grinder([log], tmp_path / "results").directory)
    assert opened.requests.count == 20_000
    assert len(opened.routes) == 65 and opened.routes[-1] == "other"


def test_json_says_what_was_imported(tmp_path: Path) -> None:
    result = run(*LOADED, "--json", "--scenario", "shop", "--out", tmp_path / "results")
    [one] = json.loads(result.output)["runs"]
    assert (one["requests"], one["status"], one["broken_lines"]) == (150, "complete", 0)
    assert one["directory"].endswith("-shop")
    assert run(*LOADED, "--scenario", "../x").exit_code == 2


def test_a_replays_own_data_log_comes_back(tmp_path: Path) -> None:
    told = ["--quiet", "--speed", "max", "--limit", "3000", "--grinder-log", "--out", str(tmp_path / "a")]
    command = [need(REPLAY), "run", *told, str(ROOT / "examples" / "access.log")]
    replayed = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert replayed.returncode == 0, replayed.stderr
    before = tmp_path / "a" / "latest"
    imported = import_grinder([before / "grinder-0-data.log"], tmp_path / "b")
    old, new = (json.loads((folder / "summary.json").read_text()) for folder in (before, imported.directory))
    for key in ("sent", "ok", "errors"):
        assert new["requests"][key] == old["requests"][key], key
    for key in ("tests", "errors"):
        assert new["grinder"][key] == old["grinder"][key], key
    for key in ("MTT_ms", "TTSD_ms"):
        assert abs(new["grinder"][key] - old["grinder"][key]) < 1, f"{key}: whole milliseconds, cut off"
    was, now = (RunDirectory.open(folder) for folder in (before.resolve(), imported.directory))
    assert by_route(was, "status") == by_route(now, "status")
    assert by_route(was, "bytes") == by_route(now, "bytes")


def by_route(run: RunDirectory, column: str) -> dict[str, list[int]]:
    records = load_records(run.path)
    numbers = np.unique(records["route"]).tolist()
    return {
        run.route_name(number): sorted(records[column][records["route"] == number].tolist())
        for number in numbers
    }


def test_logs_of_which_most_cannot_be_read_are_no_evidence(tmp_path: Path) -> None:
    for side in ("old", "new"):
        for number in range(4):
            start_ms = 1_700_000_000_000 + 100_000 * (2 * number + (side == "new"))
            good = [f"0, {at}, 1, {start_ms + 9 * at}, {5 + number}, 0" for at in range(30)]
            log = written(tmp_path / f"{side}-{number}-0-data.log", HEADER, *good, *["torn"] * 70)
            assert run(log, "--out", tmp_path / side).exit_code == 1
    facts = json.loads((tmp_path / "old" / "latest" / "run.json").read_text())
    assert (facts["status"], facts["reason"]) == ("failed", "70 lines of 100 could not be read")
    line = ["compare", str(tmp_path / "old"), str(tmp_path / "new"), "--json"]
    compared = CliRunner().invoke(main, line)
    assert compared.exit_code == 3, compared.output
    assert {finding["name"] for finding in json.loads(compared.stdout)["findings"]} >= {"incomplete"}


# Headers of data logs, and whatever may stand below them.


LAYOUTS = [
    ("no plugin", HEADER, "0,0,1,1,1,0", {"errors": 5}, False),
    ("the plugin of before 3.3", f"{HEADER}, {HTTP}", "0," * 11 + "0", {"status": 6, "first_ms": 11}, True),
    ("the plugin", f"{HEADER}, {HTTP}, New connections", "0," * 12 + "0", {"connections": 12}, True),
    ("a column of the script's, last", f"{HEADER}, Rows", "0," * 6 + "0", {"errors": 5}, False),
    ("and first", f"{HEADER}, Rows, {HTTP}", "0," * 12 + "0", {"status": 7}, True),
    (
        "a comma in its name",
        f"{HEADER}, Rows, sold, {HTTP}",
        "0," * 12 + "0",
        {"status": 7, "first_ms": 12},
        True,
    ),
    ("a comma in the last one's name", f"{HEADER}, {HTTP}, Rows, sold", "0," * 12 + "0", {"status": 6}, True),
    ("no line yet", f"{HEADER}, Rows, sold", None, {"errors": 5}, False),
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
    path.write_bytes("\n".join([HEADER, "0, 0, 1, 5, 5, 0", *lines]).encode(errors="replace") + tail.encode())
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
    place = parse_header(HEADER, None)
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
