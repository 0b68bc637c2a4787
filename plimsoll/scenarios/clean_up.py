"""The command `plimsoll scenario clean-up`: removes what runs left on a WordPress."""

import json
import sys
from pathlib import Path
from typing import Any, ClassVar

import click
from pydantic import Field

from plimsoll.common.commands import json_option, yes_option
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.scenarios import CLEAN_UP_DOES
from plimsoll.scenarios.running.settings import ChangingSettings, cautions, click_options, validate_options


class Settings(ChangingSettings):
    """Settings of a clean-up: where the site is, who logs in, and with whose permission."""

    NOT_OPTIONS: ClassVar[set[str]] = {
        *("out", "backend", "repeat", "seed", "iterations", "duration_s", "users")
    }
    timeout_s: float = Field(
        60.0, gt=0, le=86400, description="Seconds of silence after which a request fails."
    )


@click.command(
    "clean-up",
    params=[each for each in click_options(Settings) if each.name not in Settings.NOT_OPTIONS],
    short_help=CLEAN_UP_DOES,
)
@click.argument("directories", nargs=-1, metavar="[RUN_DIRECTORY]...", type=click.Path(path_type=Path))
@click.option(
    "--run",
    multiple=True,
    metavar="NAME",
    help="Only what bears this run's name; may be repeated. all: that of any run.",
)
@yes_option
@click.option("--dry-run", is_flag=True, help="List only, and remove nothing.")
@json_option
def clean_up(
    directories: tuple[Path, ...],
    run: tuple[str, ...],
    yes: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find and remove what runs of scenarios left on a WordPress.

    \b
    Examples:
        plimsoll scenario clean-up --target http://127.0.0.1:8080 --i-may-change-this-site
        plimsoll scenario clean-up --target http://127.0.0.1:8080 --i-may-change-this-site --run all --yes
        plimsoll scenario clean-up results/latest --target http://127.0.0.1:8080 --i-may-change-this-site

    Scenarios mark what they create: titles and file names end with the run's name (plimsoll-run-…), and only
    what bears one is touched. With run directories it looks for what those runs created, including what only
    their events name; otherwise for everything that bears a run's name, or those of --run. It lists what it
    finds and asks before it removes anything; without a terminal it removes only with --yes, which requires
    the runs to be named.

    Needs the account that made it, or an editor's. Changes on the site: deletes articles and images.

    Exit codes: 0 nothing is left; 1 something is left, or could not be removed; 2 wrong usage.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.scenarios.running.client import SiteClient, StepFailedError
    from plimsoll.scenarios.running.clonelist import credentials, require_consent
    from plimsoll.scenarios.wordpress.account import Rest, log_in
    from plimsoll.scenarios.wordpress.leftovers import (
        ALL,
        Leftovers,
        count_kinds,
        describe_end,
        describe_found,
        find_leftovers,
        read_request,
        remove,
    )

    settings = validate_options(Settings, options)
    for caution in cautions(settings):
        click.echo(caution, err=True)
    wanted = read_request(run, directories, settings.target)
    if yes and dry_run:
        raise SettingsError("--yes: cannot be combined with --dry-run")
    if yes and not wanted.is_named:
        raise SettingsError(
            f"--yes: name the runs: with --run NAME, with run directories, or with --run {ALL} for every "
            "run's, also of those that have not ended"
        )
    who = credentials(settings)
    require_consent(settings, "clean-up")
    site = SiteClient(settings, lambda _: None)
    try:
        log_in(site, who)
        there = Leftovers(Rest(site, who))
        found = find_leftovers(there, wanted)
        if not as_json:
            click.echo("\n".join(describe_found(found)))
        question = f"Delete {count_kinds(found.leftovers)} permanently?"
        may_ask = not as_json and sys.stdin.isatty()
        if found.leftovers and not dry_run and (yes or (may_ask and click.confirm(question, err=True))):
            remove(there, wanted, found)
    except StepFailedError as error:
        raise CleanUpFailedError(f"{settings.target}: {error}") from None
    finally:
        site.close()
    if as_json:
        data = {
            "target": settings.target,
            "found": [one.__dict__ for one in found.leftovers],
            "removed": [{"kind": one.kind, "number": one.number} for one in found.removed],
            "stays": [{"kind": kind, "number": number, "why": why} for kind, number, why in found.stays],
            "failed": found.failed,
        }
        click.echo(json.dumps(data, indent=2))
    else:
        click.echo("\n".join(describe_end(found, dry_run)))
    raise SystemExit(0 if found.is_clean else 1)


class CleanUpFailedError(click.ClickException):
    """The site refused, or did not answer: exit code 1."""

    def show(self, file: Any = None) -> None:
        """Print it without what comes from the site taking over the terminal."""
        click.echo(f"Error: {printable(self.message, 2000)}", err=True)
