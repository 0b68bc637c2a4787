"""As many requests as go, by several tools in turns, against one nginx."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from types import ModuleType

from benchmarks import tool_grinder, tool_replay, tool_vegeta
from benchmarks.attack import Flood, Throughput
from benchmarks.measure import CLIENT_CPU, Finished, run
from benchmarks.nginx import Nginx
from benchmarks.plan import attempt
from benchmarks.ratios import median_figure
from benchmarks.result import Result
from benchmarks.say import say

CONNECTIONS = 64
COLUMNS = ("program", "requests/s", "errors", "server's core busy", "client's CPU per request", "max RSS")
# Tools and server may differ by what is in flight at the ends, and by what the clock of each calls the end.
_DISAGREEMENT = 0.03


@dataclass(frozen=True)
class Measured:
    throughput: Throughput
    by_server: int
    server_busy: float
    client_cpu_s: float
    max_rss_bytes: int

    @property
    def by_tool(self) -> int:
        return self.throughput.requests + self.throughput.warm_up_requests

    @property
    def disagreement(self) -> float:
        """The difference between the server's count and the tool's, as a share."""
        return abs(self.by_server / max(self.by_tool, 1) - 1)


Round = dict[str, Measured | None]


def in_turns(
    case: str,
    count: int,
    tools: Mapping[str, ModuleType],
    job: Callable[[str], Flood],
    server: Nginx,
    failures: dict[str, str],
    cpu: int | None = CLIENT_CPU,
) -> list[Round]:
    """So many rounds, in each of which every tool has its turn."""
    rounds: list[Round] = []
    for number in range(count):
        rounds.append({})
        for name, tool in tools.items():
            say(f"{case}: round {number + 1} of {count}: {name}")
            rounds[-1][name] = attempt(name, failures, partial(measure, name, tool, job(name), server, cpu))
    return rounds


def measure(
    name: str, tool: ModuleType, flood: Flood, server: Nginx, cpu: int | None = CLIENT_CPU
) -> Measured:
    """Let one tool send as much as goes; on one core, or on all with `cpu` None."""
    tool_replay.forget(flood.scratch)
    for path, text in (tool.files(flood) if hasattr(tool, "files") else {}).items():
        (flood.scratch / path).write_text(text)
    env = tool.ENV if hasattr(tool, "ENV") else {}
    requests, busy_s = server.requests(), server.cpu_s()
    command = tool_replay.by(name, tool.command(flood))
    done = run(command, flood.scratch, timeout_s=flood.seconds + 60, cpu=cpu, env=env)
    by_server, busy_s = server.requests() - requests - 1, server.cpu_s() - busy_s
    out = done.out
    if tool is tool_vegeta:
        out = run(tool_vegeta.report(flood), flood.scratch, timeout_s=120).out
        (flood.scratch / "results.bin").unlink()
    elif tool is tool_grinder:
        with (flood.scratch / tool_grinder.DATA_LOG).open() as data_log:
            return _measured(tool_grinder.read(flood, data_log), by_server, busy_s, done)
    return _measured(tool.read(flood, out), by_server, busy_s, done)


def _measured(throughput: Throughput, by_server: int, busy_s: float, done: Finished) -> Measured:
    took_s = throughput.seconds + throughput.warm_up_seconds
    return Measured(throughput, by_server, busy_s / took_s, done.cpu_s, done.max_rss_bytes)


def rates(rounds: Iterable[Round]) -> list[dict[str, float | None]]:
    """Requests a second of each contender in each round."""
    return [
        {name: one.throughput.per_second if one else None for name, one in each.items()} for each in rounds
    ]


def tabulate(
    result: Result, rounds: Sequence[Round], labels: Mapping[str, str], whys: Mapping[str, str]
) -> None:
    """A row for each contender in `labels`, notes on miscounts, and everything raw."""
    result.columns = list(COLUMNS)
    for name, label in labels.items():
        mine = [one for each in rounds if (one := each.get(name)) is not None]
        rate = median_figure(rates(rounds), name)
        if rate is None:
            result.rows.append([label, whys.get(name, "not run"), *[""] * 4])
            continue
        errors = sum(one.throughput.errors for one in mine)
        busy = median(one.server_busy for one in mine)
        rss = max(one.max_rss_bytes for one in mine) / 1024**2
        cpu_us = median(1e6 * one.client_cpu_s / max(one.by_tool, 1) for one in mine)
        result.rows.append(
            [label, f"{rate:,.0f}", str(errors), f"{min(busy, 1):.0%}", f"{cpu_us:.1f} µs", f"{rss:.0f} MiB"]
        )
        off = max(one.disagreement for one in mine)
        if off > _DISAGREEMENT:
            result.notes.append(f"{label} and nginx count requests that differ by {off:.1%}.")
    result.raw += [{name: _raw(one) for name, one in each.items() if one} for each in rounds]


def _raw(one: Measured) -> dict[str, float]:
    rest = {name: value for name, value in one.__dict__.items() if name != "throughput"}
    return {**one.throughput.__dict__, **rest}
