"""The schedule that `plimsoll schedule install` is asked for: checked, and installed whole or not at all."""

import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.lab.experiment.problems import read_checked
from plimsoll.lab.schedule.installation import (
    InstalledSchedule,
    Kind,
    Schedule,
    ScheduleFolders,
    carry_out,
    check_name,
    explain_missing,
    find_installed,
    kind_here,
    plan_removal,
)
from plimsoll.lab.schedule.timers import parse_calendar
from plimsoll.lab.steps.step import LocalStep


def read_wanted(
    file: Path,
    name: str | None,
    at: str | None,
    on_calendar: str | None,
    kind: Kind | None,
    out: str,
    history: str | None,
    resume_missed: bool,
    options: tuple[str, ...],
    dry_run: bool,
) -> Schedule:
    """Return the schedule that `install` is asked for. Raises SettingsError with all problems."""
    problems: list[str] = []
    label, calendar = "", "03:00"
    try:
        label = read_checked(file)[0].name
    except PlimsollError as error:
        problems += str(error).splitlines()
    if at is not None and on_calendar is not None:
        problems.append("--at: cannot be combined with --on-calendar; leave one of them out")
    try:
        calendar = str(parse_calendar(on_calendar or at or calendar))
    except ValueError as error:
        problems.append(f"{'--on-calendar' if on_calendar else '--at'}: {error}")
    try:
        called = check_name(name or label) if name or label else "unnamed"
        chosen = kind or kind_here(dry_run)
        if chosen == "system" and os.geteuid() != 0:
            problems.append("--system: needs root: use --user, or run the command with sudo")
        lacks = list(explain_missing(chosen))
        if dry_run:
            for what in lacks:
                click.echo(f"Warning: {what}", err=True)
        else:
            problems += lacks
    except SettingsError as error:
        problems += str(error).splitlines()
    problems += _find_unknown(options)
    if problems:
        raise SettingsError("\n".join(problems))
    results = Path(out).absolute() / called
    return Schedule(
        name=called,
        lab=str(file.absolute()),
        folder=str(Path.cwd()),
        kind=chosen,
        calendar=calendar,
        out=str(results),
        history=str(Path(history).absolute() if history else results / "history.sqlite"),
        resume_missed=resume_missed,
        options=options,
        program=_program(),
        installed_at=datetime.now(UTC),
    )


def _program() -> tuple[str, ...]:
    """Return the command with which systemd and cron call this virtual environment's program; links stay."""
    program = Path(sys.executable).parent / "plimsoll"
    return (str(program),) if program.exists() else (sys.executable, "-m", "plimsoll")


def _find_unknown(options: tuple[str, ...]) -> list[str]:
    """Return those of `options` that plimsoll regress does not know."""
    if not options:
        return []
    from plimsoll.analysis.regress.regress import regress

    try:
        regress.make_parser(click.Context(regress)).parse_args(list(options))
    except click.UsageError as error:
        return [f"plimsoll regress: {error.format_message()}"]
    return []


def install_whole(
    todo: list[LocalStep], wanted: Schedule, place: ScheduleFolders, found: InstalledSchedule
) -> None:
    """Install it; of a schedule that is new, nothing stays where that fails. Raises PlimsollError."""
    try:
        carry_out(todo)
    except PlimsollError as error:
        if found.schedule is not None:
            raise
        with suppress(PlimsollError):
            carry_out(plan_removal(wanted.name, place, find_installed(wanted.name, place), purge=False))
        raise SettingsError(f"{error}: nothing was installed") from None
