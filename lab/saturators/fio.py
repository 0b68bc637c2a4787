"""fio: command line, and the JSON documents that it prints once a second. Pure."""

import json
from collections.abc import Sequence
from typing import Any

from lab.saturators.own import own_name
from lab.saturators.settings import Fio

_FOREVER_S = 30 * 86_400
_LONGEST_LINES = 100_000  # of one document


def command(settings: Fio, label: str) -> list[str]:
    """Return what keeps the disk busy until it is stopped."""
    rate = [f"--rate={settings.rate_bytes_per_s}"] if settings.rate_bytes_per_s else []
    return [
        "fio",
        f"--name={own_name(label)}",
        f"--directory={settings.folder}",
        f"--filename_format={own_name(label)}.$jobnum",
        f"--size={settings.size_bytes}",
        f"--rw={settings.rw}",
        f"--bs={settings.block_bytes}",
        f"--numjobs={settings.jobs}",
        f"--ioengine={'psync' if settings.iodepth == 1 else 'libaio'}",
        f"--iodepth={settings.iodepth}",
        f"--direct={int(settings.direct)}",
        *rate,
        # As processes its jobs are sessions of their own: one outlives fio's end, and makes its file again.
        "--thread",
        "--time_based",
        f"--runtime={_FOREVER_S}",
        "--group_reporting",
        "--eta=never",
        "--output-format=json",
        "--status-interval=1",
    ]


def remove(settings: Fio, label: str) -> list[str]:
    """Return what removes its files, each by its name."""
    folder = settings.folder.rstrip("/")
    return ["rm", "-f", "--", *(f"{folder}/{own_name(label)}.{job}" for job in range(settings.jobs))]


class Documents:
    """Takes fio's lines, and gives the bytes read and written so far at the end of each document."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def feed(self, line: str) -> int | None:
        """Return the bytes when `line` ends a whole document; None else, and for what is none of fio's."""
        if line.startswith("{"):
            self._lines = [line]
            return None
        if self._lines and len(self._lines) < _LONGEST_LINES:
            self._lines.append(line)
        if line != "}":
            return None
        text, self._lines = "\n".join(self._lines), []
        return _bytes(text)


def total_bytes(jobs: Sequence[dict[str, Any]]) -> int:
    """Return what all jobs read and wrote."""
    return sum(int(job[way]["io_bytes"]) for job in jobs for way in ("read", "write"))


def _bytes(text: str) -> int | None:
    try:
        return total_bytes(json.loads(text)["jobs"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None
