"""What can be read of a run directory is read; what cannot says why in one sentence."""

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.evidence.run import RunStatistics
from plimsoll.cli import main
from plimsoll.common.errors import (
    DamagedFileError,
    FormatVersionError,
    NoRequestsError,
    PlimsollError,
    RunDirectoryError,
)
from plimsoll.common.units import hours_minutes
from plimsoll.rundir.events import Event, Span, read_events, spans
from plimsoll.rundir.hostfile import read_samples
from plimsoll.rundir.names import DERIVED, RECORDS
from plimsoll.rundir.read import KILLED_AFTER_S, RunDirectory
from tests.support.programs import FIXTURES, ROOT
from tests.support.rundir import COLUMNS, RECORD_BYTES, header, records, run_facts, write_run


def test_a_whole_run_is_read(small_run: Path) -> None:
    run = RunDirectory.open(small_run)
    assert (run.requests.count, run.status, run.summary) == (1000, "complete", None)
    assert [run.route_name(0), run.route_name(7), run.error_name(4)] == ["page", "route 7", "timeout"]


def test_blocks_hold_what_numpy_holds(tmp_path: Path) -> None:
    table = records(2500, due_ns=np.arange(2500)[::-1], bytes=np.arange(2500))
    run = RunDirectory.open(write_run(tmp_path / "run", table))
    blocks = np.concatenate([block.copy() for block in run.requests.blocks(block_records=1000)])
    assert (blocks == table).all()
    assert (np.load(run.requests.path) == table).all()


@pytest.mark.parametrize("lost", range(1, RECORD_BYTES, 11))
def test_a_cut_off_last_record_is_left_alone(small_run: Path, lost: int) -> None:
    path = small_run / "requests.npy"
    os.truncate(path, path.stat().st_size - lost)
    run = RunDirectory.open(small_run)
    assert run.requests.count == 999
    assert sum(len(block) for block in run.requests.blocks()) == 999


def test_records_after_the_last_flush_count_though_the_header_does_not_know_them(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(50))
    (run / "requests.npy").write_bytes(header(shape=10) + records(50).tobytes())
    assert RunDirectory.open(run).requests.count == 50


def test_a_run_that_says_running_was_killed_once_it_is_still(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", records(10), status="running")
    written_s = (path / "requests.npy").stat().st_mtime
    assert RunDirectory.open(path, now_s=written_s + 1).status == "running"
    killed = RunDirectory.open(path, now_s=written_s + KILLED_AFTER_S + 1)
    assert (killed.status, killed.killed) == ("interrupted", True)


def test_where_its_process_can_be_looked_at_a_run_is_killed_once_that_has_ended(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "100"]) as writer, contextlib.ExitStack() as ending:
        ending.callback(writer.kill)
        fields = Path(f"/proc/{writer.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        its: dict[str, Any] = {
            "pid": writer.pid,
            "start": int(fields[19]),
            "boot": Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
            "namespace": Path("/proc/self/ns/pid").stat().st_ino,
        }

        def status(idle_s: float, hostname: str = platform.node(), **other: Any) -> str:
            path = tmp_path / "run"
            shutil.rmtree(path, ignore_errors=True)
            write_run(
                path, records(10), status="running", host={"hostname": hostname}, process={**its, **other}
            )
            return RunDirectory.open(path, now_s=(path / "requests.npy").stat().st_mtime + idle_s).status

        writer.send_signal(signal.SIGSTOP)
        assert status(1000) == "running", "it is paused"
        assert status(0, start=its["start"] - 1) == "interrupted", "its number is another process's"
        assert status(0, boot="another") == "interrupted", "the machine was started again"
        for elsewhere in ({"hostname": "elsewhere"}, {"namespace": 1}):
            seen = [status(idle_s, boot="another", **elsewhere) for idle_s in (0, 1000)]
            assert seen == ["running", "interrupted"], elsewhere
        writer.kill()
        os.waitid(os.P_PID, writer.pid, os.WEXITED | os.WNOWAIT)
        assert status(0) == "interrupted", "it has ended, and its parent has not looked yet"
        writer.wait()
        assert status(0) == "interrupted", "it is gone"


