"""Runs that have ended, measured once and kept: one at a time, so that no load beside it is disturbed."""

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from plimsoll.analysis.evidence.run import Observation, Observer
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.report import make_report
from plimsoll.analysis.report.runs import number_runs
from plimsoll.analysis.statistics.run import RunFigures, measure
from plimsoll.common.errors import DamagedFileError
from plimsoll.rundir.names import READ
from plimsoll.rundir.read import RunDirectory
from plimsoll.serve.inside import lies_inside

_MOST_RUNS, _MOST_REPORTS = 12, 3  # a report is some 5 MB
_Kept = TypeVar("_Kept")
Stamp = tuple[tuple[str, int, int], ...]


class Measuring:
    """Measures runs in the folder `root`."""

    def __init__(self, root: Path) -> None:
        self._root, self._lock = root, threading.Lock()
        self._runs: OrderedDict[Stamp, tuple[RunDirectory, RunFigures, Observation]] = OrderedDict()
        self._reports: OrderedDict[Stamp, bytes] = OrderedDict()

    def measured(self, paths: Sequence[Path]) -> list[MeasuredRun]:
        """Return the runs, numbered, as a report has them. Raises RunDirectoryError."""
        with self._lock:
            return number_runs(
                [_kept(self._runs, self._stamp(path), lambda: _measure(path), _MOST_RUNS) for path in paths]  # noqa: B023
            )

    def report(self, path: Path) -> bytes:
        """Return the report on a run; nothing is written into its folder. Raises PlimsollError."""
        with self._lock:
            return _kept(self._reports, self._stamp(path), lambda: _report(path), _MOST_REPORTS)

    def _stamp(self, path: Path) -> Stamp:
        """Return what changes when a run does; it is as well the check that none of it leads elsewhere."""
        found = [(str(path), 0, 0)]
        for name in READ:
            if not lies_inside(self._root, path / name):
                raise DamagedFileError(f"{path / name}: leads out of the folder that is served")
            try:
                facts = (path / name).stat()
            except OSError:
                continue
            found.append((name, facts.st_mtime_ns, facts.st_size))
        return tuple(found)


def _kept(kept: "OrderedDict[Stamp, _Kept]", stamp: Stamp, make: Callable[[], _Kept], most: int) -> _Kept:
    if stamp not in kept:
        kept[stamp] = make()
    kept.move_to_end(stamp)
    while len(kept) > most:
        kept.popitem(last=False)
    return kept[stamp]


def _measure(path: Path) -> tuple[RunDirectory, RunFigures, Observation]:
    run = RunDirectory.open(path)
    observer = Observer(run)
    figures = measure(run, compared=True, watch=observer.watch).condensed()
    return run, figures, observer.observation()


def _report(path: Path) -> bytes:
    with tempfile.TemporaryDirectory(prefix="plimsoll-serve-") as folder:
        return make_report([path], Path(folder) / "report.html").path.read_bytes()
