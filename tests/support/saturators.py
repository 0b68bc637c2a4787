"""Saturators at work for real: what they do, until it is enough; and killed amid it."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.saturators import AnySaturator, find_saturator_kind, make_saturator
from tests.support.disks import LABEL
from tests.support.programs import ROOT, awaited, need

SETTINGS: TypeAdapter[Any] = TypeAdapter(AnySaturator)
FILE_BYTES = 24 << 20
BY = LABEL.saturator("zfs")
NOWHERE = DataLocation("/", "no")


def fill(file: Path, size_bytes: int = FILE_BYTES) -> None:
    count = [f"count={size_bytes}", "iflag=count_bytes", "bs=1M", "conv=fsync"]
    subprocess.run([need("dd"), "if=/dev/urandom", f"of={file}", *count], capture_output=True, check=True)


async def until_bytes(events: list[dict[str, Any]], at_least_bytes: int) -> None:
    """Waits for events that say so many bytes a second, one after another."""
    await awaited("bytes", lambda: sum(event.get("bytes_per_s", 0) for event in events) >= at_least_bytes)


def is_whole_story(events: list[dict[str, Any]], kind: str) -> None:
    assert events[0] == {"event": kind, "phase": "start", "saturator": True}
    assert events[-1]["event"] == kind and events[-1]["phase"] == "stop"
    assert not [event for event in events if "retry" in event["event"] or "error" in event]
    shown = sum(event.get("bytes_per_s", 0) for event in events)
    assert events[-1]["bytes"] >= 0.5 * shown > 0


def snapshots(dataset: str) -> list[str]:
    listed = subprocess.run(
        [need("zfs"), "list", "-H", "-t", "snapshot", "-o", "name", "-r", dataset],
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.split()


def command_lines() -> list[str]:
    """Those of all processes."""
    listed = subprocess.run([need("ps"), "-eo", "args", "ww"], capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


@contextlib.asynccontextmanager
async def working(
    machine: LocalMachine, settings: Any, note: Callable[[dict[str, Any]], None], by: str = BY
) -> AsyncIterator[None]:
    """Within, the saturator is at work; then it is stopped, and has not failed."""
    busy = make_saturator(machine, settings, by, note)
    await busy.start()
    try:
        yield
    finally:
        await busy.stop()
    assert busy.failure is None


async def drive(
    machine: LocalMachine,
    settings: Any,
    events: list[dict[str, Any]],
    enough: Callable[[], Awaitable[None]],
) -> None:
    """Check it as `plimsoll check` does, let it work until it is enough, and see that nothing is left."""
    kind = find_saturator_kind(settings)
    for one in kind.checks(settings):
        await machine.run(one.words)
    async with working(machine, settings, events.append):
        await enough()
    assert await kind.find(machine, settings, BY, "zfs") == []


CHILD = """
import asyncio, sys
from pydantic import TypeAdapter
from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.saturators import AnySaturator, aim_saturator, make_saturator

async def work():
    settings = TypeAdapter(AnySaturator).validate_json(sys.argv[1])
    settings = aim_saturator(settings, DataLocation(*sys.argv[3:]))
    await make_saturator(LocalMachine(), settings, sys.argv[2], lambda event: None).start()
    await asyncio.Event().wait()

asyncio.run(work())
"""


async def kill_when(settings: str, at: DataLocation, holds: Callable[[], object]) -> None:
    """Let the saturator work in a process of its own, and kill that as soon as something holds."""
    words = [sys.executable, "-c", CHILD, settings, BY, str(at.folder), str(at.dataset)]
    child = subprocess.Popen(words, cwd=ROOT, start_new_session=True)
    try:
        await awaited("what it is killed at", holds)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


LAB = """
name: $name
out: $folder/out
backends:
  - name: zfs
    clone: {driver: static, target: "http://127.0.0.1:9"}
scenarios: [{scenario: download}]
saturator: {kind: $kind, $keys}
"""
