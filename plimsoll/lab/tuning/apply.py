"""A tuning applied to a host and put back, through a journal, so that a crash can be undone.

The journal says what everything was, down to the disk before anything is changed. It lies on the machine that
is tuned, in one folder for all experiments, so that the next one there finds it.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from plimsoll.common.validation import sentence_of
from plimsoll.lab.errors import MachineError
from plimsoll.lab.facts import facts
from plimsoll.lab.machine import CommandResult, Machine
from plimsoll.lab.names import StrictModel, is_own
from plimsoll.lab.observers.kstat import ARC_PATHS, parse_kstat
from plimsoll.lab.observers.observer import BUSY_S, read_files
from plimsoll.lab.steps.runner import OnStep, StepRunner
from plimsoll.lab.steps.step import as_shell
from plimsoll.lab.tuning.keys import PropertyValue, Tuning, Value, ZfsValue
from plimsoll.lab.tuning.plan import TuningError, TuningPlan, plan_tuning, touched_values

FOLDER = "/var/lib/plimsoll/tuning"  # whatever `work` is: others must find it
_NAME = re.compile(r"plimsoll-[a-z0-9-]{1,60}")
# $1 is the file. It comes into being whole; who writes it has locked the machine.
_WRITE = """if [ -e "$1" ]; then exit 73; fi
mkdir -p -- "${1%/*}" && cat >"$1.new" && { sync -- "$1.new" 2>/dev/null || sync; } || exit 1
mv -- "$1.new" "$1" || exit 1
sync -- "${1%/*}" 2>/dev/null || sync"""
_READ = '[ -e "$1" ] || [ -L "$1" ] || exit 74; exec cat -- "$1"'
_REMOVE = 'rm -f -- "$1" || exit; [ ! -d "${1%/*}" ] || sync -- "${1%/*}" 2>/dev/null || sync'
_LIST = '[ -e "$1" ] || exit 0; cd -- "$1" && for file in *.json; do printf "%s\\n" "$file"; done'
_THERE, _ABSENT = 73, 74
# While it runs, OpenZFS does not take back the 0 that means its default: what it came to is kept instead.
_DEFAULTED = {"zfs_arc_min": "c_min", "zfs_arc_max": "c_max"}


@dataclass(frozen=True)
class JournalPlace:
    """Where a tuning's journal lies on its machine: `label` names the file, `by` whose tuning it is."""

    label: str
    by: str = ""

    @property
    def path(self) -> str:
        """The file, by the same path on each machine."""
        return f"{FOLDER}/{self.label}.json"


class TuningJournal(StrictModel):
    """The values to put back, in this order, and who changed them. Every name is checked when it is read."""

    format: Literal[1] = 1
    by: str
    put_back: tuple[Value, ...]


async def plan_for_host(machine: Machine, tuning: Tuning) -> TuningPlan:
    """Return the plan that `apply` would carry out on this host now. Raises TuningError, MachineError."""
    current = await read_current(machine, touched_values(tuning))
    return plan_tuning(current, tuning, await find_absent(machine, tuning))


async def apply_tuning(
    machine: Machine, tuning: Tuning, journal: JournalPlace, on_step: OnStep = lambda _: None
) -> TuningPlan:
    """Apply `tuning`, having written to `journal` what `put_back` needs. Returns what was done.

    Where one setting is refused, all are put back. Raises TuningError, MachineError.
    """
    todo = await plan_for_host(machine, tuning)
    runner = StepRunner(machine, on_step=on_step)
    if not todo.apply:
        return todo
    await write_journal(machine, journal, todo.put_back)
    try:
        for value in todo.apply:
            await runner.do([value.step])
    except BaseException as error:
        await put_back(machine, journal, on_step)
        if isinstance(error, MachineError):
            raise TuningError(
                f"{value.key}: cannot be set to {value.value}, so nothing was changed: {error}"
            ) from None
        raise
    return todo


