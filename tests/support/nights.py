"""Nights of an experiment, as run directories: small ones, whose tail is known."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from plimsoll.cli import main
from tests.support.comparable import write_comparable

FIRST = datetime(2026, 1, 1, 2, 0, tzinfo=UTC)
LAB = "nightly"
OLD_IS_FINE = ("--stale-after", "100000d")


def stamp(number: int) -> str:
    return f"{FIRST + timedelta(days=number):%Y%m%dT%H%M%SZ}"


def folder_of(results: Path, number: int, lab: str = LAB) -> Path:
    return results / f"{lab}-{stamp(number)}"


def write_night(
    results: Path,
    number: int,
    tails_ms: Mapping[str, float],
    *,
    repeats: int = 1,
    lab: str = LAB,
    planned: int | None = None,
    count: int = 1500,
    **more: Any,
) -> Path:
    """Write night `number`: one run a backend and repeat, whose p99.9 is about what `tails_ms` says."""
    folder = folder_of(results, number, lab)
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    place = 0
    for repeat in range(1, repeats + 1):
        for backend, tail_ms in tails_ms.items():
            place += 1
            began = FIRST + timedelta(days=number, minutes=3 * place)
            write_comparable(
                folder
                / "runs"
                / f"{place:04d}-{more.get('scenario', 'replay')}--{backend}--{repeat}".replace("/", "_"),
                backend,
                repeat,
                place,
                tail_ms,
                count=count,
                **(
                    {
                        "experiment": {"name": lab, "run": place, "of": planned or repeats * len(tails_ms)},
                        "started_at": f"{began:%Y-%m-%dT%H:%M:%S.%fZ}",
                        "ended_at": f"{began + timedelta(minutes=1):%Y-%m-%dT%H:%M:%S.%fZ}",
                    }
                    | more
                ),
            )
    return folder


def regress(history: Path, *arguments: str | Path) -> Result:
    """Run the command; the nights are of a past that is not stale, unless the arguments say when it is.

    A history that is not there begins.
    """
    new = [] if history.exists() else ["--new"]
    words = ["regress", "--history", str(history), *new, *OLD_IS_FINE, *map(str, arguments)]
    return CliRunner().invoke(main, words)
