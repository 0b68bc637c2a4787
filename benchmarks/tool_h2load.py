"""h2load: C, nghttp2's own load generator, over TLS with HTTP/2 or HTTP/1.1."""

import re

from benchmarks.attack import Flood, NotUnderstoodError, Throughput


def command(flood: Flood) -> list[str]:
    """One request under way on each connection, as the others have it."""
    version = [] if flood.http2 else ["--h1"]
    load = ["-t1", f"-c{flood.connections}", "-m1", f"-D{flood.seconds}"]
    return ["h2load", *version, *load, flood.url]


def read(flood: Flood, out: str) -> Throughput:
    """It says how many requests a second to two decimals, and the seconds to fewer digits."""
    rate = re.search(r"^finished in [\d.]+m?s, ([\d.]+) req/s", out, re.MULTILINE)
    counts = re.search(r"^requests: .* (\d+) done, (\d+) succeeded, (\d+) failed", out, re.MULTILINE)
    if rate is None or counts is None or float(rate[1]) == 0:
        raise NotUnderstoodError("h2load had no answer")
    done, _, failed = map(int, counts.groups())
    return Throughput(done, done / float(rate[1]), failed)
