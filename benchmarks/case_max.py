"""As many requests as go, over 64 connections, against nginx: bin/replay against all others."""

from collections.abc import Mapping
from functools import partial
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
from benchmarks.attack import Flood
from benchmarks.flooding import CONNECTIONS, Round, in_turns, rates, tabulate
from benchmarks.nginx import FILE_BYTES, FILE_PATH, nginx
from benchmarks.plan import BenchmarkPlan
from benchmarks.result import Result, ratio_goal

NAME = "max"
# bin/replay goes through them again and again; the others need no log.
_LOG_LINES = 50_000

_TOOLS: dict[str, ModuleType] = {
    "replay": tool_replay,
    "against": tool_replay,
    "k6x": tool_k6x,
    "wrk": tool_wrk,
    "oha": tool_oha,
    "hey": tool_hey,
    "vegeta": tool_vegeta,
    "k6": tool_k6,
    "locust": tool_locust,
    "grinder": tool_grinder,
}
_PEERS_LEAST = {"wrk": 1.0, "oha": 1.0, "hey": 3, "vegeta": 3, "k6": 6, "locust": 10, "grinder": 10}
_LEAST_RATIO = {"against": tool_replay.NOT_SLOWER, **_PEERS_LEAST}
_LABELS = {
    **tool_replay.LABELS,
    "k6x": "k6 with k6/x/plimsoll",
    "k6": "k6",
    "locust": "Locust (FastHttpUser)",
    "grinder": "The Grinder",
}
NEEDS = ("nginx", *_TOOLS)


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
    names = plan.taking_part(_TOOLS)
    missing = {name: why for name in ("nginx", *names) if (why := plan.missing(name))}
    failures: dict[str, str] = {}
    rounds: list[Round] = []
    if "nginx" not in missing:
        make = partial(logs.same_url, _LOG_LINES, FILE_PATH, clients=1000)
        log = logs.kept(f"same-url-{_LOG_LINES}.log", make)
        tools = {name: _TOOLS[name] for name in names if name not in missing}
        with nginx(plan.scratch(NAME)) as server:

            def job(name: str) -> Flood:
                return Flood(server.url, seconds, CONNECTIONS, plan.scratch(NAME, name), log)

            rounds = in_turns(NAME, plan.rounds, tools, job, server, failures)
    _conclude(result, names, rounds, {**missing, **failures})
    return result


def _conclude(result: Result, names: list[str], rounds: list[Round], whys: Mapping[str, str]) -> None:
    for name, least in _LEAST_RATIO.items():
        if name in names:
            missing = [whys[who] for who in ("nginx", "replay", name) if who in whys]
            what = f"requests/s against {_LABELS.get(name, name)}"
            result.goals.append(ratio_goal(what, rates(rounds), "replay", name, least, missing))
    tabulate(result, rounds, {name: _LABELS.get(name, name) for name in names}, whys)
    result.notes.append(
        "Where the server's core is at 100 %, nginx is the limit and not the client: a ratio there says how "
        "much the client makes of it."
    )
