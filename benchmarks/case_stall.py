"""A server that stalls for half a second every ten: who notices?"""

import signal
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from types import ModuleType

from benchmarks import logs, tool_k6, tool_replay, tool_vegeta
from benchmarks.attack import Pace, TailTimes
from benchmarks.background import background, first_line
from benchmarks.case_pace import send
from benchmarks.measure import SERVER_CPU, kill_group, run
from benchmarks.paths import STALL
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.punctuality import read_instants
from benchmarks.ratios import nearest_rank
from benchmarks.result import Goal, Result
from benchmarks.say import say
from benchmarks.stalling import EVERY_S, FIRST_S, STALL_S, seen_responses_ms, true_p99_ms

NAME = "stall"
NEEDS = ("stall", "replay", "vegeta", "k6")
PER_SECOND = 500
CAP = 20
_WITHIN = 0.05
# The stalls are the same every time, so a third round would teach nothing that two do not.
MOST_ROUNDS = 2
_CLIENTS = 200


@dataclass(frozen=True)
class Contender:
    label: str
    peer: str
    tool: ModuleType
    most: int | None

    @property
    def ours(self) -> bool:
        return self.peer == "replay"


CONTENDERS = (
    Contender("bin/replay", "replay", tool_replay, None),
    Contender(f"bin/replay, {CAP} connections", "replay", tool_replay, CAP),
    Contender("vegeta", "vegeta", tool_vegeta, None),
    Contender(f"vegeta, {CAP} workers", "vegeta", tool_vegeta, CAP),
    Contender("k6", "k6", tool_k6, None),
    Contender(f"k6, {CAP} VUs", "k6", tool_k6, CAP),
)


def run_case(plan: BenchmarkPlan) -> Result:
    seconds = 10 if plan.quick else 30
    true_ms = true_p99_ms(PER_SECOND, seconds)
    result = Result(
        NAME,
        f"A server that stalls {STALL_S * 1000:.0f} ms every {EVERY_S:g} s, "
        f"at {PER_SECOND} requests/s for {seconds} s",
        f"All its connections stall alike, first after {FIRST_S:g} s; otherwise it answers at once. Counted "
        f"from when each request was due, the true p99 is {true_ms:.1f} ms. What each program says it was, "
        f"with as many connections as it likes and with {CAP}. *From due, on the server* is the p99 from due "
        "to answer as the server wrote it down, before the answers of a whole stall reach the client all at "
        "once; where requests were never sent it says little.",
    )
    failures: dict[str, str] = {}
    tails: dict[str, list[TailTimes]] = {each.label: [] for each in CONTENDERS}
    log = logs.kept(
        f"pace-{PER_SECOND * seconds}.log", lambda: logs.same_url(PER_SECOND * seconds, "/", _CLIENTS)
    )
    rounds = min(plan.rounds, MOST_ROUNDS)
    for number in range(rounds):
        for who in CONTENDERS:
            why = plan.missing("stall") or plan.missing(who.peer)
            if why is not None:
                failures[who.label] = why
                continue
            say(f"stall: round {number + 1} of {rounds}: {who.label}")
            folder = plan.scratch(NAME, f"{who.peer}-{who.most or 'free'}")
            tail = attempt(who.label, failures, partial(_measure, who, folder, seconds, log))
            if tail is not None:
                tails[who.label].append(tail)
    _conclude(result, true_ms, tails, failures)
    return result


def _measure(who: Contender, folder: Path, seconds: int, log: Path) -> TailTimes:
    stalls = ["--first", f"{FIRST_S}s", "--every", f"{EVERY_S}s", "--stall", f"{STALL_S}s"]
    instants = folder / "instants.bin"
    with background([str(STALL), *stalls, "--out", str(instants)], folder, cpu=SERVER_CPU) as server:
        pace = Pace(f"http://{first_line(server, folder)}/", PER_SECOND, seconds, folder, log, who.most)
        out = send(who.tool, pace).out
        kill_group(server.pid, signal.SIGTERM)
        server.wait(timeout=10)
    seen_ms = seen_responses_ms(read_instants(instants), PER_SECOND)
    if who.tool is tool_vegeta:
        out = run(tool_vegeta.report(pace), folder, timeout_s=60).out
    tail: TailTimes = who.tool.read_pace(pace, out)
    return replace(tail, seen_p99_ms=nearest_rank(seen_ms, 0.99))


def _conclude(
    result: Result, true_ms: float, tails: dict[str, list[TailTimes]], failures: dict[str, str]
) -> None:
    result.columns = [
        "program",
        "p99 it reports",
        "of the true one",
        "from due, on the server",
        "sent",
        "never sent",
        "errors",
    ]
    for who in CONTENDERS:
        mine = tails[who.label]
        if who.ours:
            result.goals.append(_goal(who.label, true_ms, mine, failures.get(who.label, "")))
        if not mine:
            result.rows.append([who.label, failures.get(who.label, "not run"), *[""] * 5])
            continue
        p99_ms = median(tail.p99_ms for tail in mine)
        seen_ms = median(tail.seen_p99_ms or 0 for tail in mine)
        counts = (mine[0].requests, max(tail.dropped for tail in mine), max(tail.errors for tail in mine))
        result.rows.append(
            [
                who.label,
                f"{p99_ms:.1f} ms",
                f"{p99_ms / true_ms:.1%}",
                f"{seen_ms:.1f} ms",
                *(f"{count:,}" for count in counts),
            ]
        )
    result.raw = [{label: [tail.__dict__ for tail in mine]} for label, mine in tails.items()]


def _goal(label: str, true_ms: float, tails: list[TailTimes], why: str) -> Goal:
    what, goal = f"p99 of {label} against the true {true_ms:.1f} ms", f"within {_WITHIN:.0%}"
    if not tails:
        return Goal(what, why or "not run", goal, None)
    # The worst round counts: being right on average is no comfort.
    worst = max((tail.p99_ms / true_ms - 1 for tail in tails), key=abs)
    return Goal(what, f"{worst:+.2%}", goal, abs(worst) <= _WITHIN)
