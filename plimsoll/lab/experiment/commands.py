"""`plimsoll check`, `run`, `status` and `clean`: an experiment, from its lab.yml to what it leaves behind.

What carries them out is imported when a command is called, so that its help is there at once.
"""

import contextlib
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from plimsoll.common.commands import json_option, progress_option
from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.notify import channel_options
from plimsoll.common.progress import LiveFigures, metrics_options
from plimsoll.common.units import counted

_WELL = ("running", "finished")


@click.command()
@click.argument("file", metavar="LAB.yml", type=click.Path(path_type=Path))
@click.option(
    "--plan",
    "with_plan",
    is_flag=True,
    help="Print instead, in order, every command with which `plimsoll run` would change something.",
)
@click.option("--no-probe", is_flag=True, help="Check only the file; contact no machine.")
@json_option
@click.pass_context
def check(ctx: click.Context, file: Path, with_plan: bool, no_probe: bool, as_json: bool) -> None:
    """Check lab.yml, and that its machines have what it needs. Changes nothing.

    \b
    Examples:
        plimsoll check examples/two-servers.yml
        plimsoll check --no-probe examples/one-machine.yml
        plimsoll check --plan examples/two-servers.yml | less
        plimsoll check --plan examples/two-servers.yml --json | jq '.chapters[].says'

    A plan has what the machines answer now (is there OpenZFS? what is tuned?). In it, `${name}` stands for
    what only the run itself will know: the device that losetup chooses, the folder of a run.

    Exit codes: 0 the experiment can start; 1 something is missing or in the way; 2 the file is wrong.
    """  # noqa: D301 \b is click's: keep these lines as they are
    import asyncio

    from plimsoll.lab.experiment.check import ProbeResult, probe_machines
    from plimsoll.lab.experiment.design import find_half_block, left_out, plan_runs
    from plimsoll.lab.experiment.plan import print_plan, summarize
    from plimsoll.lab.experiment.problems import read_checked

    found, kinds = read_checked(file)
    if with_plan:
        if no_probe:
            raise click.UsageError(
                "--no-probe: cannot be combined with --plan, which asks the machines.", ctx
            )
        print_plan(found, kinds, as_json)
        return
    seen = ProbeResult() if no_probe else asyncio.run(probe_machines(found))
    problems = seen.problems
    if found.notify and (silence := found.notify.silence(os.environ)):
        seen.cautions.append(silence)
    if half := find_half_block(found):
        seen.cautions.append(half)
    if as_json:
        click.echo(json.dumps(asdict(seen) | {"runs": len(plan_runs(found))}, indent=2))
    else:
        for problem in problems:
            click.echo(printable(problem, 2000))
        for caution in seen.cautions:
            click.echo(printable(f"Caution: {caution}.", 2000))
        for sentence in left_out(found):
            click.echo(f"{sentence}.")
        click.echo(summarize(found) if not problems else f"{counted(len(problems), 'problem')}.")
    ctx.exit(1 if problems else 0)


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
    help="As --resume, with the repeats, backends and scenarios that were added to LAB.yml.",
)
@json_option
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

    \b
    Examples:
        plimsoll run examples/two-servers.yml
        plimsoll run --resume
        plimsoll run --resume results/two-servers-*
        plimsoll run --extend examples/two-servers.yml

    Each finished run is kept. After Ctrl-C, kill -9 or a power failure, --resume removes what was left behind
    and continues with the next run.

    Exit codes: 0 all runs are finished; 1 some are not, or it was interrupted; 2 lab.yml is wrong, or it
    cannot start.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from plimsoll.lab.experiment.experiment import carry_out, find_begun, summary
    from plimsoll.lab.experiment.folder import make_folder
    from plimsoll.lab.experiment.notices import failure_result
    from plimsoll.lab.experiment.problems import read_checked

    try:
        live = LiveFigures(metrics, metrics_remote)
        if resume or retry_set_aside or extend:
            folder, lab = find_begun(file, extend)
        elif file is None:
            example = "plimsoll run examples/one-machine.yml"
            raise SettingsError(f"LAB.yml: is missing: name the experiment: {example}")
        else:
            lab, _ = read_checked(file)  # before a folder is made
            folder = make_folder(lab)
        result = carry_out(folder, lab, file, retry_set_aside, live, progress, channels)
    except PlimsollError as error:
        if as_json:
            click.echo(failure_result(error).model_dump_json(indent=2))
        raise
    if as_json:
        click.echo(result.model_dump_json(indent=2))
    elif result.exit_reason != "interrupted":
        click.echo("\n".join(summary(result)))
    ctx.exit(0 if result.exit_reason == "finished" else 1)


