"""Four k6 instances that share a log: do they keep the schedule as one does?"""

import os
import signal
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial

from benchmarks import logs, tool_k6x
from benchmarks.attack import Pace
from benchmarks.background import background, first_line
from benchmarks.measure import RunFailedError, kill_group
from benchmarks.namespaces import Network, network, segments
from benchmarks.paths import ARRIVALS, K6X
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.punctuality import Punctuality, judge, read_instants
from benchmarks.ratios import median_figure
from benchmarks.result import Result, ratio_goal
from benchmarks.say import say

NAME = "share"
NEEDS = ("arrivals", "k6x")
RATE_PER_S = 1_000
_COUNTS = (1, 4)
_STARTS_IN_S = 5

Round = dict[str, Punctuality | None]


def run_case(plan: BenchmarkPlan) -> Result:
    seconds = 3 if plan.quick else 10
    result = Result(
        NAME,
        f"Four instances on one schedule: {RATE_PER_S:,} requests/s in all, {seconds} s",
        "bin/k6-plimsoll once, and four times with a quarter of the clients each, every instance in a "
        "network namespace of its own, before one small server that writes down when each request arrived. "
        "Arrival i is due at t0 + i / rate; the error is how far it is from its instant. There is one clock, "
        "so that no clock's error is in it.",
    )
    missing = {name: why for name in NEEDS if (why := plan.missing(name))}
    if os.geteuid() != 0:
        missing["k6x"] = "network namespaces need root"
    make = partial(logs.same_url, RATE_PER_S * seconds, "/", 200)
    log = logs.kept(f"pace-{RATE_PER_S * seconds}.log", make)
    rounds: list[Round] = []
    failures: dict[str, str] = {}
    for number in range(plan.rounds if not missing else 0):
        rounds.append({})
        for count in _COUNTS:
            say(f"share: round {number + 1} of {plan.rounds}: {count}")
            folder = plan.scratch(NAME, str(count))
            pace = Pace("", RATE_PER_S, seconds, folder, log)
            rounds[-1][str(count)] = attempt(NAME, failures, partial(_measure, count, pace))
    _conclude(result, rounds, [*missing.values(), *failures.values()])
    return result


def _measure(count: int, pace: Pace) -> Punctuality:
    out = pace.scratch / "arrivals.bin"
    out.unlink(missing_ok=True)
    with network(count) as net:
        listen = [*net.within(net.hub), str(ARRIVALS), "--listen", f"{net.address}:0", "--out", str(out)]
        with background(listen, pace.scratch) as server:
            _instances(net, f"http://{first_line(server, pace.scratch)}/", pace)
            kill_group(server.pid, signal.SIGTERM)
            server.wait(timeout=10)
    return judge(sorted(read_instants(out)), pace.per_second)


def _instances(net: Network, url: str, pace: Pace) -> None:
    count = len(net.namespaces)
    starts = (datetime.now(UTC) + timedelta(seconds=_STARTS_IN_S)).isoformat()
    there = Pace(url, pace.per_second, pace.seconds, pace.scratch, pace.log)
    script = tool_k6x.files(there, instances=count, startAt=starts)["script.js"]
    path = pace.scratch / "script.js"
    path.write_text(script)
    parts, sequence = segments(count)
    running = []
    for name, part in zip(net.namespaces, parts, strict=True):
        share = ["--execution-segment", part, "--execution-segment-sequence", sequence] if count > 1 else []
        command = [*net.within(name), str(K6X), "run", "--quiet", "--address", "", *share, str(path)]
        with (pace.scratch / f"{name.rpartition('-')[2]}.out").open("w") as said:
            running.append(
                subprocess.Popen(command, stdout=said, stderr=said, env={**os.environ, **tool_k6x.ENV})
            )
    try:
        codes = [instance.wait(timeout=pace.seconds + 60) for instance in running]
    finally:
        for instance in running:
            instance.kill()
    if any(codes):
        raise RunFailedError(f"instances ended with {codes}: see {pace.scratch}")


def _conclude(result: Result, rounds: list[Round], missing: list[str]) -> None:
    p50, p999 = (
        [{name: getattr(one, figure) for name, one in each.items() if one} for each in rounds]
        for figure in ("p50_us", "p999_us")
    )
    for called, figures in (("p50", p50), ("p99.9", p999)):
        what = f"{called} of the schedule error of one instance against four"
        result.goals.append(ratio_goal(what, figures, "1", "4", 0.9, missing))
    result.columns = ["instances", "arrived", "error p50", "p99", "p99.9", "max"]
    for count in map(str, _COUNTS):
        mine = [one for each in rounds if (one := each.get(count)) is not None]
        columns = ("arrivals", "p50_us", "p99_us", "p999_us", "max_us")
        medians = [median_figure([{count: getattr(one, name)} for one in mine], count) for name in columns]
        texts = ["" if value is None else f"{value:,.0f}" for value in medians]
        result.rows.append([count, texts[0], *(f"{text} µs" for text in texts[1:])])
    result.raw = [{name: asdict(one) for name, one in each.items() if one} for each in rounds]
