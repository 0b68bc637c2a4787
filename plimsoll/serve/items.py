"""What lies in a results folder: runs, experiments, documents, histories. Pure; names are hostile."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal["report", "comparison", "sign-off", "nights"]


def key_of(place: PurePosixPath) -> str:
    """Return by what an address names the thing at `place` in the folder: the same as long as it lies there.

    It is no path, so that nothing but what was found can be asked for.
    """
    return hashlib.sha256(str(place).encode("utf-8", "surrogateescape")).hexdigest()[:20]


@dataclass(frozen=True)
class Item:
    """One thing at `place`, relative to the folder."""

    place: PurePosixPath

    @property
    def key(self) -> str:
        """Its key in addresses."""
        return key_of(self.place)


@dataclass(frozen=True)
class RunItem(Item):
    """A run as run.json and summary.json tell of it. What nobody knows is None.

    `damage` says why it cannot be read. `p999_censored`: the p99.9 is a failure's, at its time-out.
    """

    scenario: str = ""
    backend: str | None = None
    repeat: str | None = None
    status: str = "unknown"
    started_at: datetime | None = None
    experiment: str | None = None
    requests: int | None = None
    failures: int | None = None
    p50_ms: float | None = None
    p999_ms: float | None = None
    p999_censored: bool = False
    generator_limited: bool = False
    damage: str | None = None

    @property
    def name(self) -> str:
        """What people call it: its backend and repeat, else its directory."""
        if not self.backend:
            return self.place.name
        return f"{self.backend} #{self.repeat}" if self.repeat else self.backend

    @property
    def identity(self) -> tuple[object, ...]:
        """The same wherever it lies: an experiment moves a run that has ended."""
        return (self.scenario, self.backend, self.repeat, self.started_at)


@dataclass(frozen=True)
class ExperimentItem(Item):
    """The folder of an experiment."""

    name: str
    changed_at: datetime


@dataclass(frozen=True)
class Document(Item):
    """A page that Plimsoll wrote, by its title; `verdict` as it stands there."""

    kind: Kind
    title: str
    verdict: str | None
    changed_at: datetime


@dataclass(frozen=True)
class HistoryItem(Item):
    """A history of nights, as `plimsoll regress` keeps it."""


@dataclass(frozen=True)
class Contents:
    """All that was found, each by its key. `left_out` says what was not looked at."""

    runs: dict[str, RunItem] = field(default_factory=dict)
    experiments: dict[str, ExperimentItem] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    histories: dict[str, HistoryItem] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def running(self) -> list[RunItem]:
        """Return the runs that go on now, the last one that began first."""
        return newest_first([run for run in self.runs.values() if run.status == "running"])

    def inside(self, experiment: ExperimentItem) -> list[RunItem]:
        """Return the runs of an experiment, in the order of their places."""
        found = [run for run in self.runs.values() if run.place.is_relative_to(experiment.place)]
        return sorted(found, key=lambda run: run.place)

    def around(self, run: RunItem) -> ExperimentItem | None:
        """Return the experiment in whose folder a run lies."""
        return next(
            (each for each in self.experiments.values() if run.place.is_relative_to(each.place)), None
        )

    def report_of(self, item: Item) -> Document | None:
        """Return the report that lies in a run directory or an experiment's folder."""
        found = self.documents.get(key_of(item.place / "report.html"))
        return found if found and found.kind == "report" else None

    def of_kind(self, kind: Kind) -> list[Document]:
        """Return the documents of a kind, the last one that was written first."""
        found = [each for each in self.documents.values() if each.kind == kind]
        return sorted(found, key=lambda each: each.changed_at, reverse=True)


def newest_first(runs: list[RunItem]) -> list[RunItem]:
    """Return runs by when they began, the last one first; those that never began at the end."""
    return sorted(
        runs,
        key=lambda run: (run.started_at.timestamp() if run.started_at else 0.0, str(run.place)),
        reverse=True,
    )
