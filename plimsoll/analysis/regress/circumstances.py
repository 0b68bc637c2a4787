"""The circumstances that changed when a series did: programs, hosts, storage, settings. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from plimsoll.analysis.comparing.runs import ComparedRun
from plimsoll.analysis.evidence.drive_facts import summed_up
from plimsoll.analysis.evidence.storage import tuned
from plimsoll.analysis.regress.judgement import SeriesResult
from plimsoll.analysis.regress.rows import RunRow
from plimsoll.common.differences import Value, differing
from plimsoll.common.units import ABSENT

# Never the same on two nights.
_WEATHER = ("storage.facts.disks.drive.temperature_c",)
_MOST_NAMED = 5
_SHOWN = 60  # characters of a value

Group = tuple[str, str]


def runs_around_news(
    runs: Sequence[RunRow], series: Sequence[SeriesResult]
) -> dict[Group, tuple[RunRow, RunRow]]:
    """Return the last run before the news and the last of all, by scenario and backend with news."""
    found = {}
    for group, since in {
        each.series.key.group: each.since for each in series if each.state == "news"
    }.items():
        mine = [run for run in runs if run.group == group and run.readable and run.is_fit]
        before = [run for run in mine if since is not None and run.started_at < since]
        if before:
            found[group] = before[-1], mine[-1]
    return found


def circumstances(runs: Mapping[Group, tuple[ComparedRun, ComparedRun]]) -> Iterator[str]:
    """Yield what differs between both runs of every scenario and backend, a sentence each (hostile)."""
    for group, both in runs.items():
        found = [
            f"{key} ({_shown(one)} → {_shown(other)})"
            for key, (one, other) in differing([_facts(run) for run in both], expected=_WEATHER)
        ]
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        name = " on ".join(filter(None, group))
        if found:
            yield f"{name}: since then these differ, too: {', '.join(found[:_MOST_NAMED])}{more}"


def _facts(run: ComparedRun) -> dict[str, object]:
    facts = run.directory.facts
    return {
        "program": facts.program.model_dump(),
        "host": facts.host.model_dump(),
        "storage": facts.storage
        and {
            **facts.storage.model_dump(),
            "facts": summed_up(facts.storage.facts),
            "tuning": tuned(facts.storage.tuning),
        },
        **run.done_as,
    }


def _shown(value: Value) -> str:
    text = ABSENT if value is None else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
