"""What a run is disturbed by so far: the saturator's throughput, and how long the disks take."""

import csv
import json
import math
from collections import defaultdict, deque
from pathlib import Path

from plimsoll.lab.experiment.status.model import DiskFigures, SendFigures
from plimsoll.lab.experiment.status.tail import Tail

_OVER = 5  # samples, one a second, that a latency is a mean of
_BYTES = " bytes"
_STALE_S = 4.0
_ENDS = ("_read_latency_ms", "_write_latency_ms")
_PREFIX = "diskstats."


class Saturation:
    """The saturator's events, as the lab notes them beside a run."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._kind: str | None = None
        self._works, self._at_s, self._retries = False, 0.0, 0
        self._bytes_per_s: float | None = None

    def look(self, t_s: float) -> SendFigures | None:
        """Return what it does at second `t_s` of the run; None before it started."""
        for line in self._tail.lines():
            try:
                event = json.loads(line)
                self._note(float(event["t_ns"]) / 1e9, str(event["event"]), event)
            except (ValueError, TypeError, KeyError):
                continue
        if self._kind is None:
            return None
        fresh = self._works and t_s - self._at_s <= _STALE_S
        return SendFigures(
            kind=self._kind,
            works=self._works,
            bytes_per_s=self._bytes_per_s if fresh else None,
            retries=self._retries,
        )

    def _note(self, at_s: float, name: str, event: dict[str, object]) -> None:
        if event.get("phase") in ("start", "stop"):
            self._kind, self._works = name, event["phase"] == "start"
        elif self._kind and name == self._kind + _BYTES and isinstance(event.get("bytes_per_s"), int | float):
            self._bytes_per_s, self._at_s = float(str(event["bytes_per_s"])), at_s
        elif self._kind and name.startswith(self._kind) and name.endswith(" retry"):
            self._retries += 1


class Disks:
    """The latencies of the disks, as the observers sample them."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._head: list[str] | None = None
        self._last: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_OVER))

    def look(self) -> list[DiskFigures]:
        """Return the latencies of the last seconds, by device; empty where nobody samples them."""
        for line in self._tail.lines():
            row = next(csv.reader([line.decode(errors="replace")]), [])
            if self._head is None:
                self._head = row
            elif len(row) == len(self._head):
                self._note(dict(zip(self._head, row, strict=True)))
        wanted = [name.removeprefix(_PREFIX) for name in self._head or [] if name.startswith(_PREFIX)]
        devices = dict.fromkeys(
            name.removesuffix(end) for name in wanted for end in _ENDS if name.endswith(end)
        )
        return [
            DiskFigures(device=device, read_ms=self._mean(device, 0), write_ms=self._mean(device, 1))
            for device in devices
        ]

    def _note(self, row: dict[str, str]) -> None:
        for name, value in row.items():
            if name.startswith(_PREFIX) and name.endswith(_ENDS):
                try:
                    self._last[name].append(float(value) if value else math.nan)
                except ValueError:
                    self._last[name].append(math.nan)

    def _mean(self, device: str, end: int) -> float | None:
        there = [ms for ms in self._last[f"{_PREFIX}{device}{_ENDS[end]}"] if math.isfinite(ms)]
        return sum(there) / len(there) if there else None
