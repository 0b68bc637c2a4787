"""From a run directory to what the history keeps of it. Its records are read once."""

from collections.abc import Callable

from analysis.comparing.levels import levels_of
from analysis.comparing.runs import ComparedRun, unfit
from analysis.errors import RunDirectoryError
from analysis.events import saturation
from analysis.history.finding import FoundRun
from analysis.history.night import Kept
from analysis.records import RunDirectory


def stamp_of(run: FoundRun) -> str:
    """Return what changes when the run directory does; cheap."""
    parts = []
    for name in ("run.json", "requests.npy", "summary.json", "events.jsonl"):
        try:
            status = (run.path / name).stat()
            parts.append(f"{status.st_size}.{status.st_mtime_ns}")
        except OSError:
            parts.append("-")
    return " ".join(parts)


def summed(run: FoundRun, progress: Callable[[int], None] = lambda _: None) -> Kept:
    """Return what is kept of `run`; of one that cannot be read, that it cannot."""
    stamp = stamp_of(run)
    try:
        directory = RunDirectory.open(run.path)
        compared = ComparedRun(directory, levels_of(directory, progress))
    except RunDirectoryError as error:
        return Kept(
            night=run.night,
            facts=run.facts,
            status=run.facts.status,
            levels=None,
            unfit=(f"cannot be read: {error}",),
            path=str(run.path),
            root=str(run.root),
            stamp=stamp,
            size_bytes=size_bytes(run),
        )
    busy = saturation(directory.events)
    return Kept(
        night=run.night,
        facts=directory.facts,
        status=directory.status,
        levels=compared.levels,
        unfit=tuple(unfit(compared)),
        path=str(run.path),
        root=str(run.root),
        stamp=stamp,
        size_bytes=size_bytes(run),
        events=tuple(each for each in directory.events if busy and each.name == busy.name and each.phase),
    )


def size_bytes(run: FoundRun) -> int:
    """Return how much the run directory takes."""
    total = 0
    for each in run.path.rglob("*"):
        try:
            total += each.lstat().st_size
        except OSError:
            continue
    return total
