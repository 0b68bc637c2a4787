"""The days of imported access logs, each a night of the history with one run.

So change points, news, acceptance and recovery are those of nights. A day is recomputed when its hours or the
reference weeks changed, and not otherwise.

Imports may overlap, since logs are rotated and grow: of what is there twice, the larger part counts, hour by
hour; what is not there twice adds up, so that an hour in which a log was rotated is whole.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import groupby
from statistics import median
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from plimsoll.analysis.evidence.run import WHOLE, MeasuredRun, RunPhase
from plimsoll.analysis.evidence.weeks import HOW_WRITTEN
from plimsoll.analysis.regress.judge import baseline_nights
from plimsoll.analysis.regress.nights import LogDigest, NightFacts, NightKey, RunDigest, RunRow, instant
from plimsoll.analysis.regress.schema import transaction
from plimsoll.analysis.regress.store import HistoryStore, kept_directory, now, utf8
from plimsoll.analysis.statistics.percentiles import TimeFigures
from plimsoll.analysis.statistics.standardised import (
    DAY_HOURS,
    HOUR_S,
    Reference,
    Served,
    ServedDay,
    local_hours,
    time_zone,
    unpacked,
)
from plimsoll.analysis.statistics.standardised import UTC as UTC_ZONE
from plimsoll.common.hostile import printable
from plimsoll.common.units import significant
from plimsoll.rundir.facts import ExperimentRun, Load, RunFacts, Storage

VERSION = 1  # of how days are figured; another version figures all of them again
REFERENCE_DAYS = 28  # each day of the week four times
MORE_FAILED = 0.01  # of a day's requests, over the usual: its failures would be the level
MORE_REFUSED = 0.1  # of a day's requests, over the reference weeks: no such day is fast, nor slow
_OVERLAP_US = 300_000_000  # less is what one log's last requests and the next one's first may share
_OTHER = 0.02  # two logs of one hour that differ by more are of two servers
_LEAST = 100  # requests of an hour that say so
_EPOCH = date(1970, 1, 1).toordinal()
_MOST_NAMED = 3
_NO_NIGHT = -1


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
        """Return whether both hold the same time, up to a moment."""
        return min(self.last_us, other.last_us) - max(self.first_us, other.first_us) > _OVERLAP_US


@dataclass(frozen=True)
class Day:
    """A day that is over, since 1970 in local time; `is_whole`: from its first hour on.

    `logs` are those whose hours it has; `why` says why it is not evidence (hostile).
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


