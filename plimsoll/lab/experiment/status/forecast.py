"""When an experiment will end: by the times of its plan, corrected by those of what is done. Pure.

Each part of a run has an estimate: a first guess counts as one observation, as each that is done does. A part
that takes longer than its estimate raises it while it lasts, so that the end moves on evenly.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from plimsoll.lab.clones import find_driver
from plimsoll.lab.experiment.design import Design, preconditioned_rigs
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.lab.experiment.volumes import is_finished
from plimsoll.lab.fileio.measure import BenchCases, written_bytes
from plimsoll.lab.fileio.precondition import WINDOW, PreconditionSettings
from plimsoll.rundir.volumes import FsyncCase, VolumeRound, last_filling

# Rough: a small site on a disk that is not slow.
MAKE_S, BEFORE_S, AFTER_S, REMOVE_S = 40.0, 12.0, 3.0, 5.0
_NOT_OURS_S = 1.0  # where there is nothing to make, to restart or to remove
_CELL_S = 1.0  # of fileio, beyond the time that is measured
_FILES_BYTES_PER_S = 200e6
FILL_BYTES_PER_S = 200e6  # a guess
_ROUND_S = 1.0  # beyond the time that is measured
Part = Literal["make", "cell", "fsync", "before", "load", "after"]
Line = dict[str, Any]
Spent = dict[Part, list[tuple[str, float]]]  # by the name of the run, or of the backend that was made
_PARTS: dict[str, tuple[Part, set[str]]] = {  # a line that begins a part, and those that end it
    "making": ("make", {"made"}),
    "fileio cell": ("cell", {"fileio cell", "fileio files", "fsync cell", "fileio ended"}),
    "fsync cell": ("fsync", {"fsync cell", "fileio ended"}),
    "run begun": ("before", {"load begun"}),
    "load begun": ("load", {"load ended"}),
    "load ended": ("after", {"run finished"}),
}
_NO_CELLS: Mapping[str, BenchCases] = {}
_NO_FILLINGS: Mapping[str, float] = {}
PARTS: tuple[Part, ...] = ("before", "load", "after")


@dataclass(frozen=True)
class OpenPart:
    """The part that is being done, of a run or of making a rig, and for how long."""

    part: Part
    name: str
    elapsed_s: float


class Estimates:
    """The estimates of all parts of the runs of a plan."""

    def __init__(self, plan: Design, spent: Spent, now: OpenPart | None) -> None:
        self.plan, self._spent = plan, spent
        self._longer: tuple[Part, str, float] | None = None
        if now is not None:
            estimate_s = self.of(now.part, now.name)
            if estimate_s is not None and now.elapsed_s > estimate_s:
                self._longer = (now.part, now.name, now.elapsed_s)

    def of(self, part: Part, name: str) -> float | None:
        """Return the seconds of a part: `name` is a run's, or a rig's to be made. None if unknown."""
        run = self.plan.runs.get(name)
        value = self._guess(part, name, run)
        for alike in self._levels(name, run, part):
            took = [took_s for other, took_s in self._observed(part) if alike(other)]
            if took:
                value = (sum(took) + (value or 0.0)) / (len(took) + (value is not None))
        return value

    def run_s(self, run: PlannedRun) -> float | None:
        """Return the seconds of a whole run."""
        return add_known(self.of(part, run.name) for part in PARTS)

    def _observed(self, part: Part) -> Iterable[tuple[str, float]]:
        yield from self._spent[part]
        if self._longer and self._longer[0] == part:
            yield self._longer[1], self._longer[2]

    def _guess(self, part: Part, name: str, run: PlannedRun | None) -> float | None:
        if part in ("cell", "fsync") and (fileio := self.plan.lab.fileio):
            measured = fileio.fsync if part == "fsync" and fileio.fsync else fileio
            return measured.time_s + _CELL_S
        variant = self.plan.variants[run.backend] if run else self.plan.rigs[name]
        if part == "load" and run:
            return variant.lab.duration_s(variant.lab.scenario(run.scenario))
        ours = find_driver(variant.backend.clone).is_ours
        guess_s = {"make": MAKE_S, "before": BEFORE_S}.get(part, AFTER_S) if ours else _NOT_OURS_S
        return guess_s + (variant.lab.limits.settle_s if part == "before" else 0.0)

    def _levels(self, name: str, run: PlannedRun | None, part: Part) -> list[Callable[[str], bool]]:
        """Return what is alike, from the widest to the run itself."""
        plan = self.plan
        if run is None:
            return [lambda _: True, lambda other: other == name]

        def same(of: Callable[[PlannedRun], object]) -> Callable[[str], bool]:
            return lambda other: other in plan.runs and of(plan.runs[other]) == of(run)

        widest = [same(lambda one: one.scenario)] if part == "load" else [same(lambda _: 0), same(plan.rig)]
        return [*widest, same(lambda one: (one.scenario, one.backend))]


def left_s(
    plan: Design,
    left: Sequence[PlannedRun],
    made: set[str],
    spent: Spent,
    now: OpenPart | None,
    cells: Mapping[str, BenchCases] = _NO_CELLS,
    filling_s: Mapping[str, float] = _NO_FILLINGS,
) -> float | None:
    """Return the seconds until the end; None where it depends on a scenario that no run has timed yet.

    `left` are the runs that are to be done, with the one that is being done; `made` the rigs that stand;
    `cells` what is to be measured of their volumes; `filling_s` the seconds until these are full and used.
    """
    estimates = Estimates(plan, spent, now)
    seconds: list[float | None] = []
    for run in left:
        if now is None or now.name != run.name:
            seconds.append(estimates.run_s(run))
            continue
        # Of the run that is being done: the rest of its open part, and the parts after it.
        estimate_s = estimates.of(now.part, run.name)
        seconds.append(None if estimate_s is None else max(estimate_s - now.elapsed_s, 0.0))
        seconds += [estimates.of(part, run.name) for part in PARTS[PARTS.index(now.part) + 1 :]]
    standing = made | {plan.rig(run) for run in left if now and now.name == run.name}
    seconds += [_volume_s(estimates, rig, lacking, now) for rig, lacking in cells.items()]
    seconds += filling_s.values()
    for rig in ({plan.rig(run) for run in left} | cells.keys()) - standing:
        spent_s = now.elapsed_s if now and now.name == rig else 0.0
        seconds.append(max((estimates.of("make", rig) or 0.0) - spent_s, 0.0))
    ours = [rig for rig, variant in plan.rigs.items() if find_driver(variant.backend.clone).is_ours]
    return add_known([*seconds, REMOVE_S * len(ours)])


def _volume_s(estimates: Estimates, rig: str, cells: BenchCases, now: OpenPart | None) -> float:
    """Return the seconds until these cells are measured; of the open one only its rest counts."""
    fileio = estimates.plan.lab.fileio
    if fileio is None:
        return 0.0
    seconds = 0.0
    for measured in fileio.parts:
        part: Part = "cell" if measured is fileio else "fsync"
        left = [cell for cell in cells if isinstance(cell, FsyncCase) == (part == "fsync")]
        each_s = (estimates.of(part, rig) or 0.0) if left else 0.0
        begun = now is not None and now.part == part and now.name == rig
        seconds += len(left) * each_s - (min(now.elapsed_s, each_s) if now and begun else 0.0)
        here = left[:1] if begun else []  # whose files are written
        seconds += (written_bytes(measured, left) - written_bytes(measured, here)) / _FILES_BYTES_PER_S
    return seconds


def add_known(seconds: Iterable[float | None]) -> float | None:
    """Return the sum; None if a part is unknown. Pure."""
    total_s = 0.0
    for one_s in seconds:
        if one_s is None:
            return None
        total_s += one_s
    return total_s


def precondition_s(
    plan: Design, every: Sequence[VolumeRound], now: tuple[str, float] | None, among: set[str] | None = None
) -> dict[str, float]:
    """Return the seconds until each volume is filled and steady, by rig; of those in `among`, if given.

    `now` is the rig that a filling or round is being done on, and for how long. How large a disk is that
    exists, is unknown before: then its filling is not counted.
    """
    if (wanted := plan.lab.precondition) is None:
        return {}
    found = {}
    for rig in preconditioned_rigs(plan.lab):
        if among is not None and rig not in among:
            continue
        disk = plan.rigs[rig].backend.disk
        size_bytes = getattr(disk, "size_bytes", 0)
        open_s = now[1] if now and now[0] == rig else 0.0
        found[rig] = _left_s(wanted, last_filling(every, rig), size_bytes, open_s)
    return found


def _left_s(
    wanted: PreconditionSettings, rounds: Sequence[VolumeRound], size_bytes: int, open_s: float
) -> float:
    if is_finished(rounds, wanted):
        return 0.0
    fill_s = 0.0 if rounds else size_bytes * wanted.fill_percent / 100 / FILL_BYTES_PER_S
    round_s = wanted.round_s + _ROUND_S
    count = max(WINDOW - (rounds[-1].round if rounds else 0), 1)
    return fill_s + count * round_s - min(open_s, round_s if rounds else fill_s)


@dataclass
class ExperimentProgress:
    """The progress of an experiment, from its journal. Unknown lines, of other versions, are ignored."""

    begun_at: datetime | None = None
    ended_at: datetime | None = None
    last: Line = field(default_factory=dict)  # the last line that began or ended something
    last_at: datetime | None = None
    step: str | None = None  # the heading of the steps that are being done
    made: set[str] = field(default_factory=set)  # rigs
    rigs: dict[str, str] = field(default_factory=dict)  # by the variant that runs on it
    tries: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    failures: list[tuple[Line, datetime, str | None]] = field(default_factory=list)
    not_measured: dict[str, str] = field(default_factory=dict)  # volumes whose fileio failed, and why
    attempts: dict[str, str] = field(default_factory=dict)
    spent: Spent = field(default_factory=lambda: {part: [] for part in get_args(Part)})

    def elapsed_s(self, now: datetime) -> float:
        """Return the seconds since the last line that began or ended something."""
        return max((now - self.last_at).total_seconds(), 0.0) if self.last_at else 0.0

    def add(self, line: Line) -> None:
        """Take the next line of the journal."""
        what, at = line.get("what"), _instant(line.get("at"))
        if not isinstance(what, str) or at is None:
            return
        run, backend = str(line.get("run", "")), str(line.get("backend", ""))
        if what == "step":
            self.step = str(line.get("says", ""))
            return
        if what == "attempt":
            self.attempts[run] = str(line.get("attempt", ""))
            return
        self._measure(what, at, run or backend)
        self.last, self.last_at, self.step = line, at, None
        if what == "begun":
            self.begun_at, self.ended_at, self.made = self.begun_at or at, None, set()
            self.not_measured = {}
        elif what == "ended":
            self.ended_at = at
        elif what == "made":
            self.made.add(backend)
        elif what == "fileio failed":
            self.not_measured[backend] = str(line.get("why", ""))
        elif what == "run begun":
            self.tries[run] += 1
            self.attempts.pop(run, None)
        elif what == "run failed":
            self.made.discard(self.rigs.get(backend, backend))
            self.failures.append((line, at, self.attempts.get(run)))

    def _measure(self, what: str, at: datetime, name: str) -> None:
        part, ends = _PARTS.get(str(self.last.get("what")), (None, set[str]()))
        if part and what in ends and self.last_at:
            self.spent[part].append((name, max((at - self.last_at).total_seconds(), 0.0)))


def _instant(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return None