@click.command()
@click.argument("file", metavar="[FOLDER|LAB.yml]", required=False, type=click.Path(path_type=Path))
@click.option("--watch", is_flag=True, help="Continue until nothing is running.")
@json_option
@click.pass_context
def status(ctx: click.Context, file: Path | None, watch: bool, as_json: bool) -> None:
    """Show what an experiment does now: its run, phase and figures so far, and when it will end.

    \b
    Examples:
        plimsoll status examples/two-servers.yml --watch
        plimsoll status results/two-servers-* --json | jq .ends_at

    The experiment is the one in that folder, the last one of that lab.yml, or the last in results/. Looking
    does not disturb it. With --json, or where --watch writes to no terminal, --watch prints a line for each
    change, and one a minute.

    Exit codes: 0 it runs, or all runs are finished; 1 nothing runs, and not all runs are finished; 2 the
    experiment does not exist.
    """  # noqa: D301 \b is click's: keep these lines as they are
    from rich.console import Console

    from plimsoll.lab.experiment.folder import find_experiment
    from plimsoll.lab.experiment.status.status import LOOK_S, open_display
    from plimsoll.lab.experiment.status.text import lines
    from plimsoll.lab.experiment.status.watch import StatusReader

    watched = StatusReader(find_experiment(file))
    with contextlib.suppress(OSError):
        os.nice(10)  # the load comes first
    last = watched.read()
    if watch:
        with contextlib.suppress(KeyboardInterrupt), open_display(as_json) as show:
            show(last)
            while last.state == "running":
                time.sleep(LOOK_S)
                last = watched.read()
                show(last)
    if as_json and not watch:
        click.echo(last.model_dump_json(indent=2, by_alias=True))
    elif not as_json and (not watch or Console().is_terminal):
        click.echo("\n".join(lines(last)))
    ctx.exit(0 if last.state in _WELL else 1)


@click.command()
@click.argument("file", metavar="LAB.yml", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="List what is there, and remove nothing.")
@json_option
@click.pass_context
def clean(ctx: click.Context, file: Path, dry_run: bool, as_json: bool) -> None:
    """Remove what experiments of this name left behind: clones, disks, mounts, processes, tuning.

    \b
    Examples:
        plimsoll clean examples/two-servers.yml --dry-run
        plimsoll clean examples/two-servers.yml

    The lab finds them by their names, which begin with plimsoll-NAME--, below its own folder. It touches
    nothing else; finished runs and the golden copy of the site stay.

    Exit codes: 0 nothing is left; 1 something is left; 2 the file is wrong.
    """  # noqa: D301 \b is click's: keep these lines as they are
    import asyncio

    from plimsoll.lab.experiment.clean import remove_leftovers
    from plimsoll.lab.experiment.problems import read_lab

    found = read_lab(file)
    left = asyncio.run(
        remove_leftovers(found, not dry_run, lambda text: click.echo(printable(text, 2000), err=True))
    )
    if as_json:
        click.echo(json.dumps({"left": [asdict(one) for one in left]}, indent=2))
    else:
        for one in left:
            for what in one.what:
                click.echo(printable(f"{one.backend} on {one.machine}: {what}", 2000))
        if not left:
            click.echo("Nothing is left.")
    ctx.exit(1 if left else 0)
