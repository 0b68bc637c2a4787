"""Saturator `rsync`: a folder is copied to another folder or to a host, again and again."""

import re
import shlex
from typing import Annotated, Literal

from pydantic import Field

from plimsoll.common.validation import Size
from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Line, Machine
from plimsoll.lab.names import Folder, checked_folder
from plimsoll.lab.saturators.saturator import (
    CLONE,
    LineProgress,
    Runner,
    SaturatorKind,
    SaturatorSettings,
    aim_folder,
)
from plimsoll.lab.saturators.sinks import (
    REMOVAL_S,
    LocalSink,
    Receiver,
    RemoteSink,
    at_receiver,
    find_left,
    over_ssh,
    own_path,
    removal_command,
    sink_checks,
    ssh_words,
)
from plimsoll.lab.steps.step import Check, Remains, is_folder, unless

_CHECK_S = 600.0
_SSH_FAILED = 255  # which the check of the sink's host reports
# As --info=progress2 prints it without separators: `  22183936  36%   19.45MB/s    0:00:01 (xfr#1, …)`.
_PROGRESS = re.compile(r"^ *(?P<bytes>[0-9]{1,18}) +[0-9]{1,3}% ", re.ASCII)
# Files that vanish while they are copied (24) are what a site at work is like.
_RSYNC = """rsync "$@"
status=$?
[ "$status" = 24 ] || exit "$status" """
# $1: the folder that is copied; then the command that prints how much is free where it goes. If either folder
# does not exist, another check reports that.
_FITS = """need=$(du -s -B1 -- "$1" 2>/dev/null | cut -f 1)
shift
free=$("$@" 2>/dev/null | awk 'NR == 2 { print $4 }')
[ -n "$need" ] && [ -n "$free" ] || exit 0
[ "$need" -le "$free" ] || {
    echo "it takes $need bytes, and $free are free: make room, or name another folder" >&2
    exit 1
}"""


class Rsync(SaturatorSettings):
    """rsync of a folder."""

    kind: Literal["rsync"] = Field(description="`rsync`.")
    folder: Folder | Literal["@clone"] = Field(
        CLONE, description="Folder to copy, with everything in it. Default: the disk's, with the clone in it."
    )
    sink: Receiver = Field(discriminator="to", description="Where the copy goes: local or remote.")
    mode: Literal["full", "incremental"] = Field(
        "full",
        description="`full`: each round reads and writes every file. `incremental`: after the first "
        "round, only "
        "files whose size or time changed, by rsync's own algorithm.",
    )
    rate_bytes_per_s: Annotated[Size, Field(ge=1024)] | None = Field(
        None, description="Limit for what is copied, in bytes a second. Default: none."
    )

    def model_post_init(self, _: object) -> None:
        """Check that what receives is a folder, and none that is copied."""
        checked_folder(self.sink.into)
        _see_outside(self)


def _see_outside(settings: Rsync) -> None:
    """Raise ValueError where the copy would be copied too, and grow without end."""
    sink, folder = settings.sink, settings.folder
    if isinstance(sink, LocalSink) and f"{sink.into.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/"):
        raise ValueError(
            f"sink.into: {sink.into} lies in what is copied, {folder}: name a folder outside of it"
        )


def _copy_of(settings: Rsync, label: str) -> str:
    """Return the folder of the copy, on whatever machine."""
    return own_path(settings.sink.into, label, "rsync")


def command(settings: Rsync, label: str) -> list[str]:
    """Return the command that makes the copy, or brings it up to date."""
    sink, rate, over = settings.sink, settings.rate_bytes_per_s, list[str]()
    to = f"{_copy_of(settings, label)}/"
    if isinstance(sink, RemoteSink):
        over, to = ["-e", shlex.join(ssh_words(sink))], f"{sink.host}:{to}"
    return [
        *("sh", "-c", _RSYNC, "sh", "--archive", "--numeric-ids", "--delete", "-s"),
        *("--info=progress2", "--no-human-readable", "--outbuf=L"),
        *(["--ignore-times", "--whole-file"] if settings.mode == "full" else []),
        *([f"--bwlimit={rate // 1024}"] if rate else []),
        *over,
        *("--", f"{settings.folder.rstrip('/')}/", to),
    ]


def remove_command(settings: Rsync, label: str) -> list[str]:
    """Return the command that removes the copy."""
    return at_receiver(settings.sink, removal_command(_copy_of(settings, label)))


class _RsyncRunner(Runner[Rsync]):
    shortest_round_s = 1.0

    async def _prepare(self) -> None:
        await self._clean()
        # Not through a link that somebody put there meanwhile, in a folder where everybody may write.
        make = ["mkdir", "-m", "700", "--", _copy_of(self.settings, self.label)]
        await self.machine.run(at_receiver(self.settings.sink, make))

    async def _once(self) -> None:
        figures = LineProgress(_PROGRESS)

        def read(line: Line) -> int | None:
            return figures.read(line) if line.stream == "out" else None

        await self._follow(command(self.settings, self.label), read)

    async def _clean(self) -> None:
        await self.machine.run(remove_command(self.settings, self.label), timeout_s=REMOVAL_S)


def _aim(settings: Rsync, at: DataLocation) -> Rsync:
    if settings.folder != CLONE:
        return settings
    pointed = settings.model_copy(update={"folder": aim_folder("folder", at)})
    _see_outside(pointed)
    return pointed


def _checks(settings: Rsync) -> list[Check]:
    sink, found = settings.sink, sink_checks(settings.sink, of_zfs=False)
    if isinstance(sink, RemoteSink):
        there = f"saturator.sink.into: folder {sink.into} does not exist on {sink.host}: create it"
        found += [
            Check(problem, unless(_SSH_FAILED, over_ssh(sink, words)))
            for problem, words in (
                (there, ["test", "-d", sink.into]),
                (f"saturator.sink.host: {sink.host} has no rsync", ["rsync", "-V"]),
            )
        ]
    if settings.folder != CLONE:
        free = at_receiver(sink, ["df", "-P", "-B1", "--", sink.into])
        fits = ("sh", "-c", _FITS, "sh", settings.folder, *free)
        found += [
            is_folder("saturator.folder", settings.folder),
            Check(
                f"saturator.sink.into: {settings.folder} does not fit into {sink.into}",
                fits,
                _CHECK_S,
                ours=True,
            ),
        ]
    return found


async def _find(machine: Machine, settings: Rsync, label: str, backend: str) -> list[Remains]:
    """Return the copy, whole or half."""
    return await find_left(machine, _copy_of(settings, label), backend, settings.sink)


RSYNC = SaturatorKind(
    "rsync",
    Rsync,
    _RsyncRunner,
    aim=_aim,
    programs=frozenset({"rsync"}),
    rounds=lambda _: 1,
    checks=_checks,
    find=_find,
)
