"""A constant rate: how far from its due instant each request arrives, of bin/replay, vegeta and k6."""

import signal
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import ModuleType

from benchmarks import logs, tool_k6, tool_k6x, tool_replay, tool_vegeta
from benchmarks.attack import Pace
from benchmarks.background import background, first_line
from benchmarks.measure import CLIENT_CPU, SERVER_CPU, Finished, kill_group, run
from benchmarks.paths import ARRIVALS
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.punctuality import Punctuality, judge, read_instants
from benchmarks.ratios import median_figure
from benchmarks.result import Goal, Result, ratio_goal
from benchmarks.say import say

NAME = "pace"
RATES_PER_S = (1_000, 5_000)
_TOOLS: dict[str, ModuleType] = {
    "replay": tool_replay,
    "k6x": tool_k6x,
    "vegeta": tool_vegeta,
    "k6": tool_k6,
}
_LABELS = {"replay": "bin/replay", "k6x": "k6 with k6/x/plimsoll"}
_OURS = ("replay", "k6x")
# The lag of a replay alone is at least so much of its lag inside k6.
_LEAST_OF_LAG = 0.9
NEEDS = ("arrivals", *_TOOLS)
_CLIENTS = 200

Round = dict[str, Punctuality | None]


def run_case(plan: BenchmarkPlan) -> Result:
    seconds = 3 if plan.quick else 10
    result = Result(
        NAME,
        f"Punctuality at a constant rate, {seconds} s each",
        "Judged from outside, by one clock, in the same way for all: a small server writes down when each "
        "request arrived; arrival i is due at t0 + i / rate, where t0 is fitted so that the median arrival "
        "is on time; the error is how far an arrival is from its instant, early or late. Server on core 0, "
        "client on core 1. "
        "*Own lag* is what bin/replay says of itself, alone and inside k6: start − due.",
    )
    missing = {name: why for name in NEEDS if (why := plan.missing(name))}
    for rate in RATES_PER_S:
        failures: dict[str, str] = {}
        rounds: list[Round] = []
        lags_ms: list[dict[str, float | None]] = []
        make = partial(logs.same_url, rate * seconds, "/", _CLIENTS)
        log = logs.kept(f"pace-{rate * seconds}.log", make)
        for number in range(plan.rounds):
            rounds.append({})
            lags_ms.append({})
            for name in _TOOLS:
                if name in missing or "arrivals" in missing:
                    continue
                say(f"pace {rate}/s: round {number + 1} of {plan.rounds}: {name}")
                folder = plan.scratch(NAME, f"{name}-{rate}")
                measured = attempt(name, failures, partial(_measure, name, folder, rate, seconds, log))
                if measured is not None:
                    rounds[-1][name], lags_ms[-1][name] = measured
        _conclude(result, rate, rate * seconds, rounds, lags_ms, {**missing, **failures})
    return result


def _measure(name: str, folder: Path, rate: int, seconds: int, log: Path) -> tuple[Punctuality, float | None]:
    out = folder / "arrivals.bin"
    out.unlink(missing_ok=True)
    with background([str(ARRIVALS), "--out", str(out)], folder, cpu=SERVER_CPU) as server:
        address = first_line(server, folder)
        pace = Pace(f"http://{address}/", rate, seconds, folder, log)
        done = send(_TOOLS[name], pace)
        kill_group(server.pid, signal.SIGTERM)
        server.wait(timeout=10)
    arrivals = sorted(read_instants(out))
    lag = _TOOLS[name].lag_p999_ms(done.out) if name in _OURS else None
    return judge(arrivals, rate), lag


def send(tool: ModuleType, pace: Pace) -> Finished:
    """Run one of the three at a constant rate; also for the case of the stalling server."""
    for path, text in (tool.files(pace) if hasattr(tool, "files") else {}).items():
        (pace.scratch / path).write_text(text)
    command = tool.pace_command(pace) if hasattr(tool, "pace_command") else tool.command(pace)
    env = tool.ENV if hasattr(tool, "ENV") else {}
    return run(command, pace.scratch, timeout_s=pace.seconds + 60, cpu=CLIENT_CPU, env=env)


def _conclude(
    result: Result,
    rate: int,
    due: int,
    rounds: list[Round],
    lags_ms: list[dict[str, float | None]],
    whys: Mapping[str, str],
) -> None:
    p999 = [{name: one.p999_us for name, one in each.items() if one} for each in rounds]
    for peer in ("vegeta", "k6"):
        what = f"{rate:,} requests/s: p99.9 of the schedule error against {peer}"
        result.goals.append(
            _no_worse(what, p999, peer, [whys[w] for w in ("arrivals", "replay", peer) if w in whys])
        )
    what = f"{rate:,} requests/s: lag p99.9 of bin/replay against k6 with k6/x/plimsoll"
    unmeasured = [whys[w] for w in ("arrivals", *_OURS) if w in whys]
    result.goals.append(ratio_goal(what, lags_ms, "replay", "k6x", _LEAST_OF_LAG, unmeasured))
    result.columns = ["program, rate", "arrived", "error p50", "p99", "p99.9", "max", "own lag p99.9"]
    for name in _TOOLS:
        label = f"{_LABELS.get(name, name)}, {rate:,}/s"
        mine = [one for each in rounds if (one := each.get(name)) is not None]
        if not mine:
            result.rows.append([label, whys.get(name, "not run"), *[""] * 5])
            continue
        # The round whose p99.9 is in the middle, whole: columns of several rounds would not belong together.
        middle = sorted(mine, key=lambda one: one.p999_us)[(len(mine) - 1) // 2]
        lag = median_figure(lags_ms, name)
        result.rows.append(
            [
                label,
                f"{middle.arrivals:,} of {due:,}",
                *(_us(value) for value in (middle.p50_us, middle.p99_us, middle.p999_us, middle.max_us)),
                "" if lag is None else _us(lag * 1000),
            ]
        )
        if any(one.arrivals < due for one in mine):
            result.notes.append(
                f"{label}: not all requests were sent; what came after a missing one counts as late for it."
            )
    result.raw += [
        {
            "per_second": rate,
            **{name: asdict(one) for name, one in each.items() if one},
            "own_lag_p999_ms": lag,
        }
        for each, lag in zip(rounds, lags_ms, strict=True)
    ]


def _no_worse(what: str, p999: list[dict[str, float]], peer: str, missing: list[str]) -> Goal:
    goal = "no worse"
    ratios = sorted(each["replay"] / each[peer] for each in p999 if "replay" in each and each.get(peer))
    if not ratios:
        return Goal(what, "; ".join(missing) or "no round in which both ran", goal, None)
    ratio = median_figure([{what: value} for value in ratios], what) or 0
    return Goal(what, f"{ratio:.2f} of its error ({ratios[0]:.2f} to {ratios[-1]:.2f})", goal, ratio <= 1)


def _us(value: float) -> str:
    return f"{value:.0f} µs" if value < 1000 else f"{value / 1000:.2f} ms"
