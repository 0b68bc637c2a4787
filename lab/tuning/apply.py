"""Applies a tuning to a host and puts it back, through a journal, so that a crash can be undone."""

from pathlib import Path

from lab.errors import MachineError
from lab.machine import Machine
from lab.tuning.current import has_pool, read_current
from lab.tuning.errors import TuningError
from lab.tuning.journal import TuningJournal, read_journal, remove_journal, write_journal
from lab.tuning.plan import Plan, plan, touched
from lab.tuning.settings import Tuning
from lab.tuning.values import PropertyValue, Value


async def planned(machine: Machine, tuning: Tuning) -> Plan:
    """Return the plan that `apply` would carry out on this host now. Raises TuningError, MachineError."""
    return plan(await read_current(machine, touched(tuning)), tuning)


async def apply(machine: Machine, tuning: Tuning, journal: Path) -> Plan:
    """Apply `tuning`, having written to `journal` what `put_back` needs. Returns what was done.

    Where one setting is refused, all are put back. Raises TuningError, MachineError.
    """
    todo = await planned(machine, tuning)
    if not todo.apply:
        return todo
    write_journal(journal, TuningJournal(machine=machine.name, put_back=todo.put_back))
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


async def put_back(machine: Machine, journal: Path) -> None:
    """Put back what `journal` holds and remove it; nothing to do where there is none.

    Doing it twice does no harm. What went away with its disk, dataset or module is no problem. Goes on after
    a failure; then raises TuningError with all of them, and the journal stays.
    """
    found = read_journal(journal)
    if found is None:
        return
    if found.machine != machine.name:
        raise TuningError(f"{journal}: belongs to the machine {found.machine}, not to {machine.name}")
    problems = []
    for value in found.put_back:
        try:
            # Looked for one by one: a setting may come back with the scheduler that was put back before it.
            if value.key in await read_current(machine, [value]):
                await _set(machine, value)
            elif isinstance(value, PropertyValue) and not await has_pool(machine, value.dataset):
                problems.append(f"{value.key}: its pool is not imported; import it and try again")
        except MachineError as error:
            problems.append(f"{value.key}: {error}")
    if problems:
        raise TuningError("\n".join([f"{journal}: could not put everything back:", *problems]))
    remove_journal(journal)


async def _set(machine: Machine, value: Value) -> None:
    step = value.step
    await machine.run(step.command, stdin=None if step.stdin is None else step.stdin.encode())
