"""Many runs on one page: folded by scenario and backend, and what many of them say, said once."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from plimsoll.analysis.report.backends import ScenarioRuns
from plimsoll.analysis.report.cautions import Caution
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.statistics.figures import TimeFigures
from plimsoll.common.units import at_least, counted, milliseconds

MOST_IN_ONE_TABLE = 12  # runs; more are folded by backend
_MOST_SAYING = 4  # runs that say the same, each by itself
_NAMED = 3


@dataclass(frozen=True)
class Group:
    """The runs of one scenario on one backend: places in the list of all runs, and a line on all of them."""

    title: str
    colour: int
    emulated: bool
    sentence: str
    places: list[int]


def groups_of(scenarios: Sequence[ScenarioRuns], runs: Sequence[MeasuredRun]) -> list[Group]:
    """Return the groups; none where all runs fit one table. Runs without a backend are one group."""
    if len(runs) <= MOST_IN_ONE_TABLE:
        return []
    place = {run.number: at for at, run in enumerate(runs)}
    found = []
    for scenario in scenarios:
        alone = [backend for backend in scenario.backends if not backend.runs[0].directory.facts.backend]
        named = [backend for backend in scenario.backends if backend not in alone]
        several = [(backend.name, backend.runs) for backend in named]
        if alone:
            several.append(("runs without a backend", [run for backend in alone for run in backend.runs]))
        for name, some in several:
            found.append(
                Group(
                    title=name if len(scenarios) == 1 else f"{scenario.name}: {name}",
                    colour=some[0].colour,
                    emulated=any(run.emulated for run in some),
                    sentence=_sentence(some),
                    places=[place[run.number] for run in some],
                )
            )
    return found


def _sentence(runs: Sequence[MeasuredRun]) -> str:
    """Return how many runs there are, how far their tails lie apart, and how many are not complete."""
    text = counted(len(runs), "run")
    for name in ("p99.9", "p99", "p50"):
        figures = [run.statistics.samples["response"].figures() for run in runs]
        values = sorted(_level(each, name) for each in figures if each[name] or name in each.censored)
        if len(values) * 2 > len(runs):
            span = f"{_shown(values[0])} to {_shown(values[-1])}"
            text += f", {name} {_shown(_median(values))} (median; {span})"
            break
    amiss = sum(run.status != "complete" for run in runs)
    return text + (f", {amiss} not complete" if amiss else "")


def _level(figures: TimeFigures, name: str) -> tuple[float, bool]:
    """Return a figure, or its lower bound, and whether it is that; without end where none is known."""
    least_ms = figures.least_ms(name)
    return math.inf if least_ms is None else least_ms, name in figures.censored


def _median(levels: Sequence[tuple[float, bool]]) -> tuple[float, bool]:
    """Return the median of sorted `levels`: a lower bound where one in the middle is that."""
    middle = levels[(len(levels) - 1) // 2 : len(levels) // 2 + 1]
    return fmean(value for value, _ in middle), any(censored for _, censored in middle)


def _shown(level: tuple[float, bool]) -> str:
    value_ms, censored = level
    if math.isinf(value_ms):
        return "unknown (failed)"
    return at_least(milliseconds(value_ms)) if censored else milliseconds(value_ms)


def said_once(said: Iterable[tuple[str, Caution]]) -> list[tuple[str, Caution]]:
    """Return (whose, caution) pairs; what more than four runs say in the same words is said once. Pure."""
    by_text: dict[Caution, list[str]] = {}
    for name, caution in said:
        by_text.setdefault(caution, []).append(name)
    found = []
    for caution, names in by_text.items():
        if len(names) <= _MOST_SAYING:
            found += [(name, caution) for name in names]
        else:
            found.append((f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more", caution))
    return found
