"""`plimsoll regress`: tonight by the nights before."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plimsoll.analysis.page.verdict import DocumentFiles, document_options, markdown, text_lines
from plimsoll.common.commands import json_option, progress_option
from plimsoll.common.errors import HistoryError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.notify import Message, channel_options, open_channels
from plimsoll.common.progress import is_shown, progress_bar
from plimsoll.common.units import counted, parse_duration_s

if TYPE_CHECKING:
    from plimsoll.analysis.regress.intake import IntakeResult, PruningResult
    from plimsoll.analysis.regress.judgement import Judgement

DEFAULT = Path("results/history.sqlite")
_PATH = click.Path(path_type=Path)
_OPTIONS = (
    click.option(
        "--set-baseline",
        "baseline",
        metavar="NIGHT",
        is_flag=False,
        flag_value="latest",
        help="Make this night and those before it the baseline: `latest`, or its name.",
    ),
    click.option(
        "--accept", "accepts", is_flag=True, help="Accept the changes reported so far as the new level."
    ),
    click.option(
        "--drop",
        "drops",
        metavar="NAME",
        multiple=True,
        help="Stop expecting this backend, scenario, series or experiment until it runs again.",
    ),
    click.option("--note", metavar="TEXT", help="Why you accept or drop; kept in the history."),
    click.option("--by", metavar="NAME", help="Who accepts or drops.  [default: your login]"),
)


def _check_duration(_: click.Context, __: click.Parameter, text: str) -> float:
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def decision_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options by which somebody decides."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command()
@click.argument("runs", metavar="[RUNS]...", nargs=-1, type=_PATH)
@click.option(
    "--history", "file", metavar="FILE", type=_PATH, default=DEFAULT, show_default=True, help="The history."
)
@click.option("--new", is_flag=True, help="Begin the history with RUNS, where none is yet.")
@decision_options
@click.option("--gates", metavar="FILE", type=_PATH, help="Limits against the baseline (docs/compare.md).")
@click.option(
    "--stale-after",
    "stale_after_s",
    metavar="DURATION",
    default="36h",
    show_default=True,
    callback=_check_duration,
    help="A newest night that began longer ago than this cannot be judged.",
)
@click.option(
    "--time-zone",
    "zone",
    metavar="ZONE",
    help="Days of imported access logs begin by this zone, such as Europe/Berlin.  [default: UTC]",
)
@click.option("--tell-once", is_flag=True, help="End with 1 only in the night that reports a change.")
@document_options
@click.option("--html", metavar="FILE", type=_PATH, help="Write the history as a page.")
@channel_options
@click.option(
    "--keep-raw-days", metavar="N", type=click.FloatRange(min=0), help="Delete older run directories."
)
@click.option("--force", is_flag=True, help="Also delete those of the newest night and of the baseline.")
@click.option("--dry-run", is_flag=True, help="Delete nothing, say what would be.")
@json_option
@progress_option
def regress(
    runs: tuple[Path, ...],
    file: Path,
    new: bool,
    gates: Path | None,
    stale_after_s: float,
    zone: str | None,
    tell_once: bool,
    junit_file: Path | None,
    markdown_file: Path | None,
    html: Path | None,
    keep_raw_days: float | None,
    force: bool,
    dry_run: bool,
    as_json: bool,
    progress: bool | None,
    **further: Any,
) -> None:
    """Add RUNS to the history and judge the last night by those before it.

    \b
    Examples:
        plimsoll regress results/two-servers-* --new
        plimsoll regress results/two-servers-* --set-baseline latest
        plimsoll regress --junit regress.xml --markdown regress.md --html history.html
        plimsoll regress --accept --note 'the new kernel costs that much; we keep it'
        plimsoll regress --drop old --note 'sold in October'
        plimsoll regress results/two-servers-* --keep-raw-days 30 \\
            --notify-command 'mail -s regression ops@example.org'

    RUNS are run directories, folders of them, or experiments' folders, each added once. Without RUNS the last
    night of every experiment in the history is judged.

    Exit codes: 0 nothing is worse; 1 something is, until it recovers or is accepted; 2 wrong usage; 3
    something cannot be judged.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.analysis.compare.gates import read_gates
    from plimsoll.analysis.regress.decisions import read_decision_options
    from plimsoll.analysis.regress.intake import add_runs, prune, select_readable
    from plimsoll.analysis.regress.judgement import (
        EXIT_CODES,
        JudgingOptions,
        judgement_document,
        judgements_json,
        message_subject,
        overall,
    )
    from plimsoll.analysis.regress.levels import need_otava
    from plimsoll.analysis.regress.page import history_page
    from plimsoll.analysis.regress.store import announce, deliver, open_history
    from plimsoll.analysis.regress.tonight import judge_last_night

    need_otava()
    files = DocumentFiles(junit_file, markdown_file, html)
    limits = None if gates is None else read_gates(gates)
    channels = open_channels(further)
    deciding = read_decision_options(further)
    terms = JudgingOptions(datetime.now(UTC), stale_after_s, tell_once)
    if not new and not file.exists():
        raise HistoryError(f"{file}: is not there: correct the path, or begin a history with --new")
    if new and file.exists():
        raise HistoryError(f"{file}: is there already, so it cannot begin: leave out --new")
    if new and not runs:
        raise HistoryError(f"{file}: cannot begin without a run: give RUNS, too")
    selected = select_readable(runs) if runs else None
    if zone is not None and not (selected and any(run.facts.from_log for run in selected.runs)):
        raise SettingsError("--time-zone: belongs to imported access logs, and none is among RUNS")
    with open_history(file) as kept:
        intake = None
        if selected is not None:
            with progress_bar("reading", "runs", is_shown(progress)) as advance:
                intake = add_runs(kept, selected, advance, zone)
        with kept.transaction():  # a change that is noted as reported has its message
            names = kept.experiments() if intake is None else intake.experiments
            idle = deciding.apply(kept, names, limits)
            judged = [found for name in names if (found := judge_last_night(kept, name, limits, terms))]
            for each in (one for last in judged for one in (*last.earlier, last)):
                if each.has_news:
                    message = Message(
                        each.verdict, message_subject(each), markdown(judgement_document([each]))
                    )
                    announce(kept, _message_key(each), message, list(channels))
        empty = [] if judged else [f"{printable(name, 80)}: no day of its log is over yet" for name in names]
        document = judgement_document(judged)
        files.write(document, lambda: history_page(judged))
        problems = deliver(kept, channels)
        pruned = None if keep_raw_days is None else prune(kept, keep_raw_days, force, dry_run)
    if as_json:
        click.echo(json.dumps(judgements_json(judged), indent=2, allow_nan=False))
    else:
        click.echo(
            "\n".join(text_lines(document)) or "The history holds no night yet: plimsoll regress RUNS..."
        )
    _report(intake, [*idle, *empty, *problems], pruned, dry_run)
    sys.exit(EXIT_CODES["unjudged" if empty else overall(judged)])


def _message_key(judgement: "Judgement") -> str:
    """Return what tells this night's message from all others."""
    late = "\nstale" if judgement.is_stale else ""
    return f"{judgement.experiment}\n{judgement.night.name}\n{judgement.verdict}{late}"


def _report(
    intake: "IntakeResult | None", problems: list[str], pruned: "PruningResult | None", dry_run: bool
) -> None:
    """Print on standard error what is not part of the judgement."""
    lines = [f"left out: {each}" for each in intake.unreadable] if intake else []
    lines += problems
    if pruned is not None:
        verb = "would be deleted" if dry_run else "deleted"
        lines += pruned.runs if dry_run else []
        lines.append(f"raw data of {counted(len(pruned.runs), 'run')} {verb}, {pruned.size_bytes:,} bytes")
        lines += [f"kept: {each}" for each in pruned.spared]
    for line in lines:
        click.echo(printable(line, 2000), err=True)
