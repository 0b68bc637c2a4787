"""One command on many machines, and what came of it.

What hosts say is hostile: none of it reaches the terminal raw.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.common.hostile import printable
from plimsoll.lab.errors import MachineError, last_words
from plimsoll.lab.machine import Line, Machine

_MOST_CHARACTERS = 1 << 20  # that are kept of one host's output
_LONGEST = 4096


@dataclass(frozen=True)
class HostOutcome:
    """The outcome of the command on one host. `trouble` is empty where all went well."""

    host: str
    status: int | None
    trouble: str
    duration_s: float
    lines: tuple[Line, ...] = ()
    left_out: int = 0  # lines that were not kept

    @property
    def well(self) -> bool:
        """True if the command ended with status 0."""
        return not self.trouble


async def run_everywhere(
    machines: Sequence[Machine],
    command: Sequence[str],
    parallel: int,
    timeout_s: float,
    each: Callable[[HostOutcome], None],
) -> None:
    """Run `command` on all; `each` gets every outcome as it comes. Cancelled, it ends what runs."""
    waiting = iter(machines)
    async with asyncio.TaskGroup() as group:
        for _ in range(min(parallel, len(machines))):
            group.create_task(_work(waiting, command, timeout_s, each))


async def _work(
    waiting: Iterator[Machine], command: Sequence[str], timeout_s: float, each: Callable[[HostOutcome], None]
) -> None:
    for machine in waiting:
        try:
            each(await run_on(machine, command, timeout_s))
        finally:
            await machine.close()


async def run_on(machine: Machine, command: Sequence[str], timeout_s: float) -> HostOutcome:
    """Run `command` on one host; `timeout_s` counts from when it is logged in to. Cancelled, it ends it."""
    begun_s = time.monotonic()
    kept = _Kept()
    status = None
    try:
        process = await machine.start(command)
        try:
            async with asyncio.timeout(timeout_s):
                async for line in process.lines():
                    kept.add(line)
                status = await process.wait()
            trouble = f"ended with status {status}" if status else ""
        except TimeoutError:
            await process.stop()
            trouble = f"did not end within {timeout_s:g} s (--timeout-s)"
        except asyncio.CancelledError:
            await process.stop()
            raise
    except MachineError as error:
        trouble = error.what
    return HostOutcome(
        machine.name, status, trouble, time.monotonic() - begun_s, tuple(kept.lines), kept.left_out
    )


class _Kept:
    """The first lines, so that one host cannot fill the memory."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.left_out = 0
        self._room = _MOST_CHARACTERS

    def add(self, line: Line) -> None:
        self._room -= len(line.text) + 1
        if self._room < 0:
            self.left_out += 1
        else:
            self.lines.append(line)


def outcome_lines(outcome: HostOutcome) -> list[str]:
    """Return the outcome on one host: a heading, and its output (`|`) and errors (`!`). Pure."""
    name = printable(outcome.host)
    lines = [f"{name}: {printable(outcome.trouble) or 'ok'}, {outcome.duration_s:.1f} s"]
    for line in outcome.lines:
        mark = "|" if line.stream == "out" else "!"
        lines.append(f"{name} {mark} {printable(line.text.expandtabs(), _LONGEST)}".rstrip())
    if outcome.left_out:
        lines.append(f"{name}: {outcome.left_out} further lines are not shown")
    return lines


def summary_lines(outcomes: Sequence[HostOutcome], not_done: Sequence[str]) -> list[str]:
    """Return a summary of all hosts. Pure."""
    failed = [outcome for outcome in outcomes if not outcome.well]
    counts = f"{len(outcomes) - len(failed)} ok, {len(failed)} failed"
    total = len(outcomes) + len(not_done)
    lines = [f"{total} host{'' if total == 1 else 's'}: {counts}, {len(not_done)} not done"]
    if failed:
        first = failed[0]
        words = last_words("\n".join(line.text for line in first.lines if line.stream == "err"))
        what = f"{first.host}: {first.trouble}" + (f": {words}" if words else "")
        lines += [f"first failure: {printable(what, 600)}", f"failed: {_names([one.host for one in failed])}"]
    if not_done:
        lines.append(f"not done: {_names(not_done)}")
    return lines


def outcome_data(
    command: Sequence[str], outcomes: Sequence[HostOutcome], not_done: Sequence[str]
) -> dict[str, Any]:
    """Return the outcomes as data for JSON. Pure."""
    return {
        "format": 1,
        "command": list(command),
        "ok": sum(outcome.well for outcome in outcomes),
        "failed": sum(not outcome.well for outcome in outcomes),
        "not_done": list(not_done),
        "hosts": [
            {
                "name": outcome.host,
                "status": outcome.status,
                "trouble": outcome.trouble or None,
                "duration_s": round(outcome.duration_s, 3),
                "output": [{"stream": line.stream, "text": line.text} for line in outcome.lines],
                "left_out": outcome.left_out,
            }
            for outcome in outcomes
        ],
    }


def _names(names: Sequence[str]) -> str:
    return ", ".join(printable(name) for name in names)