class LogStore:
    """The imported logs of an open history."""

    def __init__(self, history: HistoryStore) -> None:
        self._history, self._connection = history, history.connection

    def stamp(self, identity: str) -> str | None:
        """Return the stamp of a log that is known; None where it is to be read."""
        row = self._connection.execute("SELECT stamp FROM log WHERE identity = ?", (identity,)).fetchone()
        return None if row is None else str(row["stamp"])

    def route_ids(self, names: list[str]) -> list[int]:
        """Return the number of each route, of new ones a new one."""
        with transaction(self._connection):
            known = [(utf8(name),) for name in names]
            self._connection.executemany("INSERT INTO route (name) VALUES (?) ON CONFLICT DO NOTHING", known)
            select = "SELECT id FROM route WHERE name = ?"
            return [int(self._connection.execute(select, each).fetchone()["id"]) for each in known]

    def keep(self, log: LogDigest, run_identity: str) -> None:
        """Keep a log, whole or not at all; one that is known already is replaced.

        An older plimsoll kept it as a run, under `run_identity`, which its days take the place of.
        """
        facts = log.facts
        with transaction(self._connection):
            self._connection.execute("DELETE FROM log WHERE identity = ?", (log.identity,))
            self._forget_run(run_identity)
            cursor = self._connection.execute(
                "INSERT INTO log (identity, experiment, backend, first_us, last_us, requests, unfit, facts, "
                "path, root, stamp, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    log.identity,
                    utf8(log.experiment),
                    utf8(facts.backend or ""),
                    log.first_us,
                    log.last_us,
                    sum(each.requests for each in log.hours),
                    json.dumps(list(log.unfit)),
                    facts.model_copy(update={"command": []}).model_dump_json(),
                    utf8(log.path),
                    utf8(log.root),
                    log.stamp,
                    log.size_bytes,
                ),
            )
            self._connection.executemany(
                "INSERT INTO hour (log, hour, requests, failed, refused, times) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (cursor.lastrowid, each.hour, each.requests, each.failed, each.refused, each.times)
                    for each in log.hours
                ],
            )

    def _forget_run(self, identity: str) -> None:
        """Forget a run, and its night where that was all that was ever known of it."""
        row = self._connection.execute("SELECT night FROM run WHERE identity = ?", (identity,)).fetchone()
        if row is None:
            return
        self._connection.execute("DELETE FROM run WHERE identity = ?", (identity,))
        self._connection.execute(
            "DELETE FROM night WHERE id = ? AND NOT EXISTS (SELECT 1 FROM run WHERE run.night = night.id) "
            "AND NOT EXISTS (SELECT 1 FROM decision WHERE decision.night = night.id) AND NOT EXISTS "
            "(SELECT 1 FROM change WHERE night.id IN (change.night, found, recovered, recovery_found))",
            (row["night"],),
        )

    def logs(self, experiment: str) -> list[LogRow]:
        """Return the logs of an experiment, in order of time."""
        rows = self._connection.execute(
            "SELECT * FROM log WHERE experiment = ? ORDER BY first_us, identity", (experiment,)
        )
        return [
            LogRow(
                **{name: row[name] for name in ("id", "identity", "backend", "first_us", "last_us", "path")},
                unfit=tuple(json.loads(row["unfit"])),
                facts=RunFacts.model_validate_json(row["facts"]),
            )
            for row in rows
        ]

    def hours(self, experiment: str) -> Iterator[HourRow]:
        """Yield the hours of all logs of an experiment, without their times, in order of time."""
        rows = self._connection.execute(
            "SELECT log, hour, hour.requests, failed, refused FROM hour JOIN log ON log.id = hour.log "
            "WHERE experiment = ? ORDER BY hour, log.first_us, identity",
            (experiment,),
        )
        for row in rows:
            yield HourRow(*row)

    def served(self, hours: Iterable[HourRow]) -> Served:
        """Return all requests of `hours`, one at least."""
        parts = []
        for each in hours:
            row = self._connection.execute(
                "SELECT times FROM hour WHERE log = ? AND hour = ?", (each.log, each.hour)
            ).fetchone()
            parts.append(unpacked(each.hour, row["times"]))
        return Served.joined(parts)

    def day_stamps(self, experiment: str) -> dict[str, str]:
        """Return the stamps of the days that are kept, by identity."""
        rows = self._connection.execute(
            "SELECT identity, stamp FROM run JOIN night ON night.id = run.night WHERE experiment = ?",
            (experiment,),
        )
        return {row["identity"]: row["stamp"] for row in rows}

    def keep_day(self, day: RunDigest) -> None:
        """Keep a day as a night with one run, which has no directory. Whether it was judged stays so."""
        key = day.night.key
        with transaction(self._connection):
            known = self._connection.execute(
                "SELECT findings FROM night WHERE experiment = ? AND name = ?",
                (utf8(key.experiment), key.name),
            ).fetchone()
            self._history.keep(day)
            self._connection.execute("UPDATE run SET pruned_at = ? WHERE identity = ?", (now(), day.identity))
            self._connection.execute(
                "UPDATE night SET findings = ? WHERE experiment = ? AND name = ?",
                (known and known["findings"], utf8(key.experiment), key.name),
            )

    def forget_days(self, identities: Iterable[str]) -> None:
        """Forget the figures of days of which the logs say nothing any more."""
        with transaction(self._connection):
            self._connection.executemany(
                "DELETE FROM run WHERE identity = ?", [(each,) for each in identities]
            )

    def time_zone(self, experiment: str) -> str | None:
        """Return the zone whose days are counted; None where there are none yet."""
        row = self._connection.execute(
            "SELECT name FROM time_zone WHERE experiment = ?", (experiment,)
        ).fetchone()
        return None if row is None else str(row["name"])

    def keep_time_zone(self, experiment: str, name: str) -> None:
        """Note by which zone days are counted."""
        with transaction(self._connection):
            self._connection.execute("INSERT OR REPLACE INTO time_zone VALUES (?, ?)", (experiment, name))

    def directories(self) -> list[RunRow]:
        """Return the run directories of all logs: as runs of no night, which began when their log ends."""
        rows = self._connection.execute("SELECT * FROM log ORDER BY first_us, identity").fetchall()
        return [
            RunRow(
                **{name: row[name] for name in ("id", "backend", "path", "root", "identity")},
                night=_NO_NIGHT,
                scenario="",
                repeat=None,
                unfit=(),
                started_at=instant(datetime.fromtimestamp(row["last_us"] / 1e6, UTC)),
                size_bytes=row["bytes"],
                readable=row["requests"] > 0,
                pruned=row["pruned_at"] is not None,
            )
            for row in rows
        ]

    def mark_pruned(self, log: int) -> None:
        """Note that the raw data of a log is gone."""
        with transaction(self._connection):
            self._connection.execute("UPDATE log SET pruned_at = ? WHERE id = ?", (now(), log))


