"""Whether the machine of one side was busier with other work than that of the other."""

import re
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.host_rows import SUBJECTS
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.common.units import significant

# What waits for disks is what the sides are compared by; these rows are not.
_ROWS = {
    "cpu": ("system", "user", "steal"),
    "pressure": ("CPU, some", "memory, some"),
}
_SHOWN = [row for subject in SUBJECTS for row in subject.rows if row.name in _ROWS.get(subject.key, ())]


def find_busier_side(
    baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun], names: tuple[str, str], scenario: str
) -> Iterator[Finding]:
    """Yield that one side's machine was busier: by the change that stands out in a report on one run.

    Compared are medians over the runs of a side, of the mean over each run. The rows and their changes are
    those of docs/report.md: system 25 and user 40 points, steal 5, CPU pressure 50, memory pressure 5.
    """
    means = [[_means(run) for run in side] for side in (baseline, candidate)]
    for row in _SHOWN:
        known = [[each[row.column] for each in side if row.column in each] for side in means]
        if not all(known):
            continue
        one, other = (median(side) for side in known)
        if abs(other - one) >= row.at:
            busier = other > one
            text = (
                f"{scenario}: the machine of {names[busier]} was busier than that of {names[not busier]}: "
                f"{row.said} was {significant(max(one, other), 2)} {row.unit} and "
                f"{significant(min(one, other), 2)} {row.unit} on average."
            )
            runs = tuple(run.name for run in (candidate if busier else baseline))
            yield Finding(FindingKind.BUSIER_SIDE, text, runs, scenario)
            return


def _means(run: MeasuredRun) -> dict[str, float]:
    """Return the mean of each row that was sampled, by its column."""
    columns = run.host.samples.columns
    found = {}
    for row in _SHOWN:
        values = [values for name, values in columns.items() if re.fullmatch(row.column, name)]
        if values and not np.isnan(values[0]).all():
            found[row.column] = float(np.nanmean(values[0]))
    return found
