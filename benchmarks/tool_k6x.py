"""k6 with k6/x/plimsoll: bin/replay's engine inside k6, with all its samples given to k6."""

import json
from typing import Any

from benchmarks.attack import Flood, NotUnderstoodError, Pace, Throughput
from benchmarks.paths import K6X

ENV = {"K6_NO_USAGE_REPORT": "true"}

_SCRIPT = """import plimsoll from 'k6/x/plimsoll';
export const options = {
  scenarios: { replay: plimsoll.scenario({ instances: %d }) },
  summaryTrendStats: ['med', 'p(99)', 'p(99.9)'],
};
const log = plimsoll.open(%s);
export default function () { log.replay(); }
export function handleSummary(data) { return { stdout: JSON.stringify(data) }; }
"""

# As tool_replay's: the server's work is to be the same for all.
_BARE = {"Accept": "", "Accept-Encoding": "", "User-Agent": ""}


def files(job: Flood | Pace, instances: int = 1, **more: Any) -> dict[str, str]:
    base = job.url.rsplit("/", 1)[0]
    asked: dict[str, Any] = {
        "logs": str(job.log),
        "format": "COMBINED",
        "target": base,
        "out": str(job.scratch / "runs"),
    }
    if isinstance(job, Flood):
        asked |= {"speed": "max", "connections": job.connections, "loops": 0, "duration": f"{job.seconds}s"}
        asked |= {"header": _BARE}
    else:
        asked |= {"rate": job.per_second}
    return {"script.js": _SCRIPT % (instances, json.dumps(asked | more))}


def command(job: Flood | Pace) -> list[str]:
    return [str(K6X), "run", "--quiet", "--no-color", "--address", "", str(job.scratch / "script.js")]


def read(flood: Flood, out: str) -> Throughput:
    values = _values(out)
    count, rate = (values["http_reqs"]["values"][key] for key in ("count", "rate"))
    return Throughput(count, flood.seconds if rate else 0, values["http_req_failed"]["values"]["passes"])


def lag_p999_ms(out: str) -> float:
    lag: float = _values(out)["plimsoll_lag"]["values"]["p(99.9)"]
    return lag


def _values(out: str) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(out)["metrics"]
    except (ValueError, KeyError) as error:
        raise NotUnderstoodError(f"k6's summary could not be read: {error}") from error
    return values
