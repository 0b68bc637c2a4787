"""Ten thousand and a hundred thousand users at once: how much memory, and do all get their answers?"""

import resource
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import logs, tool_replay
from benchmarks.measure import CLIENT_CPU, Finished, run
from benchmarks.nginx import FILE_PATH, nginx
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.result import Goal, Result, at_most, ratio_at_most
from benchmarks.say import say

NAME = "users"
NEEDS = ("nginx", "replay", "against")
_REQUESTS_EACH = 8
_MIB = 1024**2
# What bin/replay and nginx each have open besides a file a user.
_SPARE_FILES = 1_000
# An address has ports for so many connections to one server (net.ipv4.ip_local_port_range as Linux has it).
_PORTS = 28_232
SOURCES = ",".join(f"127.0.1.{number}" for number in range(1, 9))


@dataclass(frozen=True)
class Crowd:
    users: int
    seconds: int
    ramp_up_s: int
    pauses_s: tuple[int, int]
    arriving_s: int  # in the log: see logs.sessions
    most_rss_mib: int

    def __str__(self) -> str:
        return f"{self.users:,} users"


_CROWDS = (Crowd(10_000, 30, 10, (1, 4), 60, 120), Crowd(100_000, 50, 20, (5, 15), 8_000, 1024))
_QUICK_CROWDS = (Crowd(1_000, 5, 1, (1, 4), 60, 120), Crowd(10_000, 8, 3, (1, 4), 60, 1024))


@dataclass(frozen=True)
class Lived:
    finished: Finished
    summary: dict[str, Any]
    by_server: int

    @property
    def rss_mib(self) -> float:
        return self.finished.max_rss_bytes / _MIB


Round = dict[str, Lived | None]


def run_case(plan: BenchmarkPlan) -> Result:
    crowds = _QUICK_CROWDS if plan.quick else _CROWDS
    result = Result(
        NAME,
        " and ".join(f"{crowd} for {crowd.seconds} s" for crowd in crowds),
        "bin/replay run --users: each user lives through one client's session of the log after the other, "
        f"{_REQUESTS_EACH} requests with pauses ("
        + ", ".join(f"{crowd}: {crowd.pauses_s[0]} to {crowd.pauses_s[1]} s" for crowd in crowds)
        + "), against nginx (core 0; the client on core 1) over loopback, from eight addresses.",
    )
    result.columns = [
        "program, users",
        "max RSS",
        "sent",
        "seen by nginx",
        "errors",
        "requests/s",
        "p99",
        "CPU",
    ]
    names = plan.taking_part(tool_replay.LABELS)
    missing = {name: why for name in ("nginx", *names) if (why := plan.missing(name))}
    for crowd in crowds:
        whys = dict(missing)
        for name in names:
            if "nginx" in missing or name in missing:
                continue
            if why := too_many(crowd.users, _open_files(), tool_replay.has(name, "--source-address")):
                whys[name] = why
        able = [name for name in names if not whys.keys() & {"nginx", name}]
        rounds = _rounds(plan, crowd, able, whys)
        _conclude(result, crowd, names, rounds, whys)
    return result


def too_many(users: int, open_files: int, has_sources: bool) -> str | None:
    """Why so many users cannot be had on this machine with this bin/replay, or None where they can."""
    if users + _SPARE_FILES > open_files:
        return f"{users:,} users need as many open files; the limit is {open_files:,}: raise it (ulimit -n)"
    if users > _PORTS and not has_sources:
        return f"bin/replay has no --source-address: one address has {_PORTS:,} ports"
    return None


