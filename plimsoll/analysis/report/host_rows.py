"""What is known of a host, row by row: how it is drawn, when it stands out, on which side it is bad."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

_MOST_OF_ONE = 60.0  # % of a processor

Join = Literal["sum", "mean", "max"]
Alarm = Literal["", "rises", "falls", "times"]
Bad = Literal["", "high", "low"]


class Depth(IntEnum):
    """How far below the visitor a row is: what is deeper is named first of those that move alike."""

    WORK = 0  # what somebody does to the storage beside the site
    STORE = 1  # what the file system has to do for it
    MEMORY = 2  # what that leaves of the memory and of caches
    DISK = 3
    DATABASE = 4
    SITE = 5
    SIGN = 6  # what waiting of any kind shows up in


@dataclass(frozen=True)
class HostRow:
    """One row of a figure: the columns that it is made of, and when it is worth a look.

    `column` finds them; its group, if it has one, is the device or the pool, over which values are joined.
    Values are divided by `scale` and then in `unit`. A row is quiet where it never exceeds `quiet`, or, if it
    `moves` (a gauge that is never 0), where it never moved by more than this share. `alarm` says which change
    stands out: one that rises by `at`, falls by this share, or to so many times as much. `beside` is drawn
    dotted in the same row. `of_one`: a thread that takes one processor of many is worth a look, such as one
    that reclaims memory.

    `bad` says on which side it may hold up requests; "" where neither would. `near` names an instant at which
    it does, with `{}` for the value and its unit, where "SAID over 3 ms" would not do. `on_off`: it is 0 or
    1, and has no amount. `saturator` is the one whose own work it shows: of such a run it is no source.
    """

    title: str
    said: str
    unit: str
    column: str
    quiet: float
    scale: float = 1.0
    join: Join = "sum"
    moves: bool = False
    alarm: Alarm = ""
    at: float = 0.0
    beside: str = ""
    of_one: bool = False
    bad: Bad = "high"
    depth: Depth = Depth.SIGN
    near: str = ""
    on_off: bool = False
    saturator: str = ""

    def share_of_one(self, limit: float, cpus: int | None) -> float:
        """Return `limit`, or most of one of so many processors, where that is less."""
        return min(limit, _MOST_OF_ONE / cpus) if self.of_one and cpus else limit


@dataclass(frozen=True)
class Subject:
    """One figure. `devices` says what the group in its columns is: of the storage only its own are drawn."""

    key: str
    title: str
    about: str
    rows: tuple[HostRow, ...]
    devices: Literal["", "disks", "pools"] = ""
