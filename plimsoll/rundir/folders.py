"""The results folder, in which run directories are made and `latest` points at the newest."""

import os
from datetime import datetime
from pathlib import Path

from plimsoll.common.errors import OutputError


def directory_name(now: datetime, scenario: str) -> str:
    """Return a name that sorts by time, as `bin/replay` gives: `20261121T080910Z-save-article`. Pure."""
    return f"{now:%Y%m%dT%H%M%SZ}-{scenario}"


def new_directory(results: Path, name: str) -> Path:
    """Make `results/name`, with a number behind it where that exists, and return it. Raises OutputError."""
    for number in range(1, 1000):
        path = results / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise OutputError(
                f"{path}: cannot be made: {error.strerror}; choose another folder with --out"
            ) from None
        return path
    raise OutputError(f"{results}: is full of runs of this second; choose another folder with --out")


def point_latest(directory: Path) -> None:
    """Make `latest` beside `directory` a link to it, by rename, so that it always points somewhere."""
    link = directory.parent / "latest"
    hidden = directory.parent / f".latest-{os.getpid()}"
    try:
        hidden.unlink(missing_ok=True)
        hidden.symlink_to(directory.name)
        hidden.replace(link)
    except OSError as error:
        hidden.unlink(missing_ok=True)
        raise OutputError(f"{link}: cannot be made to point at the run: {error.strerror}") from None
