"""`plimsoll import accesslog`: `bin/replay import` does it, which reads logs as a replay does."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from plimsoll.analysis.exchange.options import run_options
from plimsoll.common.commands import json_option, progress_option
from plimsoll.common.programs import built_replay_program

# Options that `bin/replay import` has under the same name: its flag, its placeholder, its help.
_TEXTS = (
    ("--format", "F", "goaccess preset or log-format string with %T, %D, %L or %n. Default: detected."),
    ("--date-format", "D", "strftime format of %d."),
    ("--time-format", "T", "strftime format of %t."),
    ("--datetime-format", "DT", "strftime format of %x."),
    ("--tz", "ZONE", "Time zone of times without an offset, such as Europe/Berlin. Default: UTC."),
    ("--config", "FILE", "Read the formats from this goaccess.conf; flags take precedence."),
    ("--from", "T", "Only requests that began at or after this time: '2026-11-20 10:00:00'."),
    ("--to", "T", "Only requests that began before this time."),
    ("--backend", "NAME", "Name of the storage under the site, for reports."),
    ("--timeout", "D", "What a request that failed counts as, at least. Default: 60s."),
    ("--seed", "N", "Seed that spreads requests over the second they were logged in. Default: 1."),
)
_LISTS = (
    ("--include", "RE", "Only requests whose target matches one of these regular expressions."),
    ("--exclude", "RE", "No requests whose target matches one of these."),
    ("--route", "NAME=RE", "Count requests whose target matches under this name."),
)
_FLAGS = (
    ("--strict-hosts", "Reject lines whose client is not an IP address, as goaccess does by default."),
    ("--allow-rejects", "Continue when more than 10 % of the lines do not parse."),
    ("--allow-duplicates", "Read logs of which one begins with all that is in another."),
    ("--allow-untimed", "Continue when more than 10 % of the requests have no duration; they are left out."),
)


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@run_options("accesslog")
@click.option(
    "--log-time",
    type=click.Choice(["auto", "received", "finished"]),
    default="auto",
    show_default=True,
    help="Instant of the log's times. auto: %D is Apache's (received), %T, %L and %n are nginx's (finished).",
)
@progress_option
@json_option
def accesslog(
    logs: tuple[str, ...],
    out: Path,
    scenario: str,
    target: str | None,
    log_time: str,
    progress: bool | None,
    as_json: bool,
    **given: object,
) -> None:
    """Import access logs that have durations: what production served becomes a run directory.

    \b
    Examples:
        plimsoll import accesslog access.log* --format '%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T'
        plimsoll import accesslog access.log* --from 2026-11-01 --to 2026-11-15 --backend before \\
            --format '%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T'
        plimsoll report results/latest

    LOG is a path, a glob, several of them, or - for standard input; plain, gzip, bzip2, xz or zstd.

    Exit codes: 0 imported; 1 interrupted or failed; 2 the log has no durations, or cannot be read.
    """  # noqa: D301 \b is click's: keep these lines as they are
    program = built_replay_program()
    words = [f"--out={out}", f"--scenario={scenario}", f"--log-time={log_time}"]
    words += [f"--target={target}"] if target else []
    words += ["--progress" if progress else "--no-progress"] if progress is not None else []
    words += ["--json"] if as_json else []
    sys.stdout.flush()
    os.execv(program, [program, "import", *words, *_words(given), "--", *logs])  # noqa: S606 our own program


def _words(given: dict[str, object]) -> list[str]:
    """Return what was given as flags of `bin/replay import`, each a word. Pure."""
    words = []
    for name, value in given.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, tuple):
            words += [f"{flag}={each}" for each in value]
        elif value is True:
            words.append(flag)
        elif isinstance(value, str):
            words.append(f"{flag}={value}")
    return words


def _add(options: Sequence[click.Option]) -> None:
    accesslog.params[-2:-2] = options


_add([click.Option([flag], metavar=metavar, help=text) for flag, metavar, text in _TEXTS])
_add([click.Option([flag], metavar=metavar, multiple=True, help=text) for flag, metavar, text in _LISTS])
_add([click.Option([flag], is_flag=True, help=text) for flag, text in _FLAGS])
