"""What runs now: second by second, as a run directory grows."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.common.errors import RunDirectoryError
from plimsoll.serve.catalogue import Catalogue
from plimsoll.serve.live import (
    KEPT_S,
    TAIL_S,
    HostNow,
    LiveRun,
    LiveRuns,
    LiveSeconds,
    Point,
    Viewer,
    event_text,
)
from tests.support.pages import HOSTILE
from tests.support.rundir import RECORD_BYTES, header, records, traffic, write_run


def _points(table: np.ndarray, until_s: int, timeout_us: int | None = 30_000_000) -> list[Point]:
    seconds = LiveSeconds(timeout_us)
    for block in np.array_split(table, 7):
        seconds.add(block, until_s)
    return list(seconds.points(0, until_s))


def test_each_second_has_what_ended_in_it() -> None:
    table = traffic(120, 100, stall_s=(40, 60))
    took_us = table["lag_us"].astype("i8") + table["total_us"]
    ended_s = (table["due_ns"] + took_us * 1000) // 10**9
    points = _points(table, 100)
    assert [point.t_s for point in points] == list(range(100))
    for point in points:
        within = table[ended_s == point.t_s]
        assert point.done == len(within)
        on_time = within[(within["flags"] & 16) == 0]
        assert point.lag_ms == (on_time["lag_us"].max() / 1000 if len(on_time) else None)
        if not (within["error"] != 0).any() and not (within["status"] >= 500).any() and len(within):
            assert point.slowest_ms == took_us[ended_s == point.t_s].max() / 1000


def test_the_tail_is_that_of_the_last_minute_and_at_most_0_2_percent_too_long() -> None:
    table = records(12_000, total_us=np.random.default_rng(3).lognormal(9, 1, 12_000), due_ns=0)
    table["due_ns"] = np.sort(np.random.default_rng(4).integers(0, 120 * 10**9, 12_000))
    took_us = table["total_us"].astype("i8")
    ended_s = (table["due_ns"] + took_us * 1000) // 10**9
    for point in _points(table, 120):
        last = took_us[(ended_s <= point.t_s) & (ended_s > point.t_s - TAIL_S)]
        if len(last) < 1000:
            assert point.p999_ms is None
            continue
        exact_ms = float(np.quantile(last, 0.999, method="inverted_cdf")) / 1000
        assert point.p999_ms is not None
        assert exact_ms <= point.p999_ms <= exact_ms * 1.002


@pytest.mark.parametrize(
    ("timeout_us", "slowest_ms", "says"),
    [(30_000_000, 30_000.0, "a failure counts at its time-out"), (None, None, "nobody knows its time-out")],
)
def test_failures_are_never_fast(timeout_us: int | None, slowest_ms: float | None, says: str) -> None:
    table = records(10, error=[0] * 9 + [4])
    (point,) = _points(table, 1, timeout_us)
    assert (point.failed, point.slowest_ms) == (1, slowest_ms), says


def test_a_second_in_which_nothing_ended_is_shown() -> None:
    table = records(2, due_ns=[0, 9 * 10**9])
    assert [point.done for point in _points(table, 10)] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]


def test_only_the_last_minutes_are_kept() -> None:
    seconds = LiveSeconds(None)
    for start_s in range(0, 3000, 100):
        seconds.add(records(100, due_ns=(np.arange(100) + start_s) * 10**9), start_s + 100)
    assert len(seconds._seconds) <= KEPT_S + TAIL_S + 100
    points = list(seconds.points(0, 3000))
    assert (points[0].t_s, len(points), {point.done for point in points}) == (2400, KEPT_S, {1})
    assert seconds.requests == 3000


def test_damaged_instants_do_not_take_the_page_away() -> None:
    table = records(3, due_ns=[0, 1 << 60, -(1 << 60)])
    (point,) = _points(table, 1)
    assert point.done == 1


def _running(path: Path, table: np.ndarray, started_s: float = 20.0, **facts: Any) -> Path:
    started_at = datetime.now(UTC) - timedelta(seconds=started_s)
    return write_run(
        path,
        table,
        status="running",
        started_at=f"{started_at:%Y-%m-%dT%H:%M:%S.%fZ}",
        ended_at=None,
        load={"digest": "d", "settings": {"timeout_s": 30.0}},
        **facts,
    )


def test_a_run_is_read_as_it_grows_also_half_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.serve.live._AGAIN_S", 0.0)
    run = _running(tmp_path / "run", records(0))
    growing = LiveRun(tmp_path, run)
    assert growing.look().requests == 0
    data = records(100).tobytes()
    with (run / "requests.npy").open("ab") as file:
        file.write(data[: 50 * RECORD_BYTES + 33])
    assert growing.look().requests == 50
    with (run / "requests.npy").open("ab") as file:
        file.write(data[50 * RECORD_BYTES + 33 :])
    with (run / "events.jsonl").open("a") as file:
        file.write(
            '{"t_ns": 1000000000, "event": "zfs-send", "phase": "start"}\nno event\n{"t_ns": 1}\n{"t_n'
        )
    found = growing.look()
    assert (found.requests, found.points[0].done) == (100, 100)
    assert [event.name for event in found.events] == ["zfs-send"]
    assert [(span.name, span.start_s) for span in found.spans] == [("zfs-send", 1.0)]


def test_of_a_long_run_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.serve.live._BACK_RECORDS", 30)
    found = LiveRun(tmp_path, _running(tmp_path / "run", records(100))).look()
    assert (found.requests, found.failures, found.points[0].done) == (100, None, 30)


def test_a_run_that_was_seen_before_it_began_has_its_clock_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.serve.live._AGAIN_S", 0.0)
    run = _running(tmp_path / "run", records(10))
    facts = (run / "run.json").read_text()
    (run / "run.json").write_text(json.dumps(json.loads(facts) | {"started_at": None}))
    growing = LiveRun(tmp_path, run)
    assert growing.look().t_s == 0
    (run / "run.json").write_text(facts)
    assert growing.look().t_s > 0
    assert growing.facts.started_at is not None


def test_where_there_is_no_run_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError):
        LiveRun(tmp_path, tmp_path / "none")


def test_events_are_harmless_text(tmp_path: Path) -> None:
    run = _running(tmp_path / "run", records(10))
    events = [{"t_ns": 1, "event": name, "phase": name, "detail": HOSTILE} for name in HOSTILE]
    (run / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    found = LiveRun(tmp_path, run).look()
    assert len(found.events) == len(HOSTILE)
    assert all(event_text(event).isprintable() and len(event_text(event)) <= 2000 for event in found.events)


def test_the_host_is_named_as_in_the_report(tmp_path: Path) -> None:
    path = tmp_path / "host.csv"
    path.write_text("t_ns,cpu.iowait_percent,cpu.steal_percent,diskstats.sda_read_latency_ms\n0,10,0,3\n")
    host = HostNow(path)
    host.look()
    with path.open("a") as file:
        file.write("1,20,0,\n2,15,0,nan\n3,15\n4,half")
    lines = {line.name: (line.now, line.least, line.most) for line in host.look()}
    assert lines["iowait"] == ("15 %", "10 %", "20 %")
    assert "steal" not in lines


def test_a_browser_is_open_before_a_run_through_it_and_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.serve.catalogue._FRESH_S", 0.0)
    monkeypatch.setattr("plimsoll.serve.live._AGAIN_S", 0.0)
    following, viewer = LiveRuns(Catalogue(tmp_path)), Viewer()
    assert following.look(viewer) == {"running": [], "begun": False, "last": None, "run": None}

    run = _running(tmp_path / "attempts" / "1" / "run", records(100), scenario="replay", backend="nvme")
    first = following.look(viewer)
    assert (first["begun"], first["run"]["name"], first["run"]["ended"]) == (True, "replay: nvme", None)
    assert [row[:3] for row in first["run"]["seconds"]][:2] == [[0, 100, 0], [1, 0, 0]]
    second = following.look(viewer)
    assert not second["begun"]
    assert 0 < len(second["run"]["seconds"]) < len(first["run"]["seconds"])

    another = Viewer()
    assert len(following.look(another)["run"]["seconds"]) >= len(first["run"]["seconds"])

    facts = json.loads((run / "run.json").read_text())
    ended_at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    (run / "run.json").write_text(json.dumps(facts | {"status": "complete", "ended_at": ended_at}))
    (tmp_path / "runs").mkdir()
    shutil.move(run, tmp_path / "runs" / "1")  # as an experiment does
    ended = following.look(viewer)["run"]["ended"]
    (found,) = Catalogue(tmp_path).contents().runs.values()
    assert (ended["key"], ended["text"].partition(",")[0]) == (found.key, "replay: nvme: complete")
    assert following.look(viewer)["run"]["ended"]["key"] == found.key
    late = following.look(Viewer())
    assert (late["run"], late["last"]["key"]) == (None, found.key), "who comes too late is told of it"

    _running(tmp_path / "next", records(10), started_s=1.0, scenario="download", backend="sata")
    third = following.look(viewer)
    assert (third["begun"], third["run"]["name"]) == (True, "download: sata")


def test_a_run_that_was_picked_is_kept_though_others_begin(tmp_path: Path) -> None:
    _running(tmp_path / "one", records(10), backend="a")
    _running(tmp_path / "two", records(10), started_s=1.0, backend="b")
    catalogue = Catalogue(tmp_path)
    one = next(run for run in catalogue.contents().runs.values() if run.backend == "a")
    message = LiveRuns(catalogue).look(Viewer(one.key))
    assert message["run"]["name"] == "replay: a"
    assert [run["name"] for run in message["running"]] == ["replay: b", "replay: a"]


def test_a_killed_run_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.serve.catalogue._FRESH_S", 0.0)
    run = _running(tmp_path / "run", records(10))
    following, viewer = LiveRuns(Catalogue(tmp_path)), Viewer()
    assert following.look(viewer)["run"]["ended"] is None
    monkeypatch.setattr("plimsoll.serve.catalogue.is_killed", lambda *_: True)
    assert "interrupted" in following.look(viewer)["run"]["ended"]["text"]
    assert run.is_dir()


def test_every_message_is_json_without_nan_and_without_markup_to_obey(tmp_path: Path) -> None:
    run = _running(tmp_path / "run", records(2000), scenario=HOSTILE[0], backend=HOSTILE[1])
    (run / "events.jsonl").write_text(
        "".join(
            json.dumps({"t_ns": n, "event": name, "phase": "start"}) + "\n" for n, name in enumerate(HOSTILE)
        )
    )
    (run / "host.csv").write_text("t_ns,cpu.iowait_percent\n0,inf\n1,nan\n2,1e400\n")
    message = LiveRuns(Catalogue(tmp_path)).look(Viewer())
    text = json.dumps(message, allow_nan=False, ensure_ascii=False)
    assert "\u202e" not in text
    assert not any("<" in label for _, _, label in message["run"]["spans"])  # plotly reads HTML in labels


def test_a_header_alone_is_a_run_that_begins(tmp_path: Path) -> None:
    run = _running(tmp_path / "run", records(0))
    (run / "requests.npy").write_bytes(header()[:100])
    assert LiveRun(tmp_path, run).look().requests == 0
