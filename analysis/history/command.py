"""`plimsoll regress`: tonight by the nights before."""

import json
import sys
from pathlib import Path

import click

from analysis.comparing.gates import Gates, read_gates
from analysis.errors import OutputError, SettingsError
from analysis.exporting.outfile import written
from analysis.history.adding import Added, add
from analysis.history.baseline import chosen_nights
from analysis.history.changes import need_otava
from analysis.history.data import as_json
from analysis.history.judgement import EXIT_CODES, Judgement, overall
from analysis.history.judging import accept, judge
from analysis.history.junit import junit
from analysis.history.markdown import markdown
from analysis.history.notifying import Message, announce, channels, deliver
from analysis.history.page import history_page
from analysis.history.pruning import Pruned, prune
from analysis.history.schema import writing
from analysis.history.store import History, history
from analysis.history.text import lines, news
from analysis.hostile import printable
from analysis.progress import is_shown, progress_bar, progress_option

_PATH = click.Path(path_type=Path)
DEFAULT = Path("results/history.sqlite")


@click.command()
@click.argument("runs", metavar="[RUNS]...", nargs=-1, type=_PATH)
@click.option(
    "--history", "file", metavar="FILE", type=_PATH, default=DEFAULT, show_default=True, help="The history."
)
@click.option(
    "--set-baseline",
    metavar="NIGHT",
    is_flag=False,
    flag_value="latest",
    help="Make this night and those before it the baseline: `latest`, or its name.",
)
@click.option("--gates", metavar="FILE", type=_PATH, help="Limits against the baseline (docs/compare.md).")
@click.option("--accept", "accepts", is_flag=True, help="Accept what was told: it is the new level.")
@click.option("--junit", "junit_file", metavar="FILE", type=_PATH, help="Write JUnit XML.")
@click.option("--markdown", "markdown_file", metavar="FILE", type=_PATH, help="Write a summary in Markdown.")
@click.option("--html", metavar="FILE", type=_PATH, help="Write the history as a page.")
@click.option("--notify-command", metavar="COMMAND", help="Run this on news, with the Markdown as its input.")
@click.option(
    "--webhook-file",
    metavar="FILE",
    type=_PATH,
    help="POST news to the URL in this file; without it to that in PLIMSOLL_WEBHOOK, if set.",
)
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
    set_baseline: str | None,
    gates: Path | None,
    accepts: bool,
    junit_file: Path | None,
    markdown_file: Path | None,
    html: Path | None,
    notify_command: str | None,
    webhook_file: Path | None,
    keep_raw_days: float | None,
    force: bool,
    dry_run: bool,
    prints_json: bool,
    progress: bool | None,
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
    by = channels(notify_command, webhook_file)
    with history(file) as kept:
        added = None
        if runs:
            with progress_bar("reading", "runs", is_shown(progress)) as advance:
                added = add(kept, runs, advance)
        with writing(kept.connection):  # what is noted as told has its message
            judged = _judged(kept, added, set_baseline, accepts, limits)
            for each in judged:
                if each.tells:
                    text = Message(each.verdict, news(each), markdown([each]))
                    key = f"{each.experiment}\n{each.night.night.key.name}\n{each.verdict}"
                    announce(kept, key, text, list(by))
        if junit_file is not None:
            _write(junit_file, junit(judged))
        if markdown_file is not None:
            _write(markdown_file, markdown(judged).encode())
        if html is not None:
            _write(html, history_page(judged).encode())
        problems = deliver(kept, by)
        pruned = None if keep_raw_days is None else prune(kept, keep_raw_days, force, dry_run)
    if prints_json:
        click.echo(json.dumps(as_json(judged), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(lines(judged)))
    _say(added, problems, pruned, dry_run)
    sys.exit(EXIT_CODES[overall(judged)])


def _judged(
    kept: History, added: Added | None, baseline: str | None, accepts: bool, limits: Gates | None
) -> list[Judgement]:
    names = kept.experiments() if added is None else added.experiments
    if baseline is not None:
        _set_baseline(kept, names, baseline, limits)
    if accepts:
        for name in names:
            accept(kept, name)
    return [found for name in names if (found := judge(kept, name, limits))]


def _set_baseline(kept: History, names: list[str], baseline: str, limits: Gates | None) -> None:
    done = 0
    for name in names:
        nights = kept.nights(name)
        before = judge(kept, name, limits)  # what changed is found before it becomes the level
        changed = max((at for each in before.series for at in each.changes), default=0) if before else 0
        chosen = chosen_nights(nights, baseline, changed)
        if chosen is not None:
            kept.set_baseline(chosen, name)
            accept(kept, name)
            done += 1
    if not done:
        last = [night.night.key.name for name in names for night in kept.nights(name)][-5:]
        has = ", ".join(printable(each, 80) for each in last) or "none"
        raise SettingsError(
            f"--set-baseline {printable(baseline, 80)}: there is no such night; the last are: {has}"
        )


def _write(path: Path, data: bytes) -> None:
    with written(path) as file:
        file.write(data)


def _say(added: Added | None, problems: list[str], pruned: Pruned | None, dry_run: bool) -> None:
    """Say on standard error what is no part of the judgement."""
    said = []
    if added is not None:
        said += [f"left out: {each}" for each in added.unreadable]
    said += problems
    if pruned is not None:
        verb = "would be deleted" if dry_run else "deleted"
        if dry_run:
            said += pruned.runs
        said.append(f"raw data of {len(pruned.runs)} runs {verb}, {pruned.size_bytes:,} bytes")
        said += [f"kept: {each}" for each in pruned.spared]
    for each in said:
        click.echo(printable(each, 2000), err=True)
