"""Decisions of the user: a new baseline, accepted changes, and what is no longer expected."""

import getpass
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from plimsoll.analysis.compare.gates import Gates
from plimsoll.analysis.regress.judge import chosen_nights, names_that_drop
from plimsoll.analysis.regress.nights import Decision, build_series, group_name
from plimsoll.analysis.regress.store import HistoryStore, now
from plimsoll.analysis.regress.tonight import judge_last_night, read_experiment
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable

_MOST_SHOWN = 20


@dataclass(frozen=True)
class DecisionOptions:
    """What is to be decided, why, and who decides it. `baseline` is None where none is to be set."""

    baseline: str | None
    accepts: bool
    drops: tuple[str, ...]
    note: str
    by: str

    def apply(self, history: HistoryStore, experiments: Sequence[str], gates: Gates | None) -> list[str]:
        """Decide it of `experiments`. Return what had no effect, a sentence each. Raises SettingsError."""
        if self.baseline is not None:
            self._set_baseline(history, experiments, self.baseline, gates)
        accepted = [self._accept(history, name) for name in experiments] if self.accepts else []
        if self.drops:
            self._drop(history, experiments)
        return (
            ["--accept: nothing was reported that is still to be accepted"]
            if accepted and not any(accepted)
            else []
        )

    def _accept(self, history: HistoryStore, experiment: str) -> bool:
        """Accept what was reported of `experiment`; return whether there was anything."""
        past = read_experiment(history, experiment)
        seen = [night for night in past.nights if night.findings is not None]  # others were just added
        if not seen:
            return False
        names = {night.id: night.name for night in past.nights}
        what = [
            f"{group_name(row.group)} since {names[row.night]}"
            for row in past.changes
            if not row.accepted and row.recovered is None and row.kind != "better"
        ]
        what += [
            f"{found.name} ({found.text.rstrip('.')})"
            for found in seen[-1].findings or ()
            if found.disqualifies
        ]
        if what:
            at, last = now(), seen[-1].id
            history.accept_changes(experiment, at)
            history.note_decision(
                experiment, self._decision("accept", "; ".join(dict.fromkeys(what)), last, at)
            )
            history.look_again([last])
        return bool(what)

    def _set_baseline(
        self, history: HistoryStore, experiments: Sequence[str], night: str, gates: Gates | None
    ) -> None:
        """Make `night` (its name, or `latest`) and those before it the baseline of those that have it."""
        done = 0
        for name in experiments:
            # What changed is found before it becomes the level.
            before = judge_last_night(history, name, gates)
            changed = max((at for each in before.series for at in each.changes), default=0) if before else 0
            nights = history.nights(name)
            chosen = chosen_nights(nights, night, changed)
            if chosen is not None:
                at = now()
                history.set_baseline(chosen, name)
                history.accept_changes(name, at)
                last = next(each.name for each in nights if each.id == chosen[-1])
                history.note_decision(name, self._decision("baseline", last, nights[-1].id, at))
                done += 1
        if not done:
            last_nights = [each.name for name in experiments for each in history.nights(name)][-5:]
            has = ", ".join(printable(each, 80) for each in last_nights) or "none"
            raise SettingsError(
                f"--set-baseline {printable(night, 80)}: this night does not exist; the last ones are: {has}"
            )

    def _drop(self, history: HistoryStore, experiments: Sequence[str]) -> None:
        pasts = [past for name in experiments if (past := read_experiment(history, name)).nights]
        known = {past.experiment: names_that_drop(past, build_series(past)) for past in pasts}
        for name in self.drops:
            mine = [past for past in pasts if name in known[past.experiment]]
            if not mine:
                there = dict.fromkeys(each for names in known.values() for each in names)
                has = ", ".join(printable(each, 80) for each in list(there)[:_MOST_SHOWN]) or "none"
                raise SettingsError(
                    f"--drop {printable(name, 80)}: there is nothing of this name; there are: {has}"
                )
            for past in mine:
                drop = self._decision("drop", name, past.nights[-1].id, now())
                history.note_decision(past.experiment, drop)

    def _decision(
        self, kind: Literal["accept", "baseline", "drop"], name: str, night: int, at: str
    ) -> Decision:
        return Decision(kind, name, night, at, self.by, self.note)


def read_decision_options(options: Mapping[str, Any]) -> DecisionOptions:
    """Return what is to be decided. Raises SettingsError with all problems."""
    baseline, accepts, drops = options["baseline"], options["accepts"], options["drops"]
    note, by = (options["note"] or "").strip(), (options["by"] or "").strip()
    problems = []
    if (accepts or drops) and not note:
        asked = "--accept" if accepts else "--drop"
        problems.append(f"{asked}: also say why, for those who read the history: --note TEXT")
    if not (accepts or drops or baseline is not None):
        problems += [
            f"{option}: belongs to --accept, --drop or --set-baseline"
            for option, value in (("--note", options["note"]), ("--by", options["by"]))
            if value is not None
        ]
    if problems:
        raise SettingsError("\n".join(problems))
    return DecisionOptions(baseline, accepts, tuple(drops), note, by or _login())


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
