"""Slices of a log: all runs of a block replay one, and each block has its own where the log holds several."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from math import ceil
from typing import Any

from plimsoll.common.units import seconds
from plimsoll.lab.experiment.design import plan_runs, variants
from plimsoll.lab.experiment.labfile import REPLAY, Lab, ReplayOptions
from plimsoll.lab.experiment.scenarios import reading_words, run_replay

_CHOSEN = (
    "--from",
    "--to",
    "--limit",
)  # with one of these in `flags`, the part of the log is the user's choice


@dataclass(frozen=True)
class LogSlices:
    """Slices of a log in a row: `count` of `length_s` seconds of the log each, from `first` on."""

    first: datetime
    length_s: int
    count: int

    def start(self, block: int) -> str:
        """Return where the slice of a block begins, as `plimsoll replay --from` takes it: dealt in turn."""
        at = self.first + timedelta(seconds=(block - 1) % self.count * self.length_s)
        return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def find_slices(given: Mapping[str, Any], duration_s: float | None) -> LogSlices | None:
    """Return the slices of a replay with these options for runs of a duration, warm-up included.

    A run plays as much of the log's time as it lasts, times its speed. None where the log holds fewer than
    two such parts, cannot be read, or is not played at its own pace: then all runs play the same.
    """
    options = ReplayOptions.model_validate(given)
    chosen = any(flag.partition("=")[0] in _CHOSEN for flag in options.flags)
    if duration_s is None or options.rate or options.users or options.speed == "max" or chosen:
        return None
    span = _read_span(tuple(reading_words(options)))
    length_s = max(ceil(duration_s * float(options.speed)), 1)
    count = int((span[1] - span[0]).total_seconds()) // length_s if span else 0
    return LogSlices(span[0], length_s, count) if span and count > 1 else None


def describe_slices(lab: Lab) -> list[str]:
    """Return what each replay of an experiment in blocks plays in them, a sentence each."""
    if all(run.block is None for run in plan_runs(lab)):
        return []
    found = []
    for variant in variants(lab):
        for choice in variant.lab.scenarios:
            for member in choice.members:
                if member.scenario != REPLAY:
                    continue
                lasts_s = variant.lab.member_duration_s(choice, member)
                if slices := find_slices(member.options, lasts_s):
                    found.append(
                        f"{choice.called_in_full(member)}: the log holds {slices.count} slices of "
                        f"{seconds(slices.length_s)}; all runs of a block play one, those of the first from "
                        f"{slices.start(1)} on, of the second from {slices.start(2)}."
                    )
    return list(dict.fromkeys(found))


@cache
def _read_span(words: tuple[str, ...]) -> tuple[datetime, datetime] | None:
    """Return the first and last instant of a log, read once: one that grows keeps its slices."""
    try:
        said = json.loads(run_replay("parse", "--stats", "--quiet", *words, timeout_s=None).stdout)
        return datetime.fromisoformat(said["first"]), datetime.fromisoformat(said["last"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
