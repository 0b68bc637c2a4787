"""`plimsoll run`: the whole experiment, from one file."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from plimsoll.analysis.report.report import make_report
from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.notify import channel_options
from plimsoll.common.progress import LiveFigures, is_shown, metrics_options, progress_option
from plimsoll.common.units import counted
from plimsoll.lab.clones import driver_of
from plimsoll.lab.experiment.checked import read_checked
from plimsoll.lab.experiment.experiment import Experiment, ExperimentOutcome, planned, run_experiment
from plimsoll.lab.experiment.extension import alone, changes, extended_runs
from plimsoll.lab.experiment.find import NoExperimentError, find_experiment
from plimsoll.lab.experiment.folder import ExperimentFolder, make_folder
from plimsoll.lab.experiment.notices import open_notices
from plimsoll.lab.experiment.replay_options import REPLAY
from plimsoll.lab.experiment.result import RunResult, result_of
from plimsoll.lab.experiment.scenario_kinds import prepare, traits_of
from plimsoll.lab.experiment.settings import Lab, read_lab
from plimsoll.lab.experiment.status.display import shown_beside, stamped
from plimsoll.lab.experiment.status.look import Watch
from plimsoll.lab.experiment.status.news import phase_changes
from plimsoll.lab.experiment.volume_choice import left_out
from plimsoll.rundir.names import REPORT_FILE, RUNS_FOLDER
from plimsoll.scenarios import find_scenario
from plimsoll.scenarios.k6.build import k6_program


@click.command()
@click.argument("file", metavar="[LAB.yml]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--resume",
    is_flag=True,
    help="Continue the last experiment: the one of that file's name, the one in that folder, or the last in "
    "results/.",
)
@click.option(
    "--retry-set-aside",
    is_flag=True,
    help="As --resume, and try again what was set aside.",
)
@click.option(
    "--extend",
    is_flag=True,
    help="As --resume, with the further repeats, backends and scenarios that LAB.yml has by now.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")
@progress_option
@metrics_options
@channel_options
@click.pass_context
def run(
    ctx: click.Context,
    /,
    file: Path | None,
    resume: bool,
    retry_set_aside: bool,
    extend: bool,
    as_json: bool,
    progress: bool | None,
    metrics: str | None,
    metrics_remote: bool,
    **channels: Any,
) -> None:
    """Run an experiment: clone the site onto each backend, run every scenario there, and write the report.

    Each finished run is kept. After Ctrl-C, kill -9 or a power failure, --resume removes what was left behind
    and continues with the next run.

    \b
    Examples:
        plimsoll run examples/one-machine.yml
        plimsoll run --resume
        plimsoll run --resume results/one-machine-20261121T040512Z
        plimsoll run --extend examples/one-machine.yml

    Exit codes: 0 all runs are finished; 1 some are not, or it was interrupted; 2 lab.yml is wrong, or it
    cannot start.
    """  # noqa: D301 \b is click's: keep these lines as they are
    try:
        live = LiveFigures(metrics, metrics_remote)
        result = _carried_out(file, _Start(resume, retry_set_aside, extend), live, progress, channels)
    except PlimsollError as error:
        if as_json:
            click.echo(result_of(error).model_dump_json(indent=2))
        raise
    if as_json:
        click.echo(result.model_dump_json(indent=2))
    elif result.exit_reason != "interrupted":
        click.echo("\n".join(_summary(result)))
    ctx.exit(0 if result.exit_reason == "finished" else 1)


@dataclass(frozen=True)
class _Start:
    """How it starts: anew, or going on with what was begun."""

    resume: bool
    retry_set_aside: bool
    extend: bool

    @property
    def goes_on(self) -> bool:
        """True where an experiment was begun before."""
        return self.resume or self.retry_set_aside or self.extend


def _carried_out(
    file: Path | None,
    start: _Start,
    live: LiveFigures,
    progress: bool | None,
    channels: Mapping[str, Any],
) -> RunResult:
    """Carry the experiment out and write its report. Raises PlimsollError where it cannot begin or go on."""
    folder, lab = _begun(file, start.extend) if start.goes_on else _new(file)
    kinds = traits_of(lab, str(file or folder.path))
    _account(lab)
    names = {member.scenario for choice in lab.scenarios for member in choice.members}
    if any(find_scenario(name).runs_on_k6 for name in names - {REPLAY}):
        k6_program(_say)  # built now if needed, so that no run begins with a build
    if start.retry_set_aside:
        folder.journal.try_again()
    prepare(lab, _say)
    for sentence in left_out(lab):
        _say(f"{sentence}.")
    _say(f"The experiment is in {folder.path}.")
    try:
        notices = open_notices(lab.notify, lab.name, folder.path, channels, _say)
        fancy = is_shown(progress) and sys.stderr.isatty()
        beside = shown_beside(lambda: Watch(folder), fancy, phase_changes)
        with live.show(folder.path, _say), notices.around(), beside:
            outcome = run_experiment(Experiment(lab, folder, kinds, _say, notices))
    except KeyboardInterrupt:
        why = f"Interrupted; nothing is left behind. To continue: plimsoll run --resume {folder.path}"
        _say(why)
        return RunResult(directory=str(folder.path), exit_reason="interrupted", error=why)
    except PlimsollError:
        if not folder.journal.path.exists():  # it did not even begin
            shutil.rmtree(folder.path, ignore_errors=True)
        raise
    report = _report(folder)
    result = RunResult(
        directory=str(folder.path),
        report=str(report) if report else None,
        **vars(outcome),
        exit_reason="finished" if outcome.well else "unfinished",
        error=None if outcome.well else "; ".join(_unfinished(outcome)),
    )
    notices.ended(result)
    notices.close()
    return result


def _new(file: Path | None) -> tuple[ExperimentFolder, Lab]:
    if file is None:
        raise SettingsError("LAB.yml: is missing: name the experiment: plimsoll run examples/one-machine.yml")
    lab, _ = read_checked(file)  # before a folder is made
    return make_folder(lab), lab


def _begun(file: Path | None, extend: bool) -> tuple[ExperimentFolder, Lab]:
    """Find the experiment to go on with. Raises SettingsError."""
    if extend and (file is None or file.is_dir()):
        raise SettingsError("--extend: takes the changed LAB.yml: plimsoll run --extend LAB.yml")
    try:
        folder = find_experiment(file)
    except NoExperimentError as error:
        raise SettingsError(f"--resume: {error}") from None
    if file is None or file.is_dir():
        return folder, folder.settings()
    if extend:
        _extend(folder, read_checked(file)[0], file)
    else:
        for change in changes(folder.settings(), read_lab(file)):
            _say(f"{file}: {change.sentence}: ignored; {change.refusal or '--extend takes it over'}.")
    return folder, folder.settings()


def _extend(folder: ExperimentFolder, lab: Lab, file: Path) -> None:
    """Take over what `lab` has besides. Raises SettingsError with every change that cannot be."""
    before = folder.settings()
    found = changes(before, lab)
    if problems := [f"{file}: {change.sentence}: {change.refusal}" for change in found if change.refusal]:
        raise SettingsError("\n".join(problems))
    if folder.journal.is_held:
        raise SettingsError(f"--extend: {folder.path} is being carried out: stop it first, or wait for it")
    runs = folder.planned() or planned(before)
    further = extended_runs(runs, lab)[len(runs) :]
    folder.extend(lab, [*runs, *further])
    for change in found:
        _say(f"{file}: {change.sentence}: taken over.")
    _say(f"{counted(len(further), 'run')} more, {len(runs) + len(further)} in all.")
    if late := alone(runs, further):
        _say(
            f"All runs on {', '.join(late)} come after those on the others, so what drifts in between looks "
            "like a difference: raise repeats too, and they alternate."
        )


def _account(lab: Lab) -> None:
    """Log in as the administrator where all clones are of the lab's own site: its password is no secret."""
    if all(driver_of(backend.clone).has_own_site for backend in lab.backends):
        os.environ.setdefault("PLIMSOLL_USER", "admin")
        os.environ.setdefault("PLIMSOLL_PASSWORD", "plimsoll-clone")


