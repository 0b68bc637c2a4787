"""The activity of each pool, from `zpool iostat`, a process that runs as long as the sampling.

All observers of ZFS ask here which pools they watch, and which form of a command is known.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers.observer import (
    Column,
    CommandStream,
    Log,
    Observer,
    ObserverOptions,
    ReadingPair,
    gauge,
)

PROBE_TIMEOUT_S = 20.0  # a pool that is busy answers late
_MS_OF_NS = 1 / 1e6
# In the order in which zpool prints them, after the pool's name. The last four only with -l.
_FIELDS = (
    *("allocated", "free", "reads", "writes", "read bytes", "write bytes"),
    *("read wait", "write wait", "read disk wait", "write disk wait"),
)
_PLAIN = 6
_SHORT = re.compile(r"(\d+(?:\.\d+)?)([KMGTPEZ]?)")
_LONGEST = 24
Form = TypeVar("Form")


@dataclass(frozen=True)
class IostatForm:
    """A way to call zpool iostat that some versions know."""

    options: tuple[str, ...]
    # Without -y its first line for each pool is the mean since the pool was imported, no sample.
    first_is_mean: bool


# From the newest to zfs-fuse, which knows none of the options and rounds all figures to three digits.
FORMS = (
    IostatForm(("-H", "-p", "-y", "-l"), False),  # OpenZFS 0.7 and later
    IostatForm(("-H", "-p", "-y"), False),
    IostatForm((), True),
)


async def find_pools(machine: Machine, pools: Sequence[str], name: str, log: Log) -> Sequence[str]:
    """Return `pools`, or all imported ones where none is named; nothing, and the reason, where there is none.

    `name` is the observer's that asks.
    """
    if not pools:
        try:
            names = ["zpool", "list", "-H", "-o", "name"]
            listed = await machine.run(names, timeout_s=PROBE_TIMEOUT_S, check=False)
        except MachineError as error:
            log(f"{name}: {error}")
            return ()
        pools = listed.out.split("\n")[:-1] if listed.status == 0 else ()
    if not pools:
        log(f"{name}: no pool is imported here, so there is none to observe")
    return pools


async def find_form(
    machine: Machine, name: str, asked: str, probes: Iterable[tuple[Form, Sequence[str]]], log: Log
) -> Form | None:
    """Return the first form whose probe succeeds; None, and the reason, where none does.

    `name` is the observer's, `asked` the program's with its subcommand.
    """
    printed = ""
    try:
        for form, words in probes:
            probed = await machine.run(words, timeout_s=PROBE_TIMEOUT_S, check=False)
            if probed.status == 0:
                return form
            printed = probed.err.strip()[:200]
    except MachineError as error:
        log(f"{name}: {error}")
        return None
    log(f"{name}: {asked} printed: {printed}")
    return None


def probe(form: IostatForm, pools: Sequence[str]) -> list[str]:
    """Return a command that succeeds where zpool knows `form`. Pure."""
    return ["zpool", "iostat", *form.options, *pools, "1", "1"]


def command(form: IostatForm, pools: Sequence[str]) -> list[str]:
    """Return the command that prints a line a pool each second, until it is ended. Pure."""
    # Into a pipe, zpool would keep its lines back until they fill 4 KiB.
    return ["stdbuf", "-oL", "zpool", "iostat", *form.options, *pools, "1"]


def parse(line: str) -> tuple[str, dict[str, float]] | None:
    """Return the pool and its figures, waits in nanoseconds; None for headers and rules.

    Reads exact figures (-p) and rounded ones (`1.50M`: times 1024 × 1024). `-` is a figure that there is not.
    """
    # With -H there are tabs, and a pool's name may hold spaces.
    pool, *words = (line.split("\t") if "\t" in line else line.split()) or [""]
    values = [_figure(word) for word in words]
    if len(values) < _PLAIN or None in values[2:_PLAIN]:
        return None
    return pool, {field: value for field, value in zip(_FIELDS, values, strict=False) if value is not None}


def _figure(word: str) -> float | None:
    found = _SHORT.fullmatch(word) if len(word) <= _LONGEST and word.isascii() else None
    if not found:
        return None
    return float(found[1]) * float(1 << 10 * " KMGTPEZ".index(found[2] or " "))


def _pool_columns(pool: str) -> tuple[Column, ...]:
    def field(name: str) -> str:
        return f"{pool} {name}"

    return (
        gauge(f"{pool}_allocated_bytes", field("allocated")),
        gauge(f"{pool}_free_bytes", field("free")),
        gauge(f"{pool}_reads_per_s", field("reads")),
        gauge(f"{pool}_writes_per_s", field("writes")),
        gauge(f"{pool}_read_bytes_per_s", field("read bytes")),
        gauge(f"{pool}_write_bytes_per_s", field("write bytes")),
        gauge(f"{pool}_read_latency_ms", field("read wait"), _MS_OF_NS),
        gauge(f"{pool}_write_latency_ms", field("write wait"), _MS_OF_NS),
        gauge(f"{pool}_read_disk_latency_ms", field("read disk wait"), _MS_OF_NS),
        gauge(f"{pool}_write_disk_latency_ms", field("write disk wait"), _MS_OF_NS),
    )


COLUMNS = _pool_columns("POOL")  # as they are documented


def columns(pools: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of `pools`."""
    return tuple(column for pool in pools for column in _pool_columns(pool))


class IostatReader:
    """Takes lines as they come and gives each pool's newest once, so that no second is reported twice."""

    def __init__(self, form: IostatForm) -> None:
        self._skip_first = form.first_is_mean
        self._seen: set[str] = set()
        self._newest: dict[str, float] = {}

    def add(self, line: str) -> None:
        """Take a line of standard output."""
        if not (found := parse(line)):
            return
        pool, figures = found
        if self._skip_first and pool not in self._seen:
            self._seen.add(pool)
            return
        self._newest |= {f"{pool} {field}": value for field, value in figures.items()}

    def take(self) -> ReadingPair:
        """Return the figures that came since the last call."""
        taken, self._newest = self._newest, {}
        return ReadingPair(taken, None, 1.0)


async def _prepare(machine: Machine, options: ObserverOptions, log: Log) -> CommandStream | None:
    pools = await find_pools(machine, options.pools, "zpool", log)
    if not pools:
        return None
    probes = [(form, probe(form, pools)) for form in FORMS]
    form = await find_form(machine, "zpool", "zpool iostat", probes, log)
    if form is None:
        return None
    return CommandStream(
        "zpool", columns(pools), machine, command(form, pools), IostatReader(form), "zpool iostat"
    )


OBSERVER = Observer("zpool", COLUMNS, _prepare)
