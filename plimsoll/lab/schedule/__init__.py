"""Nightly regression runs of a lab.yml: `plimsoll schedule`, by a systemd timer or by cron."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from plimsoll.common.commands import CommandGroup, json_option, out_option
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.lab.steps.step import LocalStep, as_shell

if TYPE_CHECKING:
    from plimsoll.lab.schedule.installation import Kind

_Function = TypeVar("_Function", bound=Callable[..., Any])
_LONGEST = 4000


def _options(function: _Function) -> _Function:
    state = click.option(
        "--state",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder for schedules. Default: /var/lib/plimsoll/schedules; if you are not root, in "
        "~/.local/state.",
    )
    return state(json_option(function))


_DRY = click.option("--dry-run", is_flag=True, help="Print the steps, and do nothing.")


@click.group(cls=CommandGroup)
def schedule() -> None:
    """Run a lab.yml every night, by a systemd timer or cron, and judge each night against those before.

    \b
    Examples:
        plimsoll schedule install examples/two-servers.yml
        plimsoll schedule status
    """  # noqa: D301 \b is click's: keep these lines as they are


@schedule.command()
@click.argument("file", metavar="LAB.yml", type=click.Path(path_type=Path))
@click.argument("options", metavar="[-- OPTIONS]...", nargs=-1)
@click.option("--name", metavar="NAME", help="Name of the schedule. Default: the experiment's name.")
@click.option(
    "--at", metavar="HH:MM", help="Run every day at this time, in this machine's time zone. Default: 03:00."
)
@click.option("--on-calendar", metavar="WHEN", help="Run on these days and times, such as 'Mon..Fri 03:00'.")
@click.option(
    "--system", "kind", flag_value="system", help="Use a system-wide systemd timer. Default for root."
)
@click.option("--user", "kind", flag_value="user", help="Use a systemd timer of your own account.")
@click.option(
    "--cron", "kind", flag_value="cron", help="Use a line in your crontab. Default if systemd does not run."
)
@out_option("DIR", "Folder for results: DIR/NAME.", default="results/nights", show_default=True)
@click.option(
    "--history", metavar="FILE", help="File for the history of all nights. Default: DIR/NAME/history.sqlite."
)
@click.option(
    "--resume-missed/--no-resume-missed",
    default=True,
    help="After missed nights, run once when the machine is back on. On by default.",
)
@_DRY
@_options
def install(
    file: Path,
    options: tuple[str, ...],
    name: str | None,
    at: str | None,
    on_calendar: str | None,
    kind: "Kind | None",
    out: str,
    history: str | None,
    resume_missed: bool,
    dry_run: bool,
    state: Path | None,
    as_json: bool,
) -> None:
    """Run LAB.yml every night from now on. OPTIONS are passed to plimsoll regress.

    \b
    Examples:
        plimsoll schedule install examples/two-servers.yml
        plimsoll schedule install examples/two-servers.yml --on-calendar 'Mon..Fri 03:30' --dry-run
        plimsoll schedule install examples/two-servers.yml --name nightly --at 22:00 -- --keep-raw-days 30

    Exit codes: 0 it is installed; 2 LAB.yml or an option is wrong, or systemd or cron refuses.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.lab.schedule import installation
    from plimsoll.lab.schedule.installation import cron_lines, schedule_folders, unit_texts
    from plimsoll.lab.schedule.nights import find_status as status_of
    from plimsoll.lab.schedule.nights import lingering, when
    from plimsoll.lab.schedule.wanted import install_whole, read_wanted

    place = schedule_folders(state)
    wanted = read_wanted(file, name, at, on_calendar, kind, out, history, resume_missed, options, dry_run)
    try:
        texts = (
            cron_lines(wanted, place) if wanted.kind == "cron" else list(unit_texts(wanted, place).values())
        )
    except ValueError as error:
        raise SettingsError(str(error)) from None
    found = installation.find_installed(wanted.name, place)
    if dry_run and found.crontab is None:  # what would be written can be shown all the same
        found = replace(found, crontab="")
    todo = installation.plan_install(wanted, place, found)
    if not dry_run:
        install_whole(todo, wanted, place, found)
    if as_json:
        data = {"name": wanted.name, "installed": not dry_run, "kind": wanted.kind, "written": texts}
        click.echo(json.dumps(data | {"steps": [as_shell(step) for step in todo]}, indent=2))
    elif dry_run:
        _print_steps(todo)
    else:
        status = status_of(
            wanted.name, place, installation.find_installed(wanted.name, place), datetime.now(UTC)
        )
        again = "installed again" if found.schedule else "installed"
        click.echo(
            f"{wanted.name}: {again} ({wanted.kind}); the next night is {when(status.next, status.schedule)}."
        )
        click.echo(f"Results: {wanted.out}")
        for warning in lingering(wanted):
            click.echo(f"Warning: {warning}", err=True)


