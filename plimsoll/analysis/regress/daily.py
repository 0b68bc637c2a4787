"""From the hours of imported access logs to nights of the history: each day one night, with one run.

So change points, news, accepting and mending are those of nights. A day is figured anew when its hours or
the reference weeks changed, and not otherwise.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from plimsoll.analysis.comparing.levels import WHOLE, Levels, PhaseLevels
from plimsoll.analysis.regress.baseline import baseline_nights
from plimsoll.analysis.regress.days import Day, days_of, reference_of, refusals
from plimsoll.analysis.regress.logstore import LogStore
from plimsoll.analysis.regress.night import NightFacts, NightKey, RunDigest, instant
from plimsoll.analysis.regress.store import History
from plimsoll.analysis.statistics.localhours import UTC, local_hours, time_zone
from plimsoll.analysis.statistics.standarddays import DayFigures, Reference, ServedDay
from plimsoll.rundir.runfacts import ExperimentRun, Load, RunFacts, Storage

VERSION = 1  # of how days are figured; another figures all anew


def renew_days(history: History, experiment: str) -> None:
    """Bring the nights of `experiment` in step with its logs; nothing where it has none.

    Raises SettingsError where this machine does not know their time zone.
    """
    store = LogStore(history)
    logs = store.logs(experiment)
    if not logs:
        return
    with history.transaction():
        zone = time_zone(store.time_zone(experiment) or UTC)
        days = days_of(logs, list(store.hours(experiment)), zone)
        base = baseline_nights(history.nights(experiment))
        reference = reference_of(days, base[0].name if base else None)
        known = store.day_stamps(experiment)
        against = _sum([_contents(each) for each in reference])
        figured: Reference | None = None
        there = set()
        for day in days:
            why = tuple(refusals(day, reference))
            digest = _digest(experiment, day, why, _stamp(day, why, against, zone))
            there.add(digest.identity)
            if known.get(digest.identity) == digest.stamp:
                continue
            figured = figured or _reference(store, reference, zone)
            figures = figured.figures(_served(store, day, zone))
            unfit = (*why, *([figures.why] if figures.why else []))
            store.keep_day(replace(digest, unfit=unfit, levels=_levels(day, figures)))
        store.forget_days(known.keys() - there)


def _reference(store: LogStore, days: Sequence[Day], zone: ZoneInfo) -> Reference:
    finest_us = min((log.facts.finest_us for day in days for log in day.logs), default=1.0)
    return Reference([_served(store, day, zone) for day in days], finest_us)


def _served(store: LogStore, day: Day, zone: ZoneInfo) -> ServedDay:
    served = store.served(day.hours)
    return ServedDay(day.number, replace(served, hour=local_hours(served.hour, zone)))


def _digest(experiment: str, day: Day, why: tuple[str, ...], stamp: str) -> RunDigest:
    """Return the one run of a day's night, without figures."""
    night = NightFacts(NightKey(experiment, day.name), instant(day.began), None, "")
    path = f"{experiment}/{day.name}"
    return RunDigest(night, _facts(experiment, day), "complete", None, why, path, "", stamp, 0)


def _facts(experiment: str, day: Day) -> RunFacts:
    """Return what is known of a day. The storage is a circumstance: the move is what is looked for."""
    log = day.logs[-1]
    how = Load(digest=_sum(log.how), settings=log.how)
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


def _levels(day: Day, figures: DayFigures) -> Levels:
    at_least_ms: dict[str, float | None] = dict.fromkeys(figures.failures)
    phase = PhaseLevels(day.requests, day.failed, figures.quantiles_ms, {}, at_least_ms)
    return Levels({WHOLE: phase}, None, {}, 0, 0, 0, frozenset())


def _stamp(day: Day, why: Sequence[str], against: str, zone: ZoneInfo) -> str:
    """Return what changes when the day's figures may; `against` does when the reference does."""
    return _sum([VERSION, zone.key, why, _contents(day), against])


def _contents(day: Day) -> list[object]:
    names = {log.id: log.identity for log in day.logs}
    return [day.number, day.backends, [[names[row.log], *row[1:]] for row in day.hours]]


def _sum(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
