"""One measured run of a comparison, and what keeps it from being judged by."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from analysis.comparing.levels import WHOLE, Levels
from plimsoll.rundir.directory import RunDirectory
from plimsoll.rundir.events import Saturation, saturation
from plimsoll.rundir.requestfile import HEADER_BYTES, RECORD

# As the programs that generate load judge themselves (docs/run-format.md, generator_limited).
_LIMIT_LAG_MS = 1.0
_LIMIT_FRACTION = 0.05
_OF_THE_PLACE = {"target", "connect_to", "backend", "repeat", "user", "imported_from"}


@dataclass(frozen=True)
class ComparedRun:
    """One run, with its figures. Its name is hostile."""

    directory: RunDirectory
    levels: Levels

    @property
    def name(self) -> str:
        """Its directory's name, which alone tells two runs of one backend apart."""
        return self.directory.path.resolve().name

    @property
    def scenario(self) -> str:
        """The scenario's name (hostile)."""
        return self.directory.facts.scenario

    @property
    def repeat(self) -> int | str | None:
        """The number of its repeat."""
        return self.directory.facts.repeat

    @property
    def started_at(self) -> datetime | None:
        """The instant it began."""
        return self.directory.facts.started_at

    @cached_property
    def saturation(self) -> Saturation | None:
        """The saturator that kept its disks busy."""
        return saturation(self.directory.events)

    @property
    def emulated(self) -> str | None:
        """The storage that its own imitated (hostile)."""
        storage = self.directory.facts.storage
        return storage.emulated if storage else None

    @property
    def done_as(self) -> dict[str, Any]:
        """The facts that have to be the same in runs that are compared (hostile)."""
        facts = self.directory.facts
        settings = {key: value for key, value in facts.scenario_settings.items() if key not in _OF_THE_PLACE}
        return {
            "seed": facts.seed,
            "loop": facts.loop,
            "speed": facts.speed,
            "warmup_s": facts.warmup_s,
            "logs": [
                {"log": log.path.rsplit("/", 1)[-1], "lines": log.lines, "first": log.first, "last": log.last}
                for log in facts.logs
            ],
            "phases": facts.phases.model_dump() if facts.phases else None,
            "saturator": self.saturation.name if self.saturation else "none",
            "settings": settings,
        }


def unfit(run: ComparedRun) -> Iterator[str]:
    """Yield why nothing can be decided by this run, each with its remedy (hostile)."""
    directory, facts = run.directory, run.directory.facts
    again = "run it again, or take it out of the folder"
    if directory.killed:
        yield f"was killed: {again}"
    elif run.directory.status == "running":
        yield "has not ended yet: wait for it"
    elif run.directory.status != "complete":
        because = f" ({facts.reason.rstrip('.')})" if facts.reason else ""
        yield f"{'failed' if directory.status == 'failed' else 'was interrupted'}{because}: {again}"
    else:
        yield from _truncated(run, again)
    yield from limited_by_generator(run)
    busy = run.saturation
    if busy and busy.error:
        yield f"{busy.name} gave up, and the disks were idle from then on ({busy.error}): {again}"
    elif busy and busy.stop_ns is None and facts.phases and facts.phases.during_s is not None:
        yield f"{busy.name} was never stopped, though its phase had an end: {again}"


def _truncated(run: ComparedRun, again: str) -> Iterator[str]:
    directory = run.directory
    if directory.summary is None:
        yield f"says complete, but summary.json is missing, so nobody knows whether all is there: {again}"
        return
    sent, records = directory.summary.requests.sent, directory.requests.count
    if sent is not None and sent != records:
        yield f"is truncated: {sent:,} requests were sent, and requests.npy holds {records:,}: {again}"
    elif (directory.requests.path.stat().st_size - HEADER_BYTES) % RECORD.itemsize:
        yield f"is truncated: the last record of requests.npy is cut off: {again}"


def limited_by_generator(run: ComparedRun) -> Iterator[str]:
    """Yield that the load generator was too late for the run to say anything of the site, where it was."""
    facts = run.directory.facts
    lag_ms, response_ms = run.levels.lag_p999_ms, run.levels.phases[WHOLE].times_ms["p99.9"]
    late = (
        facts.loop == "open"
        and lag_ms is not None
        and response_ms is not None
        and lag_ms > max(_LIMIT_LAG_MS, _LIMIT_FRACTION * response_ms)
    )
    if facts.generator_limited or late:
        remedy = facts.generator_limited_reason or (
            "use a lower speed or rate, or give the load generator a machine of its own"
        )
        yield f"was limited by the load generator: {remedy.rstrip('.')}"
