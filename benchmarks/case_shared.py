"""Generator and server on one machine, nothing pinned: how much do they slow each other down?"""

import os
from collections.abc import Mapping
from functools import partial

from benchmarks import logs, tool_replay, tool_wrk
from benchmarks.attack import Flood
from benchmarks.busyserver import busy_server
from benchmarks.case_open import Load, Round, response_p999s_ms, tabulate, take_turns
from benchmarks.flooding import CONNECTIONS, in_turns, rates
from benchmarks.nginx import FILE_BYTES, FILE_PATH, Nginx, nginx
from benchmarks.plan import BenchmarkPlan
from benchmarks.ratios import median_figure
from benchmarks.result import Result, ratio_at_most, ratio_goal

NAME = "shared"
_OPEN = ("replay", "against", "wrk2")
_FLOOD = {"replay": tool_replay, "against": tool_replay, "wrk": tool_wrk}
NEEDS = ("nginx", "replay", "against", "wrk2", "wrk")
_LOADS = tuple(Load(rate, CONNECTIONS) for rate in (5_000, 10_000, 20_000, 40_000))
_MOST_OF_WRK2 = 2
_LEAST_OF_WRK = 0.9
_WORKERS = 8
_WORK_S = 0.02
_SHARE = 0.7  # of what the workers can do
_APART = 1.1


def run_case(plan: BenchmarkPlan) -> Result:
    seconds = 2 if plan.quick else 5
    user = "root" if os.geteuid() == 0 else "an ordinary user"
    result = Result(
        NAME,
        f"On one machine: {CONNECTIONS} clients, {FILE_BYTES} byte files, {seconds} s each",
        f"nginx with one worker beside the client, nothing pinned, everything over loopback, as {user}. "
        "Times are as in the case open. The busy server has "
        f"{_WORKERS} processes that take one request at a time and {1000 * _WORK_S:.0f} ms of processor time "
        f"for each, as PHP does, behind nginx, and gets {_SHARE:.0%} of what all cores could do; wrk2 sends "
        "in bursts, and each queues there, so its times are held against ours one way only.",
    )
    open_names = plan.taking_part(_OPEN)
    missing = {name: why for name in plan.taking_part(NEEDS) if (why := plan.missing(name))}
    able = [name for name in open_names if name not in missing]
    if "nginx" not in missing:
        with nginx(plan.scratch(NAME), cpu=None) as server:
            for load in _LOADS:
                _open(plan, result, load, server.url, seconds, open_names, able, missing)
            _flood(plan, result, server, seconds, missing)
    per_second = round(_SHARE * (os.cpu_count() or 1) / _WORK_S)
    if "nginx" not in missing:
        scratch = plan.scratch(NAME, "busy")
        with (
            busy_server(scratch, _WORKERS, _WORK_S) as address,
            nginx(scratch, cpu=None, upstream=address) as server,
        ):
            busy = Load(per_second, CONNECTIONS)
            _open(plan, result, busy, server.url, 10 * seconds, open_names, able, missing)
    return result


def _open(
    plan: BenchmarkPlan,
    result: Result,
    load: Load,
    url: str,
    seconds: int,
    names: list[str],
    able: list[str],
    missing: Mapping[str, str],
) -> None:
    failures: dict[str, str] = {}
    rounds: list[Round] = take_turns(plan, load, url, seconds, able, failures, cpu=None)
    whys = {**missing, **failures}
    p999_ms = [response_p999s_ms(each) for each in rounds]
    what = f"{load}: response p99.9 against wrk2"
    why = [whys[name] for name in ("replay", "wrk2") if name in whys]
    most = _MOST_OF_WRK2 if load in _LOADS else _APART
    result.goals.append(ratio_at_most(what, p999_ms, "replay", "wrk2", most, why))
    tabulate(result, load, names, rounds, whys)


def _flood(
    plan: BenchmarkPlan, result: Result, server: Nginx, seconds: int, missing: Mapping[str, str]
) -> None:
    failures: dict[str, str] = {}
    log = logs.kept("same-url-50000.log", partial(logs.same_url, 50_000, FILE_PATH, clients=1000))
    tools = {name: tool for name, tool in _FLOOD.items() if name in plan.peers and name not in missing}

    def job(name: str) -> Flood:
        return Flood(server.url, seconds, CONNECTIONS, plan.scratch(NAME, name), log)

    rounds = in_turns(NAME, plan.rounds, tools, job, server, failures, cpu=None)
    whys = [{**missing, **failures}[name] for name in ("replay", "wrk") if name in {**missing, **failures}]
    what = "as fast as it goes: requests/s against wrk"
    result.goals.append(ratio_goal(what, rates(rounds), "replay", "wrk", _LEAST_OF_WRK, whys))
    figures = {name: median_figure(rates(rounds), name) for name in tools}
    listed = ", ".join(f"{name} {figure:,.0f}" for name, figure in figures.items() if figure is not None)
    result.notes.append(f"As fast as it goes, requests/s: {listed}.")
    result.raw += [{name: one.throughput.__dict__ for name, one in each.items() if one} for each in rounds]
