"""`plimsoll regress`: tonight by the nights before.

Messages go out by an outbox in the history's file: once a channel, again where they did not arrive.
"""

import getpass
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import click

from plimsoll.analysis.compare.gates import Gates, read_gates
from plimsoll.analysis.page.verdict import DocumentFiles, document_options, markdown, text_lines
from plimsoll.analysis.regress.changes import need_otava
from plimsoll.analysis.regress.intake import (
    IntakeResult,
    PruningResult,
    add_runs,
    prune,
    select_readable,
)
from plimsoll.analysis.regress.judge import chosen_nights, names_that_drop
from plimsoll.analysis.regress.judgement import (
    EXIT_CODES,
    Judgement,
    JudgingOptions,
    as_json,
    judgement_document,
    message_subject,
    overall,
)
from plimsoll.analysis.regress.nights import Decision, build_series, group_name, instant
from plimsoll.analysis.regress.page import history_page
from plimsoll.analysis.regress.store import HistoryStore, now, open_history
from plimsoll.analysis.regress.tonight import judge_last_night, read_experiment
from plimsoll.common.errors import HistoryError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.notify import Channel, Message, NotDeliveredError, channel_options, open_channels
from plimsoll.common.progress import is_shown, progress_bar, progress_option
from plimsoll.common.units import counted, parse_duration_s

DEFAULT = Path("results/history.sqlite")
MOST_ATTEMPTS = 20  # nights: after that nobody waits for it
DEAD_AFTER_S = 600.0  # an attempt that has not ended by then was killed
# Neither sent, nor being sent by a process that lives.
_PENDING = "(delivered_at IS NULL OR (delivered_at LIKE 'since %' AND delivered_at < ?))"
_PATH = click.Path(path_type=Path)
_MOST_SHOWN = 20
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
@click.option("--new", is_flag=True, help="Begin the history with RUNS; there is none at that place yet.")
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

    \b
    Examples:
        plimsoll regress results/one-machine-20261121T040512Z --new
        plimsoll regress results/one-machine-* --set-baseline latest
        plimsoll regress --junit regress.xml --markdown regress.md --html history.html
        plimsoll regress --accept --note 'the new kernel costs that much; we keep it'
        plimsoll regress --drop sata --note 'sold in October'
        plimsoll regress results/last --notify-command 'mail -s regression ops@example.org' --keep-raw-days 30

    RUNS are run directories, folders of them, or experiments' folders, each added once. Without RUNS the last
    night of every experiment in the history is judged.

    Exit codes: 0 nothing is worse; 1 something is, until it recovers or is accepted; 2 wrong usage; 3
    something cannot be judged.
    """  # noqa: D301 \b is click's: keep these lines as they are
    need_otava()
    files = DocumentFiles(junit_file, markdown_file, html)
    limits = None if gates is None else read_gates(gates)
    channels = open_channels(further)
    deciding = _read_decision_options(further)
    terms = JudgingOptions(datetime.now(UTC), stale_after_s, tell_once)
    if not new and not file.exists():
        raise HistoryError(f"{file}: there is no history: correct the path, or begin one there with --new")
    if new and file.exists():
        raise HistoryError(f"{file}: is there already, so it cannot begin: leave out --new")
    if new and not runs:
        raise HistoryError(f"{file}: cannot begin without a run: give RUNS, too")
    selected = select_readable(runs) if runs else None
    if zone is not None and not (selected and any(run.facts.from_log for run in selected.runs)):
        raise SettingsError("--time-zone: belongs to imported access logs, and there is none among RUNS")
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
        problems = _deliver(kept, channels)
        pruned = None if keep_raw_days is None else prune(kept, keep_raw_days, force, dry_run)
    if prints_json:
        click.echo(json.dumps(as_json(judged), indent=2, allow_nan=False))
    else:
        click.echo(
            "\n".join(text_lines(document)) or "The history holds no night yet: plimsoll regress RUNS..."
        )
    _report(intake, [*idle, *empty, *problems], pruned, dry_run)
    sys.exit(EXIT_CODES["unjudged" if empty else overall(judged)])


def _message_key(judgement: Judgement) -> str:
    """Return what tells this night's message from all others."""
    late = "\nstale" if judgement.is_stale else ""
    return f"{judgement.experiment}\n{judgement.night.name}\n{judgement.verdict}{late}"


