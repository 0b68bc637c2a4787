"""The runs of either side: found, opened, measured, and in which order they were done."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from pathlib import Path
from unicodedata import normalize

from plimsoll.analysis.evidence.finding import FindingKind
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.hostile import printable
from plimsoll.rundir.facts import ExperimentRun, RunFacts
from plimsoll.rundir.find import find_runs, is_run, relative_name, runs_folder
from plimsoll.rundir.read import RunDirectory, read_facts

SLACK = timedelta(seconds=1)  # by which one run may begin before another has ended


@dataclass(frozen=True)
class UnreadableRun:
    """A run that cannot be read, and why; its facts, where these can."""

    facts: RunFacts | None = field(compare=False)
    why: str

    @property
    def scenario(self) -> str | None:
        """Which scenario it was of (hostile), where that is known."""
        return self.facts.scenario if self.facts else None


@dataclass(frozen=True)
class OpenedSide:
    """One side: what it is called (hostile), its runs, those that cannot be read.

    `beside` are the facts of all runs that lie there, those of other backends included.
    """

    name: str
    path: Path
    runs: list[RunDirectory]
    unreadable: list[UnreadableRun]
    beside: Mapping[Path, RunFacts] = field(default_factory=dict)


@dataclass(frozen=True)
class PartOfExperiment:
    """The runs of an experiment (its name is hostile) that lie in one place, or in two that share none.

    `there` are their numbers, of the `planned` that it was to have.
    """

    name: str
    paths: tuple[Path, ...]
    planned: int
    there: frozenset[int]

    @property
    def missing(self) -> list[int]:
        """The numbers of those that are not there."""
        return [number for number in range(1, self.planned + 1) if number not in self.there]


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its name (hostile), its runs, those that cannot be read."""

    name: str
    runs: list[MeasuredRun]
    unreadable: list[UnreadableRun]
    experiment: str | None = None

    def of(self, scenario: str) -> list[MeasuredRun]:
        """Return the runs of a scenario, repeat by repeat where they say which."""
        return [run for run in self.runs if run.scenario == scenario]

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that ran (hostile), each once, also of runs that cannot be read."""
        return list(dict.fromkeys(facts.scenario for facts in self._facts))

    @property
    def controls(self) -> set[str]:
        """Those of them that are the control experiment."""
        return {facts.scenario for facts in self._facts if facts.is_control}

    @property
    def _facts(self) -> list[RunFacts]:
        readable = [run.directory.facts for run in self.runs]
        return readable + [each.facts for each in self.unreadable if each.facts]


def open_sides(
    paths: Sequence[Path], baseline: str | None, candidate: str | None
) -> tuple[OpenedSide, OpenedSide]:
    """Open both sides: two paths, or one and the names of two backends in it. Raises RunDirectoryError."""
    if len(paths) == 1 and (baseline is None or candidate is None):
        which = _side_options(_backends_in(paths[0]))
        raise RunDirectoryError(f"{paths[0]}: is one side; give two, or say which backends: {which}")
    first, second = _open_side(paths[0], baseline, "baseline"), _open_side(paths[-1], candidate, "candidate")
    both = {run.path.resolve() for run in first.runs} & {run.path.resolve() for run in second.runs}
    if both:
        raise RunDirectoryError(f"{min(both)}: is on both sides: a run cannot be compared with itself")
    if first.name == second.name:
        names = [path.resolve().name for path in paths]
        names = names if names[0] != names[-1] else [str(path) for path in paths]
        first, second = replace(first, name=names[0]), replace(second, name=names[-1])
    return first, second


def find_experiments(sides: tuple[OpenedSide, OpenedSide]) -> list[PartOfExperiment]:
    """Return the experiments whose runs say which of how many they are, wherever they were copied to.

    What lies in two places is one experiment where both have its name, and no number is in both: those of two
    nights overlap.
    """
    found: dict[str, list[PartOfExperiment]] = {}
    for path, beside in {side.path.resolve(): side.beside for side in sides}.items():
        parts: dict[str, list[ExperimentRun]] = {}
        for facts in beside.values():
            if facts.experiment and facts.experiment.run is not None and facts.experiment.of is not None:
                parts.setdefault(facts.experiment.name, []).append(facts.experiment)
        for name, runs in parts.items():
            there = frozenset(run.run for run in runs if run.run is not None)
            part = PartOfExperiment(name, (path,), max(run.of or 0 for run in runs), there)
            found.setdefault(name, []).append(part)
    return [each for parts in found.values() for each in _join_parts(parts)]


def find_other_spellings(sides: tuple[OpenedSide, OpenedSide]) -> Iterator[tuple[list[str], str, str]]:
    """Yield the runs beside a side's that are called almost as it is, by what, and what the side is called.

    Names are almost the same if they differ in case, width, spaces, hyphens, dots and underscores alone, or,
    in the third of their letters at most, by one that is not ASCII: some look like others.
    """
    own = {side.name for side in sides}
    for side in sides:
        found: dict[str, list[str]] = {}
        for path, facts in side.beside.items():
            if facts.backend and facts.backend not in own and _looks_like(facts.backend, side.name):
                found.setdefault(facts.backend, []).append(relative_name(path))
        for backend, runs in found.items():
            yield runs, backend, side.name


def _looks_like(one: str, other: str) -> bool:
    first, second = (re.sub(r"[\s._-]", "", normalize("NFKC", name).casefold()) for name in (one, other))
    apart = [(a, b) for a, b in zip(first, second, strict=False) if a != b]
    return first == second or (
        len(first) == len(second)
        and 3 * len(apart) <= len(first)
        and not any(a.isascii() and b.isascii() for a, b in apart)
    )


def experiment_key(side: OpenedSide, experiments: Sequence[PartOfExperiment]) -> str | None:
    """Return what tells the experiment that all runs of a side are of from all others; None without one."""
    names = {run.facts.experiment.name if run.facts.experiment else None for run in side.runs}
    name = names.pop() if len(names) == 1 else None
    place = side.path.resolve()
    parts = [each for each in experiments if each.name == name and place in each.paths]
    return name and f"{parts[0].paths[0] if parts else place}: {name}"


def _join_parts(parts: list[PartOfExperiment]) -> list[PartOfExperiment]:
    if len(parts) < 2 or parts[0].there & parts[1].there:
        return parts
    one, other = parts
    planned = max(one.planned, other.planned)
    return [PartOfExperiment(one.name, (*one.paths, *other.paths), planned, one.there | other.there)]


def _open_side(path: Path, backend: str | None, side: str) -> OpenedSide:
    found = _find_directories(path)
    runs: list[RunDirectory] = []
    unreadable: list[UnreadableRun] = []
    beside: dict[Path, RunFacts] = {}
    for directory in found:
        facts = None
        try:
            facts = read_facts(directory)
            beside[directory] = facts
            if backend is None or facts.backend == backend:
                runs.append(RunDirectory.open(directory))
        except RunDirectoryError as error:
            if found == [path]:
                raise
            unreadable.append(UnreadableRun(facts, str(error)))
    names = sorted({facts.backend for facts in beside.values() if facts.backend})
    if backend is None and len(names) > 1:
        raise RunDirectoryError(
            f"{path}: holds runs of several backends; say which is the {side}: {_side_options(names)}"
        )
    if not runs and backend is not None and backend not in names:
        has = ", ".join(printable(name, 80) for name in names) or "none that has a name"
        raise RunDirectoryError(f"{path}: holds no run of the backend {printable(backend, 80)}; it has {has}")
    if not runs:
        raise RunDirectoryError("\n".join(each.why for each in unreadable))
    return OpenedSide(
        name=backend or (names[0] if names else path.resolve().name),
        path=path,
        runs=runs,
        unreadable=unreadable,
        beside=beside,
    )


def _find_directories(path: Path) -> list[Path]:
    """Return the run directories that `path` stands for: itself, those in it, or those of an experiment."""
    if is_run(path):
        return [path]
    if not path.is_dir():
        read_facts(path)  # says what is wrong with it
    found = find_runs(runs_folder(path, damaged=True), damaged=True)
    if not found:
        raise RunDirectoryError(
            f"{path}: is not a run directory and contains none; give a run directory, a folder of them, or "
            "an experiment's folder"
        )
    return found


def _backends_in(path: Path) -> list[str]:
    names = set()
    for directory in _find_directories(path):
        try:
            names.add(read_facts(directory).backend or "")
        except RunDirectoryError:
            continue
    return sorted(names - {""})


def _side_options(names: Sequence[str]) -> str:
    """Return the options that choose, with the names that there are."""
    shown = [printable(name, 80) for name in names[:8]]
    if len(shown) < 2:
        return "--baseline NAME --candidate NAME" + (f" (it has {shown[0]} only)" if shown else "")
    more = f"; there are {', '.join(shown)}" if len(shown) > 2 else ""
    return f"--baseline {shown[0]} --candidate {shown[1]}, or the other way round{more}"


@dataclass(frozen=True)
class RunPlace:
    """A run's place in time, as far as it is known; its name is hostile."""

    name: str
    repeat: int | str | None
    started_at: datetime | None
    ended_at: datetime | None
    number: int | None = None
    block: int | None = None

    @classmethod
    def of(cls, name: str, facts: RunFacts) -> "RunPlace":
        """Return the place of a run of that name."""
        number, block = (facts.experiment.run, facts.experiment.block) if facts.experiment else (None, None)
        return cls(name, facts.repeat, facts.started_at, facts.ended_at, number, block)


