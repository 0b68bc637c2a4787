"""The control experiment: a download should take the same time whatever the storage under the site."""

from collections.abc import Iterator, Sequence

from plimsoll.analysis.report.cautions import Caution
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.common.errors import Severity
from plimsoll.common.units import milliseconds

_MOST = 1.05


def control_cautions(runs: Sequence[MeasuredRun]) -> list[Caution]:
    """Return a caution where the medians of the downloads differ by more than 5 %; names are hostile.

    A download within a crowd is compared with its like only.
    """
    by_scenario: dict[str, list[MeasuredRun]] = {}
    for run in runs:
        if run.directory.facts.is_control:
            by_scenario.setdefault(run.directory.facts.scenario, []).append(run)
    return [caution for scenario, of in by_scenario.items() for caution in _of(scenario, of)]


def _of(scenario: str, runs: Sequence[MeasuredRun]) -> Iterator[Caution]:
    medians_ms = {
        run.name: median_ms
        for run in runs
        if (median_ms := run.statistics.samples["service"].figures_ms()["p50"])
    }
    if len(medians_ms) < 2:
        return
    fastest, slowest = (
        min(medians_ms, key=lambda n: medians_ms[n]),
        max(medians_ms, key=lambda n: medians_ms[n]),
    )
    ratio = medians_ms[slowest] / medians_ms[fastest]
    if ratio <= _MOST:
        return
    more = f"{100 * (ratio - 1):.0f} % more"
    text = (
        f"The control experiment differs: the {scenario} takes {milliseconds(medians_ms[slowest])} on "
        f"{slowest} and {milliseconds(medians_ms[fastest])} on {fastest}, {more}. Either the file is read "
        "from the disks and not from memory, or the network or the processors differ too: find out which "
        "before you blame the storage for anything else."
    )
    yield Caution(Severity.WARN, text)
