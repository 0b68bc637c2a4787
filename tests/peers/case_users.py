"""Ten thousand users at once: how much memory, and do all get their answers?"""

from typing import Any

from . import logs, tool_replay
from .measure import CLIENT_CPU, Finished, run
from .nginx import FILE_PATH, Nginx, nginx
from .plan import Plan, attempt
from .result import Goal, Result, at_most
from .say import say

NAME = "users"
NEEDS = ("nginx", "replay")
_MOST_RSS_MIB = 400
_REQUESTS_EACH = 8


def run_case(plan: Plan) -> Result:
    users, seconds = (1_000, 5) if plan.quick else (10_000, 30)
    result = Result(
        NAME,
        f"{users:,} users at once for {seconds} s",
        f"bin/replay run --users {users}: each user lives through one client's session of the log, "
        f"{_REQUESTS_EACH} requests with pauses of 1 to 4 s, against nginx (core 0; the client on core 1) "
        "over loopback.",
    )
    whys = [why for name in NEEDS if (why := plan.missing(name))]
    done: list[tuple[Finished, dict[str, Any], int]] = []
    failures: dict[str, str] = {}
    if not whys:
        clients = users * 6 // 5
        log = logs.kept(
            f"sessions-{clients}x{_REQUESTS_EACH}.log",
            lambda: logs.sessions(clients, _REQUESTS_EACH, FILE_PATH),
        )
        scratch = plan.scratch(NAME)
        with nginx(scratch) as server:
            command = tool_replay.users_command(server.url, users, seconds, scratch, log)
            say(f"users: {users:,} for {seconds} s")
            one = attempt(NAME, failures, lambda: _measure(plan, command, seconds, server))
            if one is not None:
                done.append(one)
    _conclude(result, done, "; ".join([*whys, *failures.values()]))
    return result


def _measure(
    plan: Plan, command: list[str], seconds: int, server: Nginx
) -> tuple[Finished, dict[str, Any], int]:
    before = server.requests()
    finished = run(command, plan.scratch(NAME), timeout_s=seconds + 120, cpu=CLIENT_CPU)
    return finished, tool_replay.summary(finished.out), server.requests() - before - 1


def _conclude(result: Result, done: list[tuple[Finished, dict[str, Any], int]], why: str) -> None:
    what = "errors"
    result.columns = ["max RSS", "sent", "seen by nginx", "errors", "requests/s", "p99", "CPU of bin/replay"]
    if not done:
        result.goals = [
            at_most("max RSS", None, _MOST_RSS_MIB, "MiB", why),
            Goal(what, why or "not run", "0", None),
        ]
        return
    finished, summary, by_server = done[0]
    requests = summary["requests"]
    rss_mib = finished.max_rss_bytes / 1024**2
    result.goals = [
        at_most("max RSS", rss_mib, _MOST_RSS_MIB, "MiB"),
        Goal(what, f"{requests['errors']:,} of {requests['sent']:,}", "0", requests["errors"] == 0),
    ]
    p99_ms = summary["response_ms"]["p99"]
    result.rows = [
        [
            f"{rss_mib:.0f} MiB",
            f"{requests['sent']:,}",
            f"{by_server:,}",
            f"{requests['errors']:,}",
            f"{requests['sent'] / summary['duration_s']:,.0f}",
            "" if p99_ms is None else f"{p99_ms:.1f} ms",
            f"{finished.cpu_s / finished.wall_s:.0%}",
        ]
    ]
    result.raw = [{"summary": summary, "max_rss_bytes": finished.max_rss_bytes, "wall_s": finished.wall_s}]
