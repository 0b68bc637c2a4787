"""`plimsoll check --plan`: an experiment, command by command, and how long it takes."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import click

from plimsoll.common.units import counted, seconds
from plimsoll.lab.experiment.design import (
    Design,
    left_out,
    measured_rigs,
    plan_runs,
    preconditioned_rigs,
    rigs_in,
    variants,
)
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.load import build_loads
from plimsoll.lab.experiment.machines import DryMachine, Machines
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.lab.experiment.rig import Rig, StepGroup, build_rigs, rigs_by_variant
from plimsoll.lab.experiment.scenarios import TraitsByScenario
from plimsoll.lab.experiment.slices import describe_slices
from plimsoll.lab.experiment.status.forecast import ExperimentProgress, left_s, precondition_s
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
from plimsoll.lab.tuning import TuningPlan as TuningSteps
from plimsoll.lab.tuning.apply import plan_for_host as planned_tuning
from plimsoll.lab.tuning.plan import drop_own, own_disk_commands, resolve_own, run_commands

_ATTEMPT = "${attempt}"  # the folder of a run that is being done


def print_plan(found: Lab, kinds: TraitsByScenario, as_json: bool) -> None:
    """Print in order every command with which `plimsoll run` would change something, and the total time.

    It reads from the machines and changes nothing. Raises LabError if they do not answer.
    """
    planned = asyncio.run(_read_chapters(found, kinds))
    if as_json:
        data: dict[str, Any] = {
            "runs": [asdict(run) for run in plan_runs(found)],
            "about_s": expected_s(found),
        }
        if found.factors:
            shown = ((each.name, each.rig, each.levels) for each in variants(found))
            data["variants"] = [
                {"name": name, "clone": rig, "factors": levels} for name, rig, levels in shown
            ]
        if slices := describe_slices(found):
            data["slices"] = slices
        click.echo(json.dumps(data | {"chapters": planned}, indent=2))
        return
    for chapter in planned:
        click.echo("\n".join(chapter["lines"]) + "\n")
    for sentence in left_out(found):
        click.echo(f"# {sentence}.")
    for sentence in describe_slices(found):
        click.echo(f"# {sentence}")
    click.echo(f"# {summarize(found)}")


async def _read_chapters(found: Lab, kinds: TraitsByScenario) -> list[dict[str, Any]]:
    machines = Machines(found)
    try:
        rigs = await build_rigs(found, machines, lambda _name, _step: None)
        return [
            chapter_data(one) | {"lines": script_lines(one)}
            for one in await plan_chapters(found, rigs, kinds)
        ]
    finally:
        await machines.close()


def summarize(found: Lab) -> str:
    """Return in a line how much an experiment does, and about how long it takes. Pure."""
    lasts = expected_s(found)
    about = f"about {seconds(lasts)}" if lasts is not None else "its scenarios decide how long"
    runs = counted(len(plan_runs(found)), "run")
    backends = counted(len(found.backends), "backend")
    if found.factors:
        clones = counted(len(rigs_in(found)), "clone")
        backends = f"{counted(len(variants(found)), 'variant')} of {backends} on {clones}"
    parts = [backends, counted(len(found.scenarios), "scenario"), counted(found.repeats, "repeat")]
    if found.precondition and (count := len(preconditioned_rigs(found))):
        parts.append(f"{counted(count, 'volume')} filled to {found.precondition.fill_percent} %")
    if found.fileio and (count := len(measured_rigs(found))):
        cells = counted(len(found.fileio.all_cells), "cell")
        parts.append(f"fileio of {counted(count, 'volume')} by {cells}")
    return f"{found.name}: {runs} ({', '.join(parts)}), {about}."


def expected_s(lab: Lab) -> float | None:
    """Return about how long it takes in seconds; None where a scenario that ends by itself decides. Pure."""
    design = Design.of(lab)
    cells = dict.fromkeys(measured_rigs(lab), lab.fileio.all_cells) if lab.fileio else {}
    spent, filling_s = ExperimentProgress().spent, precondition_s(design, [], None)
    return left_s(design, list(design.runs.values()), set(), spent, None, cells, filling_s)


@dataclass(frozen=True)
class Chapter:
    """The steps on one machine for one purpose."""

    says: str
    machine: str
    backend: str
    parts: tuple[StepGroup, ...]


async def plan_chapters(lab: Lab, rigs: list[Rig], kinds: TraitsByScenario) -> list[Chapter]:
    """Return all that would be done, in order. Looks at the machines, changes nothing. Raises LabError."""
    found = rigs_by_variant(rigs)
    tunings = {}
    for name, rig in found.items():
        tuning, place = rig.variants[name][0].tuning, rig.place
        if place is None or rig.makes_disk:  # which cannot be looked at yet
            tuning = drop_own(tuning)
        else:
            tuning = resolve_own(tuning, place.devices, place.dataset, {})
        tunings[name] = await planned_tuning(rig.machine, tuning)
    script = _Script(lab, kinds, tunings)
    filled, measured = preconditioned_rigs(lab), measured_rigs(lab)
    for rig in rigs:
        if rig.name in filled:
            await script.fill(rig, next(iter(rig.variants)))
        if rig.name in measured:
            await script.measure(rig, next(iter(rig.variants)))
    for run in plan_runs(lab):
        await script.run(run, found[run.backend])
    for rig in rigs:
        script.add(f"remove {rig.name}", rig, tuple(rig.remove(rig.name in filled)))
    return script.chapters


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
        tuned, untuned = self._tuning_steps(rig, variant)
        parts = (tuned, *await _filling(self._lab, rig), untuned)
        self.add(f"fill the volume of {rig.name}, and overwrite it until it is steady", rig, parts)

    async def measure(self, rig: Rig, variant: str) -> None:
        """Measure the volume of a rig, as `variant` tunes the host."""
        await self._make(rig, variant)
        tuned, untuned = self._tuning_steps(rig, variant)
        parts = (tuned, *await _measuring(self._lab, rig), untuned)
        fio = " and fio" if self._lab.fileio and self._lab.fileio.fsync else ""
        self.add(f"measure the volume of {rig.name} with sysbench fileio{fio}", rig, parts)

    async def run(self, run: PlannedRun, rig: Rig) -> None:
        """Do a run on its rig."""
        lab = self._plain[run.backend]
        await self._make(rig, run.backend)
        if run.backend not in self._saturating:
            self._saturating[run.backend] = await _saturating(lab, rig)
        tuned, untuned = self._tuning_steps(rig, run.backend, of_clone=True)
        loads = build_loads(lab, run, self._kinds, rig.clone.target(_Unknown()), _ATTEMPT, rig.is_ours)
        parts = (
            tuned,
            rig.reset(restore=rig.name in self._dirty),
            StepGroup("load", tuple(Command(load.says, tuple(load.command)) for load in loads)),
            self._saturating[run.backend],
            rig.stop(),
            untuned,
        )
        self.add(f"run {run.number}: {run.scenario} on {run.backend}, repeat {run.repeat}", rig, parts)
        (self._dirty.add if self._kinds[run.scenario].changes else self._dirty.discard)(rig.name)

    async def _make(self, rig: Rig, variant: str) -> None:
        """Make a rig unless it stands, and set it to `variant`."""
        rig.use_variant(variant)
        if rig.name in self._made:
            return
        self._made.add(rig.name)
        prepare = StepGroup("", ()) if rig.backend.host in self._prepared else await rig.prepare()
        if prepare.steps:
            self._prepared.add(rig.backend.host)
        tuned, untuned = self._tuning_steps(rig, variant)
        parts = (prepare, rig.make_disk(), tuned, rig.make_clone(), untuned, rig.limit())
        self.add(f"make {rig.name}", rig, parts)

    def _tuning_steps(self, rig: Rig, variant: str, of_clone: bool = False) -> tuple[StepGroup, StepGroup]:
        """Return the steps that tune the host for `variant`, to which `rig` is set, and that put it back.

        `of_clone`: also the clone's own datasets.
        """
        tuning, place = self._tunings[variant], rig.place
        steps = list(tuning.apply_steps)
        if place and rig.makes_disk:  # which is still to be made
            steps += own_disk_commands(rig.backend.tuning, place.devices, place.dataset)
        if of_clone:
            steps += run_commands(rig.backend.tuning, rig.clone.data().parts)
        return (
            StepGroup("tune the host", tuple(steps)),
            StepGroup("put the host's settings back", tuning.put_back_steps),
        )

    def add(self, says: str, rig: Rig, parts: tuple[StepGroup, ...]) -> None:
        """Add a chapter, of the parts that have steps."""
        parts = tuple(part for part in parts if part.steps)
        self.chapters.append(Chapter(says, rig.machine.name, rig.name, parts))


async def _filling(lab: Lab, rig: Rig) -> list[StepGroup]:
    """Return the commands that fill a volume, and the one of each round: on a machine that does nothing."""
    if rig.filling is None or lab.precondition is None:
        return []
    fill, overwrite = planned_words(rig.filling, lab.precondition)
    steps: list[Step] = []
    await rig.under_limits(DryMachine(rig.machine.name, steps.append, {}), _Unknown()).run(overwrite)
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
    machine = rig.under_limits(DryMachine(rig.machine.name, steps.append, {}), _Unknown())
    for part in lab.fileio.parts:
        for words in commands(rig.files.settings(part, rig.name), part.cells):
            await machine.run(words)
    return [
        *steps_before_measuring(rig, rig.files),
        StepGroup("measure", tuple(steps)),
        steps_after_measuring(rig.files),
    ]


def script_lines(chapter: Chapter) -> list[str]:
    """Return a chapter as it is printed: a script with comments. Pure."""
    script = [f"# {chapter.says} (on {chapter.machine})"]
    for part in chapter.parts:
        script.append(f"## {part.says}")
        for step in part.steps:
            short = replace(step, words=tuple(map(_short, step.words))) if isinstance(step, Command) else step
            line, *text = as_shell(short).split("\n", 1)
            script.append("\n".join([f"{line}   # {step.says}" if step.says else line, *text]))
    return script


def _short(word: str) -> str:
    """Return the first line of a script; `--json` has all of it."""
    first, _, further = word.strip().partition("\n")
    return f"{first} … [{further.count(chr(10)) + 1} more lines]" if further else word


def chapter_data(chapter: Chapter) -> dict[str, Any]:
    """Return a chapter for `--json`. Pure."""
    steps = [
        {"part": part.says, "says": step.says, "command": as_shell(step)}
        | ({"words": list(step.words)} if isinstance(step, Command) else {})
        for part in chapter.parts
        for step in part.steps
    ]
    return {"says": chapter.says, "machine": chapter.machine, "backend": chapter.backend, "steps": steps}


async def _saturating(lab: Lab, rig: Rig) -> StepGroup:
    """Return the commands of the saturator's first rounds: it works on a machine that does nothing."""
    settings = rig.saturator(lab)
    if settings is None:
        return StepGroup("saturate", ())
    steps: list[Step] = []
    kind = find_saturator_kind(settings)
    statuses = {words: (await rig.machine.run(words, check=False)).status for words in kind.questions}
    dry = DryMachine(rig.machine.name, steps.append, statuses, kind.rounds(kind.brief(settings)))
    machine = rig.under_limits(dry, _Unknown())
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
