"""hey: Go, net/http."""

import re

from benchmarks.attack import Flood, NotUnderstoodError, Throughput
from benchmarks.paths import HEY

# Of more than these it keeps no statuses; only its rate then counts all.
_MOST_IN_DETAIL = 1_000_000


def command(flood: Flood) -> list[str]:
    return [str(HEY), "-z", f"{flood.seconds}s", "-c", str(flood.connections), flood.url]


def read(flood: Flood, out: str) -> Throughput:
    seconds = re.search(r"Total:\s+([\d.]+) secs", out)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", out)
    if seconds is None or rate is None:
        raise NotUnderstoodError("hey printed no summary")
    answers = [
        (status, int(n)) for status, n in re.findall(r"^  \[(\d+)\]\t(\d+) responses", out, re.MULTILINE)
    ]
    failed = sum(int(n) for n in re.findall(r"^  \[(\d+)\]\t(?!\d+ responses)", out, re.MULTILINE))
    requests = failed + sum(n for _, n in answers)
    if requests >= _MOST_IN_DETAIL:
        requests = round(float(rate[1]) * float(seconds[1]))
    bad = sum(n for status, n in answers if status >= "400")
    return Throughput(requests, float(seconds[1]), failed + bad)