async def put_back(machine: Machine, journal: JournalPlace, on_step: OnStep = lambda _: None) -> None:
    """Put back what `journal` holds and remove it; nothing to do where there is none.

    Doing it twice does no harm. What went away with its disk, dataset or module does not matter. Goes on
    after a failure; then raises TuningError with all of them, and the journal stays.
    """
    found = await read_journal(machine, journal)
    if found is None:
        return
    problems = []
    runner = StepRunner(machine, on_step=on_step)
    for value in found.put_back:
        try:
            # Looked for one by one: a setting may come back with the scheduler that was put back before it.
            if value.key in await read_current(machine, [value]):
                await runner.do([value.step])
            elif await _absent_pool(machine, value):
                problems.append(f"{value.key}: its pool is not imported; import it and try again")
        except MachineError as error:
            problems.append(f"{value.key}: {error}")
    if problems:
        by_hand = "; ".join(as_shell(value.step) for value in found.put_back)
        raise TuningError(
            "\n".join(
                [
                    f"{machine.name}: {journal.path}: could not put everything back:",
                    *problems,
                    f"fix that and try again, or put it back by hand ({by_hand}) and forget it: "
                    f"rm {journal.path}",
                ]
            )
        )
    await remove_journal(machine, journal)


async def put_back_all(machine: Machine, say: Callable[[str], None]) -> None:
    """Put back every tuning that a crash left on `machine`, whoever's it was. Raises TuningError.

    Call it only with exclusive use of the machine: then none of them is at work.
    """
    for place in await find_journals(machine):
        found = await read_journal(machine, place)
        if found is not None:
            keys = ", ".join(f"{value.key} = {value.value}" for value in found.put_back)
            say(f"{machine.name}: is still tuned by {found.by or place.label}: putting back {keys}")
            await put_back(machine, place)


async def find_left_tuned(machine: Machine) -> list[str]:
    """Return what a crash left tuned on `machine`, whoever's, and what `put_back_all` would come to.

    One sentence each. Looks only. Raises MachineError.
    """
    problems = []
    for place in await find_journals(machine):
        try:
            found = await read_journal(machine, place)
        except TuningError as error:
            problems.append(str(error))
            continue
        if found is not None:
            keys = ", ".join(f"{value.key} = {value.value}" for value in found.put_back)
            pools = [pool for value in found.put_back if (pool := await _absent_pool(machine, value))]
            then = (
                f"which run cannot put back: the pool {pools[0]} is not imported: import it first"
                if pools
                else "which run puts back first"
            )
            problems.append(f"is still tuned by {found.by or place.label} ({place.path}): {keys}, {then}")
    return problems


async def _absent_pool(machine: Machine, value: Value) -> str | None:
    """Return the pool that has to be imported before `value` can be put back, None where there is none."""
    if not isinstance(value, PropertyValue) or value.key in await read_current(machine, [value]):
        return None
    return None if await _is_gone(machine, value) else value.dataset.partition("/")[0]


async def _is_gone(machine: Machine, value: PropertyValue) -> bool:
    """Return whether the dataset is destroyed, and not merely out of sight with its pool.

    A pool that the lab made goes with its disk.
    """
    return is_own(value.dataset.split("/")[0]) or await has_pool(machine, value.dataset)


async def write_journal(machine: Machine, place: JournalPlace, put_back: Sequence[Value]) -> None:
    """Write the journal, down to the disk. Raises TuningError, also where there is one already."""
    journal = TuningJournal(by=place.by, put_back=tuple(put_back))
    text = json.dumps(journal.model_dump(mode="json"), indent=1) + "\n"
    done = await _run_script(machine, _WRITE, place.path, text.encode())
    if done.status == _THERE:
        raise TuningError(
            f"{place.path}: an earlier tuning was not put back; put it back before you apply another"
        )
    if done.status:
        raise TuningError(f"{place.path}: cannot be written: {done.err.strip()}; nothing was tuned")


async def read_journal(machine: Machine, place: JournalPlace) -> TuningJournal | None:
    """Return the journal, or None. Raises TuningError if it is malformed."""
    done = await _run_script(machine, _READ, place.path)
    if done.status == _ABSENT:
        return None
    if done.status:
        raise TuningError(f"{place.path}: cannot be read: {done.err.strip()}")
    return parse_journal(place.path, done.out)


def parse_journal(path: str, text: str) -> TuningJournal:
    """Return the journal in `text`. Raises TuningError if it is malformed. Pure."""
    try:
        return TuningJournal.model_validate_json(text)
    except ValidationError as error:
        raise TuningError(
            f"{path}: is not a tuning journal ({sentence_of(error)}); nothing was put back: compare the "
            "host by hand, then remove the file"
        ) from None


