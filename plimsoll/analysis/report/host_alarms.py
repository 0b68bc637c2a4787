"""What stood out on a host while the disks were busy, in a line: what a reader looks for first."""

from plimsoll.analysis.report.host_bins import BackendHost, RowFigures
from plimsoll.analysis.report.host_rows import HostRow, Subject
from plimsoll.analysis.report.host_subjects import SUBJECTS
from plimsoll.analysis.statistics.phases import WHOLE
from plimsoll.common.units import significant

_OF_A_SUBJECT = 3
_NONE = "nothing stood out"


def alarms_of(host: BackendHost) -> str:
    """Return what changed most, subject by subject: `system CPU 4 → 92 % (up to 100 %), ARC size …`."""
    return "; ".join(", ".join(said) for each in SUBJECTS if (said := _alarms(host, each))) or _NONE


def _alarms(host: BackendHost, subject: Subject) -> list[str]:
    """Return the changes of one subject that are worth a word, the gravest first."""
    found = [
        (weight, _text(row, host.rows[row]) + _of_one(row, host.cpus))
        for row in subject.rows
        if row.alarm and row in host.rows and (weight := weight_of(row, host.rows[row], host.cpus)) >= 1
    ]
    return [text for _, text in sorted(found, key=lambda each: -each[0])[:_OF_A_SUBJECT]]


def _of_one(row: HostRow, cpus: int | None) -> str:
    """Return how much a single processor is of a share of many."""
    return f" (of {cpus} processors: one is {significant(100 / cpus)} %)" if row.of_one and cpus else ""


def weight_of(row: HostRow, figures: RowFigures, cpus: int | None = None) -> float:
    """Return how many times over a row changed by what is worth a word; 0 where that cannot be said."""
    at = row.share_of_one(row.at, cpus)
    before, during = figures.mean("before"), figures.mean("during")
    if before is None and during is None:
        whole = figures.mean(WHOLE[0])
        return 0.0 if whole is None or row.alarm != "rises" else whole / at
    if before is None or during is None:
        return 0.0
    if row.alarm == "rises":
        return (during - before) / at
    if row.alarm == "falls":
        return (before - during) / before / at if before > 0 else 0.0
    if during <= row.quiet:
        return 0.0
    return during / max(before, row.quiet / at) / at


def _text(row: HostRow, figures: RowFigures) -> str:
    before, during = figures.mean("before"), figures.mean("during")
    if during is None:
        during, before = figures.mean(WHOLE[0]), None
        high = figures.phases[WHOLE[0]].high
    else:
        high = figures.phases["during"].high
    shown = significant(during or 0.0, 2)
    text = f"{row.said} {shown}" if before is None else f"{row.said} {significant(before, 2)} → {shown}"
    text = f"{text} {row.unit}".strip()
    if row.alarm == "falls" or high <= 1.2 * (during or 0.0):
        return text
    return f"{text} (up to {significant(high, 2)})"
