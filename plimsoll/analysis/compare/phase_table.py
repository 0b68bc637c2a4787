"""Both sides before, during and after: what no gate may have named, for every reader to see. Pure."""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from plimsoll.analysis.compare.comparison import Comparison
from plimsoll.analysis.compare.questions import Side
from plimsoll.analysis.compare.runs import ComparedRun, PhaseLevels
from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.statistics.phases import PHASES
from plimsoll.common.units import ABSENT, at_least, milliseconds, significant

_TAILS = ("p99.9", "p99", "p50")
_MOST = 8  # measures of a scenario
_SERVER = "server cpu: "
_MS = {"ms": 1.0, "s": 1000.0}


class Level(NamedTuple):
    """A figure in ms or the measure's unit, whether it is but a lower bound, and how many tries failed."""

    value: float
    is_bound: bool
    failed: int = 0
    tries: int = 0


Read = Callable[[PhaseLevels], Level | None]


def phase_table(found: Comparison) -> Table | None:
    """Return the tail and every measure of both sides by phase; None where nothing kept the disks busy."""
    rows = [row for scenario in found.baseline.scenarios for row in _of_scenario(found, scenario)]
    if not rows:
        return None
    caption = (
        "Medians of a side's runs, phase by phase: of each run its percentile, or the median of what it "
        "measured. What took time belongs to the phase in which it began. Gates say which of them are judged."
    )
    return Table("Before, during and after", caption, ["", *PHASES, "during ÷ before"], rows)


def phase_lines(found: Comparison) -> Iterator[str]:
    """Yield the table for a terminal (hostile), nothing where there is none."""
    table = phase_table(found)
    if table is None:
        return
    rows = [["", *table.columns[1:]], *([row.name, *row.cells] for row in table.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for name, *cells in rows:
        shown = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join([name.ljust(widths[0]), *shown]).rstrip()


def _of_scenario(found: Comparison, scenario: str) -> Iterator[Row]:
    sides = [(side, _saturated(side, scenario)) for side in (found.baseline, found.candidate)]
    if not all(runs for _, runs in sides):
        return
    every = [run for _, runs in sides for run in runs]
    for name, unit, read in [*_tail(every), *_measures(every)]:
        for side, runs in sides:
            levels = {phase: _level(runs, phase, read) for phase in PHASES}
            cells = [_shown(levels[phase], unit) for phase in PHASES]
            yield Row(f"{scenario}: {name}, {side.name}", [*cells, _times(levels)])


def _saturated(side: Side, scenario: str) -> list[ComparedRun]:
    return [run for run in side.of(scenario) if "during" in run.levels.phases]


def _tail(runs: Sequence[ComparedRun]) -> Iterator[tuple[str, str, Read]]:
    """Yield the highest percentile that most runs have enough requests for during the saturator."""
    for name in _TAILS:
        having = sum(run.levels.phases["during"].times.least_ms(name) is not None for run in runs)
        if having * 2 > len(runs):

            def read(phase: PhaseLevels, name: str = name) -> Level | None:
                least = phase.times.least_ms(name)
                return None if least is None else Level(least, name in phase.censored)

            yield name, "ms", read
            return


def _measures(runs: Sequence[ComparedRun]) -> Iterator[tuple[str, str, Read]]:
    """Yield every measure that has a value during the saturator, the longest first."""
    longest: dict[tuple[str, str], float] = {}
    for run in runs:
        for name, step in run.levels.phases["during"].steps.items():
            if step.measure and math.isfinite(step.least) and not name.startswith(_SERVER):
                key = name, "ms" if step.unit in _MS else step.unit
                longest[key] = max(longest.get(key, 0.0), step.least * _MS.get(step.unit, 0.0))
    for name, unit in sorted(longest, key=lambda key: -longest[key])[:_MOST]:

        def read(phase: PhaseLevels, name: str = name) -> Level | None:
            step = phase.steps.get(name)
            if step is None or not step.measure:
                return None
            value = step.least * _MS.get(step.unit, 1.0)
            return Level(value, step.median is None, len(step.failed_ms), step.tries)

        yield name, unit, read


def _level(runs: Sequence[ComparedRun], phase: str, read: Read) -> Level | None:
    values = [level for run in runs if (at := run.levels.phases.get(phase)) and (level := read(at))]
    if not values:
        return None
    return Level(
        median(each.value for each in values),
        any(each.is_bound for each in values),
        sum(each.failed for each in values),
        sum(each.tries for each in values),
    )


def _shown(level: Level | None, unit: str) -> str:
    if level is None:
        return ABSENT
    failed = f" ({level.failed:,} of {level.tries:,} failed)" if level.failed else ""
    if not math.isfinite(level.value):
        return f"{ABSENT}{failed}"
    text = milliseconds(level.value) if unit == "ms" else f"{significant(max(level.value, 0.0))} {unit}"
    return (at_least(text) if level.is_bound else text) + failed


def _times(levels: dict[str, Level | None]) -> str:
    before, during = levels["before"], levels["during"]
    if before is None or during is None or before.is_bound or during.is_bound:
        return ABSENT
    if before.value <= 0 or during.value < 0:
        return ABSENT
    return f"{significant(during.value / before.value, 2)} ×"