@schedule.command()
@click.argument("name", metavar="NAME")
@click.option("--purge", is_flag=True, help="Remove its results, history and passwords too.")
@_DRY
@_options
def remove(name: str, purge: bool, dry_run: bool, state: Path | None, as_json: bool) -> None:
    """Stop running NAME every night, and remove its timer or its crontab lines. Results and history stay.

    \b
    Examples:
        plimsoll schedule remove nightly
        plimsoll schedule remove nightly --purge --dry-run

    A night that is running stops as if you had pressed Ctrl-C (with cron, it finishes). You can run this
    again without harm, also after an interrupted install.

    Exit codes: 0 it is removed; 2 something cannot be removed.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.lab.schedule import installation
    from plimsoll.lab.schedule.installation import check_name, schedule_folders
    from plimsoll.lab.schedule.nights import is_night_running

    place = schedule_folders(state)
    found = installation.find_installed(check_name(name), place)
    there = name in installation.list_schedules(place) or (purge and place.folder(name).exists())
    if (
        purge
        and (found.schedule is None or found.schedule.kind == "cron")
        and is_night_running(place.folder(name))
    ):
        raise SettingsError(
            f"--purge: a night of {name} is running: wait until it ends, or leave --purge out"
        )
    todo = installation.plan_removal(name, place, found, purge) if there else []
    if not dry_run:
        installation.carry_out(todo)
    if as_json:
        data = {
            "name": name,
            "removed": there and not dry_run,
            "steps": [as_shell(step) for step in todo],
        }
        click.echo(json.dumps(data, indent=2))
    elif dry_run:
        _print_steps(todo)
    elif not there:
        click.echo(f"{name}: nothing is installed under that name.")
    elif purge or not found.schedule:
        click.echo(f"{name}: removed.")
    else:
        was = found.schedule
        click.echo(f"{name}: removed. Results stay in {was.out}, the history in {was.history}.")


@schedule.command()
@click.argument("name", metavar="[NAME]", required=False)
@_options
@click.pass_context
def status(ctx: click.Context, name: str | None, state: Path | None, as_json: bool) -> None:
    """Show what is installed, when the next night is, how the last one ended, and what is wrong.

    \b
    Examples:
        plimsoll schedule status nightly --json
        plimsoll schedule status

    Exit codes: 0 all is well; 1 the last night, missed nights or the timer need attention; 2 wrong usage.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.lab.schedule import installation
    from plimsoll.lab.schedule.installation import check_name, schedule_folders
    from plimsoll.lab.schedule.nights import find_status as status_of
    from plimsoll.lab.schedule.nights import schedule_json, schedule_lines

    place = schedule_folders(state)
    names = installation.list_schedules(place)
    if name is not None and check_name(name) not in names:
        raise SettingsError(f"NAME: schedule {name} does not exist (installed: {', '.join(names) or 'none'})")
    chosen = [name] if name is not None else names
    statuses = [
        status_of(one, place, installation.find_installed(one, place), datetime.now(UTC)) for one in chosen
    ]
    if as_json:
        click.echo(json.dumps({"schedules": [schedule_json(one) for one in statuses]}, indent=2))
    elif not statuses:
        click.echo("No schedule is installed.")
    else:
        click.echo("\n\n".join("\n".join(schedule_lines(one)) for one in statuses))
    ctx.exit(1 if any(one.problems for one in statuses) else 0)


@schedule.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--timer", is_flag=True, help="For the timer and cron: do not repeat a night that has been run."
)
@_options
@click.pass_context
def now(ctx: click.Context, name: str, timer: bool, state: Path | None, as_json: bool) -> None:
    """Run one night now: the experiment, or the rest of an interrupted one; then plimsoll regress.

    \b
    Examples:
        plimsoll schedule now nightly
        plimsoll schedule now nightly --json

    The timer and cron call this with --timer; under cron it then prints only what is wrong, since cron
    mails whatever is printed. If you call it, it is an extra night. It is skipped while another night runs.

    Exit codes, as for plimsoll regress: 0 nothing is worse, or it was skipped; 1 something is worse; 2 you
    must correct something first; 3 it cannot be judged yet, or the experiment did not finish.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.lab.schedule.installation import read_schedule, schedule_folders
    from plimsoll.lab.schedule.night import run_night

    place = schedule_folders(state)
    installed = read_schedule(place, name)
    done = run_night(installed, place, timer)
    quiet = timer and installed.kind == "cron"  # which mails whatever is printed
    code = 0 if done is None or done.exit is None else done.exit
    if as_json:
        click.echo(json.dumps({"name": name, "night": done and done.model_dump(mode="json")}, indent=2))
    elif done is None and not quiet:
        click.echo(f"{name}: no night is due.")
    elif done is not None and not (quiet and code == 0 and done.outcome == "passed"):
        click.echo(f"{name}: {done.outcome}")
        for line in done.said.splitlines():
            click.echo(printable(line, _LONGEST))
        if done.folder:
            click.echo(f"Runs: {printable(done.folder, _LONGEST)}")
    ctx.exit(code)


def _print_steps(todo: list[LocalStep]) -> None:
    for step in todo:
        says = step.says[:1].upper() + step.says[1:]
        text = "\n".join(printable(line, _LONGEST) for line in as_shell(step).splitlines())
        click.echo(f"# {says}\n{text}")
