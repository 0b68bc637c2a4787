"""The days of imported access logs: which hours each has, from which log, why it is no evidence. Pure.

Imports may overlap, since logs are rotated and grow: of what is there twice, the larger part counts, hour by
hour; what is not there twice adds up, so that an hour in which a log was rotated is whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import groupby
from statistics import median
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from plimsoll.analysis.comparing.weeks import HOW_WRITTEN
from plimsoll.analysis.statistics.localhours import DAY_HOURS, HOUR_S, local_hours
from plimsoll.common.hostile import printable
from plimsoll.common.units import significant
from plimsoll.rundir.runfacts import RunFacts

REFERENCE_DAYS = 28  # each day of the week four times
MORE_FAILED = 0.01  # of a day's requests, over the usual: its failures would be the level
MORE_REFUSED = 0.1  # of a day's requests, over the reference weeks: no such day is fast, nor slow
_OVERLAP_US = 300_000_000  # less is what one log's last requests and the next one's first may share
_OTHER = 0.02  # two logs of one hour that differ by more are of two servers
_LEAST = 100  # requests of an hour that say so
_EPOCH = date(1970, 1, 1).toordinal()
_MOST_NAMED = 3


class HourRow(NamedTuple):
    """An hour of one log, since 1970 in UTC, without its times."""

    log: int
    hour: int
    requests: int
    failed: int
    refused: int


@dataclass(frozen=True)
class LogRow:
    """An imported access log. Texts are hostile; `unfit` says why nothing can be decided by it."""

    id: int
    identity: str
    backend: str
    first_us: int
    last_us: int
    unfit: tuple[str, ...]
    facts: RunFacts
    path: str

    @property
    def name(self) -> str:
        """The name of its directory (hostile)."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def how(self) -> dict[str, object]:
        """How it was read."""
        settings = self.facts.load.settings if self.facts.load else {}
        return {key: settings.get(key) for key in HOW_WRITTEN}

    def covers(self, hour: int) -> bool:
        """Return whether the log goes on before and after `hour`."""
        return self.first_us < hour * HOUR_S * 10**6 and self.last_us > (hour + 1) * HOUR_S * 10**6

    def overlaps(self, other: "LogRow") -> bool:
        """Return whether both hold the same time, but for a moment."""
        return min(self.last_us, other.last_us) - max(self.first_us, other.first_us) > _OVERLAP_US


