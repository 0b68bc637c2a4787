"""What else changed when a series did: programs, hosts, storage, what was run."""

from collections.abc import Iterator, Sequence

from analysis.comparing.runs import ComparedRun
from analysis.differing import Value, differing
from analysis.history.judgement import SeriesResult
from analysis.history.store import History, RunRow
from analysis.units import ABSENT

_MOST_NAMED = 5
_SHOWN = 60  # characters of a value


def besides(history: History, runs: Sequence[RunRow], series: Sequence[SeriesResult]) -> Iterator[str]:
    """Yield, for every scenario and backend with news, what differs between before and tonight."""
    for group, since in {
        each.series.key.group: each.since for each in series if each.state == "news"
    }.items():
        mine = [
            run for run in runs if (run.scenario, run.backend) == group and run.readable and not run.unfit
        ]
        before = [run for run in mine if since is not None and run.started_at < since]
        if not before:
            continue
        both = [_facts(history.compared(run)) for run in (before[-1], mine[-1])]
        found = [f"{key} ({_shown(one)} → {_shown(other)})" for key, (one, other) in differing(both)]
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        name = " on ".join(filter(None, group))
        if found:
            yield f"{name}: since then these differ, too: {', '.join(found[:_MOST_NAMED])}{more}"


def _facts(run: ComparedRun) -> dict[str, object]:
    facts = run.directory.facts
    return {
        "program": facts.program.model_dump(),
        "host": facts.host.model_dump(),
        "storage": facts.storage.model_dump() if facts.storage else None,
        **run.done_as,
    }


def _shown(value: Value) -> str:
    text = ABSENT if value is None else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
