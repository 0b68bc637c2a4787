"""Events and the observers' counters."""

from pathlib import Path

import numpy as np
import pytest

from plimsoll.common.errors import DamagedFileError
from plimsoll.rundir.events import Event, Span, read_events, spans
from plimsoll.rundir.hostfile import read_samples


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
