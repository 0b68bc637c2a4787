"""As many requests as go, over 64 connections, against nginx: bin/replay against all others."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from types import ModuleType

from benchmarks import (
    logs,
    tool_grinder,
    tool_hey,
    tool_k6,
    tool_k6x,
    tool_locust,
    tool_oha,
    tool_replay,
    tool_vegeta,
    tool_wrk,
)
from benchmarks.attack import Flood, Throughput
from benchmarks.measure import CLIENT_CPU, Finished, run
from benchmarks.nginx import FILE_BYTES, FILE_PATH, Nginx, nginx
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.ratios import median_figure
from benchmarks.result import Result, ratio_goal
from benchmarks.say import say

NAME = "max"
CONNECTIONS = 64
# bin/replay goes through them again and again; the others need no log.
_LOG_LINES = 50_000
# Tools and server may differ by what is in flight at the ends, and by what the clock of each calls the end.
_DISAGREEMENT = 0.03

_TOOLS: dict[str, ModuleType] = {
    "replay": tool_replay,
    "k6x": tool_k6x,
    "wrk": tool_wrk,
    "oha": tool_oha,
    "hey": tool_hey,
    "vegeta": tool_vegeta,
    "k6": tool_k6,
    "locust": tool_locust,
    "grinder": tool_grinder,
}
_LEAST_RATIO = {"wrk": 1.0, "oha": 1.0, "hey": 3, "vegeta": 3, "k6": 6, "locust": 10, "grinder": 10}
_LABELS = {
    "replay": "bin/replay",
    "k6x": "k6 with k6/x/plimsoll",
    "k6": "k6",
    "locust": "Locust (FastHttpUser)",
    "grinder": "The Grinder",
}
NEEDS = ("nginx", *_TOOLS)


@dataclass(frozen=True)
class Measured:
    throughput: Throughput
    by_server: int
    server_busy: float
    client_cpu_s: float
    max_rss_bytes: int


def run_case(plan: BenchmarkPlan) -> Result:
    seconds = 2 if plan.quick else 6
    result = Result(
        NAME,
        f"As fast as it goes: {CONNECTIONS} connections, {FILE_BYTES} byte files, {seconds} s each",
        "nginx with one worker on core 0, the client on core 1, everything over loopback, connections kept "
        "open, one URL (hey can do no more). Each tool's own count of whole responses over its own time, "
        "checked against nginx's counter. The Grinder, which compiles itself while it runs, has a warm-up of "
        f"{tool_grinder.WARM_UP_S} s first.",
    )
    missing = {name: why for name in NEEDS if (why := plan.missing(name))}
    failures: dict[str, str] = {}
    rounds: list[dict[str, Measured | None]] = []
    if "nginx" not in missing:
        make = partial(logs.same_url, _LOG_LINES, FILE_PATH, clients=1000)
        log = logs.kept(f"same-url-{_LOG_LINES}.log", make)
        with nginx(plan.scratch(NAME)) as server:
            for number in range(plan.rounds):
                rounds.append({})
                for name in _TOOLS:
                    if name in missing:
                        continue
                    say(f"max: round {number + 1} of {plan.rounds}: {name}")
                    flood = Flood(server.url, seconds, CONNECTIONS, plan.scratch(NAME, name), log)
                    rounds[-1][name] = attempt(name, failures, partial(measure_flood, name, flood, server))
    _conclude(result, rounds, {**missing, **failures})
    return result


def measure_flood(name: str, flood: Flood, server: Nginx, cpu: int | None = CLIENT_CPU) -> Measured:
    """Let one tool send as much as goes; on one core, or on all with `cpu` None."""
    tool = _TOOLS[name]
    for path, text in (tool.files(flood) if hasattr(tool, "files") else {}).items():
        (flood.scratch / path).write_text(text)
    env = tool.ENV if hasattr(tool, "ENV") else {}
    requests, busy_s = server.requests(), server.cpu_s()
    done = run(tool.command(flood), flood.scratch, timeout_s=flood.seconds + 60, cpu=cpu, env=env)
    by_server, busy_s = server.requests() - requests - 1, server.cpu_s() - busy_s
    out = done.out
    if tool is tool_vegeta:
        out = run(tool_vegeta.report(flood), flood.scratch, timeout_s=120).out
        (flood.scratch / "results.bin").unlink()
    elif tool is tool_grinder:
        with (flood.scratch / tool_grinder.DATA_LOG).open() as data_log:
            return _measured(tool_grinder.read(flood, data_log), by_server, busy_s, done)
    return _measured(tool.read(flood, out), by_server, busy_s, done)


def _measured(throughput: Throughput, by_server: int, busy_s: float, done: Finished) -> Measured:
    took_s = throughput.seconds + throughput.warm_up_seconds
    return Measured(throughput, by_server, busy_s / took_s, done.cpu_s, done.max_rss_bytes)


def _conclude(result: Result, rounds: list[dict[str, Measured | None]], whys: Mapping[str, str]) -> None:
    rates = [
        {name: one.throughput.per_second if one else None for name, one in each.items()} for each in rounds
    ]
    for name, least in _LEAST_RATIO.items():
        missing = [whys[who] for who in ("nginx", "replay", name) if who in whys]
        what = f"requests/s against {_LABELS.get(name, name)}"
        result.goals.append(ratio_goal(what, rates, "replay", name, least, missing))
    result.columns = [
        *("program", "requests/s", "errors", "server's core busy", "client's CPU per request", "max RSS")
    ]
    for name in _TOOLS:
        label = _LABELS.get(name, name)
        mine = [one for each in rounds if (one := each.get(name)) is not None]
        rate = median_figure(rates, name)
        if rate is None:
            result.rows.append([label, whys.get(name, "not run"), *[""] * 4])
            continue
        errors = sum(one.throughput.errors for one in mine)
        busy = median_figure([{name: one.server_busy} for one in mine], name) or 0
        rss = max(one.max_rss_bytes for one in mine) / 1024**2
        cpu_us = median(1e6 * one.client_cpu_s / max(_by_tool(one), 1) for one in mine)
        result.rows.append(
            [label, f"{rate:,.0f}", str(errors), f"{min(busy, 1):.0%}", f"{cpu_us:.1f} µs", f"{rss:.0f} MiB"]
        )
        off = max(_disagreement(one) for one in mine)
        if off > _DISAGREEMENT:
            result.notes.append(f"{label} and nginx count requests that differ by {off:.1%}.")
    result.notes.append(
        "Where the server's core is at 100 %, nginx is the limit and not the client: a ratio there says how "
        "much the client makes of it."
    )
    result.raw = [
        {
            name: {**one.throughput.__dict__, **{k: v for k, v in one.__dict__.items() if k != "throughput"}}
            for name, one in each.items()
            if one
        }
        for each in rounds
    ]


def _disagreement(one: Measured) -> float:
    """Return the difference between the server's count and the tool's, as a share."""
    return abs(one.by_server / max(_by_tool(one), 1) - 1)


def _by_tool(one: Measured) -> int:
    return one.throughput.requests + one.throughput.warm_up_requests