def test_unknown_keys_are_fine(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", records(10), colour="blue", target={"url": "http://x", "weather": 1})
    target = RunDirectory.open(path).facts.target
    assert target is not None
    assert target.url == "http://x"


def test_the_backend_names_a_run_of_the_lab(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", records(10), backend="nvme", repeat=3)
    assert RunDirectory.open(path).name == "nvme #3"


def _without(name: str) -> Callable[[Path], object]:
    return lambda run: (run / name).unlink()


def _with(name: str, content: str | bytes) -> Callable[[Path], object]:
    data = content.encode() if isinstance(content, str) else content
    return lambda run: (run / name).write_bytes(data)


def _columns(**changes: str) -> bytes:
    return header({**COLUMNS, **changes}) + bytes(10_000)


_SWAPPED = dict(reversed(list(COLUMNS.items())))
_FEWER = {name: kind for name, kind in COLUMNS.items() if name != "route"}
BAD: list[tuple[str, Callable[[Path], object], type[PlimsollError], str]] = [
    ("no run.json", _without("run.json"), RunDirectoryError, "run.json is missing"),
    ("no requests.npy", _without("requests.npy"), RunDirectoryError, "requests.npy is missing"),
    ("cut-off run.json", _with("run.json", '{"format": 1, "sc'), DamagedFileError, "is not JSON"),
    ("empty run.json", _with("run.json", ""), DamagedFileError, "is not JSON"),
    ("binary run.json", _with("run.json", bytes(range(256))), DamagedFileError, "is not JSON"),
    ("deep run.json", _with("run.json", "[" * 100_000), DamagedFileError, "is not JSON"),
    ("a list as run.json", _with("run.json", "[1]"), DamagedFileError, "holds no JSON object"),
    ("a later format", _with("run.json", '{"format": 3}'), FormatVersionError, "is of format 3"),
    ("no format", _with("run.json", "{}"), FormatVersionError, "is of format null"),
    ("no scenario", _with("run.json", '{"format": 1}'), DamagedFileError, "scenario: is missing"),
    ("a strange status", _with("run.json", json.dumps(run_facts(status="fine"))), DamagedFileError,
     "status: "),
    ("absurd memory", _with("run.json", json.dumps(run_facts(host={"memory_bytes": 10**400}))),
     DamagedFileError, "host.memory_bytes: "),
    ("routes that are no list", _with("routes.json", '{"a": 1}'), DamagedFileError, "no list of names"),
    ("routes that are no names", _with("routes.json", "[1]"), DamagedFileError, "no list of names"),
    ("a later summary", _with("summary.json", '{"format": 9}'), FormatVersionError,
     "summary.json: is of format 9"),
    ("an empty requests.npy", _with("requests.npy", b""), NoRequestsError, "holds no request"),
    ("a header only", _with("requests.npy", header()), NoRequestsError, "holds no request"),
    ("less than a record", _with("requests.npy", header() + bytes(RECORD_BYTES - 1)), NoRequestsError,
     "holds no request"),
    ("zeros", _with("requests.npy", bytes(10_000)), DamagedFileError, "is not a NumPy file"),
    ("a longer header", _with("requests.npy", header().replace(b"\xf6\x01", b"\xf6\x02") + bytes(999)),
     DamagedFileError, "512 bytes"),
    ("a broken header", _with("requests.npy", header().replace(b"(", b"[") + bytes(999)),
     DamagedFileError, "cannot be understood"),
    ("a float", _with("requests.npy", _columns(lag_us="<f4")), DamagedFileError,
     "column lag_us has type <f4 instead of <u4"),
    ("big endian", _with("requests.npy", _columns(line=">u8")), DamagedFileError, "column line has type >u8"),
    ("a column too many", _with("requests.npy", _columns(colour="<u4")), DamagedFileError,
     "column 'colour' is unknown"),
    ("a column too few", _with("requests.npy", header(_FEWER) + bytes(9999)), DamagedFileError,
     "column route is missing"),
    ("another order", _with("requests.npy", header(_SWAPPED) + bytes(9999)), DamagedFileError,
     "another order"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "break_it", "error", "says"), BAD, ids=[row[0] for row in BAD])
def test_bad_input_is_one_clear_sentence(
    small_run: Path, what: str, break_it: Callable[[Path], object], error: type[PlimsollError], says: str
) -> None:
    break_it(small_run)
    with pytest.raises(error) as caught:
        RunDirectory.open(small_run)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_directory_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, says in (("nothing", "does not exist"), ("file", "is a file")):
        with pytest.raises(RunDirectoryError, match=says):
            RunDirectory.open(tmp_path / name)


def test_a_folder_of_runs_names_its_latest(tmp_path: Path) -> None:
    write_run(tmp_path / "latest", records(10))
    with pytest.raises(RunDirectoryError, match=r"not a run directory; .*/latest is one$"):
        RunDirectory.open(tmp_path)


def test_a_run_that_failed_at_once_says_why(small_run: Path) -> None:
    (small_run / "run.json").write_text(json.dumps(run_facts(status="failed", reason="nobody listens there")))
    (small_run / "requests.npy").write_bytes(header())
    with pytest.raises(NoRequestsError, match="nobody listens there"):
        RunDirectory.open(small_run)


def test_a_file_that_shrinks_meanwhile_is_said(small_run: Path) -> None:
    run = RunDirectory.open(small_run)
    os.truncate(run.requests.path, 512 + RECORD_BYTES * 10)
    with pytest.raises(DamagedFileError, match="became shorter"):
        list(run.requests.blocks())


_STARTED = "2026-11-20T23:08:00Z"
WITHOUT_RECORDS: list[tuple[dict[str, Any], dict[str, Any] | None, float, str]] = [
    (
        {"status": "running", "started_at": _STARTED},
        None,
        KILLED_AFTER_S + 1,
        "the run was killed before its first records were written out, so nothing is known of what it sent",
    ),
    (
        {"status": "running", "started_at": None},
        None,
        KILLED_AFTER_S + 1,
        "the run was killed before it began to send: run it again",
    ),
    (
        {"status": "running", "started_at": _STARTED},
        None,
        1,
        "the run has not written its first records out yet: wait for it",
    ),
    (
        {"status": "interrupted"},
        {"requests": {"sent": 0}},
        KILLED_AFTER_S + 1,
        "the run ended before its first response",
    ),
    (
        {"status": "complete"},
        {"requests": {"sent": 516}},
        KILLED_AFTER_S + 1,
        "516 records that summary.json counts are gone",
    ),
]


@pytest.mark.parametrize(("facts", "summary", "later_s", "says"), WITHOUT_RECORDS)
def test_a_run_without_records_says_what_is_known_of_it(
    tmp_path: Path, facts: dict[str, Any], summary: dict[str, Any] | None, later_s: float, says: str
) -> None:
    run = write_run(tmp_path / "run", records(0), summary=summary, **facts)
    written_s = (run / "requests.npy").stat().st_mtime
    with pytest.raises(NoRequestsError) as caught:
        RunDirectory.open(run, now_s=written_s + later_s)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "words", [["report"], ["export", "--to", "csv", "--out", "x"]], ids=lambda one: one[0]
)
def test_of_a_run_that_was_killed_at_once_a_command_says_that_nothing_is_known(
    tmp_path: Path, words: list[str]
) -> None:
    run = write_run(tmp_path / "run", records(0), status="running")
    os.utime(run / "requests.npy", (0, 0))
    done = CliRunner().invoke(main, [*words, str(run)])
    assert done.exit_code == 2
    assert "nothing is known of what it sent" in done.stderr
    assert "before its first response" not in done.stderr


def test_events_are_read_in_order_and_a_cut_off_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(
        '{"t_ns": 5, "event": "zfs-send", "phase": "stop"}\n'
        '{"t_ns": 2, "event": "zfs-send", "phase": "start", "to": "null"}\n'
        'nonsense\n[1]\n{"t_ns": "x", "event": "y"}\n{"t_ns": 1e999, "event": "y"}\n'
        f'{{"t_ns": {10**400}, "event": "y"}}\n{{"t_ns": NaN, "event": "y"}}\n'
        '{"t_ns": -1, "event": "y"}\n'
        '{"t_ns": 7, "event": "inte'
    )
    found = read_events(path)
    assert found.events == [Event(2, "zfs-send", "start", {"to": "null"}), Event(5, "zfs-send", "stop")]
    assert found.unreadable == 7, "the last line is cut off, and no line"
    assert read_events(tmp_path / "absent").events == []


def test_a_start_and_the_next_stop_of_its_name_make_a_span() -> None:
    events = [
        Event(0, "run", "start"),
        Event(10**9, "zfs-send", "start"),
        Event(2 * 10**9, "interrupt", None),
        Event(3 * 10**9, "zfs-send", "stop"),
        Event(4 * 10**9, "fio", "start"),
        Event(99 * 10**9, "too late", None),
    ]
    assert spans(events, 9.0) == [Span("zfs-send", 1, 3), Span("interrupt", 2, 2), Span("fio", 4, 9)]
    assert spans([Event(10**9, "warm-up", "stop")], 9.0) == [Span("warm-up", 0, 1)]


def test_phases_whose_instants_are_unknown_make_no_spans() -> None:
    phases = [Event(10**9, "phase: copy", "start"), Event(2 * 10**9, "phase: copy", "stop")]
    unknown = Event(3 * 10**9, "phases unknown", None, {"detail": "held back"})
    assert spans(phases, 9.0) == [Span("phase: copy", 1, 2)]
    assert spans([*phases, unknown], 9.0) == [Span("phases unknown", 3, 3)]


def test_missing_samples_are_nan_and_a_cut_off_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "host.csv"
    path.write_text("t_ns,disk.await_ms,pool.read_bytes\n0,1.5,7\n1000000000,,8\n2000000000,2.5,9\n30000,1")
    columns = read_samples(path).columns
    assert list(columns) == ["t_ns", "disk.await_ms", "pool.read_bytes"]
    np.testing.assert_array_equal(columns["disk.await_ms"], [1.5, np.nan, 2.5])
    np.testing.assert_array_equal(columns["pool.read_bytes"], [7, 8, 9])
    assert read_samples(tmp_path / "absent").columns == {}


def test_a_host_csv_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "host.csv").write_text("time,x\n1,2\n")
    with pytest.raises(DamagedFileError, match="first column"):
        read_samples(tmp_path / "host.csv")


