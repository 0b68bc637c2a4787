"""bin/replay: ours, and another one to be measured beside it."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.attack import Flood, NotUnderstoodError, OpenLoop, OpenTimes, Pace, TailTimes, Throughput
from benchmarks.paths import AGAINST, REPLAY
from benchmarks.tool_goaccess import Counted

# The other one is given with --against: it may be the parent commit's.
LABELS = {"replay": "bin/replay", "against": "the other bin/replay"}
# Two builds of one source differ by up to so much: what is slower by less is not called slower.
NOT_SLOWER = 0.97


# A log of ours has few addresses, each with as many requests as a proxy's.
_CLIENTS = ("--clients", "log")


def by(who: str, argv: Sequence[str]) -> list[str]:
    """The command, carried out by that contender's program, without what an older one does not know."""
    if who == "against" and _CLIENTS[0] in argv and not has(who, _CLIENTS[0]):
        at = argv.index(_CLIENTS[0])
        argv = [*argv[:at], *argv[at + len(_CLIENTS) :]]
    return [str(AGAINST) if who == "against" else argv[0], *argv[1:]]


def has(who: str, flag: str) -> bool:
    """Whether that contender's program has such a flag."""
    argv = by(who, [str(REPLAY), "run", "--help"])
    return flag in subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False).stdout


def forget(scratch: Path) -> None:
    """Remove the run directories there: 81 bytes a request add up."""
    shutil.rmtree(scratch / "runs", ignore_errors=True)


def parse_command(log: Path) -> list[str]:
    return [str(REPLAY), "parse", "--stats", "--format", "COMBINED", str(log)]


def read_parse(out: str) -> Counted:
    data = json.loads(out)
    return Counted(data["valid"], data["failed"], data["bytes"])


# wrk's requests have a Host header and nothing else: the server's work is to be the same for all.
_BARE = ["--header", "Accept:", "--header", "Accept-Encoding:", "--header", "User-Agent:"]


def command(flood: Flood) -> list[str]:
    headers = [] if flood.as_logged else _BARE
    pace = ["--speed", "max", "--connections", str(flood.connections), *headers]
    return _run(
        flood.url, flood.scratch, flood.log, [*pace, "--loops", "0", "--duration", f"{flood.seconds}s"]
    )


def pace_command(pace: Pace) -> list[str]:
    cap = [] if pace.most is None else ["--max-connections", str(pace.most)]
    return _run(pace.url, pace.scratch, pace.log, ["--rate", str(pace.per_second), *cap])


def open_command(loop: OpenLoop) -> list[str]:
    pace = ["--rate", str(loop.per_second), "--warmup", f"{loop.warm_up_s}s", *_BARE]
    return _run(loop.url, loop.scratch, loop.log, pace)


def users_command(url: str, users: int, seconds: int, ramp_up_s: int, scratch: Path, log: Path) -> list[str]:
    pace = ["--users", str(users), "--duration", f"{seconds}s", "--ramp-up", f"{ramp_up_s}s"]
    return _run(url, scratch, log, pace)


def example_command(log: Path, speed: int, scratch: Path) -> list[str]:
    """As make replay has it, where only the log is given: the target is the embedded origin."""
    return [
        *(str(REPLAY), "run", "--speed", str(speed)),
        *("--out", str(scratch / "runs"), "--json", "--quiet", str(log)),
    ]


def summary(out: str) -> dict[str, Any]:
    """Return the output of --json: summary.json."""
    try:
        data: dict[str, Any] = json.loads(out)
    except ValueError as error:
        raise NotUnderstoodError(f"bin/replay's summary could not be read: {error}") from error
    return data


def read(flood: Flood, out: str) -> Throughput:
    data = summary(out)
    requests = data["requests"]
    return Throughput(requests["ok"], data["duration_s"], requests["errors"] + requests["status_mismatch"])


def read_pace(pace: Pace, out: str) -> TailTimes:
    data = summary(out)
    requests = data["requests"]
    return TailTimes(
        requests=requests["sent"],
        p99_ms=data["response_ms"]["p99"],
        errors=requests["errors"],
        dropped=requests["unsent"] + sum(requests["skipped"].values()),
    )


def read_open(loop: OpenLoop, out: str) -> OpenTimes:
    data = summary(out)
    requests = data["requests"]
    response, lag, service = (data[key] for key in ("response_ms", "lag_ms", "service_ms"))
    if None in (response["p50"], response["p99.9"], service["p99.9"]):
        raise NotUnderstoodError("bin/replay gives no p99.9: too few requests, or too many failures")
    return OpenTimes(
        requests=requests["sent"],
        due=loop.requests,
        errors=requests["errors"] + requests["status_mismatch"],
        p50_ms=response["p50"],
        p999_ms=response["p99.9"],
        service_p999_ms=service["p99.9"],
        lag_p999_ms=lag["p99.9"],
        queued=requests["queued"],
    )


def lag_p999_ms(out: str) -> float:
    lag: float = summary(out)["lag_ms"]["p99.9"]
    return lag


def _run(url: str, scratch: Path, log: Path, options: Sequence[str]) -> list[str]:
    parts = urlsplit(url)
    target = f"{parts.scheme}://{parts.netloc}"
    out = str(scratch / "runs")
    return [
        *(str(REPLAY), "run", "--format", "COMBINED", "--target", target),
        *(["--insecure"] if parts.scheme == "https" else []),
        *options,
        *_CLIENTS,
        *("--out", out, "--json", "--quiet", str(log)),
    ]
