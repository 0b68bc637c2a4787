"""`plimsoll lab plan`: an experiment, command by command, and how long it takes."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from plimsoll.common.units import counted, seconds
from plimsoll.lab.experiment.design import (
    Design,
    PlannedRun,
    left_out,
    measured_rigs,
    planned,
    preconditioned_rigs,
    rigs_in,
    variants,
)
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.load import loads_of
from plimsoll.lab.experiment.machines import DryMachine, Machines
from plimsoll.lab.experiment.problems import read_checked
from plimsoll.lab.experiment.rig import Rig, StepGroup, by_variant, rigs_of
from plimsoll.lab.experiment.scenarios import TraitsByScenario
from plimsoll.lab.experiment.status.forecast import Course, left_s, precondition_s
from plimsoll.lab.experiment.volumes import (
    planned_words,
    steps_after_measuring,
    steps_before_filling,
    steps_before_measuring,
)
from plimsoll.lab.fileio.measure import commands
from plimsoll.lab.names import Label
from plimsoll.lab.saturators import find_saturator_kind, make_saturator
from plimsoll.lab.steps.step import Command, Step, as_shell
from plimsoll.lab.tuning import Tuning
from plimsoll.lab.tuning import TuningPlan as TuningSteps
from plimsoll.lab.tuning.apply import plan_for_host as planned_tuning
from plimsoll.lab.tuning.plan import drop_own, own_disk_commands, resolve_own, run_commands

ATTEMPT = "${attempt}"  # the folder of a run that is being done


@click.command()
@click.argument("file", metavar="LAB.yml", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")
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
    click.echo(f"# {summarize(found)}")


async def _planned(found: Lab, kinds: TraitsByScenario) -> list[dict[str, Any]]:
    machines = Machines(found)
    try:
        rigs = await rigs_of(found, machines, lambda _name, _step: None)
        return [as_data(one) | {"lines": lines(one)} for one in await chapters(found, rigs, kinds)]
    finally:
        await machines.close()


def summarize(found: Lab) -> str:
    """Return in a line how much an experiment does, and about how long it takes. Pure."""
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


def lasts_s(lab: Lab) -> float | None:
    """Return about how long it takes, None where a scenario has no end of its own. Pure."""
    plan = Design.of(lab)
    cells = dict.fromkeys(measured_rigs(lab), lab.fileio.all_cells) if lab.fileio else {}
    return left_s(
        plan, list(plan.runs.values()), set(), Course().spent, None, cells, precondition_s(plan, [], None)
    )


@dataclass(frozen=True)
class Chapter:
    """The steps on one machine for one purpose."""

    says: str
    machine: str
    backend: str
    parts: tuple[StepGroup, ...]


async def chapters(lab: Lab, rigs: list[Rig], kinds: TraitsByScenario) -> list[Chapter]:
    """Return all that would be done, in order. Looks at the machines, changes nothing. Raises LabError."""
    found = by_variant(rigs)
    tunings = {
        name: await planned_tuning(rig.machine, _by_name(rig, rig.outfits[name][0].tuning))
        for name, rig in found.items()
    }
    script = _Script(lab, kinds, tunings)
    filled, measured = preconditioned_rigs(lab), measured_rigs(lab)
    for rig in rigs:
        if rig.name in filled:
            await script.fill(rig, next(iter(rig.outfits)))
        if rig.name in measured:
            await script.measure(rig, next(iter(rig.outfits)))
    for run in planned(lab):
        await script.run(run, found[run.backend])
    removed = (_chapter(f"remove {rig.name}", rig, tuple(rig.remove(rig.name in filled))) for rig in rigs)
    return [*script.chapters, *removed]


class _Script:
    """The chapters so far, and what has been made by then."""

    def __init__(self, lab: Lab, kinds: TraitsByScenario, tunings: Mapping[str, TuningSteps]) -> None:
        self._lab, self._kinds, self._tunings = lab, kinds, tunings
        self._plain = {variant.name: variant.lab for variant in variants(lab)}
        self.chapters: list[Chapter] = []
        self._made: set[str] = set()
        self._prepared: set[str] = set()
        self._saturating: dict[str, StepGroup] = {}
        self._dirty: set[str] = set()

    async def fill(self, rig: Rig, variant: str) -> None:
        """Fill the volume of a rig and overwrite it, as `variant` tunes the host."""
        await self._make(rig, variant)
        tuned, untuned = self._tuned(rig, variant)
        parts = (tuned, *await _filling(self._lab, rig), untuned)
        self._add(f"fill the volume of {rig.name}, and overwrite it until it is steady", rig, parts)

    async def measure(self, rig: Rig, variant: str) -> None:
        """Measure the volume of a rig, as `variant` tunes the host."""
        await self._make(rig, variant)
        tuned, untuned = self._tuned(rig, variant)
        parts = (tuned, *await _measuring(self._lab, rig), untuned)
        self._add(f"measure the volume of {rig.name} with {_programs(self._lab)}", rig, parts)

    async def run(self, run: PlannedRun, rig: Rig) -> None:
        """Do a run on its rig."""
        lab = self._plain[run.backend]
        await self._make(rig, run.backend)
        if run.backend not in self._saturating:
            self._saturating[run.backend] = await _saturating(lab, rig)
        tuned, untuned = self._tuned(rig, run.backend, of_clone=True)
        parts = (
            tuned,
            rig.reset(restore=rig.name in self._dirty),
            StepGroup("load", _load(lab, run, self._kinds, rig)),
            self._saturating[run.backend],
            rig.rest(),
            untuned,
        )
        self._add(f"run {run.number}: {run.scenario} on {run.backend}, repeat {run.repeat}", rig, parts)
        (self._dirty.add if self._kinds[run.scenario].changes else self._dirty.discard)(rig.name)

    async def _make(self, rig: Rig, variant: str) -> None:
        """Make a rig unless it stands, and let it wear `variant`."""
        rig.wear(variant)
        if rig.name in self._made:
            return
        self._made.add(rig.name)
        prepare = StepGroup("", ()) if rig.backend.host in self._prepared else await rig.prepare()
        if prepare.steps:
            self._prepared.add(rig.backend.host)
        tuned, untuned = self._tuned(rig, variant)
        parts = (prepare, rig.make_disk(), tuned, rig.make_clone(), untuned, rig.limit())
        self._add(f"make {rig.name}", rig, parts)

    def _tuned(self, rig: Rig, variant: str, of_clone: bool = False) -> tuple[StepGroup, StepGroup]:
        """Return the steps that tune the host as `variant` says, which `rig` wears, and put it back.

        `of_clone`: also the clone's own datasets.
        """
        tuning = self._tunings[variant]
        steps = list(tuning.apply_steps)
        if (place := rig.place) and rig.makes_disk:
            steps += own_disk_commands(rig.backend.tuning, place.devices, place.dataset)
        if of_clone:
            steps += run_commands(rig.backend.tuning, rig.clone.data().parts)
        return (
            StepGroup("tune the host", tuple(steps)),
            StepGroup("put the host's settings back", tuning.put_back_steps),
        )

    def _add(self, says: str, rig: Rig, parts: tuple[StepGroup, ...]) -> None:
        self.chapters.append(_chapter(says, rig, parts))


async def _filling(lab: Lab, rig: Rig) -> list[StepGroup]:
    """Return the commands that fill a volume, and the one of each round: on a machine that does nothing."""
    if rig.filling is None or lab.precondition is None:
        return []
    fill, overwrite = planned_words(rig.filling, lab.precondition)
    steps: list[Step] = []
    await rig.saturated_on(DryMachine(rig.machine.name, steps.append, {}), _Unknown()).run(overwrite)
    return [
        *steps_before_filling(rig, rig.filling),
        StepGroup("fill the volume", (Command("", tuple(fill)), rig.filling.mark("${filling}"))),
        rig.limit(),
        StepGroup("overwrite it, round after round until it is steady", tuple(steps)),
    ]


async def _measuring(lab: Lab, rig: Rig) -> list[StepGroup]:
    """Return the commands of fileio on a volume: on a machine that does nothing."""
    if rig.files is None or lab.fileio is None:
        return []
    steps: list[Step] = []
    machine = rig.saturated_on(DryMachine(rig.machine.name, steps.append, {}), _Unknown())
    for part in lab.fileio.parts:
        for words in commands(rig.files.settings(part, rig.name), part.cells):
            await machine.run(words)
    return [
        *steps_before_measuring(rig, rig.files),
        StepGroup("measure", tuple(steps)),
        steps_after_measuring(rig.files),
    ]


def _programs(lab: Lab) -> str:
    return "sysbench fileio and fio" if lab.fileio and lab.fileio.fsync else "sysbench fileio"


def _by_name(rig: Rig, tuning: Tuning) -> Tuning:
    """Return what of `tuning` can be looked at before the disk is made."""
    place = rig.place
    if place is None or rig.makes_disk:
        return drop_own(tuning)
    return resolve_own(tuning, place.devices, place.dataset, {})


def lines(chapter: Chapter) -> list[str]:
    """Return a chapter as it is printed: a script with comments. Pure."""
    script = [f"# {chapter.says} (on {chapter.machine})"]
    for part in chapter.parts:
        script.append(f"## {part.says}")
        script += [_line(step) for step in part.steps]
    return script


def _line(step: Step) -> str:
    short = replace(step, words=tuple(map(_short, step.words))) if isinstance(step, Command) else step
    line, *text = as_shell(short).split("\n", 1)
    return "\n".join([f"{line}   # {step.says}" if step.says else line, *text])


def _short(word: str) -> str:
    """Return the first line of a script; `--json` has all of it."""
    first, _, further = word.strip().partition("\n")
    return f"{first} … [{further.count(chr(10)) + 1} more lines]" if further else word


def as_data(chapter: Chapter) -> dict[str, Any]:
    """Return a chapter for `--json`. Pure."""
    steps = [
        {"part": part.says, "says": step.says, "command": as_shell(step)}
        | ({"words": list(step.words)} if isinstance(step, Command) else {})
        for part in chapter.parts
        for step in part.steps
    ]
    return {"says": chapter.says, "machine": chapter.machine, "backend": chapter.backend, "steps": steps}


def _chapter(says: str, rig: Rig, parts: tuple[StepGroup, ...]) -> Chapter:
    return Chapter(says, rig.machine.name, rig.name, tuple(part for part in parts if part.steps))


def _load(lab: Lab, run: PlannedRun, kinds: TraitsByScenario, rig: Rig) -> tuple[Command, ...]:
    target = rig.clone.target(_Unknown())
    loads = loads_of(lab, run, kinds, target, ATTEMPT, rig.is_ours)
    return tuple(Command(load.says, tuple(load.command)) for load in loads)


async def _saturating(lab: Lab, rig: Rig) -> StepGroup:
    """Return the commands of the saturator's first rounds: it works on a machine that does nothing."""
    settings = rig.saturator(lab)
    if settings is None:
        return StepGroup("saturate", ())
    steps: list[Step] = []
    kind = find_saturator_kind(settings)
    statuses = {words: (await rig.machine.run(words, check=False)).status for words in kind.questions}
    dry = DryMachine(rig.machine.name, steps.append, statuses, kind.rounds(kind.brief(settings)))
    machine = rig.saturated_on(dry, _Unknown())
    label = Label(lab.name).saturator(rig.name)
    busy = make_saturator(machine, kind.brief(settings), label, lambda _event: None)
    await busy.start()
    await dry.started.wait()
    await busy.stop()
    return StepGroup(f"saturate, again and again: {settings.kind}", tuple(steps))


class _Unknown(dict[str, str]):
    """Stands for the values that steps would capture: each is shown as a reference."""

    def __missing__(self, key: str) -> str:
        return "${" + key + "}"
