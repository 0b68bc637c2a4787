"""Applies a tuning to a host and puts it back, through a journal, so that a crash can be undone."""

import shlex
from collections.abc import Callable

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import is_own
from plimsoll.lab.tuning.current import absent, has_pool, read_current
from plimsoll.lab.tuning.errors import TuningError
from plimsoll.lab.tuning.journal import JournalPlace, journals_on, read_journal, remove_journal, write_journal
from plimsoll.lab.tuning.plan import Plan, plan, touched
from plimsoll.lab.tuning.settings import Tuning
from plimsoll.lab.tuning.values import PropertyValue, SettingCommand, Value


async def planned(machine: Machine, tuning: Tuning) -> Plan:
    """Return the plan that `apply` would carry out on this host now. Raises TuningError, MachineError."""
    current = await read_current(machine, touched(tuning))
    return plan(current, tuning, await absent(machine, tuning))


async def apply(machine: Machine, tuning: Tuning, journal: JournalPlace) -> Plan:
    """Apply `tuning`, having written to `journal` what `put_back` needs. Returns what was done.

    Where one setting is refused, all are put back. Raises TuningError, MachineError.
    """
    todo = await planned(machine, tuning)
    if not todo.apply:
        return todo
    await write_journal(machine, journal, todo.put_back)
    try:
        for value in todo.apply:
            await _set(machine, value)
    except BaseException as error:
        await put_back(machine, journal)
        if isinstance(error, MachineError):
            raise TuningError(
                f"{value.key}: cannot be set to {value.value}, so nothing was changed: {error}"
            ) from None
        raise
    return todo


async def put_back(machine: Machine, journal: JournalPlace) -> None:
    """Put back what `journal` holds and remove it; nothing to do where there is none.

    Doing it twice does no harm. What went away with its disk, dataset or module is no problem. Goes on after
    a failure; then raises TuningError with all of them, and the journal stays.
    """
    found = await read_journal(machine, journal)
    if found is None:
        return
    problems = []
    for value in found.put_back:
        try:
            # Looked for one by one: a setting may come back with the scheduler that was put back before it.
            if value.key in await read_current(machine, [value]):
                await _set(machine, value)
            elif await _absent_pool(machine, value):
                problems.append(f"{value.key}: its pool is not imported; import it and try again")
        except MachineError as error:
            problems.append(f"{value.key}: {error}")
    if problems:
        by_hand = "; ".join(_by_hand(value.step) for value in found.put_back)
        raise TuningError(
            "\n".join(
                [
                    f"{machine.name}: {journal.path}: could not put everything back:",
                    *problems,
                    f"mend that and try again, or put it back by hand ({by_hand}) and forget it: "
                    f"rm {journal.path}",
                ]
            )
        )
    await remove_journal(machine, journal)


async def put_back_all(machine: Machine, say: Callable[[str], None]) -> None:
    """Put back every tuning that a crash left on `machine`, whoever's it was. Raises TuningError.

    Only who has the machine to himself may do so: then none of them is at work.
    """
    for place in await journals_on(machine):
        found = await read_journal(machine, place)
        if found is not None:
            keys = ", ".join(f"{value.key} = {value.value}" for value in found.put_back)
            say(f"{machine.name}: is still tuned by {found.by or place.label}: putting back {keys}")
            await put_back(machine, place)


async def left_tuned(machine: Machine) -> list[str]:
    """Return what a crash left tuned on `machine`, whoever's, and what `put_back_all` would come to.

    One sentence each. Looks only. Raises MachineError.
    """
    told = []
    for place in await journals_on(machine):
        try:
            found = await read_journal(machine, place)
        except TuningError as error:
            told.append(str(error))
            continue
        if found is not None:
            keys = ", ".join(f"{value.key} = {value.value}" for value in found.put_back)
            pools = [pool for value in found.put_back if (pool := await _absent_pool(machine, value))]
            then = (
                f"which run cannot put back: the pool {pools[0]} is not imported: import it first"
                if pools
                else "which run puts back first"
            )
            told.append(f"is still tuned by {found.by or place.label} ({place.path}): {keys}, {then}")
    return told


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


def _by_hand(step: SettingCommand) -> str:
    """Return `step` as one would type it. Pure."""
    line = shlex.join(step.command)
    return line if step.stdin is None else f"echo {shlex.quote(step.stdin.strip())} | {line}"


async def _set(machine: Machine, value: Value) -> None:
    step = value.step
    await machine.run(step.command, stdin=None if step.stdin is None else step.stdin.encode())
