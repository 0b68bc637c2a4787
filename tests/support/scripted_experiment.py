"""An experiment that only writes its journal, by a clock of its own."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from plimsoll.lab.experiment.design import plan_runs
from plimsoll.lab.experiment.folder import make_folder
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.status.watch import Status, StatusReader

STARTS = datetime(2026, 11, 22, 20, 0, tzinfo=UTC)
PHASES = {"before_s": 60, "during_s": 120, "after_s": 60}


def lab_of(out: Path, open_end: bool = False) -> Lab:
    """Return an experiment of eight runs on two clones that the lab makes."""
    disk = {"kind": "folder", "path": "/tank"}
    return Lab.model_validate(
        {
            "name": "scripted",
            "out": str(out),
            "backends": [
                {"name": name, "disk": disk, "clone": {"driver": "compose", "port": port}}
                for name, port in (("one", 8091), ("two", 8092))
            ],
            "scenarios": [{"scenario": "replay", "options": {"log": "access.log"}}],
            "phases": {"during_s": None} if open_end else PHASES,
        }
    )


class ScriptedExperiment:
    """Eight runs whose parts take what they are told to, in seconds."""

    def __init__(self, out: Path, open_end: bool = False, **took_s: float) -> None:
        self.folder = make_folder(lab_of(out, open_end))
        self._runs = plan_runs(self.folder.settings())
        self._took_s = {"make": 40.0, "before": 14.0, "load": 245.0, "after": 3.0} | took_s
        self.ended_at = STARTS

    def ends_seen(self, every_s: float) -> list[datetime]:
        """Return the ends that looks see until the experiment has ended."""
        return [look.ends_at for look in self.looks(every_s) if look.ends_at is not None]

    def looks(self, every_s: float) -> list[Status]:
        """Return the looks of somebody who looks every so many seconds."""
        now = STARTS
        watch = StatusReader(self.folder, lambda: now)
        found = []
        with ExitStack() as stack:
            stack.enter_context(self.folder.journal.lock())
            for at, line in self._script():
                while now < at:
                    found.append(watch.read())
                    now = min(now + timedelta(seconds=every_s), at)
                self._note(at, line)
        self.ended_at = now
        return found

    def _note(self, at: datetime, line: dict[str, str]) -> None:
        with self.folder.journal.path.open("a") as file:
            file.write(json.dumps({"at": at.isoformat(), **line}) + "\n")
        if line["what"] == "run finished":
            run = self.folder.path / "runs" / line["run"]
            run.mkdir()
            (run / "run.json").touch()

    def _script(self) -> Iterator[tuple[datetime, dict[str, str]]]:
        at, made = STARTS, set[str]()
        yield at, {"what": "begun"}
        for run in self._runs:
            if run.backend not in made:
                made.add(run.backend)
                yield at, {"what": "making", "backend": run.backend}
                at += timedelta(seconds=self._took_s["make"])
                yield at, {"what": "made", "backend": run.backend}
            of = {"run": run.name, "backend": run.backend}
            yield at, {"what": "run begun", **of}
            for part, ended in (("before", "load begun"), ("load", "load ended"), ("after", "run finished")):
                at += timedelta(seconds=self._took_s[part])
                yield at, {"what": ended, **of}
        yield at, {"what": "removing"}
        yield at + timedelta(seconds=5), {"what": "ended"}
