"""The runs of either side: found, opened, and named where they cannot be."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.hostile import printable
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.find import find_runs, is_run, runs_folder
from plimsoll.rundir.names import RUNS_FOLDER
from plimsoll.rundir.read import RunDirectory, read_facts


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

    `planned` is how many runs the experiment was to have, where the side is an experiment's folder, and
    `there` how many it has, those of other backends included.
    """

    name: str
    path: Path
    runs: list[RunDirectory]
    unreadable: list[UnreadableRun]
    planned: int | None = None
    there: int = 0


def open_sides(
    paths: Sequence[Path], baseline: str | None, candidate: str | None
) -> tuple[OpenedSide, OpenedSide]:
    """Open both sides: two paths, or one and the names of two backends in it. Raises RunDirectoryError."""
    if len(paths) == 1 and (baseline is None or candidate is None):
        raise RunDirectoryError(
            f"{paths[0]}: is one side; give two, or say which backends: {_which(_backends_in(paths[0]))}"
        )
    first, second = _open(paths[0], baseline, "baseline"), _open(paths[-1], candidate, "candidate")
    both = {run.path.resolve() for run in first.runs} & {run.path.resolve() for run in second.runs}
    if both:
        raise RunDirectoryError(f"{min(both)}: is on both sides: a run cannot be compared with itself")
    if first.name == second.name:
        names = [path.resolve().name for path in paths]
        names = names if names[0] != names[-1] else [str(path) for path in paths]
        first, second = replace(first, name=names[0]), replace(second, name=names[-1])
    return first, second


def _open(path: Path, backend: str | None, side: str) -> OpenedSide:
    found = _directories(path)
    runs: list[RunDirectory] = []
    unreadable: list[UnreadableRun] = []
    everything: list[RunFacts] = []
    for directory in found:
        facts = None
        try:
            facts = read_facts(directory)
            everything.append(facts)
            if backend is None or facts.backend == backend:
                runs.append(RunDirectory.open(directory))
        except RunDirectoryError as error:
            if found == [path]:
                raise
            unreadable.append(UnreadableRun(facts, str(error)))
    names = sorted({facts.backend for facts in everything if facts.backend})
    if backend is None and len(names) > 1:
        raise RunDirectoryError(
            f"{path}: holds runs of several backends; say which is the {side}: {_which(names)}"
        )
    if not runs and backend is not None and backend not in names:
        has = ", ".join(printable(name, 80) for name in names) or "none that has a name"
        raise RunDirectoryError(f"{path}: holds no run of the backend {printable(backend, 80)}; it has {has}")
    if not runs:
        raise RunDirectoryError("\n".join(each.why for each in unreadable))
    experiments = [facts.experiment for facts in everything if facts.experiment]
    planned = max((each.of or 0 for each in experiments), default=0)
    return OpenedSide(
        name=backend or (names[0] if names else path.resolve().name),
        path=path,
        runs=runs,
        unreadable=unreadable,
        planned=planned if planned and (path / RUNS_FOLDER).is_dir() else None,
        there=len({facts.together.run if facts.together else i for i, facts in enumerate(everything)}),
    )


def _directories(path: Path) -> list[Path]:
    """Return the run directories that `path` stands for: itself, those in it, or those of an experiment."""
    if is_run(path):
        return [path]
    if not path.is_dir():
        read_facts(path)  # says what is wrong with it
    found = find_runs(runs_folder(path, damaged=True), damaged=True)
    if not found:
        raise RunDirectoryError(
            f"{path}: is not a run directory and contains none; give a run directory, a folder of them, or "
            f"an "
            "experiment's folder"
        )
    return found


def _backends_in(path: Path) -> list[str]:
    names = set()
    for directory in _directories(path):
        try:
            names.add(read_facts(directory).backend or "")
        except RunDirectoryError:
            continue
    return sorted(names - {""})


def _which(names: Sequence[str]) -> str:
    """Return the options that choose, with the names that there are."""
    shown = [printable(name, 80) for name in names[:8]]
    if len(shown) < 2:
        return "--baseline NAME --candidate NAME" + (f" (it has {shown[0]} only)" if shown else "")
    more = f"; there are {', '.join(shown)}" if len(shown) > 2 else ""
    return f"--baseline {shown[0]} --candidate {shown[1]}, or the other way round{more}"
