"""HTTPS with HTTP/1.1 and HTTP/2: as many requests as go, and the lag at a constant rate."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from types import ModuleType

from benchmarks import logs, tool_h2load, tool_oha, tool_replay
from benchmarks.attack import Flood, OpenLoop
from benchmarks.flooding import CONNECTIONS, Round, in_turns, rates, tabulate
from benchmarks.measure import CLIENT_CPU, run
from benchmarks.nginx import FILE_BYTES, FILE_PATH, Nginx, nginx
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.result import Result, at_most, ratio_goal
from benchmarks.say import say

NAME = "tls"
_TOOLS: dict[str, ModuleType] = {
    "replay": tool_replay,
    "against": tool_replay,
    "oha": tool_oha,
    "h2load": tool_h2load,
}
NEEDS = ("nginx", "openssl", *_TOOLS)
_LEAST_RATIO = {"oha": 1.0, "against": tool_replay.NOT_SLOWER}
_VERSIONS = ("HTTP/1.1", "HTTP/2.0")
_LOG_LINES = 50_000
_PER_SECOND = 2_000
_WARM_UP_S = 1
_MOST_LAG_MS = 1


def run_case(plan: BenchmarkPlan) -> Result:
    seconds = 2 if plan.quick else 6
    result = Result(
        NAME,
        f"HTTPS as fast as it goes: {CONNECTIONS} connections, {FILE_BYTES} byte files, {seconds} s each",
        "nginx with one worker on core 0, the client on core 1, everything over loopback: TLS 1.3 with "
        "TLS_AES_128_GCM_SHA256, a certificate that nobody has signed, connections kept open, one request "
        "under way on each, with HTTP/2 too. bin/replay takes the version of HTTP from the log. Lag is "
        f"bin/replay's own, at {_PER_SECOND:,} requests/s by {CONNECTIONS} clients, after the first second.",
    )
    names = plan.taking_part(_TOOLS)
    missing = {name: why for name in ("nginx", "openssl", *names) if (why := plan.missing(name))}
    servers = [missing[name] for name in ("nginx", "openssl") if name in missing]
    able = [name for name in names if name not in missing and not servers]
    for version in _VERSIONS:
        failures: dict[str, str] = {}
        rounds: list[Round] = []
        lags_ms: list[float] = []
        if able:
            with nginx(plan.scratch(NAME), tls=True) as server:
                rounds = _flood(plan, version, seconds, able, server, failures)
                if "replay" in able:
                    lags_ms = _lags_ms(plan, version, seconds, server, failures)
        whys = {**missing, **failures}
        _conclude(result, version, names, rounds, whys, servers)
        why = "; ".join([*servers, *(whys[name] for name in ("replay", "lag") if name in whys)])
        what = f"{version}: lag p99.9 at {_PER_SECOND:,} requests/s"
        lag_ms = median(lags_ms) if lags_ms else None
        result.goals.append(at_most(what, lag_ms, _MOST_LAG_MS, "ms", why))
        result.raw.append({"version": version, "lag_p999_ms": lags_ms})
    return result


def _log(version: str, lines: int) -> Path:
    make = partial(logs.same_url, lines, FILE_PATH, CONNECTIONS, version)
    return logs.kept(f"clients-{CONNECTIONS}-{lines}-{version.replace('/', '-')}.log", make)


def _flood(
    plan: BenchmarkPlan,
    version: str,
    seconds: int,
    names: list[str],
    server: Nginx,
    failures: dict[str, str],
) -> list[Round]:
    log = _log(version, _LOG_LINES)

    def job(name: str) -> Flood:
        scratch, http2 = plan.scratch(NAME, name), version == "HTTP/2.0"
        return Flood(server.tls_url, seconds, CONNECTIONS, scratch, log, http2=http2)

    tools = {name: _TOOLS[name] for name in names}
    return in_turns(f"{NAME} {version}", plan.rounds, tools, job, server, failures)


def _lags_ms(
    plan: BenchmarkPlan, version: str, seconds: int, server: Nginx, failures: dict[str, str]
) -> list[float]:
    """The p99.9 of each round."""
    log = _log(version, _PER_SECOND * (_WARM_UP_S + seconds))
    scratch = plan.scratch(NAME, "lag")
    loop = OpenLoop(server.tls_url, _PER_SECOND, CONNECTIONS, seconds, _WARM_UP_S, scratch, log)

    def lag_ms() -> float:
        tool_replay.forget(scratch)
        done = run(tool_replay.open_command(loop), scratch, timeout_s=60 + seconds, cpu=CLIENT_CPU)
        return tool_replay.lag_p999_ms(done.out)

    lags_ms = []
    for number in range(plan.rounds):
        say(f"{NAME} {version}: round {number + 1} of {plan.rounds}: lag")
        if (lag := attempt("lag", failures, lag_ms)) is not None:
            lags_ms.append(lag)
    return lags_ms


def _conclude(
    result: Result,
    version: str,
    names: list[str],
    rounds: list[Round],
    whys: Mapping[str, str],
    servers: list[str],
) -> None:
    labels = {name: tool_replay.LABELS.get(name, name) for name in names}
    for name, least in _LEAST_RATIO.items():
        if name in names:
            missing = [*servers, *(whys[who] for who in ("replay", name) if who in whys)]
            what = f"{version}: requests/s against {labels[name]}"
            result.goals.append(ratio_goal(what, rates(rounds), "replay", name, least, missing))
    tabulate(result, rounds, {name: f"{label}, {version}" for name, label in labels.items()}, whys)