def _report(
    intake: IntakeResult | None, problems: list[str], pruned: PruningResult | None, dry_run: bool
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


@dataclass(frozen=True)
class DecisionOptions:
    """What is to be decided, why, and who decides it. `baseline` is None where none is to be set."""

    baseline: str | None
    accepts: bool
    drops: tuple[str, ...]
    note: str
    by: str

    def apply(self, history: HistoryStore, experiments: Sequence[str], gates: Gates | None) -> list[str]:
        """Decide it of `experiments`. Return what had no effect, a sentence each. Raises SettingsError."""
        if self.baseline is not None:
            self._set_baseline(history, experiments, self.baseline, gates)
        accepted = [self._accept(history, name) for name in experiments] if self.accepts else []
        if self.drops:
            self._drop(history, experiments)
        return (
            ["--accept: nothing was reported that is still to be accepted"]
            if accepted and not any(accepted)
            else []
        )

    def _accept(self, history: HistoryStore, experiment: str) -> bool:
        """Accept what was reported of `experiment`; return whether there was anything."""
        past = read_experiment(history, experiment)
        seen = [night for night in past.nights if night.findings is not None]  # others were just added
        if not seen:
            return False
        names = {night.id: night.name for night in past.nights}
        what = [
            f"{group_name(row.group)} since {names[row.night]}"
            for row in past.changes
            if not row.accepted and row.recovered is None and row.kind != "better"
        ]
        what += [
            f"{found.name} ({found.text.rstrip('.')})"
            for found in seen[-1].findings or ()
            if found.disqualifies
        ]
        if what:
            at, last = now(), seen[-1].id
            history.accept_changes(experiment, at)
            history.note_decision(
                experiment, self._decision("accept", "; ".join(dict.fromkeys(what)), last, at)
            )
            history.look_again([last])
        return bool(what)

    def _set_baseline(
        self, history: HistoryStore, experiments: Sequence[str], night: str, gates: Gates | None
    ) -> None:
        """Make `night` (its name, or `latest`) and those before it the baseline of those that have it."""
        done = 0
        for name in experiments:
            # What changed is found before it becomes the level.
            before = judge_last_night(history, name, gates)
            changed = max((at for each in before.series for at in each.changes), default=0) if before else 0
            nights = history.nights(name)
            chosen = chosen_nights(nights, night, changed)
            if chosen is not None:
                at = now()
                history.set_baseline(chosen, name)
                history.accept_changes(name, at)
                last = next(each.name for each in nights if each.id == chosen[-1])
                history.note_decision(name, self._decision("baseline", last, nights[-1].id, at))
                done += 1
        if not done:
            last_nights = [each.name for name in experiments for each in history.nights(name)][-5:]
            has = ", ".join(printable(each, 80) for each in last_nights) or "none"
            raise SettingsError(
                f"--set-baseline {printable(night, 80)}: there is no such night; the last are: {has}"
            )

    def _drop(self, history: HistoryStore, experiments: Sequence[str]) -> None:
        pasts = [past for name in experiments if (past := read_experiment(history, name)).nights]
        known = {past.experiment: names_that_drop(past, build_series(past)) for past in pasts}
        for name in self.drops:
            mine = [past for past in pasts if name in known[past.experiment]]
            if not mine:
                there = dict.fromkeys(each for names in known.values() for each in names)
                has = ", ".join(printable(each, 80) for each in list(there)[:_MOST_SHOWN]) or "none"
                raise SettingsError(
                    f"--drop {printable(name, 80)}: there is nothing of this name; there are: {has}"
                )
            for past in mine:
                drop = self._decision("drop", name, past.nights[-1].id, now())
                history.note_decision(past.experiment, drop)

    def _decision(
        self, kind: Literal["accept", "baseline", "drop"], name: str, night: int, at: str
    ) -> Decision:
        return Decision(kind, name, night, at, self.by, self.note)


def _read_decision_options(options: Mapping[str, Any]) -> DecisionOptions:
    """Return what is to be decided. Raises SettingsError with all problems."""
    baseline, accepts, drops = options["baseline"], options["accepts"], options["drops"]
    note, by = (options["note"] or "").strip(), (options["by"] or "").strip()
    problems = []
    if (accepts or drops) and not note:
        asked = "--accept" if accepts else "--drop"
        problems.append(f"{asked}: also say why, for those who read the history: --note TEXT")
    if not (accepts or drops or baseline is not None):
        problems += [
            f"{option}: belongs to --accept, --drop or --set-baseline"
            for option, value in (("--note", options["note"]), ("--by", options["by"]))
            if value is not None
        ]
    if problems:
        raise SettingsError("\n".join(problems))
    return DecisionOptions(baseline, accepts, tuple(drops), note, by or _login())


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def announce(history: HistoryStore, key: str, message: Message, names: Sequence[str]) -> None:
    """Keep a message to be sent, once a `key`, by the channels `names`."""
    with history.transaction():
        cursor = history.connection.execute(
            "INSERT OR IGNORE INTO message (key, made_at, verdict, subject, markdown) VALUES (?, ?, ?, ?, ?)",
            (key, now(), message.verdict, message.subject, message.markdown),
        )
        if cursor.rowcount:
            for name in names:
                history.connection.execute(
                    "INSERT INTO delivery (message, channel) VALUES (?, ?)", (cursor.lastrowid, name)
                )


def _deliver(history: HistoryStore, by: Mapping[str, Channel]) -> list[str]:
    """Send what is to be sent, and note what arrived. Return what did not, a sentence each."""
    problems = []
    for name, send in by.items():
        pending = history.connection.execute(
            "SELECT message.* FROM delivery JOIN message "  # noqa: S608 our own text
            f"ON message.id = delivery.message WHERE channel = ? AND {_PENDING} AND attempts < ? "
            "ORDER BY message.id",
            (name, _abandoned_mark(), MOST_ATTEMPTS),
        ).fetchall()
        for row in pending:
            if not _claim(history, row["id"], name):
                continue
            try:
                send(Message(row["verdict"], row["subject"], row["markdown"]))
            except NotDeliveredError as error:
                _settle(history, row["id"], name, None)
                problems.append(f"the message did not go out, and will be sent again next time: {error}")
            else:
                _settle(history, row["id"], name, now())
    return problems


def _claim(history: HistoryStore, message: int, channel: str) -> bool:
    """Take a message to send it: of two processes, one gets it. An attempt counts before it is made."""
    with history.transaction():
        cursor = history.connection.execute(
            "UPDATE delivery SET attempts = attempts + 1, delivered_at = 'since ' || ? "  # noqa: S608 our own
            f"WHERE message = ? AND channel = ? AND {_PENDING}",
            (now(), message, channel, _abandoned_mark()),
        )
        return cursor.rowcount == 1


def _abandoned_mark() -> str:
    """Return the mark of the youngest attempt that must have died."""
    return f"since {instant(datetime.now(UTC) - timedelta(seconds=DEAD_AFTER_S))}"


def _settle(history: HistoryStore, message: int, channel: str, at: str | None) -> None:
    with history.transaction():
        history.connection.execute(
            "UPDATE delivery SET delivered_at = ? WHERE message = ? AND channel = ?", (at, message, channel)
        )
