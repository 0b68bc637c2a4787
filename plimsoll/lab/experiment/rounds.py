"""The table of rounds of `precondition`, in the experiment's folder: a line each, and what they come to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plimsoll.lab.experiment.files import append_line, read_lines
from plimsoll.lab.fileio.precondition import PreconditionSettings, steadiness
from plimsoll.rundir.volumes import VolumeRound, round_of


def read_rounds(path: Path) -> list[VolumeRound]:
    """Return the rounds in `path`, of all volumes and fillings; a line that is none is left out."""
    return [one for value in read_lines(path) if (one := round_of(value))]


def keep(path: Path, one: VolumeRound) -> None:
    """Add a round to `path`, on the disk when this returns. Raises OutputError."""
    append_line(path, one.model_dump())


def judged(rounds: Sequence[VolumeRound], iops: float) -> dict[str, Any]:
    """Return what a round of `iops` after `rounds` says of whether the volume is steady. Pure."""
    found = steadiness([*(one.iops or 0.0 for one in rounds if one.round), iops])
    if found is None:
        return {}
    percents = {
        "range_percent": round(found.range_percent, 2),
        "slope_percent": round(found.slope_percent, 2),
    }
    return {**percents, "steady": found.steady}


def is_over(rounds: Sequence[VolumeRound], wanted: PreconditionSettings) -> bool:
    """Return whether a volume needs no more rounds: it is steady, or one would exceed a limit. Pure."""
    if not rounds:
        return False
    spent_s = sum(one.seconds for one in rounds)
    return (
        rounds[-1].steady is True
        or rounds[-1].round >= wanted.most_rounds
        or spent_s + wanted.round_s > wanted.longest_s
    )


def precondition_facts(rounds: Sequence[VolumeRound]) -> dict[str, Any]:
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
