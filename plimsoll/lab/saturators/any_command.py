"""Saturator `command`: any command, started again and again; a regular expression reads its progress."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PrivateAttr

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Machine
from plimsoll.lab.saturators.saturator import (
    LineProgress,
    Runner,
    SaturatorKind,
    SaturatorSettings,
    Words,
    fill_words,
    has_no_placeholder,
    last_at_least,
    needs_folder,
)
from plimsoll.lab.saturators.sinks import find_left, own_path, removal_command
from plimsoll.lab.steps.step import Check, Command, Remains, is_program

_CLEANUP_S = 3600.0
# What is there after a crash of the machine too. A folder in it can be removed by its owner alone.
_MARKS = "/var/tmp"  # noqa: S108


def _form(value: str) -> str:
    try:
        form = re.compile(value)
    except re.error as error:
        raise ValueError(f"must be a regular expression: {error}") from None
    if "bytes" not in form.groupindex:
        raise ValueError(r"must have a group called bytes, such as (?P<bytes>[0-9]+)")
    return value


class AnyCommand(SaturatorSettings):
    """Any command."""

    kind: Literal["command"] = Field(description="`command`.")
    start: Words = Field(
        description="Command and its arguments. @own stands for plimsoll-LABEL, @clone for the disk's folder."
    )
    progress: Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_form)] = Field(
        description="Regular expression (of Python) that is found in the lines, on either output, that "
        "tell how far "
        "it is: its group `bytes` is the number, a group `unit` what it counts in, if it has one."
    )
    counts: Literal["total", "each"] = Field(
        "total",
        description="`total`: a line tells all bytes since the command was started. `each`: only those since "
        "the line before.",
    )
    interval_s: float = Field(
        1.0,
        ge=0.1,
        le=86400,
        description="Seconds from one start to the next, or at once if it takes longer.",
    )
    cleanup: Words | None = Field(
        None,
        description="Command that removes what it made. It is run before the first start and after the "
        "last, and must do no harm where there is nothing.",
    )
    _folder: str = PrivateAttr("")

    @property
    def words(self) -> tuple[str, ...]:
        """All words of both commands."""
        return (*self.start, *(self.cleanup or ()))


def command(settings: AnyCommand, label: str) -> list[str]:
    """Return the command."""
    return fill_words(settings.start, label, settings._folder)


def cleanup(settings: AnyCommand, label: str) -> list[str]:
    """Return the command that removes what it made; none if there is nothing to remove."""
    return fill_words(settings.cleanup or (), label, settings._folder)


def mark(label: str) -> str:
    """Return the folder that says, as long as it is there, that something may be left to clean up."""
    return own_path(_MARKS, label, "command")


class _CommandRunner(Runner[AnyCommand]):
    async def _prepare(self) -> None:
        await self._clean()
        if self.settings.cleanup:
            await self.machine.run(["mkdir", "-m", "700", "--", mark(self.label)])

    async def _once(self) -> None:
        said = self.settings
        figures = LineProgress(re.compile(said.progress), said.counts == "each")
        await last_at_least(said.interval_s, self._follow(command(said, self.label), figures.read))

    async def _clean(self) -> None:
        if words := cleanup(self.settings, self.label):
            await self.machine.run(words, timeout_s=_CLEANUP_S)
            await self.machine.run(removal_command(mark(self.label)))


def _aim(settings: AnyCommand, at: DataLocation) -> AnyCommand:
    if not needs_folder(settings.words):
        return settings
    if not at.folder:
        raise ValueError(
            "start: @clone: is missing: the lab knows no folder of this clone; name one in its place"
        )
    pointed = settings.model_copy()
    pointed._folder = at.folder
    return pointed


def _checks(settings: AnyCommand) -> list[Check]:
    first = {"start": settings.start[0], "cleanup": settings.cleanup[0] if settings.cleanup else "true"}
    return [is_program(f"saturator.{key}", word) for key, word in first.items() if has_no_placeholder(word)]


async def _find(machine: Machine, settings: AnyCommand, label: str, backend: str) -> list[Remains]:
    """Return the mark; before it goes, its command cleans up."""
    words = cleanup(settings, label)
    if not words or (needs_folder(settings.words) and not settings._folder):
        return []
    step = Command("clean up after it", tuple(words), timeout_s=_CLEANUP_S)
    return [
        Remains(f"what the saturator's command left, marked by {one.what}", backend, (step, *one.remove))
        for one in await find_left(machine, mark(label), backend)
    ]


def _in_brief(settings: AnyCommand) -> AnyCommand:
    brief = settings.model_copy(update={"interval_s": 0.0})
    brief._folder = settings._folder
    return brief


COMMAND = SaturatorKind(
    "command",
    AnyCommand,
    _CommandRunner,
    aim=_aim,
    programs=frozenset(),
    rounds=lambda _: 1,
    checks=_checks,
    brief=_in_brief,
    find=_find,
)
