"""Many runs on one page: folded by scenario and backend, and what many of them say, said once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from analysis.report.backends import ScenarioRuns
from analysis.report.cautions import Caution
from analysis.report.measured_run import MeasuredRun
from plimsoll.common.units import counted, milliseconds

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
        values = sorted(
            value for run in runs if (value := run.statistics.samples["response"].figures_ms()[name])
        )
        if len(values) * 2 > len(runs):
            span = f"{milliseconds(values[0])} to {milliseconds(values[-1])}"
            text += f", {name} {milliseconds(median(values))} (median; {span})"
            break
    amiss = sum(run.status != "complete" for run in runs)
    return text + (f", {amiss} not complete" if amiss else "")


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
