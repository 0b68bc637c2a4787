"""Both sides before, during and after: what no gate may have named, for every reader to see. Pure."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from analysis.comparing.comparison import Comparison
from analysis.comparing.levels import PhaseLevels
from analysis.comparing.questions import Side
from analysis.comparing.runs import ComparedRun
from analysis.report.tables import Row, Table
from analysis.statistics.phases import PHASES
from plimsoll.common.units import ABSENT, at_least, milliseconds, significant

_TAILS = ("p99.9", "p99", "p50")
_MOST = 8  # measures of a scenario
_SERVER = "server cpu: "
_MS = {"ms": 1.0, "s": 1000.0}

Level = tuple[float, bool]  # in ms or the measure's unit, and whether it is but a lower bound
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
                return None if least is None else (least, name in phase.censored)

            yield name, "ms", read
            return


def _measures(runs: Sequence[ComparedRun]) -> Iterator[tuple[str, str, Read]]:
    """Yield every measure that has a value during the saturator, the longest first."""
    longest: dict[tuple[str, str], float] = {}
    for run in runs:
        for name, step in run.levels.phases["during"].steps.items():
            if step.measure and step.median is not None and not name.startswith(_SERVER):
                key = name, "ms" if step.unit in _MS else step.unit
                longest[key] = max(longest.get(key, 0.0), step.median * _MS.get(step.unit, 0.0))
    for name, unit in sorted(longest, key=lambda key: -longest[key])[:_MOST]:

        def read(phase: PhaseLevels, name: str = name) -> Level | None:
            step = phase.steps.get(name)
            if step is None or not step.measure or step.median is None:
                return None
            return step.median * _MS.get(step.unit, 1.0), False

        yield name, unit, read


def _level(runs: Sequence[ComparedRun], phase: str, read: Read) -> Level | None:
    values = [level for run in runs if (at := run.levels.phases.get(phase)) and (level := read(at))]
    return (median(value for value, _ in values), any(bound for _, bound in values)) if values else None


def _shown(level: Level | None, unit: str) -> str:
    if level is None:
        return ABSENT
    text = milliseconds(level[0]) if unit == "ms" else f"{significant(max(level[0], 0.0))} {unit}"
    return at_least(text) if level[1] else text


def _times(levels: dict[str, Level | None]) -> str:
    before, during = levels["before"], levels["during"]
    if before is None or during is None or before[1] or during[1] or before[0] <= 0 or during[0] < 0:
        return ABSENT
    return f"{significant(during[0] / before[0], 2)} ×"
