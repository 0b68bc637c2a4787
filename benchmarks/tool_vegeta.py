"""vegeta: Go, net/http. An attack writes its results to a file; a report reads them afterwards."""

import json

from benchmarks.attack import Flood, Pace, TailTimes, Throughput
from benchmarks.paths import VEGETA


def files(job: Flood | Pace) -> dict[str, str]:
    return {"targets.txt": f"GET {job.url}\n"}


def command(flood: Flood) -> list[str]:
    """Rate 0 is as fast as it goes; it wants the number of workers said."""
    return [
        *_attack(flood),
        "-rate=0",
        f"-workers={flood.connections}",
        f"-max-workers={flood.connections}",
        f"-connections={flood.connections}",
    ]


def pace_command(pace: Pace) -> list[str]:
    cap = [] if pace.most is None else [f"-workers={pace.most}", f"-max-workers={pace.most}"]
    return [*_attack(pace), f"-rate={pace.per_second}/1s", *cap]


def report(job: Flood | Pace) -> list[str]:
    return [str(VEGETA), "report", "-type=json", str(job.scratch / "results.bin")]


def read(flood: Flood, out: str) -> Throughput:
    data = json.loads(out)
    return Throughput(
        data["requests"], (data["duration"] + data["wait"]) / 1e9, _failed(data["status_codes"])
    )


def read_pace(pace: Pace, out: str) -> TailTimes:
    data = json.loads(out)
    return TailTimes(
        requests=data["requests"],
        p99_ms=data["latencies"]["99th"] / 1e6,
        errors=_failed(data["status_codes"]),
        dropped=max(0, pace.requests - data["requests"]),
    )


def _attack(job: Flood | Pace) -> list[str]:
    return [
        str(VEGETA),
        "attack",
        f"-targets={job.scratch / 'targets.txt'}",
        f"-duration={job.seconds}s",
        f"-output={job.scratch / 'results.bin'}",
    ]


def _failed(status_codes: dict[str, int]) -> int:
    """Status 0 is no response at all."""
    return sum(count for status, count in status_codes.items() if not "200" <= status < "400")