def _report(folder: ExperimentFolder) -> Path | None:
    subjects = folder.runs or ([folder.fileio] if folder.fileio.exists() else [])
    if not subjects:
        return None
    path = folder.path / REPORT_FILE
    try:
        made = make_report(subjects, path, lambda _done, _total: None)
    except PlimsollError as error:
        _say(f"Cannot write the report: {error}")
        return None
    for sentence in made.sentences():
        _say(sentence)
    return path


def _summary(result: RunResult) -> list[str]:
    total = len(result.finished) + len(result.not_done)
    runs = Path(result.directory or "") / RUNS_FOLDER
    lines = [f"{len(result.finished)} of {total} runs are finished, in {runs}."]
    lines += _unfinished(result)
    return [*lines, f"Report: {result.report}"] if result.report else lines


def _unfinished(of: ExperimentOutcome | RunResult) -> list[str]:
    lines = [printable(f"{name} was set aside: {why}", 2000) for name, why in of.set_aside.items()]
    if lines:
        lines.append("To try again what was set aside: plimsoll run --retry-set-aside")
    lines += [
        printable(f"fileio on {name} is not finished: {why}", 2000) for name, why in of.not_measured.items()
    ]
    if of.not_measured:
        lines.append("To measure what lacks of the volumes: plimsoll run --resume")
    return [*lines, f"Not done: {', '.join(of.not_done)}"] if of.not_done else lines


def _say(text: str) -> None:
    print(printable(text, 2000) if sys.stderr.isatty() else stamped(text), file=sys.stderr, flush=True)
