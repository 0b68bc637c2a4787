"""The instances of a merged run: a table, and what is to be known of how they fit together."""

from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.report.cautions import Caution
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.common.units import ABSENT, count, milliseconds, plain_ms
from plimsoll.rundir.runfacts import ClockState
from plimsoll.rundir.summary import Instance

_COLUMNS = ["", "machine", "segment", "sent", "unsent", "status", "lag p99.9", "started", "clock"]


def instance_table(run: MeasuredRun) -> Table | None:
    """Return a row for each instance; None of a run that was not merged."""
    summary = run.directory.summary
    if run.directory.facts.merged is None or summary is None or not summary.instances:
        return None
    caption = (
        "What each process or machine did. Lag: how late it sent one request in a thousand, in milliseconds. "
        "Started and clock: by its own clock, and how far that may be wrong."
    )
    return Table("Instances", caption, _COLUMNS, [_row(each) for each in summary.instances])


def merge_cautions(run: MeasuredRun) -> list[Caution]:
    """Return what `plimsoll merge` said of the run. Texts are hostile."""
    merged = run.directory.facts.merged
    return [Caution(said.level, said.text) for said in merged.says] if merged else []


def _row(one: Instance) -> Row:
    name = one.name if one.index is None else f"instance {one.index + 1}"
    cells = [
        one.host or ABSENT,
        one.segment or ABSENT,
        count(one.sent),
        count(one.unsent),
        one.status,
        plain_ms(one.lag_ms.p999),
        f"{one.started_at:%H:%M:%S.%f}" if one.started_at else ABSENT,
        _clock(one.clock),
    ]
    amiss = one.status != "complete" or one.generator_limited
    return Row(name, cells, "amiss" if amiss else "")


def _clock(clock: ClockState | None) -> str:
    if clock is None or clock.synchronised is None:
        return ABSENT
    if not clock.synchronised:
        return "not synchronised"
    return f"within {milliseconds(clock.max_error_ms)}"
