"""A night, and its runs, as the history holds them."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

from plimsoll.analysis.comparing.levels import Levels
from plimsoll.analysis.evidence.run import Observation
from plimsoll.rundir.events import Event
from plimsoll.rundir.runfacts import RunFacts


@dataclass(frozen=True)
class NightKey:
    """One night of one experiment: the name in its lab.yml (empty where there was none), and its own."""

    experiment: str
    name: str


@dataclass(frozen=True)
class NightFacts:
    """A night: runs that were started together, `planned` of them (None: nobody said). Texts are hostile."""

    key: NightKey
    started_at: str
    planned: int | None
    path: str


@dataclass(frozen=True)
class RunDigest:
    """One run, as it is kept: without its raw data. `levels` is None where the run cannot be read.

    `unfit`: why nothing can be decided by it; none where it is fit. `stamp` tells whether the directory
    changed. `observation` is what its records show. Names are hostile.
    """

    night: NightFacts
    facts: RunFacts
    status: str
    levels: Levels | None
    unfit: tuple[str, ...]
    path: str
    root: str
    stamp: str
    size_bytes: int
    observation: Observation | None = None
    events: tuple[Event, ...] = field(default=())

    @property
    def identity(self) -> str:
        """The same for every copy of a run, wherever it lies, and for no other run."""
        return identity_of(self.facts)

    @property
    def backend(self) -> str:
        """Its backend's name, empty where it has none."""
        return self.facts.backend or ""


def identity_of(facts: RunFacts) -> str:
    """Return what tells a run from all others: what never changes in its run.json."""
    part = facts.experiment
    known = [
        [part.name, part.run] if part else None,
        [facts.scenario, facts.backend, facts.repeat, facts.seed],
        [instant(facts.started_at) if facts.started_at else None, facts.host.hostname],
    ]
    return hashlib.sha256(json.dumps(known, ensure_ascii=True).encode()).hexdigest()[:32]


def instant(at: datetime) -> str:
    """Return an instant as the history writes it: UTC, so that texts sort as instants do."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
