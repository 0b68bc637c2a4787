"""Ten thousand users at once: how much memory, and do all get their answers?"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import logs, tool_replay
from benchmarks.measure import CLIENT_CPU, Finished, run
from benchmarks.nginx import FILE_PATH, nginx
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.result import Goal, Result, at_most
from benchmarks.say import say

NAME = "users"
NEEDS = ("nginx", "replay")
_MOST_RSS_MIB = 400
_REQUESTS_EACH = 8
MOST_ROUNDS = 2
_MIB = 1024**2


@dataclass(frozen=True)
class Lived:
    finished: Finished
    summary: dict[str, Any]
    by_server: int


def run_case(plan: BenchmarkPlan) -> Result:
    users, seconds = (1_000, 5) if plan.quick else (10_000, 30)
    result = Result(
        NAME,
        f"{users:,} users at once for {seconds} s",
        f"bin/replay run --users {users}: each user lives through one client's session of the log, "
        f"{_REQUESTS_EACH} requests with pauses of 1 to 4 s, against nginx (core 0; the client on core 1) "
        "over loopback.",
    )
    whys = [why for name in NEEDS if (why := plan.missing(name))]
    done: list[Lived] = []
    failures: dict[str, str] = {}
    if not whys:
        clients = users * 6 // 5
        make = partial(logs.sessions, clients, _REQUESTS_EACH, FILE_PATH)
        log = logs.kept(f"sessions-{clients}x{_REQUESTS_EACH}.log", make)
        rounds = min(plan.rounds, MOST_ROUNDS)
        for number in range(rounds):
            say(f"users: round {number + 1} of {rounds}: {users:,} for {seconds} s")
            one = attempt(NAME, failures, partial(_measure, plan, users, seconds, log))
            if one is not None:
                done.append(one)
    _conclude(result, done, "; ".join([*whys, *failures.values()]))
    return result


def _measure(plan: BenchmarkPlan, users: int, seconds: int, log: Path) -> Lived:
    """With an nginx of its own: the last one's port has too many connections that wait for their end."""
    scratch = plan.scratch(NAME)
    with nginx(scratch) as server:
        command = tool_replay.users_command(server.url, users, seconds, scratch, log)
        before = server.requests()
        finished = run(command, scratch, timeout_s=seconds + 120, cpu=CLIENT_CPU)
        return Lived(finished, tool_replay.summary(finished.out), server.requests() - before - 1)


def _conclude(result: Result, done: list[Lived], why: str) -> None:
    what = "errors"
    result.columns = [
        "round",
        "max RSS",
        "sent",
        "seen by nginx",
        "errors",
        "requests/s",
        "p99",
        "bin/replay's CPU",
    ]
    if not done:
        result.goals = [
            at_most("max RSS", None, _MOST_RSS_MIB, "MiB", why),
            Goal(what, why or "not run", "0", None),
        ]
        return
    errors = sum(one.summary["requests"]["errors"] for one in done)
    sent = sum(one.summary["requests"]["sent"] for one in done)
    result.goals = [
        at_most("max RSS", max(one.finished.max_rss_bytes for one in done) / _MIB, _MOST_RSS_MIB, "MiB"),
        Goal(what, f"{errors:,} of {sent:,}", "0", errors == 0),
    ]
    result.rows = [_row(number, one) for number, one in enumerate(done, 1)]
    result.raw = [
        {"summary": one.summary, "max_rss_bytes": one.finished.max_rss_bytes, "seen_by_nginx": one.by_server}
        for one in done
    ]


def _row(number: int, one: Lived) -> list[str]:
    requests, p99_ms = one.summary["requests"], one.summary["response_ms"]["p99"]
    return [
        str(number),
        f"{one.finished.max_rss_bytes / _MIB:.0f} MiB",
        f"{requests['sent']:,}",
        f"{one.by_server:,}",
        f"{requests['errors']:,}",
        f"{requests['sent'] / one.summary['duration_s']:,.0f}",
        "" if p99_ms is None else f"{p99_ms:.1f} ms",
        f"{one.finished.cpu_s / one.finished.wall_s:.0%}",
    ]
