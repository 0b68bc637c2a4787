"""What runs now, as a browser follows it: a message a second on whatever runs, or on one run."""

import threading
from dataclasses import dataclass, field
from typing import Any

from plimsoll.analysis.page.chart import rounded
from plimsoll.common.errors import PlimsollError
from plimsoll.common.hostile import plotly_text, printable
from plimsoll.common.units import at_least, counted, milliseconds, seconds, significant
from plimsoll.lab.experiment.folder import ExperimentFolder
from plimsoll.lab.experiment.status.look import Watch
from plimsoll.lab.experiment.status.text import lines
from plimsoll.serve.catalogue import Catalogue
from plimsoll.serve.growing import Growing, Look, event_text
from plimsoll.serve.inside import lies_inside
from plimsoll.serve.items import Contents, ExperimentItem, RunItem, newest_first
from plimsoll.serve.seconds import KEPT_S, Point

Json = dict[str, Any]
_AGAIN_S = 5  # seconds that are sent again: late ones may have come in
_MOST_OPEN = 16  # runs that are read at once


@dataclass
class Viewer:
    """What one browser sees: the run that it picked (a key, empty: whatever runs), and how far it got."""

    picked: str = ""
    run: RunItem | None = None
    ended: bool = False
    sent_s: int = 0


@dataclass
class Following:
    """The runs that are read as they grow, shared by all who look at them."""

    catalogue: Catalogue
    _growing: dict[str, Growing] = field(default_factory=dict)
    _watches: dict[str, Watch] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, viewer: Viewer) -> Json:
        """Return the next message to a browser, and note in `viewer` what it has seen."""
        contents = self.catalogue.contents()
        running = contents.running()
        with self._lock:  # one look at a time: the load comes first
            self._forget(contents)
            begun = self._choose(viewer, contents, running)
            message: Json = {
                "running": [{"key": run.key, "name": _name(run)} for run in running],
                "begun": begun,
                "last": _ended(last) if (last := _last(contents)) else None,
                "run": None,
            }
            if viewer.run is not None:
                message["run"] = self._run(viewer, contents)
            return message

    def _choose(self, viewer: Viewer, contents: Contents, running: list[RunItem]) -> bool:
        """Choose the run to be shown; return whether it is another one."""
        before = viewer.run
        if viewer.picked:
            viewer.run = viewer.run or contents.runs.get(viewer.picked)
        elif running and (before is None or before.identity not in [run.identity for run in running]):
            viewer.run = running[0]
        if viewer.run is None or viewer.run is before:
            return False
        viewer.sent_s, viewer.ended = 0, False
        return True

    def _run(self, viewer: Viewer, contents: Contents) -> Json | None:
        shown = viewer.run
        assert shown is not None  # noqa: S101 the caller has one
        now = contents.runs.get(shown.key) or next(
            (run for run in contents.runs.values() if run.identity == shown.identity), None
        )
        if viewer.ended and now is not None:
            return {"ended": _ended(now)}
        ended = now is None or now.status != "running"
        try:
            growing = self._growing.get(shown.key) or Growing(
                self.catalogue.root, self.catalogue.path(now or shown)
            )
        except PlimsollError as error:
            return {"trouble": printable(str(error), 500)}
        if not ended:
            self._growing[shown.key] = growing
        found = growing.look(viewer.sent_s)
        viewer.sent_s = max(int(found.t_s) - _AGAIN_S, 0)
        viewer.ended = ended and now is not None
        return {
            **_about(shown, growing),
            **_figures(found),
            "status": self._status(contents.around(now or shown), ended),
            "ended": _ended(now) if ended and now else None,
        }

    def _status(self, experiment: ExperimentItem | None, ended: bool) -> list[str]:
        """Return what its experiment does, as `plimsoll lab status` says it."""
        if experiment is None or ended:
            return []
        folder = self.catalogue.path(experiment)
        try:
            if experiment.key not in self._watches:
                if not all(lies_inside(self.catalogue.root, path) for path in folder.glob("*.json*")):
                    return []
                self._watches[experiment.key] = Watch(ExperimentFolder(folder))
            return lines(self._watches[experiment.key].look())
        except (PlimsollError, OSError) as error:
            return [printable(str(error), 500)]

    def _forget(self, contents: Contents) -> None:
        running = {run.key for run in contents.running()}
        for key in [key for key in self._growing if key not in running]:
            del self._growing[key]
        while len(self._growing) > _MOST_OPEN:
            del self._growing[next(iter(self._growing))]
        if not running:
            self._watches.clear()


def _last(contents: Contents) -> RunItem | None:
    """Return the run that began last, of those that have ended."""
    return next((run for run in newest_first(list(contents.runs.values())) if run.status != "running"), None)


def _name(run: RunItem) -> str:
    return printable(f"{run.scenario}: {run.name}", 120)


def _about(run: RunItem, growing: Growing) -> Json:
    target = growing.facts.target
    return {
        "key": run.key,
        "name": _name(run),
        "place": printable(str(run.place), 200),
        "target": printable(target.url, 200) if target else "",
    }


def _figures(found: Look) -> Json:
    latest = found.points[-1] if found.points else None
    minute = found.points[-60:]
    done = sum(point.done for point in minute[-10:])
    lags = [point.lag_ms for point in minute if point.lag_ms is not None]
    return {
        "t_s": round(found.t_s, 1),
        "clock": seconds(found.t_s),
        "kept_s": KEPT_S,
        "p999": _p999(latest, found.timeout_ms),
        "rate": f"{significant(done / len(minute[-10:]))}/s" if minute else "–",
        "lag": milliseconds(max(lags, default=None)),
        "requests": f"{found.requests:,}",
        "failures": "–" if found.failures is None else f"{found.failures:,}",
        "seconds": [_cells(point) for point in found.points],
        "events": [[seconds(event.t_ns / 1e9), event_text(event)] for event in found.events],
        "spans": [
            [round(span.start_s, 1), round(span.stop_s, 1), plotly_text(span.name, 40)]
            for span in found.spans[-20:]
        ],
        "phases": [
            f"{printable(span.name, 60)}: since {seconds(span.start_s)}"
            for span in found.spans
            if span.stop_s >= found.t_s - 0.5 and span.stop_s > span.start_s
        ],
        "host": [[line.subject, line.name, line.now, line.least, line.most] for line in found.host],
    }


def _p999(latest: Point | None, timeout_ms: float | None) -> str:
    """Return the p99.9 of the last minute; one that is a failure's, at its time-out, is longer than that."""
    if latest is None or latest.p999_ms is None:
        return milliseconds(None)
    if timeout_ms is not None and latest.p999_ms >= timeout_ms:
        return at_least(milliseconds(timeout_ms))
    return milliseconds(latest.p999_ms)


def _cells(point: Point) -> list[float | int | None]:
    times = (point.slowest_ms, point.p999_ms, point.lag_ms)
    return [point.t_s, point.done, point.failed, *(None if ms is None else rounded(ms) for ms in times)]


def _ended(run: RunItem) -> Json:
    sent = f", {counted(run.requests, 'request')}" if run.requests is not None else ""
    return {"key": run.key, "text": f"{_name(run)}: {run.status}{sent}, p99.9 {milliseconds(run.p999_ms)}"}
