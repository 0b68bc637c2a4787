"""A run that is being measured: its phase and clock, and its figures so far."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from plimsoll.common.errors import RunDirectoryError
from plimsoll.lab.experiment.status.disturbance import Disks, Saturation
from plimsoll.lab.experiment.status.load import Load
from plimsoll.lab.experiment.status.model import Doing, LoadFigures
from plimsoll.lab.experiment.status.stretches import OVER, Stretch, stretch_at
from plimsoll.rundir.find import is_run, subfolders
from plimsoll.rundir.names import HOST_FILE

EVENTS_FILE = "lab-events.jsonl"  # of the lab, beside the run directories of an attempt


class RunningRun:
    """Reads the folder of an attempt as it grows."""

    def __init__(
        self,
        attempt: Path,
        stretches: Sequence[Stretch],
        begins_s: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """`begins_s`: the second at which a member begins, by its name, if not with the run."""
        self.attempt, self._stretches, self._begins_s = attempt, stretches, begins_s
        self._loads: dict[Path, Load] = {}
        self._send, self._disks = Saturation(attempt / EVENTS_FILE), Disks(attempt / HOST_FILE)

    def look(self, now: datetime, doing: Doing) -> None:
        """Put into `doing` what is known of the run at the instant `now`."""
        edges_s = [one.stop_s for one in self._stretches if one.stop_s is not None]
        for path in run_directories(self.attempt):
            if path not in self._loads:
                self._loads[path] = Load(path, edges_s)
        started = [at for load in self._loads.values() if (at := load.started_at)]
        doing.disks = self._disks.look()
        if not started:
            return
        t_s = max((now - min(started)).total_seconds(), 0.0)
        stretch = stretch_at(self._stretches, t_s)
        doing.phase, doing.phase_s = stretch.name, t_s - stretch.start_s
        doing.phase_of_s = None if stretch.stop_s is None else stretch.stop_s - stretch.start_s
        doing.run_s = t_s
        doing.run_of_s = self._stretches[-1].start_s if self._stretches[-1].name == OVER else None
        doing.load = [self._looked_at(path, load, t_s) for path, load in self._loads.items()]
        doing.send = self._send.look(t_s)

    def _looked_at(self, path: Path, load: Load, t_s: float) -> LoadFigures:
        figures = load.look(t_s)
        begins_s = self._begins_s.get(path.parent.name)
        if begins_s is not None and t_s < begins_s:
            figures.waits_s = begins_s - t_s
        return figures


def run_directories(attempt: Path) -> Iterator[Path]:
    """Yield the run directories of an attempt: of one run, or of the members of one."""
    try:
        for path in subfolders(attempt):
            if is_run(path):
                yield path
            else:
                yield from (member for member in subfolders(path) if is_run(member))
    except RunDirectoryError:  # it was moved away meanwhile
        return
