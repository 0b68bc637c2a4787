"""wrk: C, one thread, epoll. The yardstick for throughput."""

import re

from benchmarks.attack import Flood, NotUnderstoodError, Throughput

_UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def command(flood: Flood) -> list[str]:
    headers = [f"-H{header}" for header in flood.headers]
    return ["wrk", "-t1", f"-c{flood.connections}", f"-d{flood.seconds}s", *headers, flood.url]


def read(flood: Flood, out: str) -> Throughput:
    total = re.search(r"(\d+) requests in ([\d.]+)(us|ms|s|m),", out)
    if total is None:
        raise NotUnderstoodError("wrk printed no total")
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", out)
    statuses = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    failed = sum(int(count) for count in errors.groups()) if errors else 0
    return Throughput(
        int(total[1]), float(total[2]) * _UNIT_S[total[3]], failed + (int(statuses[1]) if statuses else 0)
    )