async def remove_journal(machine: Machine, place: JournalPlace) -> None:
    """Remove it: everything in it was put back. Raises TuningError."""
    done = await _run_script(machine, _REMOVE, place.path)
    if done.status:
        raise TuningError(f"{place.path}: cannot be removed: {done.err.strip()}; remove it by hand")


async def find_journals(machine: Machine) -> list[JournalPlace]:
    """Return the journals that lie on `machine`, whoever wrote them. Raises TuningError."""
    done = await _run_script(machine, _LIST, FOLDER)
    if done.status:
        raise TuningError(f"{machine.name}: {FOLDER}: cannot be listed: {done.err.strip()}")
    names = [line.removesuffix(".json") for line in done.out.splitlines()]
    return [JournalPlace(name) for name in names if _NAME.fullmatch(name)]


async def _run_script(machine: Machine, script: str, path: str, stdin: bytes | None = None) -> CommandResult:
    """Run `script` with `path`; raises TuningError where the machine cannot be asked."""
    try:
        return await machine.run(["sh", "-c", script, "sh", path], stdin=stdin, check=False)
    except MachineError as error:
        raise TuningError(f"{path}: {error}") from None


def get_command(dataset: str) -> list[str]:
    """Return the command that prints all properties with exact values. Pure.

    All, since zfs-fuse refuses a list with one that it does not know, such as `sync`.
    """
    return ["zfs", "get", "-H", "-p", "-o", "name,property,value,source", "all", dataset]


async def read_current(machine: Machine, values: Sequence[Value]) -> dict[str, Value]:
    """Return, by key, what each of `values` is now; what the host has not is missing. Raises MachineError."""
    files = [value for value in values if not isinstance(value, PropertyValue)]
    *texts, arc = await read_files(machine, [*(value.path for value in files), ARC_PATHS[0]], BUSY_S)
    found = {value.key: file_value(value, text, arc) for value, text in zip(files, texts, strict=True)}
    properties = [value for value in values if isinstance(value, PropertyValue)]
    for dataset in dict.fromkeys(value.dataset for value in properties):
        asked = [value for value in properties if value.dataset == dataset]
        done = await machine.run(get_command(dataset), check=False)
        rows = facts.parse_properties(done.out).get(dataset, {})
        found |= {value.key: property_value(value, rows) for value in asked}
    return {key: value for key, value in found.items() if value is not None}


def file_value(value: Value, text: str | None, arc: str | None) -> Value | None:
    """Return `value` as its file's `text` has it; `arc` is arcstats. None if it is not valid. Pure."""
    word = facts.parse_chosen(text)
    if isinstance(value, ZfsValue) and word == "0" and value.name in _DEFAULTED:
        size = parse_kstat(arc or "").get(_DEFAULTED[value.name])
        word = None if size is None else str(int(size))
    return _update_value(value, {"value": word})


def property_value(value: PropertyValue, rows: Mapping[str, tuple[str, str]]) -> Value | None:
    """Return `value` as `zfs get` printed it; None where the dataset has no such property. Pure."""
    word, source = rows.get(value.name, ("-", "-"))
    kinds = {"local": "local", "received": "received", "default": "inherited", "inherited": "inherited"}
    kind = kinds.get(source.split(" ")[0])
    return None if word == "-" or kind is None else _update_value(value, {"value": word, "source": kind})


async def find_absent(machine: Machine, tuning: Tuning) -> frozenset[str]:
    """Return the disks and datasets of `tuning` that this host does not have."""
    looks = {name: ["test", "-e", f"/sys/block/{name}"] for name in tuning.disks}
    looks |= {name: ["zfs", "list", "-H", "-o", "name", name] for name in tuning.datasets}
    return frozenset([name for name, look in looks.items() if (await machine.run(look, check=False)).status])


async def has_pool(machine: Machine, dataset: str) -> bool:
    """Return whether the pool of `dataset` is imported."""
    try:
        done = await machine.run(["zpool", "list", "-H", "-o", "name", dataset.split("/")[0]], check=False)
    except MachineError:
        return False
    return done.status == 0


def _update_value(value: Value, update: Mapping[str, object]) -> Value | None:
    try:
        return type(value).model_validate({**value.model_dump(), **update})
    except ValidationError:
        return None
