"""Saturator `fio`: its settings, its command line, and the JSON documents that it prints once a second."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from plimsoll.common.validation import Size
from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import Folder, own_name
from plimsoll.lab.saturators.saturator import CLONE, Runner, SaturatorKind, SaturatorSettings, aim_folder
from plimsoll.lab.steps.step import Check, Command, Remains, has_room, is_folder

_FOREVER_S = 30 * 86_400
_LONGEST_LINES = 100_000  # of one document
_REMOVAL_S = 600.0
_THERE = """for file do [ ! -e "$file" ] || printf '%s\\n' "$file"; done"""


def _no_colon(value: str) -> str:
    if ":" in value:
        raise ValueError("must not contain a colon: fio takes it for the end of the path")
    return value


class Fio(SaturatorSettings):
    """fio on files of its own."""

    kind: Literal["fio"] = Field(description="`fio`.")
    folder: Annotated[Folder, AfterValidator(_no_colon)] | Literal["@clone"] = Field(
        CLONE,
        description="Folder for its files, plimsoll-LABEL.0 and so on. Its path must not contain a "
        "colon. Default: the disk's.",
    )
    size_bytes: Annotated[Size, Field(ge=1 << 20)] = Field(1 << 30, description="Size of each file.")
    rw: Literal["read", "write", "randread", "randwrite", "rw", "randrw"] = Field(
        "randrw", description="Kind of reads and writes: read, write, randread, randwrite, rw or randrw."
    )
    block_bytes: Annotated[Size, Field(ge=512, le=1 << 26)] = Field(
        16384, description="Size of each read and write."
    )
    jobs: int = Field(1, ge=1, le=256, description="Number of files in use at a time.")
    iodepth: int = Field(
        1,
        ge=1,
        le=1024,
        description="Requests in flight for each file. More than 1 uses libaio, which needs `direct`.",
    )
    direct: bool = Field(True, description="Bypass the page cache (O_DIRECT).")
    rate_bytes_per_s: Annotated[Size, Field(ge=1)] | None = Field(
        None,
        description="Limit for each file, and for reads and writes each, in bytes a second. Default: none.",
    )


def command(settings: Fio, label: str) -> list[str]:
    """Return the command that keeps the disk busy until it is stopped."""
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
        # As processes, fio's jobs are sessions of their own: one can outlive fio and make its file again.
        "--thread",
        "--time_based",
        f"--runtime={_FOREVER_S}",
        "--group_reporting",
        "--eta=never",
        "--output-format=json",
        "--status-interval=1",
    ]


def remove(settings: Fio, label: str) -> list[str]:
    """Return the command that removes its files, each by its name."""
    return ["rm", "-f", "--", *files(settings, label)]


def files(settings: Fio, label: str) -> list[str]:
    """Return the paths of its files."""
    folder = settings.folder.rstrip("/")
    return [f"{folder}/{own_name(label)}.{job}" for job in range(settings.jobs)]


class FioProgress:
    """Takes fio's lines, and gives the bytes read and written so far at the end of each document."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def feed(self, line: str) -> int | None:
        """Return the bytes when `line` ends a whole document of fio; None otherwise."""
        if line.startswith("{"):
            self._lines = [line]
            return None
        if self._lines and len(self._lines) < _LONGEST_LINES:
            self._lines.append(line)
        if line != "}":
            return None
        text, self._lines = "\n".join(self._lines), []
        try:
            return total_bytes(json.loads(text)["jobs"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            return None


def total_bytes(jobs: Sequence[dict[str, Any]]) -> int:
    """Return the bytes that all jobs read and wrote."""
    return sum(int(job[way]["io_bytes"]) for job in jobs for way in ("read", "write"))


class _FioRunner(Runner[Fio]):
    async def _once(self) -> None:
        documents = FioProgress()
        await self._follow(
            command(self.settings, self.label),
            lambda line: documents.feed(line.text) if line.stream == "out" else None,
        )

    async def _clean(self) -> None:
        await self.machine.run(remove(self.settings, self.label), timeout_s=_REMOVAL_S)


def _aim(settings: Fio, at: DataLocation) -> Fio:
    if settings.folder != CLONE:
        return settings
    return settings.model_copy(update={"folder": aim_folder("folder", at)})


def _checks(settings: Fio) -> list[Check]:
    if settings.folder == CLONE:
        return []
    total_bytes = settings.size_bytes * settings.jobs
    return [
        is_folder("saturator.folder", settings.folder),
        has_room("saturator.size_bytes", settings.folder, total_bytes),
    ]


async def _find(machine: Machine, settings: Fio, label: str, backend: str) -> list[Remains]:
    """Return its files as one thing."""
    if settings.folder == CLONE:
        return []
    there = await machine.run(["sh", "-c", _THERE, "sh", *files(settings, label)])
    if not there.out:
        return []
    step = Command("remove them", tuple(remove(settings, label)), timeout_s=_REMOVAL_S)
    return [Remains(", ".join(there.out.splitlines()), backend, (step,))]


FIO = SaturatorKind("fio", Fio, _FioRunner, aim=_aim, programs=frozenset({"fio"}), checks=_checks, find=_find)
