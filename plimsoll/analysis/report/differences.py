"""The facts in which the storage of several backends differs, as a table and as JSON."""

from collections.abc import Sequence

from plimsoll.analysis.evidence.storage import described
from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.report.cache import compress_ratios
from plimsoll.analysis.report.few import MANY
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.common.differences import differing
from plimsoll.common.units import ABSENT, significant

# Where a clone lies is called after its backend; and that a disk is emulated is said of its clone again.
_WHERE = ("clone.folder", "clone.name", "clone.emulated")

TUNING_SAYS = "What begins with tuning was set by the lab, as lab.yml has it for that backend."


def differences_table(runs: Sequence[MeasuredRun]) -> Table | None:
    """Return what differs between the backends' facts; None where fewer than two say anything."""
    facts = facts_by_backend(runs)
    if len(facts) < 2:
        return None
    rows = [
        Row(key, [_fact(value) for value in values])
        for key, values in differing(list(facts.values()), expected=(*_WHERE, "datasets.compress_ratio"))
    ]
    alike = not rows
    if ratios := compress_ratios(runs):
        rows.append(Row("compress ratio", [ratios.get(name, ABSENT) for name in facts]))
    caption = (
        "What the lab read of the storage and its host, where it is not the same for all backends. Ideally "
        "only what you want to compare stands here."
    )
    if alike:
        caption = "Nothing of what the lab read of the storage and its host differs between the backends."
    if any(row.name.startswith("tuning.") for row in rows):
        caption += f" {TUNING_SAYS}"
    if ratios:
        caption += " The compress ratio stands here in any case; it changes with what a run writes."
    if len(facts) > MANY and rows:
        turned = [Row(name, [row.cells[place] for row in rows]) for place, name in enumerate(facts)]
        return Table("What differs between the backends", caption, ["", *(row.name for row in rows)], turned)
    return Table("What differs between the backends", caption, ["", *facts], rows, has_words=True)


def differences_json(runs: Sequence[MeasuredRun]) -> list[dict[str, object]]:
    """Return what differs between the backends, for `--json`."""
    facts = facts_by_backend(runs)
    if len(facts) < 2:
        return []
    return [
        {"key": key, "backends": dict(zip(facts, values, strict=True))}
        for key, values in differing(list(facts.values()), expected=_WHERE)
    ]


def facts_by_backend(runs: Sequence[MeasuredRun]) -> dict[str, dict[str, object]]:
    """Return the facts of each backend by its name (hostile), from the first of its runs that has any."""
    found: dict[str, dict[str, object]] = {}
    for run in runs:
        storage = run.directory.facts.storage
        if storage and run.directory.facts.backend:
            found.setdefault(run.backend, described(storage))
    return found


def _fact(value: object) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    return significant(value, 6) if isinstance(value, float) and value >= 0 else str(value)
