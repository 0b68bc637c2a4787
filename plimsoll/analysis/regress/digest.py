"""From a run directory to what the history keeps of it. Its records are read once."""

from collections.abc import Callable

from plimsoll.analysis.comparing.runs import compared_run
from plimsoll.analysis.evidence.run import unfit
from plimsoll.analysis.regress.night import RunDigest
from plimsoll.analysis.regress.selection import SelectedRun
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.directory import RunDirectory
from plimsoll.rundir.events import saturation
from plimsoll.rundir.names import EVENTS_FILE, FACTS_FILE, REQUESTS_FILE, SUMMARY_FILE


def stamp_of(run: SelectedRun) -> str:
    """Return what changes when the run directory does; cheap."""
    parts = []
    for name in (FACTS_FILE, REQUESTS_FILE, SUMMARY_FILE, EVENTS_FILE):
        try:
            status = (run.path / name).stat()
            parts.append(f"{status.st_size}.{status.st_mtime_ns}")
        except OSError:
            parts.append("-")
    return " ".join(parts)


def digest_of(run: SelectedRun, progress: Callable[[int], None] = lambda _: None) -> RunDigest:
    """Return what is kept of `run`; of one that cannot be read, that it cannot."""
    stamp = stamp_of(run)
    try:
        directory = RunDirectory.open(run.path)
        compared = compared_run(directory, progress)
    except RunDirectoryError as error:
        return RunDigest(
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
    return RunDigest(
        night=run.night,
        facts=directory.facts,
        status=directory.status,
        levels=compared.levels,
        unfit=tuple(unfit(compared.evidence)),
        path=str(run.path),
        root=str(run.root),
        stamp=stamp,
        size_bytes=size_bytes(run),
        observation=compared.observation,
        events=tuple(each for each in directory.events if busy and each.name == busy.name and each.phase),
    )


def size_bytes(run: SelectedRun) -> int:
    """Return how much the run directory takes."""
    total = 0
    for each in run.path.rglob("*"):
        try:
            total += each.lstat().st_size
        except OSError:
            continue
    return total
