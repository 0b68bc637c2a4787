"""wrk2: C, wrk with a constant rate. The yardstick for response times in the open loop.

Source: https://github.com/giltene/wrk2. It counts latency from when a request was due, as bin/replay does.
"""

import math
import re

from benchmarks.attack import NotUnderstoodError, OpenLoop, OpenTimes
from benchmarks.paths import WRK2

_UNIT_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
# What it measured so long after its start it forgets again (calibrate() in its wrk.c).
_FORGETS_S = 10.0
# So far apart it opens connections, and so much longer per connection it forgets.
_STAGGER_S = 0.005
_CORRECTED = "HdrHistogram - Recorded Latency"
_UNCORRECTED = "HdrHistogram - Uncorrected Latency"


def open_command(loop: OpenLoop) -> list[str]:
    pace = [f"-c{loop.clients}", f"-d{_lasts_s(loop)}s", f"-R{loop.per_second}"]
    return [str(WRK2), "-t1", *pace, "-U", loop.url]


def read_open(loop: OpenLoop, out: str) -> OpenTimes:
    """Its requests are those of the whole time, its percentiles those of the end that it does not forget."""
    total = re.search(r"^ +(\d+) requests in ", out, re.MULTILINE)
    if total is None:
        raise NotUnderstoodError("wrk2 printed no total")
    failed = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", out)
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    return OpenTimes(
        requests=int(total[1]),
        due=round(loop.per_second * (_lasts_s(loop) - _STAGGER_S * (loop.clients - 1) / 2)),
        errors=sum(map(int, failed.groups() if failed else ())) + (int(bad[1]) if bad else 0),
        p50_ms=_percentile_ms(out, _CORRECTED, "50.000"),
        p999_ms=_percentile_ms(out, _CORRECTED, "99.900"),
        service_p999_ms=_percentile_ms(out, _UNCORRECTED, "99.900"),
    )


def _lasts_s(loop: OpenLoop) -> int:
    return math.ceil(_FORGETS_S + _STAGGER_S * loop.clients) + loop.seconds


def _percentile_ms(out: str, table: str, percent: str) -> float:
    rows = out.partition(table)[2].partition("Detailed")[0]
    found = re.search(rf"^ *{re.escape(percent)}% +([\d.]+)(us|ms|s|m|h)\b", rows, re.MULTILINE)
    if found is None:
        raise NotUnderstoodError(f"wrk2 printed no {percent}%")
    return float(found[1]) * _UNIT_MS[found[2]]
