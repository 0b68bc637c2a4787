"""`plimsoll regress`: tonight by the nights before."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from plimsoll.analysis.comparing.gates import read_gates
from plimsoll.analysis.exporting.outfile import written
from plimsoll.analysis.regress.changes import need_otava
from plimsoll.analysis.regress.data import as_json
from plimsoll.analysis.regress.deciding import deciding_of, deciding_options
from plimsoll.analysis.regress.intake import IntakeResult, add_runs, select_readable
from plimsoll.analysis.regress.judgement import EXIT_CODES, Judgement, Terms, overall
from plimsoll.analysis.regress.junit import junit
from plimsoll.analysis.regress.markdown import markdown
from plimsoll.analysis.regress.outbox import announce, deliver
from plimsoll.analysis.regress.page import history_page
from plimsoll.analysis.regress.pruning import PruningResult, prune
from plimsoll.analysis.regress.selection import RunSelection
from plimsoll.analysis.regress.store import History, history
from plimsoll.analysis.regress.text import lines, news
from plimsoll.analysis.regress.tonight import judge_tonight
from plimsoll.common.durations import parse_duration_s
from plimsoll.common.errors import HistoryError, OutputError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar, progress_option
from plimsoll.news.channels import channel_options, open_channels
from plimsoll.news.notification import Message

_PATH = click.Path(path_type=Path)
DEFAULT = Path("results/history.sqlite")


def _duration(_: click.Context, __: click.Parameter, text: str) -> float:
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@click.argument("runs", metavar="[RUNS]...", nargs=-1, type=_PATH)
@click.option(
    "--history", "file", metavar="FILE", type=_PATH, default=DEFAULT, show_default=True, help="The history."
)
@click.option("--new", is_flag=True, help="Begin the history with RUNS; there is none at that place yet.")
@deciding_options
@click.option("--gates", metavar="FILE", type=_PATH, help="Limits against the baseline (docs/compare.md).")
@click.option(
    "--stale-after",
    "stale_after_s",
    metavar="DURATION",
    default="36h",
    show_default=True,
    callback=_duration,
    help="A newest night that began longer ago than this cannot be judged.",
)
@click.option(
    "--time-zone",
    "zone",
    metavar="ZONE",
    help="Days of imported access logs begin by this zone, such as Europe/Berlin.  [default: UTC]",
)
@click.option("--tell-once", is_flag=True, help="End with 1 only in the night that reports a change.")
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
    prints_json: bool,
    progress: bool | None,
    **further: Any,
) -> None:
    """Add RUNS to the history and judge the last night by those before it.

    RUNS are run directories, folders of them, or experiments' folders, each added once. Without RUNS the last
    night of every experiment in the history is judged.

    Exit codes: 0 nothing worse; 1 something is, until it is mended or accepted; 3 something cannot be judged;
    2 wrong usage.

    \b
    Examples:
        plimsoll regress results/one-machine-20261121T040512Z --new
        plimsoll regress results/one-machine-* --set-baseline latest
        plimsoll regress --junit regress.xml --markdown regress.md --html history.html
        plimsoll regress --accept --note 'the new kernel costs that much; we keep it'
        plimsoll regress --drop sata --note 'sold in October'
        plimsoll regress results/last --notify-command 'mail -s regression ops@example.org' --keep-raw-days 30
    """  # noqa: D301 \b is click's: keep these lines as they are
    need_otava()
    documents = _Documents(junit_file, markdown_file, html)
    limits = None if gates is None else read_gates(gates)
    channels = open_channels(further)
    deciding = deciding_of(further)
    terms = Terms(datetime.now(UTC), stale_after_s, tell_once)
    _check_place(file, new, bool(runs))
    selected = select_readable(runs) if runs else None
    if zone is not None and not (selected and any(run.facts.from_log for run in selected.runs)):
        raise SettingsError("--time-zone: belongs to imported access logs, and there is none among RUNS")
    with history(file) as kept:
        intake = None if selected is None else _taken_in(kept, selected, is_shown(progress), zone)
        with kept.transaction():  # a change that is noted as reported has its message
            names = kept.experiments() if intake is None else intake.experiments
            idle = deciding.carry_out(kept, names, limits)
            judged = [found for name in names if (found := judge_tonight(kept, name, limits, terms))]
            for each in (one for last in judged for one in (*last.earlier, last)):
                if each.has_news:
                    announce(kept, _key(each), _message(each), list(channels))
        empty = [] if judged else [f"{printable(name, 80)}: no day of its log is over yet" for name in names]
        documents.write(judged)
        problems = deliver(kept, channels)
        pruned = None if keep_raw_days is None else prune(kept, keep_raw_days, force, dry_run)
    if prints_json:
        click.echo(json.dumps(as_json(judged), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(lines(judged)))
    _report(intake, [*idle, *empty, *problems], pruned, dry_run)
    sys.exit(EXIT_CODES["unjudged" if empty else overall(judged)])


def _taken_in(kept: History, selected: RunSelection, shown: bool, zone: str | None) -> IntakeResult:
    with progress_bar("reading", "runs", shown) as advance:
        return add_runs(kept, selected, advance, zone)


@dataclass(frozen=True)
class _Documents:
    """The files that a judgement is written to; None is none."""

    junit: Path | None
    markdown: Path | None
    html: Path | None

    def __post_init__(self) -> None:
        for path in (self.junit, self.markdown, self.html):
            if path is not None and path.is_dir():
                raise OutputError(f"{path}: is a directory; give the name of a file")

    def write(self, judged: Sequence[Judgement]) -> None:
        """Write each, whole or not at all. Raises OutputError."""
        if self.junit is not None:
            _write(self.junit, junit(judged))
        if self.markdown is not None:
            _write(self.markdown, markdown(judged).encode())
        if self.html is not None:
            _write(self.html, history_page(judged).encode())


def _check_place(file: Path, new: bool, has_runs: bool) -> None:
    """Return if a history is where one is to be read, or none where one is to begin. Raises HistoryError."""
    if not new and not file.exists():
        raise HistoryError(f"{file}: there is no history: correct the path, or begin one there with --new")
    if new and file.exists():
        raise HistoryError(f"{file}: is there already, so it cannot begin: leave out --new")
    if new and not has_runs:
        raise HistoryError(f"{file}: cannot begin without a run: give RUNS, too")


def _key(judgement: Judgement) -> str:
    """Return what tells this night's message from all others."""
    late = "\nstale" if judgement.is_stale else ""
    return f"{judgement.experiment}\n{judgement.night.name}\n{judgement.verdict}{late}"


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
