"""Parses the output of `sysbench fileio run` (sysbench 1.0). Pure."""

import re
from dataclasses import dataclass

from plimsoll.lab.errors import LabError
from plimsoll.lab.fileio.histogram import Bucket

_BUCKET = re.compile(r"\s*(\d{1,9}\.\d{3}) \|[* ]* (\d{1,18})\s*", re.ASCII)
_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"
_FIGURES = {
    "reads_per_s": r"reads/s:\s+" + _NUMBER,
    "writes_per_s": r"writes/s:\s+" + _NUMBER,
    "fsyncs_per_s": r"fsyncs/s:\s+" + _NUMBER,
    "read_mib_per_s": r"read, MiB/s:\s+" + _NUMBER,
    "written_mib_per_s": r"written, MiB/s:\s+" + _NUMBER,
    "execution_s": r"total time:\s+" + _NUMBER + "s",
    "events": r"total number of events:\s+(\d{1,18})",
    "max_ms": r"max:\s+" + _NUMBER,
}
_PATTERNS = {name: re.compile(r"\s*" + form + r"\s*", re.ASCII) for name, form in _FIGURES.items()}


class FileioError(LabError):
    """A cell could not be measured, or where it should be measured is not fit for it."""


@dataclass(frozen=True)
class Output:
    """The figures of one run, as printed; `events` are reads, writes and fsyncs."""

    reads_per_s: float
    writes_per_s: float
    fsyncs_per_s: float
    read_mib_per_s: float
    written_mib_per_s: float
    execution_s: float
    events: int
    max_ms: float
    buckets: tuple[Bucket, ...]


def parse_output(text: str) -> Output:
    """Read what sysbench printed. Raises FileioError, also where the histogram does not hold all events."""
    found: dict[str, float] = {}
    buckets: list[Bucket] = []
    for line in text.splitlines():
        if bucket := _BUCKET.fullmatch(line):
            buckets.append(Bucket(float(bucket[1]), int(bucket[2])))
            continue
        for name, pattern in _PATTERNS.items():
            if name not in found and (figure := pattern.fullmatch(line)):
                found[name] = float(figure[1])
    if missing := [name for name in _PATTERNS if name not in found]:
        raise FileioError(
            f"sysbench printed no {', no '.join(missing)}: it must be version 1.0 (apt-get install sysbench)"
        )
    events = int(found.pop("events"))
    if (counted := sum(bucket.count for bucket in buckets)) != events:
        raise FileioError(f"sysbench's histogram holds {counted} of {events} events: it must be version 1.0")
    return Output(**found, events=events, buckets=tuple(buckets))
