"""`plimsoll run`: the whole experiment, from one file."""

import json
import os
import shutil
import sys
from pathlib import Path

import click

from analysis.errors import PlimsollError, SettingsError
from analysis.hostile import printable
from analysis.progress import is_shown, progress_bar, progress_option
from analysis.report.make import make_report
from lab.experiment.experiment import Experiment, Outcome, carried_out
from lab.experiment.folder import Folder, folders, make_folder
from lab.experiment.kinds import kinds_of
from lab.experiment.settings import Lab, read_lab
from scenarios.k6build import k6_program

_OWN_SITE = ("compose", "qemu")
_ON_K6 = ("visitors", "browser")


@click.command()
@click.argument("file", metavar="[LAB.yml]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the experiment begun last: of that file's name, in that folder, or of all in results/.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what came of it as JSON on standard output.")
@progress_option
@click.pass_context
def run(ctx: click.Context, file: Path | None, resume: bool, as_json: bool, progress: bool | None) -> None:
    """Carry out an experiment: clone the site onto each backend, run every scenario there, write the report.

    Each finished run is kept. After Ctrl-C, kill -9 or a loss of power, --resume removes what was left behind
    and goes on with the next run.

    \b
    Examples:
        plimsoll run examples/one-machine.yml
        plimsoll run --resume
        plimsoll run --resume results/one-machine-20261121T040512Z

    Exit codes: 0 all runs are finished; 1 some are not, or it was interrupted; 2 lab.yml is wrong, or it
    cannot begin.
    """  # noqa: D301 \b is click's: keep these lines as they are
    folder, lab = _begun(file) if resume else _new(file)
    kinds = kinds_of(lab, str(file or folder.path))
    _account(lab)
    if any(choice.scenario in _ON_K6 for choice in lab.scenarios):
        k6_program(_say)  # built now where need be, so that no run begins with it
    _say(f"The experiment is in {folder.path}.")
    try:
        with progress_bar(lab.name, "runs", is_shown(progress)) as advance:
            outcome = carried_out(Experiment(lab, folder, kinds, _say, advance))
    except KeyboardInterrupt:
        _say(f"Interrupted; what was made is removed. Go on: plimsoll run --resume {folder.path}")
        ctx.exit(1)
    except PlimsollError:
        if not folder.journal.path.exists():  # it did not even begin
            shutil.rmtree(folder.path, ignore_errors=True)
        raise
    report = _report(folder)
    if as_json:
        data = {"directory": str(folder.path), "report": report and str(report), **vars(outcome)}
        click.echo(json.dumps(data, indent=2))
    else:
        click.echo("\n".join(_told(outcome, folder, report)))
    ctx.exit(0 if outcome.well else 1)


def _new(file: Path | None) -> tuple[Folder, Lab]:
    if file is None:
        raise SettingsError("LAB.yml: say which experiment: plimsoll run examples/one-machine.yml")
    lab = read_lab(file)
    kinds_of(lab, str(file))  # before a folder is made
    return make_folder(lab), lab


def _begun(file: Path | None) -> tuple[Folder, Lab]:
    """Find the experiment to go on with. Raises SettingsError."""
    if file is not None and file.is_dir():
        folder = Folder(file)
        return folder, folder.settings()
    if file is not None:
        lab = read_lab(file)
        found, where = list(folders(lab.out, lab.name)), f"of the name {lab.name} in {lab.out}"
    else:
        found, where = list(folders(Path("results"))), "in results"
    if not found:
        raise SettingsError(f"--resume: there is no experiment {where}; begin one: plimsoll run LAB.yml")
    return found[0], found[0].settings()


def _account(lab: Lab) -> None:
    """Where all clones are of our own site, log in as its administrator, whose password is no secret."""
    if all(backend.clone.driver in _OWN_SITE for backend in lab.backends):
        os.environ.setdefault("PLIMSOLL_USER", "admin")
        os.environ.setdefault("PLIMSOLL_PASSWORD", "plimsoll-clone")


def _report(folder: Folder) -> Path | None:
    if not folder.runs:
        return None
    path = folder.path / "report.html"
    try:
        make_report(folder.runs, path, lambda _done, _total: None)
    except PlimsollError as error:
        _say(f"The report cannot be written: {error}")
        return None
    return path


def _told(outcome: Outcome, folder: Folder, report: Path | None) -> list[str]:
    total = len(outcome.finished) + len(outcome.not_done)
    told = [f"{len(outcome.finished)} of {total} runs are finished, in {folder.path / 'runs'}."]
    told += [printable(f"{name} was set aside: {why}", 2000) for name, why in outcome.set_aside.items()]
    if outcome.not_done:
        told.append(f"Not done: {', '.join(outcome.not_done)}")
    return [*told, f"Report: {report}"] if report else told


def _say(text: str) -> None:
    print(printable(text, 2000), file=sys.stderr)