@dataclass(frozen=True)
class Order:
    """`pairs`: (baseline's, candidate's) places in their lists, repeat by repeat; None where there are none.

    `interleaved`: the sides alternated in time. `findings` say what is wrong with the order (hostile).
    `blocks`: the places of the baseline's and of the candidate's runs, two a side of each whole block; None
    where the order was not drawn in blocks.
    """

    pairs: list[tuple[int, int]] | None
    interleaved: bool
    findings: list[tuple[FindingKind, str]]
    blocks: tuple[list[int], list[int]] | None = None


def find_orders(baseline: Side, candidate: Side) -> dict[str, Order]:
    """Return how the runs of each scenario that both sides have lie in time."""
    return {
        scenario: find_order(
            [RunPlace.of(run.name, run.directory.facts) for run in baseline.of(scenario)],
            [RunPlace.of(run.name, run.directory.facts) for run in candidate.of(scenario)],
        )
        for scenario in baseline.scenarios
        if baseline.of(scenario) and candidate.of(scenario)
    }


def find_order(baseline: Sequence[RunPlace], candidate: Sequence[RunPlace]) -> Order:
    """Return how the runs of one scenario on two sides lie in time."""
    found = [(FindingKind.CLOCK, text) for text in _find_clock_faults([*baseline, *candidate])]
    sides = [(run, 0, at) for at, run in enumerate(baseline)]
    sides += [(run, 1, at) for at, run in enumerate(candidate)]
    instants = [run.started_at for run, _, _ in sides]
    if None in instants or len(set(instants)) < len(instants):
        what = "do not all say when they began" if None in instants else "say that they began at once"
        text = (
            f"Runs {what}, so their order is not known: what drifted meanwhile may count as the candidate's."
        )
        return Order(None, False, [*found, (FindingKind.ORDER, text)])
    sides.sort(key=lambda entry: entry[0].started_at or datetime.max)
    longest = max(len(list(streak)) for _, streak in groupby(side for _, side, _ in sides))
    interleaved = longest <= max(2, -(-min(len(baseline), len(candidate)) // 2))
    if (
        len(
            {side for _, side, _ in sides[: len(baseline)]} | {side for _, side, _ in sides[: len(candidate)]}
        )
        < 2
    ):
        first = "baseline" if sides[0][1] == 0 else "candidate"
        text = f"All runs of the {first} came first: what changed meanwhile counts as the candidate's."
        return Order(None, False, [*found, (FindingKind.ORDER, text)])
    blocks, waiting = _find_blocks(baseline, candidate)
    if blocks is not None:
        if waiting:
            text = f"Not judged until their block of four is whole: {', '.join(waiting)}."
            found.append((FindingKind.BLOCK_UNFINISHED, text))
        return Order(None, True, found, blocks)
    pairs = _pair_repeats(sides)
    if pairs is None:
        if not interleaved:
            text = "The sides hardly alternated in time: drift may favour one of them."
            found.append((FindingKind.ORDER, text))
        return Order(None, interleaved, found)
    firsts = {side for _, side, _ in sides[::2]}
    if len(pairs) > 1 and len(firsts) == 1:
        always = "baseline" if firsts == {0} else "candidate"
        text = f"The {always} came first in every repeat: steady drift favours one side."
        found.append((FindingKind.ORDER, text))
    return Order(pairs, True, found)


def _pair_repeats(sides: Sequence[tuple[RunPlace, int, int]]) -> list[tuple[int, int]] | None:
    """Return the pairs where every two runs in a row are both sides of one repeat."""
    if len(sides) % 2:
        return None
    found = []
    for (one, side, at), (other, other_side, other_at) in zip(sides[::2], sides[1::2], strict=True):
        if one.repeat is None or one.repeat != other.repeat or side == other_side:
            return None
        found.append((at, other_at) if side == 0 else (other_at, at))
    repeats = [run.repeat for run, side, _ in sides if side == 0]
    return found if len(set(repeats)) == len(repeats) else None


def _find_blocks(
    baseline: Sequence[RunPlace], candidate: Sequence[RunPlace]
) -> tuple[tuple[list[int], list[int]] | None, list[str]]:
    """Return the places of the runs of whole blocks, two a side in each, and the names of the later runs.

    None where a run is in no block, where fewer than two are whole, or where a later one is: what is missing
    in between may be what went wrong.
    """
    blocks: dict[int, tuple[list[int], list[int]]] = {}
    for side, runs in enumerate((baseline, candidate)):
        for at, run in enumerate(runs):
            if run.block is None:
                return None, []
            blocks.setdefault(run.block, ([], []))[side].append(at)
    in_order = [blocks[number] for number in sorted(blocks)]
    whole = [block for block in in_order if [len(side) for side in block] == [2, 2]]
    if len(whole) < 2 or whole != in_order[: len(whole)]:
        return None, []
    waiting = [
        runs[at].name
        for block in in_order[len(whole) :]
        for runs, places in zip((baseline, candidate), block, strict=True)
        for at in places
    ]
    return ([at for block in whole for at in block[0]], [at for block in whole for at in block[1]]), waiting


def _find_clock_faults(runs: Sequence[RunPlace]) -> list[str]:
    """Return what the clocks say that cannot be."""
    found = [
        f"{run.name} ended before it began: a clock was set meanwhile."
        for run in runs
        if run.started_at and run.ended_at and run.ended_at < run.started_at
    ]
    timed = sorted((run for run in runs if run.started_at), key=lambda run: run.started_at or datetime.max)
    for one, other in pairwise(timed):
        if one.ended_at and other.started_at and one.ended_at - other.started_at > SLACK:
            found.append(
                f"{other.name} began before {one.name} had ended: they disturbed each other, or "
                "the clocks disagree."
            )
    numbers = [run.number for run in timed if run.number is not None]
    if len(set(numbers)) == len(numbers) == len(runs) and numbers != sorted(numbers):
        found.append(
            "The runs began in another order than their experiment's: some were tried again later "
            "(--retry-set-aside), the clock was set meanwhile, or they were moved."
        )
    return found[:4]
