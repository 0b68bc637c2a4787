"""A replay as fast as it goes, inside k6 and alone, on all cores: what k6's own work costs."""

from functools import partial
from statistics import median
from types import ModuleType

from benchmarks import logs, tool_k6x, tool_replay
from benchmarks.attack import Flood
from benchmarks.flooding import CONNECTIONS, Round, measure, rates
from benchmarks.nginx import FILE_BYTES, FILE_PATH, nginx
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.ratios import median_figure
from benchmarks.result import Result, ratio_goal
from benchmarks.say import say

NAME = "module"
NEEDS = ("nginx", "replay", "k6x")
_TOOLS: dict[str, ModuleType] = {"replay": tool_replay, "k6x": tool_k6x}
_LABELS = {"replay": "bin/replay", "k6x": "k6 with k6/x/plimsoll"}
_LEAST = 0.9
_LOG_LINES = 50_000


def run_case(plan: BenchmarkPlan) -> Result:
    seconds = 2 if plan.quick else 4
    result = Result(
        NAME,
        f"Inside k6: {CONNECTIONS} connections, {FILE_BYTES} byte files, {seconds} s each",
        "The same as the case max, but the client may use all cores, since k6 counts on other threads than "
        "those that send; three times as many rounds. k6 gets four samples a request and makes its summary.",
    )
    many = plan.rounds if plan.quick else 3 * plan.rounds  # one core more to be disturbed on
    missing = {name: why for name in NEEDS if (why := plan.missing(name))}
    failures: dict[str, str] = {}
    rounds: list[Round] = []
    make = partial(logs.same_url, _LOG_LINES, FILE_PATH, clients=1000)
    if not missing:
        log = logs.kept(f"same-url-{_LOG_LINES}.log", make)
        with nginx(plan.scratch(NAME)) as server:
            for number in range(many):
                rounds.append({})
                for name, tool in _TOOLS.items():
                    say(f"module: round {number + 1} of {many}: {name}")
                    flood = Flood(server.url, seconds, CONNECTIONS, plan.scratch(NAME, name), log)
                    rounds[-1][name] = attempt(
                        name, failures, partial(measure, name, tool, flood, server, None)
                    )
    _conclude(result, rounds, [*missing.values(), *failures.values()])
    return result


def _conclude(result: Result, rounds: list[Round], missing: list[str]) -> None:
    result.goals.append(
        ratio_goal("requests/s inside k6 against bin/replay", rates(rounds), "k6x", "replay", _LEAST, missing)
    )
    result.columns = ["program", "requests/s", "errors", "client's CPU per request", "max RSS"]
    for name, label in _LABELS.items():
        mine = [one for each in rounds if (one := each.get(name)) is not None]
        rate = median_figure(rates(rounds), name)
        if rate is None:
            result.rows.append([label, "not run", "", "", ""])
            continue
        cpu_us = median(1e6 * one.client_cpu_s / max(one.throughput.requests, 1) for one in mine)
        rss = max(one.max_rss_bytes for one in mine) / 1024**2
        errors = sum(one.throughput.errors for one in mine)
        result.rows.append([label, f"{rate:,.0f}", str(errors), f"{cpu_us:.1f} µs", f"{rss:.0f} MiB"])
    result.raw = [{name: one.throughput.__dict__ for name, one in each.items() if one} for each in rounds]
