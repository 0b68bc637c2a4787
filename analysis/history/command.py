"""`plimsoll regress`: tonight by the nights before."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from analysis.comparing.gates import Gates, read_gates
from analysis.exporting.outfile import written
from analysis.history.changes import need_otava
from analysis.history.channels import channel_options, open_channels
from analysis.history.data import as_json
from analysis.history.intake import IntakeResult, add_runs
from analysis.history.judgement import EXIT_CODES, Judgement, overall
from analysis.history.junit import junit
from analysis.history.markdown import markdown
from analysis.history.notification import Message
from analysis.history.outbox import announce, deliver
from analysis.history.page import history_page
from analysis.history.pruning import PruningResult, prune
from analysis.history.store import History, history
from analysis.history.text import lines, news
from analysis.history.tonight import judge_tonight, set_baseline
from plimsoll.common.errors import OutputError
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar, progress_option

_PATH = click.Path(path_type=Path)
DEFAULT = Path("results/history.sqlite")


@click.command()
@click.argument("runs", metavar="[RUNS]...", nargs=-1, type=_PATH)
@click.option(
    "--history", "file", metavar="FILE", type=_PATH, default=DEFAULT, show_default=True, help="The history."
)
@click.option(
    "--set-baseline",
    "baseline",
    metavar="NIGHT",
    is_flag=False,
    flag_value="latest",
    help="Make this night and those before it the baseline: `latest`, or its name.",
)
@click.option("--gates", metavar="FILE", type=_PATH, help="Limits against the baseline (docs/compare.md).")
@click.option(
    "--accept", "accepts", is_flag=True, help="Accept the changes reported so far as the new level."
)
@click.option("--junit", "junit_file", metavar="FILE", type=_PATH, help="Write JUnit XML.")
@click.option("--markdown", "markdown_file", metavar="FILE", type=_PATH, help="Write a summary in Markdown.")
@click.option("--html", metavar="FILE", type=_PATH, help="Write the history as a page.")
@channel_options
@click.option(
    "--keep-raw-days", metavar="N", type=click.FloatRange(min=0), help="Delete older run directories."
)
@click.option("--force", is_flag=True, help="Also delete those of the newest night and of the baseline.")
@click.option("--dry-run", is_flag=True, help="Delete nothing, say what would be.")
@click.option("--json", "prints_json", is_flag=True, help="Print the judgement as JSON.")
@progress_option
def regress(
    runs: tuple[Path, ...],
    file: Path,
    baseline: str | None,
    gates: Path | None,
    accepts: bool,
    junit_file: Path | None,
    markdown_file: Path | None,
    html: Path | None,
    keep_raw_days: float | None,
    force: bool,
    dry_run: bool,
    prints_json: bool,
    progress: bool | None,
    **channel_settings: Any,
) -> None:
    """Add RUNS to the history and judge the last night by those before it.

    RUNS are run directories, folders of them, or experiments' folders, each added once. Without RUNS the last
    night of every experiment in the history is judged.

    Exit codes: 0 nothing worse; 1 something is; 3 tonight cannot be judged; 2 wrong usage.

    \b
    Examples:
        plimsoll regress results/one-machine-20261121T040512Z
        plimsoll regress results/one-machine-* --set-baseline latest
        plimsoll regress --junit regress.xml --markdown regress.md --html history.html
        plimsoll regress results/last --notify-command 'mail -s regression ops@example.org' --keep-raw-days 30
    """  # noqa: D301 \b is click's: keep these lines as they are
    need_otava()
    for path in (junit_file, markdown_file, html):
        if path is not None and path.is_dir():
            raise OutputError(f"{path}: is a directory; give the name of a file")
    limits = None if gates is None else read_gates(gates)
    channels = open_channels(channel_settings)
    with history(file) as kept:
        intake = None
        if runs:
            with progress_bar("reading", "runs", is_shown(progress)) as advance:
                intake = add_runs(kept, runs, advance)
        with kept.transaction():  # a change that is noted as reported has its message
            judged = _judged(kept, intake, baseline, accepts, limits)
            for each in judged:
                if each.has_news:
                    announce(kept, _key(each), _message(each), list(channels))
        if junit_file is not None:
            _write(junit_file, junit(judged))
        if markdown_file is not None:
            _write(markdown_file, markdown(judged).encode())
        if html is not None:
            _write(html, history_page(judged).encode())
        problems = deliver(kept, channels)
        pruned = None if keep_raw_days is None else prune(kept, keep_raw_days, force, dry_run)
    if prints_json:
        click.echo(json.dumps(as_json(judged), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(lines(judged)))
    _report(intake, problems, pruned, dry_run)
    sys.exit(EXIT_CODES[overall(judged)])


def _judged(
    kept: History, intake: IntakeResult | None, baseline: str | None, accepts: bool, limits: Gates | None
) -> list[Judgement]:
    names = kept.experiments() if intake is None else intake.experiments
    if baseline is not None:
        set_baseline(kept, names, baseline, limits)
    if accepts:
        for name in names:
            kept.accept_changes(name)
    return [found for name in names if (found := judge_tonight(kept, name, limits))]


def _key(judgement: Judgement) -> str:
    """Return what tells this night's message from all others."""
    return f"{judgement.experiment}\n{judgement.night.name}\n{judgement.verdict}"


def _message(judgement: Judgement) -> Message:
    return Message(judgement.verdict, news(judgement), markdown([judgement]))


def _write(path: Path, data: bytes) -> None:
    with written(path) as file:
        file.write(data)


def _report(
    intake: IntakeResult | None, problems: list[str], pruned: PruningResult | None, dry_run: bool
) -> None:
    """Print on standard error what is no part of the judgement."""
    said = [] if intake is None else [f"left out: {each}" for each in intake.unreadable]
    said += problems
    if pruned is not None:
        verb = "would be deleted" if dry_run else "deleted"
        if dry_run:
            said += pruned.runs
        said.append(f"raw data of {len(pruned.runs)} runs {verb}, {pruned.size_bytes:,} bytes")
        said += [f"kept: {each}" for each in pruned.spared]
    for each in said:
        click.echo(printable(each, 2000), err=True)
