"""The rounds in which volumes were overwritten until they were steady, as a table (docs/precondition.md)."""

import json
from collections.abc import Sequence
from pathlib import Path

from plimsoll.analysis.page.section import Row, Table
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.units import ABSENT, counted, decimal, plain_ms, significant
from plimsoll.rundir.rounds import VolumeRound, last_filling, round_of

_LARGEST_BYTES = 16 << 20
_MOST_ROWS = 100
_MIB, _GIB = 1 << 20, 1 << 30


def read_rounds(paths: Sequence[Path]) -> list[VolumeRound]:
    """Return the rounds in `paths`, of each volume those of its last filling. Raises RunDirectoryError."""
    found: list[VolumeRound] = []
    for path in paths:
        try:
            with path.open("rb") as file:
                lines = file.read(_LARGEST_BYTES).splitlines()
        except OSError as error:
            raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
        every = [one for one in map(_round, lines) if one]
        for volume in dict.fromkeys(one.volume for one in every):
            found += last_filling(every, volume)
    return found


def rounds_table(rounds: Sequence[VolumeRound]) -> Table | None:
    """Return the table of rounds, a row each; None without any."""
    if not rounds:
        return None
    shown = rounds[-_MOST_ROWS:]
    left_out = f" The first {len(rounds) - len(shown)} rows are left out." if len(shown) < len(rounds) else ""
    first = rounds[0]
    return Table(
        "How the volumes were filled and overwritten",
        f"Before the first run, each volume was filled to {first.fill_percent} %, and blocks of "
        f"{_size(first.block_bytes)} were overwritten at random by {counted(first.threads, 'thread')}, round "
        "after round, until it was steady: five rounds whose IOPS lie within 20 % of their average (range), "
        "and whose straight line rises or falls by no more than 10 % of it (slope); that is SNIA's "
        "definition." + left_out,
        ["", "MiB/s", "IOPS", "p99.9 (ms)", "range (%)", "slope (%)", "steady"],
        [_row(one) for one in shown],
    )


def _row(one: VolumeRound) -> Row:
    if one.round == 0:
        name = f"{one.volume}, filling with {_size(one.bytes)}"
        return Row(name, [significant(one.mib_per_s), *[ABSENT] * 5])
    cells = [
        significant(one.mib_per_s),
        ABSENT if one.iops is None else significant(one.iops),
        plain_ms(one.p999_ms),
        decimal(one.range_percent),
        decimal(one.slope_percent),
        {True: "yes", False: "no", None: ABSENT}[one.steady],
    ]
    return Row(f"{one.volume}, round {one.round}", cells)


def _round(line: bytes) -> VolumeRound | None:
    try:
        return round_of(json.loads(line))
    except (ValueError, RecursionError):
        return None


def _size(size: int) -> str:
    for unit_bytes, unit in ((_GIB, "GiB"), (_MIB, "MiB"), (1 << 10, "KiB")):
        if size >= unit_bytes:
            return f"{significant(size / unit_bytes)} {unit}"
    return f"{size} B"
