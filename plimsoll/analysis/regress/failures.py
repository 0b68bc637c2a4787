"""The gates that fail against the baseline tonight: which are news, and which hold again. Pure."""

import math
from collections.abc import Sequence
from dataclasses import replace

from plimsoll.analysis.regress.baseline import LAST_NIGHTS
from plimsoll.analysis.regress.judgement import GateResult
from plimsoll.analysis.regress.look import Look
from plimsoll.analysis.regress.rows import ChangeRow, NightRow, Past


class Failures:
    """The gates of tonight. A FAIL is news, unless its scenario and backend was reported since the baseline.

    `reported` is what the history is to note, `mended` says which gates hold again (hostile).
    """

    def __init__(self, past: Past, look: Look, base: Sequence[NightRow]) -> None:
        self.reported: list[ChangeRow] = []
        self.mended: list[str] = []
        self._tonight = past.nights[-1].id
        self._place = {night.id: at for at, night in enumerate(past.nights)}
        self._since = self._place[base[-1].id] if base else len(past.nights)
        known = [row for row in look.known if row.kind in ("worse", "baseline")]
        self._open = [row for row in known if row.kind == "baseline" and row.recovered is None]
        self._known = {row.group for row in [*known, *look.reported] if self._is_known(row)}

    def _is_known(self, row: ChangeRow) -> bool:
        """Return whether a FAIL tonight is what `row` reported, and no news."""
        if row.kind == "better" or self._place[row.night] <= self._since:
            return False
        if row.recovered is None:
            return True
        # Nights of the regression are among those that the gate looks at.
        ago = len(self._place) - self._place[row.recovered]
        return row.kind == "worse" and ago < LAST_NIGHTS

    def result(self, result: GateResult) -> GateResult:
        """Return `result` with whether it is news, and report it where it is."""
        gate, group = result.gate, (result.gate.scenario, result.backend)
        if result.verdict.outcome == "PASS":
            return self._mended(result)
        if result.verdict.outcome != "FAIL" or group in self._known:
            return result
        self.reported.append(
            ChangeRow(
                *("baseline", *group, gate.phase, gate.metric),
                night=self._tonight,
                found=self._tonight,
                before=result.at_most,
                after=result.verdict.estimate or math.nan,
                p=result.verdict.p_fail or 0.0,
            )
        )
        return replace(result, is_news=True)

    def _mended(self, result: GateResult) -> GateResult:
        gate = result.gate
        key = (gate.scenario, result.backend, gate.phase, gate.metric)
        mine = [row for row in self._open if (row.scenario, row.backend, row.phase, row.metric) == key]
        if not mine:
            return result
        self.reported += [replace(row, recovered=self._tonight, recovery_found=self._tonight) for row in mine]
        self.mended.append(f"{result.name} keeps its limit again")
        return replace(result, is_recovered=True)
