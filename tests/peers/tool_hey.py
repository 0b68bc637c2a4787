"""hey: Go, net/http."""

import re

from .attack import Flood, NotUnderstoodError, Throughput
from .paths import HEY


def command(flood: Flood) -> list[str]:
    return [str(HEY), "-z", f"{flood.seconds}s", "-c", str(flood.connections), flood.url]


def read(flood: Flood, out: str) -> Throughput:
    seconds = re.search(r"Total:\s+([\d.]+) secs", out)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", out)
    if seconds is None or rate is None:
        raise NotUnderstoodError("hey printed no summary")
    # Its status table counts only the first million; the rate counts all.
    errors = sum(int(count) for count in re.findall(r"^  \[(\d+)\]\t(?!\d+ responses)", out, re.MULTILINE))
    bad = sum(
        int(n)
        for status, n in re.findall(r"^  \[(\d+)\]\t(\d+) responses", out, re.MULTILINE)
        if status >= "400"
    )
    return Throughput(round(float(rate[1]) * float(seconds[1])), float(seconds[1]), errors + bad)
