"""The table of rounds of `precondition`, in the experiment's folder: a line each, and what they come to."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lab.experiment.files import append_line, read_lines
from lab.precondition.settings import PreconditionSettings
from lab.precondition.steady import steadiness


@dataclass(frozen=True)
class Round:
    """A round on a volume; number 0 is the filling, which is called `filling`.

    `range_percent` and `slope_percent` are of the five rounds up to this one, None before there are five, and
    so is `steady`. `bytes` is the size of the file in number 0, else what was written.
    """

    volume: str
    filling: str
    round: int
    fill_percent: int
    block_bytes: int
    threads: int
    bytes: int
    seconds: float
    mib_per_s: float
    iops: float | None = None
    p999_ms: float | None = None
    range_percent: float | None = None
    slope_percent: float | None = None
    steady: bool | None = None


_KEYS = {field.name for field in fields(Round)}


def read_rounds(path: Path) -> list[Round]:
    """Return the rounds in `path`, of all volumes and fillings; a line that is none is left out."""
    return [one for value in read_lines(path) if (one := _round(value))]


def rounds_of(every: Sequence[Round], volume: str) -> list[Round]:
    """Return those of the last filling of `volume`, the filling itself first; empty before it. Pure."""
    own = [one for one in every if one.volume == volume]
    return [one for one in own if one.filling == own[-1].filling]


def keep(path: Path, one: Round) -> None:
    """Add a round to `path`, on the disk when this returns. Raises OutputError."""
    append_line(path, asdict(one))


def judged(rounds: Sequence[Round], iops: float) -> dict[str, Any]:
    """Return what a round of `iops` after `rounds` says of whether the volume is steady. Pure."""
    found = steadiness([*(one.iops or 0.0 for one in rounds if one.round), iops])
    if found is None:
        return {}
    percents = {
        "range_percent": round(found.range_percent, 2),
        "slope_percent": round(found.slope_percent, 2),
    }
    return {**percents, "steady": found.steady}


def is_over(rounds: Sequence[Round], wanted: PreconditionSettings) -> bool:
    """Return whether a volume needs no more rounds: it is steady, or one would exceed a limit. Pure."""
    if not rounds:
        return False
    spent_s = sum(one.seconds for one in rounds)
    return (
        rounds[-1].steady is True
        or rounds[-1].round >= wanted.most_rounds
        or spent_s + wanted.round_s > wanted.longest_s
    )


def precondition_facts(rounds: Sequence[Round]) -> dict[str, Any]:
    """Return what `storage` in run.json says of the volume; nothing without a filling. Pure."""
    if not rounds:
        return {}
    last = rounds[-1]
    return {
        "precondition": {
            "fill_percent": last.fill_percent,
            "block_bytes": last.block_bytes,
            "threads": last.threads,
            "rounds": last.round,
            "steady": last.steady is True,
        }
    }


def _round(value: dict[str, Any]) -> Round | None:
    numbers = ("round", "bytes", "seconds", "mib_per_s", "fill_percent", "block_bytes", "threads")
    if value.keys() != _KEYS or not all(_is_number(value[name]) for name in numbers):
        return None
    if not isinstance(value["volume"], str) or not isinstance(value["filling"], str):
        return None
    return Round(**value) if _is_number(value["iops"]) or value["round"] == 0 else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
