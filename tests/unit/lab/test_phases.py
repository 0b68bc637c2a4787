"""When the saturator works in a run, and a run in which it never came to that."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.labfile import Phases
from plimsoll.lab.experiment.load import Events, RunClock, saturate
from plimsoll.lab.saturators.saturator import OnEvent


class SlowToStart:
    """A saturator that gets ready, `ready_s` long, before it works."""

    failure: str | None = None

    def __init__(self, ready_s: float, on_event: OnEvent) -> None:
        self._ready_s, self._on_event = ready_s, on_event

    async def start(self) -> None:
        await asyncio.sleep(self._ready_s)
        self._on_event({"event": "slow", "phase": "start"})

    async def stop(self) -> None:
        """Nothing of it runs."""


READY = [
    ("one that is ready in time", 0.0, 5.0, True),
    ("one that is not ready when the load ends", 3600.0, 5.0, False),
    ("one whose phase has not begun when the load ends", 3600.0, -60.0, True),
]


@pytest.mark.parametrize(("what", "ready_s", "begun_s", "well"), READY, ids=[row[0] for row in READY])
def test_a_run_whose_saturator_never_started_is_no_run_under_it(
    tmp_path: Path, what: str, ready_s: float, begun_s: float, well: bool
) -> None:
    async def load_ends_first() -> Events:
        events = Events(tmp_path / "events.jsonl")
        busy = SlowToStart(ready_s, events.note)
        events.clock = RunClock(datetime.now(UTC) - timedelta(seconds=10))
        phases = Phases(before_s=max(10 - begun_s, 0), during_s=60, after_s=0)
        working = asyncio.create_task(saturate(busy, events.clock, 0.0, phases))
        while ready_s == 0 and not events.saturated.is_set():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        return events

    events = asyncio.run(load_ends_first())
    if well:
        events.require_saturated(10 - begun_s)
        return
    with pytest.raises(LabError, match=r"still getting ready \d+ s after its phase began"):
        events.require_saturated(10 - begun_s)


def test_the_saturator_works_as_long_as_its_phase_after_the_warm_up(tmp_path: Path) -> None:
    """Its phase would be over by now were the warm-up none."""

    async def begins() -> bool:
        events = Events(tmp_path / "events.jsonl")
        clock = RunClock(datetime.now(UTC) - timedelta(seconds=1500))
        phases = Phases(before_s=0, during_s=1000, after_s=0)
        working = asyncio.create_task(saturate(SlowToStart(0.0, events.note), clock, 1000.0, phases))
        await asyncio.wait([working], timeout=0.1)
        works = not working.done()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return works

    assert asyncio.run(begins())
