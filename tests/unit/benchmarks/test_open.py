"""The open loop: what wrk2 and bin/replay say of it, and what the goals make of that."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tool_replay, tool_wrk2
from benchmarks.attack import NotUnderstoodError, OpenLoop, OpenTimes
from benchmarks.case_open import Load, Measured, Round, judge
from benchmarks.records import response_p999_ms
from benchmarks.result import Result
from tests.support.rundir import header, records

_CAPTURED = Path(__file__).parent / "captured"
_URL = "http://127.0.0.1:8080/1k.bin"


def _loop(clients: int = 64) -> OpenLoop:
    return OpenLoop(_URL, 40_000, clients, 2, 1, Path("/s"), Path("/open.log"))


@pytest.mark.parametrize(
    ("why", "name", "clients", "want"),
    [
        ("it keeps pace", "wrk2.txt", 64, OpenTimes(513651, 513700, 0, 1.51, 32.61, 5.80)),
        (
            "it falls behind by seconds",
            "wrk2-too-slow.txt",
            1000,
            OpenTimes(310841, 580100, 0, 5940, 6560, 238.72),
        ),
        ("answers that are errors count", "wrk2-404.txt", 4, OpenTimes(993, 519700, 993, 0.92, 7.73, 5.77)),
    ],
)
def test_wrk2(why: str, name: str, clients: int, want: OpenTimes) -> None:
    read = tool_wrk2.read_open(_loop(clients), (_CAPTURED / name).read_text())
    assert (read.requests, read.due, read.errors) == (want.requests, want.due, want.errors), why
    assert read.answered == want.requests - want.errors
    times_ms = (read.p50_ms, read.p999_ms, read.service_p999_ms)
    assert times_ms == pytest.approx((want.p50_ms, want.p999_ms, want.service_p999_ms)), why


@pytest.mark.parametrize(
    "out", ["unable to connect to 127.0.0.1:9 Connection refused\n", "  12 requests in 1.00s, 1KB read\n"]
)
def test_wrk2_without_figures(out: str) -> None:
    with pytest.raises(NotUnderstoodError, match="wrk2 printed no"):
        tool_wrk2.read_open(_loop(), out)


def test_wrk2_measures_as_long_as_bin_replay_after_what_it_forgets() -> None:
    assert tool_wrk2.open_command(_loop())[1:] == ["-t1", "-c64", "-d13s", "-R40000", "-U", _URL]
    assert "-d17s" in tool_wrk2.open_command(_loop(clients=1000))


def _summary(**requests: int) -> dict[str, Any]:
    counts = {"sent": 120_000, "errors": 0, "status_mismatch": 0, "queued": 0, **requests}
    times = {"p50": 0.1, "p99.9": 0.7}
    return {"requests": counts, "response_ms": times, "service_ms": dict(times), "lag_ms": {"p99.9": 0.2}}


def test_bin_replay_is_told_of_the_warm_up_and_counts_it_as_sent() -> None:
    command = tool_replay.open_command(_loop())
    assert command[command.index("--rate") + 1] == "40000"
    assert command[command.index("--warmup") + 1] == "1s"
    read = tool_replay.read_open(_loop(), json.dumps(_summary(errors=2, status_mismatch=1)))
    assert read == OpenTimes(120_000, 120_000, 3, 0.1, 0.7, 0.7, lag_p999_ms=0.2)


def test_a_p999_that_falls_on_a_failure_is_no_figure() -> None:
    summary = _summary()
    summary["response_ms"]["p99.9"] = None
    with pytest.raises(NotUnderstoodError, match=r"no p99\.9"):
        tool_replay.read_open(_loop(), json.dumps(summary))


def test_the_p999_of_all_records_counts_the_warm_up_too(tmp_path: Path) -> None:
    table = records(1000, lag_us=100, total_us=900, flags=[8] * 3 + [1] * 997)
    table["total_us"][:3] = 50_000
    cut_off = table.tobytes() + b"half a record"
    (tmp_path / "requests.npy").write_bytes(header() + cut_off)
    assert response_p999_ms(tmp_path) == 50.1


def _round(p999_ms: float, lag_ms: float | None, sent: int = 1000, errors: int = 0) -> Round:
    ours = OpenTimes(sent, 1000, errors, 0.1, p999_ms, 0.5, lag_ms, queued=7)
    return {"replay": Measured(ours, 12.0), "wrk2": Measured(OpenTimes(999, 1000, 0, 0.1, 2.0, 1.0), 8.0)}


def _verdicts(load: Load, rounds: list[Round], whys: dict[str, str] | None = None) -> list[str]:
    result = Result("open", "", "")
    judge(result, load, rounds, False, whys or {})
    return [goal.verdict() for goal in result.goals]


def test_goals_are_medians_but_every_request_has_to_be_sent_in_every_round() -> None:
    load = Load(40_000, 64, most_of_wrk2=1, most_lag_ms=1)
    rounds = [_round(1.0, 0.3), _round(3.0, 0.4), _round(1.5, 5.0)]
    assert _verdicts(load, rounds) == [
        "reached: 1,000 of 1,000 without an error",
        "reached: 0.4 ms",
        "reached: 0.75 × (0.50 to 1.50)",
    ]
    assert (
        _verdicts(load, [*rounds, _round(1.0, 0.3, errors=1)])[0]
        == "not reached: 999 of 1,000 without an error"
    )
    assert _verdicts(load, [*rounds, _round(1.0, None)])[1] == "not reached: 7 requests were queued"
    assert _verdicts(Load(5_000, 64, most_cpu_us=15), rounds) == ["reached: 12 µs"]


def test_what_was_never_sent_is_never_fast() -> None:
    load = Load(80_000, 64, most_of_wrk2=1.2)
    assert _verdicts(load, [_round(0.1, 0.1, sent=400)]) == [
        "not reached: 400 of 1,000 without an error",
        "not reached: inf × (inf to inf)",
    ]
    assert _verdicts(load, [_round(0.1, 0.1, sent=400), _round(1.0, 0.1), _round(2.0, 0.1)])[1] == (
        "reached: 1.00 × (0.50 to inf)"
    )


def test_without_wrk2_its_goal_says_what_to_do() -> None:
    whys = {"wrk2": "wrk2 is not installed: give its source: make peers WRK2=DIR"}
    without = [{"replay": each["replay"]} for each in [_round(1.0, 0.3)]]
    assert _verdicts(Load(80_000, 64, most_of_wrk2=1.2), without, whys) == [
        "reached: 1,000 of 1,000 without an error",
        "not measured: wrk2 is not installed: give its source: make peers WRK2=DIR",
    ]