RUN = FIXTURES / "run-go"


@pytest.fixture(scope="module")
def statistics() -> RunStatistics:
    return measure_figures(RunDirectory.open(RUN))


@pytest.fixture(scope="module")
def summary() -> dict[str, Any]:
    return dict(json.loads((RUN / "summary.json").read_text()))


@pytest.mark.parametrize("time", ["response", "service", "lag", "ttfb"])
def test_every_time_is_what_the_writer_summed_up(
    statistics: RunStatistics, summary: dict[str, Any], time: str
) -> None:
    found, theirs = statistics.samples[time].figures(), dict(summary[f"{time}_ms"])
    assert found.censored == theirs.pop("censored", {})
    assert found.ms == pytest.approx(theirs)


def test_every_count_is_what_the_writer_counted(statistics: RunStatistics, summary: dict[str, Any]) -> None:
    counted = statistics.as_json()["requests"]
    assert isinstance(counted, dict)
    assert counted == {name: summary["requests"][name] for name in counted}
    assert statistics.duration_s == pytest.approx(summary["duration_s"])


def test_the_grinders_table_is_the_writers(statistics: RunStatistics, summary: dict[str, Any]) -> None:
    total = statistics.total.grinder
    assert {
        "tests": total.tests,
        "errors": total.errors,
        "MTT_ms": pytest.approx(total.mtt_ms),
        "TTSD_ms": pytest.approx(total.ttsd_ms),
        "TPS": pytest.approx(total.tps),
        "RBPS": pytest.approx(total.rbps),
        "MTTFB_ms": pytest.approx(total.mttfb_ms),
        "TT": hours_minutes(statistics.duration_s),
    } == summary["grinder"]


def test_the_document_lists_the_same_files_and_folders() -> None:
    text = (ROOT / "docs" / "run-format.md").read_text(encoding="utf-8")
    table = text.partition("| file | what it holds | written |\n")[2].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines()[1:]]
    documented = [name.rstrip("/") for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert documented == [*RECORDS, *DERIVED]
