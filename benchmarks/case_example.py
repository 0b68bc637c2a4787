"""The replay that a newcomer makes first: how often does it blame the machine it runs on?"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks import tool_replay
from benchmarks.measure import run
from benchmarks.paths import EXAMPLE
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.result import Goal, Result
from benchmarks.say import say

NAME = "example"
NEEDS = ("replay", "against")
_TRIES_A_ROUND = 4  # 20 in five rounds
_MOST_LIMITED = 0.05  # of the tries
_SECONDS = 61


@dataclass(frozen=True)
class Tried:
    limited: bool
    lag_p999_ms: float | None
    p999_ms: float | None
    cpu_s: float


def run_case(plan: BenchmarkPlan) -> Result:
    speed = 10 if plan.quick else 1
    names = plan.taking_part(tool_replay.LABELS)
    tries = 2 if plan.quick else _TRIES_A_ROUND * plan.rounds
    result = Result(
        NAME,
        f"examples/access.log at {speed} × its pace, {tries} times",
        "bin/replay run examples/access.log, as make replay does it: against the origin that it embeds, on "
        "all cores. *Generator limited* is what run.json says: lag p99.9 over 1 ms and over 5 % of the "
        "response time's. On an idle machine that is to be rare.",
    )
    missing = {name: why for name in names if (why := plan.missing(name))}
    failures: dict[str, str] = {}
    tried: dict[str, list[Tried]] = {name: [] for name in names}
    for number in range(tries):
        for name in names:
            if name in missing:
                continue
            say(f"example: try {number + 1} of {tries}: {name}, {_SECONDS // speed} s")
            one = attempt(name, failures, partial(_measure, name, plan.scratch(NAME, name), speed))
            if one is not None:
                tried[name].append(one)
    conclude(result, tried, {**missing, **failures})
    return result


def _measure(name: str, scratch: Path, speed: int) -> Tried:
    tool_replay.forget(scratch)
    command = tool_replay.by(name, tool_replay.example_command(EXAMPLE, speed, scratch))
    done = run(command, scratch, timeout_s=_SECONDS + 60)
    summary = tool_replay.summary(done.out)
    facts = json.loads((scratch / "runs" / "latest" / "run.json").read_text())
    lag_ms, response_ms = summary["lag_ms"]["p99.9"], summary["response_ms"]["p99.9"]
    return Tried(facts["generator_limited"], lag_ms, response_ms, done.cpu_s)


def conclude(result: Result, tried: Mapping[str, list[Tried]], whys: Mapping[str, str]) -> None:
    what, goal = "tries that are generator limited", f"≤ {_MOST_LIMITED:.0%}"
    ours = tried["replay"]
    limited = sum(one.limited for one in ours)
    figure = f"{limited} of {len(ours)}" if ours else whys.get("replay", "not run")
    result.goals.append(Goal(what, figure, goal, limited <= _MOST_LIMITED * len(ours) if ours else None))
    result.columns = ["program", "generator limited", "lag p99.9", "its worst", "response p99.9", "CPU"]
    for name, mine in tried.items():
        lags_ms = [one.lag_p999_ms for one in mine if one.lag_p999_ms is not None]
        responses_ms = [one.p999_ms for one in mine if one.p999_ms is not None]
        if not lags_ms or not responses_ms:
            result.rows.append([tool_replay.LABELS[name], whys.get(name, "not run"), *[""] * 4])
            continue
        result.rows.append(
            [
                tool_replay.LABELS[name],
                f"{sum(one.limited for one in mine)} of {len(mine)}",
                *(f"{value:.2f} ms" for value in (median(lags_ms), max(lags_ms), median(responses_ms))),
                f"{median(one.cpu_s for one in mine):.1f} s",
            ]
        )
    result.raw = [{name: [asdict(one) for one in mine]} for name, mine in tried.items()]
