"""The open loop at rates that fill a core: does bin/replay keep its schedule where wrk2 keeps it?"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from types import ModuleType

from benchmarks import logs, tool_replay, tool_wrk2
from benchmarks.attack import OpenLoop, OpenTimes
from benchmarks.measure import CLIENT_CPU, run
from benchmarks.nginx import FILE_BYTES, FILE_PATH, nginx
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.records import response_p999_ms
from benchmarks.result import Goal, Result, at_most, ratio_at_most
from benchmarks.say import say

NAME = "open"
_TOOLS: dict[str, ModuleType] = {"replay": tool_replay, "against": tool_replay, "wrk2": tool_wrk2}
_LABELS = {**tool_replay.LABELS, "wrk2": "wrk2"}
NEEDS = ("nginx", *_TOOLS)
WARM_UP_S = 1
_MOST_LAG_MS = 1
_MOST_CPU_US = 15


@dataclass(frozen=True)
class Load:
    per_second: int
    clients: int
    most_of_wrk2: float | None = None  # the goal: response p99.9 at most so many times wrk2's
    most_lag_ms: float | None = None
    most_cpu_us: float | None = None

    def __str__(self) -> str:
        return f"{self.per_second:,}/s, {self.clients:,} clients"


_LOADS = (
    Load(5_000, 64, most_cpu_us=_MOST_CPU_US),
    Load(5_000, 1_000, most_cpu_us=_MOST_CPU_US),
    Load(10_000, 64),
    Load(20_000, 64),
    Load(40_000, 64, most_of_wrk2=1, most_lag_ms=_MOST_LAG_MS),
    Load(80_000, 64, most_of_wrk2=1.2),
    Load(10_000, 1_000),
    Load(20_000, 1_000),
    Load(40_000, 1_000, most_of_wrk2=1, most_lag_ms=_MOST_LAG_MS),
)


@dataclass(frozen=True)
class Measured:
    times: OpenTimes
    cpu_us: float  # a request: user and system time of the whole program
    with_start_ms: float | None = None  # p99.9 of the response time, the warm-up included


Round = dict[str, Measured | None]


def run_case(plan: BenchmarkPlan) -> Result:
    seconds = 2 if plan.quick else 6
    result = Result(
        NAME,
        f"Open loop: a constant rate by 64 and by 1,000 clients, {FILE_BYTES} byte files, {seconds} s each",
        "nginx with one worker on core 0, the client on core 1, everything over loopback. bin/replay replays "
        "a log of so many addresses, each on connections of its own; wrk2 has a connection for each. "
        "Response time counts from when a request was due, for both, service time from when it was sent. "
        "*Lag* is start − due of the requests that were not queued, as those are which find all connections "
        f"of their client busy. bin/replay opens its connections within {WARM_UP_S} s that does not count "
        "(*with the start* counts it too); wrk2 opens one each 5 ms, and forgets its first 10 s and more. "
        "Processor time is that of the whole program, from its start to its end. Figures are medians of the "
        "rounds, but those of what was sent, which are the worst.",
    )
    names = plan.taking_part(_TOOLS)
    missing = {name: why for name in ("nginx", *names) if (why := plan.missing(name))}
    for load in _LOADS:
        if plan.quick and load.per_second not in (5_000, 40_000):
            continue
        failures: dict[str, str] = {}
        rounds: list[Round] = []
        if "nginx" not in missing:
            able = [name for name in names if name not in missing]
            with nginx(plan.scratch(NAME)) as server:
                rounds = take_turns(plan, load, server.url, seconds, able, failures)
        judge(result, load, rounds, "against" in names, {**missing, **failures})
        tabulate(result, load, names, rounds, {**missing, **failures})
    return result


def take_turns(
    plan: BenchmarkPlan,
    load: Load,
    url: str,
    seconds: int,
    names: list[str],
    failures: dict[str, str],
    cpu: int | None = CLIENT_CPU,
) -> list[Round]:
    """The rounds of a load against one server, the client on one core, or on all with `cpu` None."""
    lines = load.per_second * (WARM_UP_S + seconds)
    make = partial(logs.same_url, lines, FILE_PATH, load.clients)
    log = logs.kept(f"clients-{load.clients}-{lines}.log", make)
    logs.warm(log)
    rounds: list[Round] = []
    for number in range(plan.rounds):
        rounds.append({})
        for name in names:
            say(f"open {load}: round {number + 1} of {plan.rounds}: {name}")
            folder = plan.scratch(NAME, name)
            job = OpenLoop(url, load.per_second, load.clients, seconds, WARM_UP_S, folder, log)
            rounds[-1][name] = attempt(name, failures, partial(_measure, name, job, cpu))
    return rounds


def _measure(name: str, job: OpenLoop, cpu: int | None) -> Measured:
    tool = _TOOLS[name]
    tool_replay.forget(job.scratch)
    command = tool_replay.by(name, tool.open_command(job))
    done = run(command, job.scratch, timeout_s=3 * job.seconds + 60, cpu=cpu)
    times: OpenTimes = tool.read_open(job, done.out)
    ours = tool is tool_replay
    with_start_ms = response_p999_ms(job.scratch / "runs" / "latest") if ours else None
    return Measured(times, 1e6 * done.cpu_s / max(times.requests, 1), with_start_ms)


def judge(result: Result, load: Load, rounds: list[Round], against: bool, whys: Mapping[str, str]) -> None:
    """The goals of a load, where it has some."""

    def why(*names: str) -> list[str]:
        return [whys[name] for name in ("nginx", "replay", *names) if name in whys]

    p999_ms = [response_p999s_ms(each) for each in rounds]
    if load.most_of_wrk2 is not None:
        result.goals.append(_all_sent(f"{load}: sent", rounds, "; ".join(why())))
    if load.most_lag_ms is not None:
        result.goals.append(_lag(f"{load}: lag p99.9", rounds, load.most_lag_ms, "; ".join(why())))
    if load.most_of_wrk2 is not None:
        what, most = f"{load}: response p99.9 against wrk2", load.most_of_wrk2
        result.goals.append(ratio_at_most(what, p999_ms, "replay", "wrk2", most, why("wrk2")))
    if load.most_cpu_us is not None:
        cpu_us = _median(rounds, "replay", lambda one: one.cpu_us)
        what = f"{load}: processor time a request"
        result.goals.append(at_most(what, cpu_us, load.most_cpu_us, "µs", "; ".join(why())))
    if against:
        what = f"{load}: response p99.9 against {_LABELS['against']}"
        result.goals.append(ratio_at_most(what, p999_ms, "replay", "against", 1, why("against")))


def response_p999s_ms(each: Round) -> dict[str, float | None]:
    """Never answered is never fast: ours then counts as endless, and the other build has no figure."""
    figures = {name: one.times.p999_ms if one else None for name, one in each.items()}
    for name, unanswered in (("replay", math.inf), ("against", None)):
        one = each.get(name)
        if one is not None and one.times.answered < one.times.due:
            figures[name] = unanswered
    return figures


def _all_sent(what: str, rounds: list[Round], why: str) -> Goal:
    times = [one.times for each in rounds if (one := each.get("replay")) is not None]
    if not times:
        return Goal(what, why or "not run", "all", None)
    worst = min(times, key=lambda each: each.answered - each.due)
    return Goal(
        what, f"{worst.answered:,} of {worst.due:,} without an error", "all", worst.answered == worst.due
    )


def _lag(what: str, rounds: list[Round], most_ms: float, why: str) -> Goal:
    """A replay that is too slow may queue every request, and then has no lag to be judged by."""
    times = [one.times for each in rounds if (one := each.get("replay")) is not None]
    queued = [each for each in times if each.lag_p999_ms is None]
    if queued:
        return Goal(what, f"{queued[0].queued:,} requests were queued", f"< {most_ms:g} ms", False)
    lag_ms = _median(rounds, "replay", lambda one: one.times.lag_p999_ms)
    return at_most(what, lag_ms, most_ms, "ms", why)


def tabulate(
    result: Result, load: Load, names: list[str], rounds: list[Round], whys: Mapping[str, str]
) -> None:
    response = ["response p50", "p99.9", "with the start", "service p99.9"]
    result.columns = ["program, load", "sent", "errors", "queued", "lag p99.9", *response, "CPU a request"]
    figures: tuple[Callable[[Measured], float | None], ...] = (
        lambda one: one.times.lag_p999_ms,
        lambda one: one.times.p50_ms,
        lambda one: one.times.p999_ms,
        lambda one: one.with_start_ms,
        lambda one: one.times.service_p999_ms,
    )
    for name in names:
        label = f"{_LABELS[name]}, {load}"
        times = [one.times for each in rounds if (one := each.get(name)) is not None]
        if not times:
            result.rows.append([label, whys.get(name, "not run"), *[""] * 8])
            continue
        fewest = min(times, key=lambda each: each.requests - each.due)
        middle = [_median(rounds, name, figure) for figure in figures]
        cpu_us = _median(rounds, name, lambda one: one.cpu_us)
        result.rows.append(
            [
                label,
                f"{fewest.requests:,} of {fewest.due:,}",
                f"{max(each.errors for each in times):,}",
                f"{max(each.queued for each in times):,}" if _TOOLS[name] is tool_replay else "",
                *("" if value is None else f"{value:.2f} ms" for value in middle),
                f"{cpu_us:.1f} µs",
            ]
        )
    result.raw += [
        {"load": str(load), **{name: asdict(one) for name, one in each.items() if one}} for each in rounds
    ]


def _median(rounds: list[Round], name: str, figure: Callable[[Measured], float | None]) -> float | None:
    """The median over the rounds in which there is such a figure."""
    mine = [one for each in rounds if (one := each.get(name)) is not None]
    values = [value for one in mine if (value := figure(one)) is not None]
    return median(values) if values else None
