"""What runs on each pool and how full it is, from `zpool status` and `zpool list`, every two seconds."""

import re
from collections.abc import Sequence

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers import poolstatus
from plimsoll.lab.observers.counters import Column, Pair, gauge
from plimsoll.lab.observers.imported import PROBE_TIMEOUT_S, imported_pools
from plimsoll.lab.observers.observer import Observer, Say
from plimsoll.lab.observers.settings import ObserverOptions
from plimsoll.lab.observers.watch import END, Watch, rounds

EVERY_S = 2
_REPEATED = 15  # samples: then the host has not answered for so long that nobody knows
_MOST_LINES = 10_000  # of a round
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,4})?)%?")
# The newest first; zfs-fuse knows neither -p nor fragmentation.
FORMS = (
    ("-H", "-p", "-o", "name,health,capacity,fragmentation"),
    ("-H", "-o", "name,health,capacity"),
)


def list_pools(form: Sequence[str], pools: Sequence[str]) -> list[str]:
    """Return the command that prints a line a pool, where zpool knows `form`. Pure."""
    return ["zpool", "list", *form, *pools]


def command(form: Sequence[str], pools: Sequence[str]) -> list[str]:
    """Return the command that prints the state of `pools` again and again. Pure."""
    return rounds(f'zpool list {" ".join(form)} "$@"; zpool status "$@"', EVERY_S, pools)


def parse(text: str) -> dict[str, float]:
    """Return what both print, by `POOL FIELD`; a line of `zpool list` has tabs, and begins with a name."""
    found: dict[str, float] = {}
    for line in text.split("\n"):
        pool, *words = line.split("\t")
        if len(words) < 2 or not pool or pool.startswith(" "):
            continue
        found[f"{pool} health"] = 0.0 if words[0] == "ONLINE" else 1.0
        for field, word in zip(("capacity", "fragmentation"), words[1:], strict=False):
            if share := _PERCENT.fullmatch(word):
                found[f"{pool} {field}"] = float(share[1])
    for each in poolstatus.parse(text):
        found[f"{each.pool} scrub"] = each.scrub
        found[f"{each.pool} resilver"] = each.resilver
        found[f"{each.pool} trimming"] = each.trimmed
        if each.done_percent is not None:
            found[f"{each.pool} done"] = each.done_percent
    return found


class States:
    """Takes lines as they come, and repeats what the last whole round said."""

    def __init__(self) -> None:
        self._coming: list[str] = []
        self._state: dict[str, float] = {}
        self._left = 0

    def add(self, line: str) -> None:
        """Take a line of standard output."""
        if line != END:
            self._coming += [line] if len(self._coming) < _MOST_LINES else []
            return
        if state := parse("\n".join(self._coming)):
            self._state, self._left = state, _REPEATED
        self._coming = []

    def take(self) -> Pair:
        """Return the state, until it is too old."""
        self._left -= 1
        return Pair(self._state if self._left >= 0 else {}, None, 1.0)


def columns(pools: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of `pools`."""
    return tuple(
        column
        for pool in pools
        for column in (
            gauge(f"{pool}_scrub_count", f"{pool} scrub"),
            gauge(f"{pool}_resilver_count", f"{pool} resilver"),
            gauge(f"{pool}_scan_percent", f"{pool} done"),
            gauge(f"{pool}_trim_count", f"{pool} trimming"),
            gauge(f"{pool}_full_percent", f"{pool} capacity"),
            gauge(f"{pool}_fragmented_percent", f"{pool} fragmentation"),
            gauge(f"{pool}_faulty_count", f"{pool} health"),
        )
    )


COLUMNS = columns(["POOL"])  # as they are documented


async def _prepare(machine: Machine, options: ObserverOptions, say: Say) -> Watch | None:
    pools = await imported_pools(machine, options.pools, "poolstate", say)
    if not pools:
        return None
    try:
        for form in FORMS:
            probed = await machine.run(list_pools(form, pools), timeout_s=PROBE_TIMEOUT_S, check=False)
            if probed.status == 0:
                asked = command(form, pools)
                return Watch("poolstate", columns(pools), machine, asked, States(), "zpool status")
    except MachineError as error:
        say(f"poolstate: {error}")
        return None
    say(f"poolstate: zpool list printed: {probed.err.strip()[:200]}")
    return None


OBSERVER = Observer("poolstate", COLUMNS, _prepare)