@dataclass(frozen=True)
class Day:
    """A day that is over, since 1970 in local time; `is_whole`: from its first hour on.

    `logs` are those whose hours it has; `why` says why it is no evidence (hostile).
    """

    number: int
    hours: tuple[HourRow, ...]
    logs: tuple[LogRow, ...]
    is_whole: bool
    began: datetime
    why: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its date."""
        return date.fromordinal(_EPOCH + self.number).isoformat()

    @cached_property
    def requests(self) -> int:
        """How many requests it has."""
        return sum(each.requests for each in self.hours)

    @cached_property
    def failed(self) -> int:
        """How many of them failed."""
        return sum(each.failed for each in self.hours)

    @property
    def backends(self) -> str:
        """The storage under the site then (hostile); empty where it has no name."""
        return ", ".join(dict.fromkeys(log.backend for log in self.logs if log.backend))


def days_of(logs: Sequence[LogRow], hours: Sequence[HourRow], zone: ZoneInfo) -> list[Day]:
    """Return the days that are over, the oldest first, but for one in whose midst the first log begins."""
    by_id = {log.id: log for log in logs}
    local = local_hours(np.array([row.hour for row in hours], dtype=np.int64), zone).tolist()
    found = []
    rows = sorted(zip(local, hours, strict=True), key=lambda each: (each[0] // DAY_HOURS, each[1].hour))
    last = max(local, default=0)
    for number, group in groupby(rows, key=lambda each: each[0] // DAY_HOURS):
        mine = list(group)
        if last < number * DAY_HOURS + DAY_HOURS - 1:
            continue  # it goes on, or its last hours are still to come
        chosen, doubled = _chosen([row for _, row in mine], by_id)
        own = tuple(by_id[each] for each in dict.fromkeys(row.log for row in chosen))
        unfit = [f"{log.name} {log.unfit[0]}" for log in own if log.unfit]
        at = {row: hour for hour, row in mine}
        is_whole = min(at[row] for row in chosen) % DAY_HOURS == 0
        if number * DAY_HOURS <= rows[0][0] and not is_whole:
            continue
        found.append(
            Day(
                number,
                tuple(chosen),
                own,
                is_whole,
                _began(number, zone),
                tuple([*unfit, *doubled][:_MOST_NAMED]),
            )
        )
    return found


def reference_of(days: Sequence[Day], baseline: str | None) -> list[Day]:
    """Return the days that others stand against: the first, or those from the baseline's first night on.

    They are `REFERENCE_DAYS`, where there are so many, without those on which more requests failed than
    usual. None is without evidence, all were read in one way.
    """
    fit = [day for day in days if day.is_whole and not day.why]
    begin = next((at for at, day in enumerate(fit) if baseline is not None and day.name >= baseline), 0)
    alike = [day for day in fit if day.logs[0].how == fit[begin].logs[0].how]
    begin = alike.index(fit[begin]) if fit else 0
    begin = max(0, min(begin, len(alike) - REFERENCE_DAYS))
    chosen = alike[begin : begin + REFERENCE_DAYS]
    usual = median([day.failed / day.requests for day in chosen] or [0.0])
    return [day for day in chosen if day.failed / day.requests <= usual + MORE_FAILED]


def refusals(day: Day, reference: Sequence[Day]) -> Iterator[str]:
    """Yield why `day` is no evidence beside the reference (hostile)."""
    yield from day.why
    if not reference:
        return
    how = reference[0].logs[0].how
    other = {key for log in day.logs for key, value in how.items() if log.how[key] != value}
    if other:
        yield (
            f"its log was not read as those of the reference weeks were ({', '.join(sorted(other))}): import "
            "both alike, or set a new baseline"
        )
    before, now = _refused(reference), _refused([day])
    if now - before > MORE_REFUSED:
        yield (
            f"{significant(100 * now)} % of its requests were answered with a status from 400 on, and "
            f"{significant(100 * before)} % in the reference weeks: find out why"
        )


def _refused(days: Sequence[Day]) -> float:
    return sum(row.refused for day in days for row in day.hours) / max(sum(day.requests for day in days), 1)


def _chosen(rows: Sequence[HourRow], logs: Mapping[int, LogRow]) -> tuple[list[HourRow], list[str]]:
    """Return the rows that count, and what forbids that (hostile)."""
    kept: list[HourRow] = []
    doubled: list[str] = []
    for hour, group in groupby(rows, key=lambda row: row.hour):
        mine = sorted(group, key=lambda row: (bool(logs[row.log].unfit), -row.requests))
        chosen = mine[:1]
        for row in mine[1:]:
            log = logs[row.log]
            over = [other for other in chosen if log.overlaps(logs[other.log])]
            if not over:
                chosen.append(row)
            elif not log.unfit:
                doubled += _two_servers(hour, row, over[0], logs)
        kept += chosen
    return kept, list(dict.fromkeys(doubled))


def _two_servers(hour: int, row: HourRow, other: HourRow, logs: Mapping[int, LogRow]) -> Iterator[str]:
    one, two = logs[row.log], logs[other.log]
    both = one.covers(hour) and two.covers(hour) and not two.unfit and one.how == two.how
    if both and other.requests >= _LEAST and row.requests < (1 - _OTHER) * other.requests:
        names = " and ".join(printable(log.name, 80) for log in (two, one))
        yield (
            f"{names} hold other requests of the same hours: import the logs of several servers as one, or "
            "each under a --scenario of its own"
        )


def _began(number: int, zone: ZoneInfo) -> datetime:
    day = date.fromordinal(_EPOCH + number)
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
