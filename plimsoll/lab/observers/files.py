"""Reads many small files of /proc and /sys at once: one round trip on a host far away."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import LocalMachine, Machine

_MARK = "\x1e"  # ASCII's record separator, which no file of /proc or /sys holds
_SCRIPT = """for file do printf '\\036'; cat -- "$file" 2>/dev/null; done; printf '\\036'"""
_TIMEOUT_S = 10.0
BUSY_S = 60.0  # for what is read once, and fails a run where it is not: a host under load answers late


def command(paths: Sequence[str]) -> list[str]:
    """Return the command that prints the files with a mark before each and after the last. Pure."""
    return ["sh", "-c", _SCRIPT, "sh", *paths]


def parted(out: str, count: int) -> list[str | None]:
    """Return the texts of `count` files that `command` printed, None for one that could not be read. Pure.

    Raises ValueError if their number differs: then none of it can be trusted.
    """
    first, *texts = out.split(_MARK)
    if first or len(texts) != count + 1 or texts[-1]:
        raise ValueError(f"asked for {count} files, and got something else")
    return [text or None for text in texts[:-1]]


async def read_files(
    machine: Machine, paths: Sequence[str], timeout_s: float = _TIMEOUT_S
) -> list[str | None]:
    """Return the texts of `paths`, None for each that is not there. Raises MachineError."""
    if not paths:
        return []
    if isinstance(machine, LocalMachine):  # needs no process, and no root for files that all may read
        return [await asyncio.to_thread(_text, path) for path in paths]
    sent = command(paths)
    done = await machine.run(sent, timeout_s=timeout_s, check=False)
    try:
        return parted(done.out, len(paths))
    except ValueError as error:
        raise MachineError(machine.name, str(error), sent, done.err, done.status) from None


def _text(path: str) -> str | None:
    try:
        return Path(path).read_bytes().decode("utf-8", "backslashreplace") or None
    except OSError:
        return None
