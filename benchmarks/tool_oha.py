"""oha: Rust."""

import json

from benchmarks.attack import Flood, Throughput
from benchmarks.paths import OHA

# What a tool that stops at a deadline cuts off is nobody's failure.
_AT_THE_DEADLINE = "aborted due to deadline"


def command(flood: Flood) -> list[str]:
    return [
        str(OHA),
        *("-z", f"{flood.seconds}s"),
        *("-c", str(flood.connections)),
        *(["--insecure"] if flood.url.startswith("https:") else []),
        *(["--http2"] if flood.http2 else []),
        "--no-tui",
        *("--output-format", "json"),
        flood.url,
    ]


def read(flood: Flood, out: str) -> Throughput:
    data = json.loads(out)
    done = sum(data["statusCodeDistribution"].values())
    failed = sum(count for text, count in data["errorDistribution"].items() if text != _AT_THE_DEADLINE)
    bad = sum(count for status, count in data["statusCodeDistribution"].items() if status >= "400")
    return Throughput(done, data["summary"]["total"], failed + bad)
