"""`plimsoll lab`: what an experiment would do, whether it can, and what an earlier one left."""

import asyncio
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from plimsoll.common.hostile import printable
from plimsoll.common.units import counted, seconds
from plimsoll.lab.experiment.checked import read_checked
from plimsoll.lab.experiment.clean import clean as cleaned
from plimsoll.lab.experiment.experiment import planned
from plimsoll.lab.experiment.factors.variants import rigs_in, variants
from plimsoll.lab.experiment.plan import as_data, chapters, lasts_s, lines
from plimsoll.lab.experiment.precondition_settings import preconditioned_rigs
from plimsoll.lab.experiment.probe import Findings, probe
from plimsoll.lab.experiment.rigs import Machines, rigs_of
from plimsoll.lab.experiment.scenario_kinds import TraitsByScenario
from plimsoll.lab.experiment.settings import Lab, read_lab, schema
from plimsoll.lab.experiment.status.command import status
from plimsoll.lab.experiment.volume_choice import left_out
from plimsoll.lab.experiment.volumes import measured_rigs

_FILE = click.argument("file", metavar="LAB.yml", type=click.Path(path_type=Path))
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")


@click.group()
def lab() -> None:
    """Plan experiments, and clean up what they make.

    An experiment is one file, lab.yml (docs/lab.md). `plimsoll run lab.yml` runs it.
    """


@lab.command()
@_FILE
@click.option("--no-probe", is_flag=True, help="Check only the file; contact no machine.")
@_JSON
@click.pass_context
def check(ctx: click.Context, file: Path, no_probe: bool, as_json: bool) -> None:
    """Check lab.yml, and that its machines have what it needs. Changes nothing.

    \b
    Examples:
        plimsoll lab check examples/one-machine.yml
        plimsoll lab check --no-probe lab.yml

    Exit codes: 0 the experiment can start; 1 something is missing or in the way; 2 the file is wrong.
    """  # noqa: D301 \b is click's: keep these lines as they are
    found, _ = read_checked(file)
    seen = Findings() if no_probe else asyncio.run(probe(found))
    problems = seen.problems
    if found.notify and (unheard := found.notify.unheard(os.environ)):
        seen.cautions.append(unheard)
    if as_json:
        click.echo(json.dumps(asdict(seen) | {"runs": len(planned(found))}, indent=2))
    else:
        for problem in problems:
            click.echo(printable(problem, 2000))
        for caution in seen.cautions:
            click.echo(printable(f"Caution: {caution}.", 2000))
        for sentence in left_out(found):
            click.echo(f"{sentence}.")
        click.echo(_summary(found) if not problems else f"{len(problems)} to be looked at.")
    ctx.exit(1 if problems else 0)


@lab.command()
@_FILE
@_JSON
def plan(file: Path, as_json: bool) -> None:
    """Print in order every command with which `plimsoll run` would change something, and the total time.

    It reads from the machines (is there OpenZFS? what is tuned?) and changes nothing. `${name}` stands for
    what only the run itself will know: the device that losetup chooses, the folder of a run.

    \b
    Examples:
        plimsoll lab plan examples/one-machine.yml | less
        plimsoll lab plan lab.yml --json | jq '.chapters[].says'
    """  # noqa: D301 \b is click's: keep these lines as they are
    found, kinds = read_checked(file)
    chapters = asyncio.run(_planned(found, kinds))
    if as_json:
        data: dict[str, Any] = {"runs": [asdict(run) for run in planned(found)], "about_s": lasts_s(found)}
        if found.factors:
            shown = ((each.name, each.rig, each.levels) for each in variants(found))
            data["variants"] = [
                {"name": name, "clone": rig, "factors": levels} for name, rig, levels in shown
            ]
        click.echo(json.dumps(data | {"chapters": chapters}, indent=2))
        return
    for chapter in chapters:
        click.echo("\n".join(chapter["lines"]) + "\n")
    for sentence in left_out(found):
        click.echo(f"# {sentence}.")
    click.echo(f"# {_summary(found)}")


@lab.command()
@_FILE
@click.option("--list", "list_only", is_flag=True, help="List what is there, and remove nothing.")
@_JSON
@click.pass_context
def clean(ctx: click.Context, file: Path, list_only: bool, as_json: bool) -> None:
    """Remove what experiments of this name left behind: clones, disks, mounts, processes, tuning.

    The lab finds them by their names, which begin with plimsoll-NAME--, below its own folder. It touches
    nothing else; finished runs and the golden copy of the site stay.

    \b
    Examples:
        plimsoll lab clean lab.yml --list
        plimsoll lab clean lab.yml

    Exit codes: 0 nothing is left; 1 something is left; 2 the file is wrong.
    """  # noqa: D301 \b is click's: keep these lines as they are
    found = read_lab(file)
    left = asyncio.run(
        cleaned(found, not list_only, lambda text: click.echo(printable(text, 2000), err=True))
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


@lab.command("schema")
def schema_() -> None:
    """Print the JSON Schema of lab.yml, for editors.

    \b
    Example:
        plimsoll lab schema > lab.schema.json
    """  # noqa: D301 \b is click's: keep these lines as they are
    click.echo(json.dumps(schema(), indent=2))


lab.add_command(status)


async def _planned(found: Lab, kinds: TraitsByScenario) -> list[dict[str, Any]]:
    machines = Machines(found)
    try:
        rigs = await rigs_of(found, machines, lambda _name, _step: None)
        return [as_data(one) | {"lines": lines(one)} for one in await chapters(found, rigs, kinds)]
    finally:
        await machines.close()


def _summary(found: Lab) -> str:
    lasts = lasts_s(found)
    about = f"about {seconds(lasts)}" if lasts is not None else "its scenarios decide how long"
    runs = counted(len(planned(found)), "run")
    backends = counted(len(found.backends), "backend")
    if found.factors:
        clones = counted(len(rigs_in(found)), "clone")
        backends = f"{counted(len(variants(found)), 'variant')} of {backends} on {clones}"
    return (
        f"{found.name}: {runs} ({backends}, {counted(len(found.scenarios), 'scenario')}, "
        f"{counted(found.repeats, 'repeat')}{_of_volumes(found)}), {about}."
    )


def _of_volumes(found: Lab) -> str:
    said = ""
    if found.precondition and (count := len(preconditioned_rigs(found))):
        said = f", {counted(count, 'volume')} filled to {found.precondition.fill_percent} %"
    if found.fileio and (count := len(measured_rigs(found))):
        said += f", fileio of {counted(count, 'volume')} by {counted(len(found.fileio.all_cells), 'cell')}"
    return said
