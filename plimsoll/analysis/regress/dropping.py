"""What somebody dropped by name, and what that leaves to be judged. Pure.

A name is that of an experiment, a scenario, a backend, `SCENARIO on BACKEND`, that with `, PHASE`, or a whole
series. What is dropped and runs again is judged again.
"""

from collections.abc import Iterator
from dataclasses import replace

from plimsoll.analysis.regress.rows import Decision, Past
from plimsoll.analysis.regress.series import NightSeries, SeriesKey

Group = tuple[str, str]


def group_name(group: Group) -> str:
    """Return what a scenario on a backend is called (hostile)."""
    return " on ".join(filter(None, group))


def groups_of(past: Past) -> list[Group]:
    """Return every scenario and backend that ever ran, in order."""
    return sorted({run.group for run in past.runs})


def names_that_drop(past: Past, series: list[NightSeries]) -> list[str]:
    """Return all names (hostile) by which something of `past` can be dropped."""
    names = [past.experiment, *(name for group in groups_of(past) for name in _of_group(group))]
    names += [name for each in series for name in _of_series(each.key)]
    return [name for name in dict.fromkeys(names) if name]


def is_dropped(past: Past) -> bool:
    """Return whether the experiment is dropped, and had no night since."""
    last = past.nights[-1].id
    return any(each.name == past.experiment and each.night == last for each in _drops(past))


def without_dropped(past: Past) -> Past:
    """Return `past` without the scenarios and backends that were dropped, and did not run since."""
    if is_dropped(past):
        gone = set(groups_of(past))
    else:
        gone = {group for group in groups_of(past) if _group_is_dropped(past, group)}
    if not gone:
        return past
    runs = [run for run in past.runs if run.group not in gone]
    ids = {run.id for run in runs}
    return replace(
        past,
        runs=runs,
        figures=[row for row in past.figures if row.run in ids],
        error_shares=[row for row in past.error_shares if row[0] in ids],
    )


def series_is_dropped(past: Past, series: NightSeries) -> bool:
    """Return whether a series is dropped by its own name, and has no value since."""
    place = {night.id: at for at, night in enumerate(past.nights)}
    last = place[series.judged[-1].night.id] if series.judged else -1
    names = _of_series(series.key)
    return any(each.name in names and last <= place[each.night] for each in _drops(past) if each.night)


def _group_is_dropped(past: Past, group: Group) -> bool:
    place = {night.id: at for at, night in enumerate(past.nights)}
    last = max(place[run.night] for run in past.runs if run.group == group)
    names = _of_group(group)
    return any(each.name in names and last <= place[each.night] for each in _drops(past) if each.night)


def _drops(past: Past) -> Iterator[Decision]:
    return (each for each in past.decisions if each.kind == "drop")


def _of_group(group: Group) -> list[str]:
    return [name for name in (*group, group_name(group)) if name]


def _of_series(key: SeriesKey) -> list[str]:
    return [f"{group_name(key.group)}, {key.phase}", key.name]
