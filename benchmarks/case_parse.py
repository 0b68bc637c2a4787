"""Parse and count one COMBINED log: bin/replay against goaccess, and against another bin/replay."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks import logs, tool_goaccess, tool_replay
from benchmarks.measure import run
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.ratios import median_figure
from benchmarks.result import Result, at_most, ratio_goal
from benchmarks.say import say
from benchmarks.tool_goaccess import Counted

NAME = "parse"
NEEDS = ("replay", "against", "goaccess")
_LEAST_RATIO = 20
_MOST_RSS_MIB = 100
_MIB = 1024**2

_REPLAY = "bin/replay parse --stats"
_AGAINST = tool_replay.LABELS["against"]
_COUNT_ONLY = "goaccess, no panels"
_PANELS = "goaccess, all panels"


def run_case(plan: BenchmarkPlan) -> Result:
    lines = 100_000 if plan.quick else 1_000_000
    say(f"parse: making a log of {lines:,} lines, if it is not there")
    log = logs.kept(f"combined-{lines}.log", lambda: logs.realistic(lines))
    logs.warm(log)
    result = Result(
        NAME,
        f"Parse and count a COMBINED log of {lines:,} lines",
        f"The same file of {log.stat().st_size / 1e6:.0f} MB for all, in the page cache; all cores free to "
        "use. goaccess reads it once as people run it (`-o json`), and each round in its fastest honest "
        "arrangement, with every panel ignored, so that it too only parses and counts. goaccess before 1.8 "
        "reads with one thread.",
    )
    contenders: dict[str, tuple[str, list[str], Callable[[str], Counted]]] = {
        _REPLAY: ("replay", tool_replay.parse_command(log), tool_replay.read_parse),
        _AGAINST: (
            "against",
            tool_replay.by("against", tool_replay.parse_command(log)),
            tool_replay.read_parse,
        ),
        _COUNT_ONLY: ("goaccess", tool_goaccess.count_only_command(log), tool_goaccess.read),
        _PANELS: ("goaccess", tool_goaccess.command(log), tool_goaccess.read),
    }
    contenders = {who: what for who, what in contenders.items() if plan.taking_part([what[0]])}
    failures: dict[str, str] = {}
    rates: list[dict[str, float | None]] = []
    memory: list[dict[str, float | None]] = []
    counts: dict[str, Counted] = {}
    for number in range(plan.rounds):
        rates.append({})
        memory.append({})
        for who, (peer, command, read) in contenders.items():
            # With all panels it takes more than a minute, and no goal hangs on it: once is enough.
            if plan.missing(peer) or (who == _PANELS and number > 0):
                continue
            say(f"parse: round {number + 1} of {plan.rounds}: {who}")
            measured = attempt(who, failures, partial(_measure, plan, command, read))
            if measured is not None:
                seconds, rss_bytes, counts[who] = measured
                rates[-1][who] = lines / seconds
                memory[-1][who] = rss_bytes / _MIB
    _conclude(result, list(contenders), plan, rates, memory, counts, failures)
    return result


def _measure(
    plan: BenchmarkPlan, command: list[str], read: Callable[[str], Counted]
) -> tuple[float, int, Counted]:
    scratch: Path = plan.scratch(NAME)
    done = run(command, scratch, timeout_s=300)
    return done.wall_s, done.max_rss_bytes, read(done.out)


def _conclude(
    result: Result,
    contenders: list[str],
    plan: BenchmarkPlan,
    rates: list[dict[str, float | None]],
    memory: list[dict[str, float | None]],
    counts: dict[str, Counted],
    failures: dict[str, str],
) -> None:
    missing = [why for name in plan.taking_part(NEEDS) if (why := plan.missing(name))]
    missing = missing or list(failures.values())
    for peer in contenders[1:]:
        least = tool_replay.NOT_SLOWER if peer == _AGAINST else _LEAST_RATIO
        result.goals.append(ratio_goal(f"lines/s against {peer}", rates, _REPLAY, peer, least, missing))
    most = max((value for each in memory if (value := each.get(_REPLAY)) is not None), default=None)
    result.goals.append(at_most("max RSS of bin/replay", most, _MOST_RSS_MIB, "MiB", "; ".join(missing)))
    result.columns = ["program", "lines/s", "max RSS", "valid", "failed", "bytes"]
    for who in contenders:
        rate, rss = median_figure(rates, who), median_figure(memory, who)
        if rate is None or rss is None:
            result.rows.append([who, failures.get(who, "not run"), "", "", "", ""])
            continue
        count = counts[who]
        result.rows.append(
            [
                who,
                f"{rate:,.0f}",
                f"{rss:.0f} MiB",
                f"{count.valid:,}",
                f"{count.failed:,}",
                f"{count.bytes:,}",
            ]
        )
    if len({(count.valid, count.failed, count.bytes) for count in counts.values()}) > 1:
        result.notes.append("The programs do not agree on what is in the file: see the columns above.")
    result.raw = [{"lines_per_s": rate, "max_rss_mib": rss} for rate, rss in zip(rates, memory, strict=True)]
    result.raw.append({"counts": {who: asdict(count) for who, count in counts.items()}, "failures": failures})
