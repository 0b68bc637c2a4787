"""Before, during and after: when the saturator works in a run, and what is noted of it."""

import asyncio
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll.common.errors import RunDirectoryError
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.settings import Phases
from plimsoll.lab.saturators.saturator import Saturator
from plimsoll.rundir.find import find_runs
from plimsoll.rundir.names import FACTS_FILE
from plimsoll.rundir.read import read_json

_LOOK_S = 0.02


class RunClock:
    """The run's own clock: nanoseconds since its start, by this machine's monotonic one."""

    def __init__(self, started_at: datetime) -> None:
        """`started_at` is run.json's. The two clocks are read once, together."""
        since_ns = time.time_ns() - int(started_at.timestamp() * 1_000_000) * 1000
        self.start_ns = time.monotonic_ns() - since_ns

    def now_ns(self) -> int:
        """Return the nanoseconds since the run's start."""
        return self.since_ns(time.monotonic_ns())

    def since_ns(self, at_ns: int) -> int:
        """Return the nanoseconds from the run's start to an instant of this machine's monotonic clock."""
        return at_ns - self.start_ns

    async def until(self, t_s: float) -> None:
        """Wait until that second of the run, which may be over."""
        await asyncio.sleep(max(t_s - self.now_ns() / 1e9, 0))


class Events:
    """The events of a run that its own writer does not note: kept beside it, and merged in at the end."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock = path, None
        self.saturated = asyncio.Event()  # set as soon as the saturator has started

    clock: RunClock | None

    def note(self, event: dict[str, Any]) -> None:
        """Append `event` with the instant at which it came, or which its `at_ns` names (monotonic).

        Before the run's start there is no instant.
        """
        at_ns = event.get("at_ns", time.monotonic_ns())
        t_ns = self.clock.since_ns(at_ns) if self.clock else 0
        event = {key: value for key, value in event.items() if key != "at_ns"}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"t_ns": t_ns, **event}, ensure_ascii=False, allow_nan=False) + "\n")
        if event.get("phase") == "start":
            self.saturated.set()

    def require_saturated(self, since_s: float) -> None:
        """Raise LabError if the saturator has not started, though its phase began at second `since_s`.

        Such a run would pass for one under the saturator.
        """
        late_s = self.clock.now_ns() / 1e9 - since_s if self.clock else 0.0
        if late_s > 0 and not self.saturated.is_set():
            raise LabError(
                f"the saturator was still getting ready {late_s:.0f} s after its phase began, when the load "
                "ended: make the phase longer (phases.during_s), or see what keeps the host so busy"
            )


def begun(attempt: Path) -> tuple[Path, datetime] | None:
    """Return the run directory below `attempt` and its `started_at`, None where it is not begun yet."""
    for run in find_runs(attempt):
        try:
            started_at = read_json(run / FACTS_FILE).get("started_at")
            return run, datetime.fromisoformat(started_at).astimezone(UTC)
        except (RunDirectoryError, ValueError, TypeError, AttributeError):
            continue
    return None


async def until_begun(attempt: Path, ended: Callable[[], bool], timeout_s: float) -> tuple[Path, datetime]:
    """Wait for the run directory. Raises LabError where the program ends without one, or takes too long."""
    until_s = time.monotonic() + timeout_s
    while time.monotonic() < until_s:
        over = ended()
        if found := begun(attempt):
            return found
        if over:
            raise LabError("it ended before the run began")
        await asyncio.sleep(_LOOK_S)
    raise LabError(f"it did not begin within {timeout_s:g} s")


async def saturate(saturator: Saturator, clock: RunClock, warmup_s: float, phases: Phases) -> None:
    """Start the saturator when the phase before it is over, and stop it after its own.

    Where the phase has no end, it goes on until this is cancelled. Raises LabError where it gave up.
    """
    await clock.until(warmup_s + phases.before_s)
    try:
        await saturator.start()
        if phases.during_s is None:
            await asyncio.Event().wait()
        else:
            await clock.until(warmup_s + phases.before_s + phases.during_s)
    finally:
        await saturator.stop()
    if saturator.failure:
        raise LabError(f"the saturator gave up: {saturator.failure}")
