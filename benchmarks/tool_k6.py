"""k6: Go with JavaScript. What it prints at the end is written by its own handleSummary."""

import json
from typing import Any

from benchmarks.attack import Flood, Pace, TailTimes, Throughput
from benchmarks.paths import K6

# It would tell its makers of each run; a benchmark on loopback talks to nobody else.
ENV = {"K6_NO_USAGE_REPORT": "true"}

# Without a cap, so many simulated users that none is ever missing.
_AMPLE_USERS = 1000

_SCRIPT = """import http from 'k6/http';
export const options = %s;
export default function () { http.get(%s); }
export function handleSummary(data) { return { stdout: JSON.stringify(data) }; }
"""


def files(job: Flood | Pace) -> dict[str, str]:
    options = {
        "discardResponseBodies": True,
        "summaryTrendStats": ["med", "p(99)", "p(99.9)", "max"],
        "scenarios": {"peers": _flood(job) if isinstance(job, Flood) else _pace(job)},
    }
    return {"script.js": _SCRIPT % (json.dumps(options, indent=2), json.dumps(job.url))}


def command(job: Flood | Pace) -> list[str]:
    return [str(K6), "run", "--quiet", "--no-color", "--address", "", str(job.scratch / "script.js")]


def read(flood: Flood, out: str) -> Throughput:
    data = json.loads(out)
    metrics = data["metrics"]
    seconds = data["state"]["testRunDurationMs"] / 1000
    return Throughput(
        metrics["http_reqs"]["values"]["count"], seconds, metrics["http_req_failed"]["values"]["passes"]
    )


def read_pace(pace: Pace, out: str) -> TailTimes:
    metrics = json.loads(out)["metrics"]
    dropped = metrics.get("dropped_iterations", {"values": {"count": 0}})
    return TailTimes(
        requests=metrics["http_reqs"]["values"]["count"],
        p99_ms=metrics["http_req_duration"]["values"]["p(99)"],
        errors=metrics["http_req_failed"]["values"]["passes"],
        dropped=dropped["values"]["count"],
    )


def _flood(flood: Flood) -> dict[str, Any]:
    return {
        "executor": "constant-vus",
        "vus": flood.connections,
        "duration": f"{flood.seconds}s",
        "gracefulStop": "1s",
    }


def _pace(pace: Pace) -> dict[str, Any]:
    users = pace.most or _AMPLE_USERS
    return {
        "executor": "constant-arrival-rate",
        "rate": pace.per_second,
        "timeUnit": "1s",
        "duration": f"{pace.seconds}s",
        "preAllocatedVUs": users,
        "maxVUs": users,
        "gracefulStop": "5s",
    }
