"""Looks: on which runs, by which gates and plan, it was decided; remembered beside the runs and by the user.

Runs are known by the sums of their records, so that neither a copy nor another folder makes them new. What is
remembered lies in `looks.json` of the candidate's folder, and below `$XDG_STATE_HOME/plimsoll`.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

from plimsoll.analysis.compare.gates import Gates
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.statistics.permutation import error_of_look
from plimsoll.common.errors import PlimsollError, RunDirectoryError
from plimsoll.common.files import read_regular, replace_text
from plimsoll.common.units import significant
from plimsoll.rundir.find import is_run
from plimsoll.rundir.names import RUNS_FOLDER

LOOKS_FILE = "looks.json"
FORMAT = 1
_MOST_BYTES = 64 << 20
Looks = Literal["end", "blocks"]


@dataclass(frozen=True)
class Plan:
    """So many `runs` a side are planned, with one look at their `end`, or one after each of their blocks."""

    runs: int
    looks: Looks

    def __str__(self) -> str:
        when = "one look at its end" if self.looks == "end" else "a look after each block"
        return f"{self.runs} runs a side with {when}"


@dataclass(frozen=True)
class DecisionLook:
    """The runs of both sides that were decided on, by their identity, by which gates, and when first.

    `gates` is their digest. Older versions wrote neither that nor the instant. `plan` is the one that it was
    a look of, and `done` the runs a side that were there; None where no number of runs was stated.
    """

    baseline: frozenset[str]
    candidate: frozenset[str]
    gates: str | None = None
    at: datetime | None = None
    plan: Plan | None = None
    done: int = 0

    def continues(self, other: "DecisionLook") -> bool:
        """Return whether it asks again what `other` asked: both sides share runs with it."""
        return bool(self.baseline & other.baseline) and bool(self.candidate & other.candidate)

    @property
    def runs(self) -> tuple[frozenset[str], frozenset[str]]:
        """The runs of both sides."""
        return self.baseline, self.candidate

    def as_json(self) -> dict[str, object]:
        """Return what the files have of it."""
        return {
            "baseline": sorted(self.baseline),
            "candidate": sorted(self.candidate),
            "gates": self.gates,
            "at": self.at and f"{self.at:%Y-%m-%dT%H:%M:%S.%fZ}",
            "plan": self.plan and {"runs": self.plan.runs, "looks": self.plan.looks, "done": self.done},
        }


@dataclass(frozen=True)
class KnownLooks:
    """A look, and the known ones at runs of its baseline, the first one first; it may be one of them."""

    look: DecisionLook
    known: tuple[DecisionLook, ...] = ()

    @property
    def number(self) -> int:
        """Which look at growing data it is: 1, and one more for each other set of its runs seen earlier.

        The same runs again are the same look.
        """
        sets = list(dict.fromkeys(each.runs for each in self._of_candidate))
        return 1 + len(sets[: sets.index(self.look.runs)] if self.look.runs in sets else sets)

    @property
    def gates(self) -> int:
        """How many sets of gates these very runs were judged by, with its own; of a plan, at any look."""
        here = (each for each in self._of_candidate if self.look.plan or each.runs == self.look.runs)
        return len({each.gates for each in (self.look, *here) if each.gates})

    @property
    def candidates(self) -> int:
        """How many candidates were compared with runs of this baseline, with its own."""
        groups: list[frozenset[str]] = []  # of runs that are of one candidate
        for look in (self.look, *self.known):
            joined = [group for group in groups if look.candidate & group]
            groups = [group for group in groups if group not in joined]
            groups.append(look.candidate.union(*joined))
        return len(groups)

    @property
    def earlier(self) -> list[DecisionLook]:
        """The looks at runs of this candidate, but those at these very runs by these gates."""
        own = (self.look.runs, self.look.gates)
        return [each for each in self._of_candidate if (each.runs, each.gates) != own]

    def is_chosen_late(self, written_at: datetime) -> bool:
        """Return whether gates that were written then are younger than a look at the candidate by others."""
        asked = [each.at for each in self._of_candidate if each.gates == self.look.gates and each.at]
        others = [each.at for each in self._of_candidate if each.gates != self.look.gates and each.at]
        return bool(others) and min([written_at, *asked]) > min(others)

    @property
    def _of_candidate(self) -> list[DecisionLook]:
        return [each for each in self.known if self.look.continues(each)]


def look_at(
    baseline: Sequence[MeasuredRun],
    candidate: Sequence[MeasuredRun],
    gates: Gates,
    plan: Plan | None = None,
    done: int = 0,
) -> DecisionLook:
    """Return the look at these runs by these gates, at this instant, of a plan of which so much is done."""
    limits = gates.model_dump(mode="json", include={"confidence", "answers", "gates"})
    return DecisionLook(
        frozenset(map(run_identity, baseline)),
        frozenset(map(run_identity, candidate)),
        sha256(json.dumps(limits, sort_keys=True).encode()).hexdigest(),
        datetime.now(UTC),
        plan,
        done,
    )


def run_identity(run: MeasuredRun) -> str:
    """Return what tells a run from all others: the sum of its records, else its name and start."""
    return run.records_sha256 or f"{run.name} {run.started_at}"


def remember_look(look: DecisionLook, folder: Path) -> tuple[KnownLooks, list[str]]:
    """Remember a look in the folder of the candidate's runs, and by the user, and return what is known of it.

    Each of both places learns what the other knows of these runs. What is returned too is why one of them
    cannot be used. Raises RunDirectoryError of a damaged file beside the runs.
    """
    beside = _file_beside(folder)
    known = _read_looks(beside) if beside else []
    problems: list[str] = []
    try:
        own = _state_file()
        own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = _exchange(own, look, known, mode=0o600)
    except (OSError, RunDirectoryError, RuntimeError) as error:  # without a home, or one that is read only
        problems.append(_explain(error))
    if beside:
        try:
            known = _exchange(beside, look, known)
        except OSError as error:
            problems.append(_explain(error))
    return KnownLooks(look, tuple(known)), problems


def recall_looks(folder: Path) -> list[DecisionLook]:
    """Return all looks that are remembered beside the candidate's runs in `folder`, and by the user.

    Raises RunDirectoryError of a damaged file beside the runs.
    """
    beside = _file_beside(folder)
    known = _read_looks(beside) if beside else []
    with suppress(RunDirectoryError, RuntimeError):  # `remember_look` says so
        known = _merge([*known, *_read_looks(_state_file())])
    return known


def _file_beside(folder: Path) -> Path | None:
    if folder.name == RUNS_FOLDER:
        folder = folder.parent  # an experiment's folder stands for its runs
    return None if is_run(folder) else folder / LOOKS_FILE


def find_look_findings(
    looks: KnownLooks, written_at: datetime | None, forgotten: Sequence[str], holds_if_chosen: bool | None
) -> Iterator[Finding]:
    """Yield what earlier looks mean for this one, and why it could not be written down.

    The gates were written at `written_at`. `holds_if_chosen`: whether a PASS also holds for a
    candidate that was chosen among all of them; None without a PASS.
    """
    if looks.number > 1 and looks.look.plan is None:
        share = significant(100 * error_of_look(1, looks.number), 2)
        text = (
            f"This is look {looks.number} at these runs, which were decided on before when they were fewer: "
            f"it may make {share} % of the errors that are allowed."
        )
        yield Finding(FindingKind.ANOTHER_LOOK, text)
    late = ", and these were written after that" if written_at and looks.is_chosen_late(written_at) else ""
    if looks.gates > 1:
        text = (
            f"These very runs were judged by {looks.gates} sets of gates, with these{late}: of many, some "
            f"pass by chance, so each may make 1/{looks.gates} of the errors that are allowed."
        )
        yield Finding(FindingKind.OTHER_GATES, text)
    elif late:
        text = f"The candidate was judged by other gates before, when it had fewer runs{late}."
        yield Finding(FindingKind.OTHER_GATES, text)
    if looks.candidates > 1:
        chosen = {
            None: "",
            True: " The PASS holds for the one that is chosen among them, too.",
            False: " For the one that is chosen among them the PASS would not be sure.",
        }
        text = (
            f"Runs of this baseline were compared with {looks.candidates} candidates, with this one, and the "
            f"level of a verdict is its own.{chosen[holds_if_chosen]}"
        )
        yield Finding(FindingKind.OTHER_CANDIDATES, text)
    for why in forgotten:
        yield Finding(FindingKind.LOOK_NOT_REMEMBERED, f"This look was not remembered: {why}.")


def _state_file() -> Path:
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():  # the specification has relative ones ignored
        state = Path.home() / ".local/state"
    return state / "plimsoll" / LOOKS_FILE


def _exchange(
    path: Path, look: DecisionLook, known: Sequence[DecisionLook], mode: int | None = None
) -> list[DecisionLook]:
    """Add `known` and `look` to the file `path`; return what it and `known` have of the baseline's runs.

    Nobody else writes it meanwhile, and it is replaced whole. Raises OSError, and RunDirectoryError of a
    damaged one.
    """
    with _locked(path.parent):
        there = _read_looks(path)
        related = [each for each in _merge([*known, *there]) if each.baseline & look.baseline]
        if len(every := _merge([*there, *related, look])) > len(there):
            text = json.dumps({"format": FORMAT, "looks": [each.as_json() for each in every]}, indent=1)
            replace_text(path, f"{text}\n", mode=mode)
    return related


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _merge(looks: Sequence[DecisionLook]) -> list[DecisionLook]:
    """Return each once, at its first instant, in the order of time; those of an unknown one come first."""
    found: dict[object, DecisionLook] = {}
    for each in sorted(looks, key=lambda look: look.at.timestamp() if look.at else 0.0):
        found.setdefault((each.runs, each.gates), each)
    return list(found.values())


def _read_looks(path: Path) -> list[DecisionLook]:
    try:
        found = json.loads(read_regular(path, _MOST_BYTES))
        if found["format"] != FORMAT:
            raise ValueError("another format")
        return [_check_look(each) for each in found["looks"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, PlimsollError):
        raise RunDirectoryError(
            f"{path}: cannot be read, so it is unknown how often these runs were decided on; put it back, or "
            "remove it if this is the first time"
        ) from None


def _check_look(found: Mapping[str, object]) -> DecisionLook:
    gates, at = found.get("gates"), found.get("at")
    if not isinstance(gates, str | None) or not isinstance(at, str | None):
        raise TypeError("no text")
    instant = datetime.fromisoformat(at).astimezone(UTC) if at else None
    plan, done = _check_plan(found.get("plan"))
    names = _check_names(found["baseline"]), _check_names(found["candidate"])
    return DecisionLook(*names, gates, instant, plan, done)


def _check_plan(found: object) -> tuple[Plan | None, int]:
    if found is None:
        return None, 0
    if not isinstance(found, dict) or found["looks"] not in get_args(Looks):
        raise ValueError("no plan")
    runs, done = found["runs"], found["done"]
    if not isinstance(runs, int) or not isinstance(done, int):
        raise TypeError("no numbers")
    return Plan(runs, found["looks"]), done


def _check_names(names: object) -> frozenset[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("no list of runs")
    return frozenset(names)


def _explain(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return str(error).rstrip(".")