def renew_days(history: HistoryStore, experiment: str) -> None:
    """Bring the nights of `experiment` in step with its logs; nothing where it has none.

    Raises SettingsError where this machine does not know their time zone.
    """
    store = LogStore(history)
    logs = store.logs(experiment)
    if not logs:
        return
    with history.transaction():
        zone = time_zone(store.time_zone(experiment) or UTC_ZONE)
        days = group_days(logs, list(store.hours(experiment)), zone)
        base = baseline_nights(history.nights(experiment))
        reference = choose_reference(days, base[0].name if base else None)
        known = store.day_stamps(experiment)
        against = _digest_json([_contents(each) for each in reference])
        figured: Reference | None = None
        there = set()
        for day in days:
            why = tuple(find_refusals(day, reference))
            # changes when the day's figures may; `against` does when the reference does
            stamp = _digest_json([VERSION, zone.key, why, _contents(day), against])
            digest = _day_digest(experiment, day, why, stamp)
            there.add(digest.identity)
            if known.get(digest.identity) == digest.stamp:
                continue
            if figured is None:
                finest_us = min((log.facts.finest_us for each in reference for log in each.logs), default=1.0)
                figured = Reference([_read_day(store, each, zone) for each in reference], finest_us)
            figures = figured.figures(_read_day(store, day, zone))
            times = TimeFigures(figures.quantiles_ms, dict.fromkeys(figures.failures))
            directory = kept_directory(digest.path, digest.facts, day.requests)
            run = MeasuredRun(directory, {WHOLE: RunPhase(day.requests, day.failed, times)})
            unfit = (*why, *([figures.why] if figures.why else []))
            store.keep_day(replace(digest, unfit=unfit, run=run))
        store.forget_days(known.keys() - there)


def _read_day(store: LogStore, day: Day, zone: ZoneInfo) -> ServedDay:
    served = store.served(day.hours)
    return ServedDay(day.number, replace(served, hour=local_hours(served.hour, zone)))


def _day_digest(experiment: str, day: Day, why: tuple[str, ...], stamp: str) -> RunDigest:
    """Return the one run of a day's night, without figures."""
    night = NightFacts(NightKey(experiment, day.name), instant(day.began), None, "")
    path = f"{experiment}/{day.name}"
    return RunDigest(night, _day_facts(experiment, day), "complete", None, why, path, "", stamp, 0)


