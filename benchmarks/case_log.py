"""As many requests as go from a log in which no two are alike: what reading and writing them costs."""

from functools import partial
from pathlib import Path
from statistics import median
from types import ModuleType

from benchmarks import logs, tool_replay, tool_wrk
from benchmarks.attack import Flood
from benchmarks.flooding import CONNECTIONS, Round, in_turns, rates, tabulate
from benchmarks.nginx import ANY_PATH, FILE_BYTES, Nginx, nginx
from benchmarks.plan import BenchmarkPlan
from benchmarks.ratios import ratios
from benchmarks.result import Result, ratio_goal

NAME = "max-log"
NEEDS = ("nginx", "replay", "against", "wrk")
_LONG = "wrk, as long"
_TOOLS: dict[str, ModuleType] = {
    "replay": tool_replay,
    "against": tool_replay,
    "wrk": tool_wrk,
    _LONG: tool_wrk,
}
_LABELS = {
    **{name: f"{label}, a log" for name, label in tool_replay.LABELS.items()},
    "wrk": "wrk, one short request",
    _LONG: "wrk, one request as long as the log's",
}
_LEAST_RATIO = {"wrk": 1.0, "against": tool_replay.NOT_SLOWER}
_LOG_LINES = 400_000  # far more than bin/replay keeps from loop to loop
_LOOKED_AT = 2_000


def run_case(plan: BenchmarkPlan) -> Result:
    lines, seconds = (100_000, 2) if plan.quick else (_LOG_LINES, 6)
    result = Result(
        NAME,
        f"As fast as it goes through {lines:,} different requests, {CONNECTIONS} connections, {seconds} s",
        "As the case max, but bin/replay reads a log whose targets all differ, with the referers and the "
        f"agents of {CONNECTIONS} clients, and sends them too; nginx answers each with the same {FILE_BYTES} "
        "bytes. wrk repeats one request: the short one of the case max, and one whose target and headers are "
        "as long as the log's, and cost nginx as much.",
    )
    names = [name for name in _TOOLS if name == _LONG or plan.taking_part([name])]
    missing = {name: why for name in plan.taking_part(NEEDS) if (why := plan.missing(name))}
    failures: dict[str, str] = {}
    rounds: list[Round] = []
    if "nginx" not in missing:
        make = partial(logs.different, lines, ANY_PATH, CONNECTIONS)
        log = logs.kept(f"different-{lines}.log", make)
        logs.warm(log)
        tools = {name: tool for name, tool in _TOOLS.items() if name in names and _peer(name) not in missing}
        with nginx(plan.scratch(NAME)) as server:

            def job(name: str) -> Flood:
                return _flood(name, server, seconds, plan.scratch(NAME, name), log)

            rounds = in_turns(NAME, plan.rounds, tools, job, server, failures)
    _conclude(result, names, rounds, {**missing, **failures})
    return result


def _peer(name: str) -> str:
    return "wrk" if name == _LONG else name


def _flood(name: str, server: Nginx, seconds: int, scratch: Path, log: Path) -> Flood:
    if name == _LONG:
        target, headers = typical(log)
        return Flood(server.base_url + target, seconds, CONNECTIONS, scratch, log, headers=headers)
    return Flood(server.url, seconds, CONNECTIONS, scratch, log, as_logged=True)


def typical(log: Path) -> tuple[str, tuple[str, ...]]:
    """The target and the headers of a request of the log's usual length, as bin/replay sends them."""
    with log.open() as file:
        lines = sorted((line for line, _ in zip(file, range(_LOOKED_AT), strict=False)), key=len)
    _, request, _, referer, _, agent, _ = lines[len(lines) // 2].split('"')
    accepts = ("Accept: */*", "Accept-Encoding: gzip, deflate, br")
    return request.split()[1], (f"User-Agent: {agent}", f"Referer: {referer}", *accepts)


def _conclude(result: Result, names: list[str], rounds: list[Round], whys: dict[str, str]) -> None:
    per_second = rates(rounds)
    for name, least in _LEAST_RATIO.items():
        if name in names:
            missing = [whys[who] for who in ("nginx", "replay", name) if who in whys]
            what = f"requests/s against {_LABELS[name]}"
            result.goals.append(ratio_goal(what, per_second, "replay", name, least, missing))
    tabulate(result, rounds, {name: _LABELS[name] for name in names}, {_LONG: whys.get("wrk", ""), **whys})
    if values := ratios(per_second, "replay", _LONG):
        spread = f"{median(values):.2f} × ({min(values):.2f} to {max(values):.2f})"
        result.notes.append(
            f"bin/replay against {_LABELS[_LONG]}: {spread}. Where this is near 1 and the goal is missed, "
            "nginx is the limit."
        )