def _open_files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _rounds(plan: BenchmarkPlan, crowd: Crowd, names: list[str], failures: dict[str, str]) -> list[Round]:
    if not names:
        return []
    clients = crowd.users * 6 // 5
    make = partial(logs.sessions, clients, _REQUESTS_EACH, FILE_PATH, crowd.pauses_s, crowd.arriving_s)
    shortest, longest = crowd.pauses_s
    log = logs.kept(
        f"sessions-{clients}x{_REQUESTS_EACH}-{shortest}-{longest}s-in-{crowd.arriving_s}s.log", make
    )
    logs.warm(log)
    rounds: list[Round] = []
    for number in range(plan.rounds):
        rounds.append({})
        for name in names:
            say(f"users: round {number + 1} of {plan.rounds}: {name}, {crowd} for {crowd.seconds} s")
            scratch = plan.scratch(NAME, name)
            rounds[-1][name] = attempt(name, failures, partial(_measure, name, crowd, scratch, log))
    return rounds


def _measure(name: str, crowd: Crowd, scratch: Path, log: Path) -> Lived:
    """With an nginx of its own: the last one's port has too many connections that wait for their end."""
    tool_replay.forget(scratch)
    with nginx(scratch, connections=crowd.users + _SPARE_FILES) as server:
        command = tool_replay.users_command(
            server.url, crowd.users, crowd.seconds, crowd.ramp_up_s, scratch, log
        )
        if tool_replay.has(name, "--source-address"):
            command[2:2] = ["--source-address", SOURCES]
        before = server.requests()
        finished = run(tool_replay.by(name, command), scratch, timeout_s=crowd.seconds + 120, cpu=CLIENT_CPU)
        return Lived(finished, tool_replay.summary(finished.out), server.requests() - before - 1)


def _conclude(
    result: Result, crowd: Crowd, names: list[str], rounds: list[Round], whys: dict[str, str]
) -> None:
    mine = {name: [one for each in rounds if (one := each.get(name)) is not None] for name in names}
    why = "; ".join(whys[name] for name in ("nginx", "replay") if name in whys)
    ours = mine["replay"]
    most = max((one.rss_mib for one in ours), default=None)
    result.goals.append(at_most(f"{crowd}: max RSS", most, crowd.most_rss_mib, "MiB", why))
    errors = sum(one.summary["requests"]["errors"] for one in ours)
    sent = sum(one.summary["requests"]["sent"] for one in ours)
    figure = f"{errors:,} of {sent:,}" if ours else why or "not run"
    result.goals.append(Goal(f"{crowd}: errors", figure, "0", errors == 0 if ours else None))
    if "against" in names:
        rss = [{name: one.rss_mib for name, one in each.items() if one} for each in rounds]
        what, missing = (
            f"{crowd}: max RSS against {tool_replay.LABELS['against']}",
            list(dict.fromkeys(whys.values())),
        )
        most_of = 1 / tool_replay.NOT_SLOWER
        result.goals.append(ratio_at_most(what, rss, "replay", "against", round(most_of, 2), missing))
    for name, lived in mine.items():
        label = f"{tool_replay.LABELS[name]}, {crowd}"
        result.rows.append(_row(label, lived) if lived else [label, whys.get(name, "not run"), *[""] * 6])
    result.raw += [{name: _raw(crowd, one) for name, one in each.items() if one} for each in rounds]


def _row(label: str, lived: list[Lived]) -> list[str]:
    """Medians of the rounds, but errors, which are the sum."""
    requests = [one.summary["requests"] for one in lived]
    p99s_ms = [p99 for one in lived if (p99 := one.summary["response_ms"]["p99"]) is not None]
    return [
        label,
        f"{median(one.rss_mib for one in lived):.0f} MiB",
        f"{median(each['sent'] for each in requests):,.0f}",
        f"{median(one.by_server for one in lived):,.0f}",
        f"{sum(each['errors'] for each in requests):,}",
        f"{median(one.summary['requests']['sent'] / one.summary['duration_s'] for one in lived):,.0f}",
        f"{median(p99s_ms):.1f} ms" if p99s_ms else "",
        f"{median(one.finished.cpu_s / one.finished.wall_s for one in lived):.0%}",
    ]


def _raw(crowd: Crowd, one: Lived) -> dict[str, Any]:
    facts = {
        "users": crowd.users,
        "max_rss_bytes": one.finished.max_rss_bytes,
        "seen_by_nginx": one.by_server,
    }
    return {**facts, "summary": one.summary}