def _day_facts(experiment: str, day: Day) -> RunFacts:
    """Return what is known of a day. The storage is a circumstance: the move is what is looked for."""
    log = day.logs[-1]
    how = Load(digest=_digest_json(log.how), settings=log.how)
    return log.facts.model_copy(
        update={
            "backend": None,
            "started_at": day.began,
            "ended_at": None,
            "seed": None,
            "logs": [],
            "scenario_settings": {},
            "load": how,
            "experiment": ExperimentRun(name=experiment, run=day.number),
            "storage": Storage(facts={"backend": day.backends}) if day.backends else None,
        }
    )


def _contents(day: Day) -> list[object]:
    names = {log.id: log.identity for log in day.logs}
    return [day.number, day.backends, [[names[row.log], *row[1:]] for row in day.hours]]


def _digest_json(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def group_days(logs: Sequence[LogRow], hours: Sequence[HourRow], zone: ZoneInfo) -> list[Day]:
    """Return the days that are over, the oldest first, except the one during which the first log begins."""
    by_id = {log.id: log for log in logs}
    local = local_hours(np.array([row.hour for row in hours], dtype=np.int64), zone).tolist()
    found = []
    rows = sorted(zip(local, hours, strict=True), key=lambda each: (each[0] // DAY_HOURS, each[1].hour))
    last = max(local, default=0)
    for number, group in groupby(rows, key=lambda each: each[0] // DAY_HOURS):
        mine = list(group)
        if last < number * DAY_HOURS + DAY_HOURS - 1:
            continue  # it goes on, or its last hours are still to come
        chosen, doubled = _choose_rows([row for _, row in mine], by_id)
        own = tuple(by_id[each] for each in dict.fromkeys(row.log for row in chosen))
        unfit = [f"{log.name} {log.unfit[0]}" for log in own if log.unfit]
        at = {row: hour for hour, row in mine}
        is_whole = min(at[row] for row in chosen) % DAY_HOURS == 0
        if number * DAY_HOURS <= rows[0][0] and not is_whole:
            continue
        day = date.fromordinal(_EPOCH + number)
        found.append(
            Day(
                number,
                tuple(chosen),
                own,
                is_whole,
                datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC),
                tuple([*unfit, *doubled][:_MOST_NAMED]),
            )
        )
    return found


def choose_reference(days: Sequence[Day], baseline: str | None) -> list[Day]:
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


def find_refusals(day: Day, reference: Sequence[Day]) -> Iterator[str]:
    """Yield why `day` is not evidence beside the reference (hostile)."""
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
    before, now = _refused_share(reference), _refused_share([day])
    if now - before > MORE_REFUSED:
        yield (
            f"{significant(100 * now)} % of its requests were answered with a status from 400 on, and "
            f"{significant(100 * before)} % in the reference weeks: find out why"
        )


def _refused_share(days: Sequence[Day]) -> float:
    return sum(row.refused for day in days for row in day.hours) / max(sum(day.requests for day in days), 1)


def _choose_rows(rows: Sequence[HourRow], logs: Mapping[int, LogRow]) -> tuple[list[HourRow], list[str]]:
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
                doubled += _explain_doubled(hour, row, over[0], logs)
        kept += chosen
    return kept, list(dict.fromkeys(doubled))


def _explain_doubled(hour: int, row: HourRow, other: HourRow, logs: Mapping[int, LogRow]) -> Iterator[str]:
    one, two = logs[row.log], logs[other.log]
    both = one.covers(hour) and two.covers(hour) and not two.unfit and one.how == two.how
    if both and other.requests >= _LEAST and row.requests < (1 - _OTHER) * other.requests:
        names = " and ".join(printable(log.name, 80) for log in (two, one))
        yield (
            f"{names} hold other requests of the same hours: import the logs of several servers as one, or "
            "each under a --scenario of its own"
        )
