"""The pools that the observers of ZFS watch."""

from collections.abc import Sequence

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers.observer import Say

PROBE_TIMEOUT_S = 20.0  # a pool that is busy answers late


def list_command() -> list[str]:
    """Return the command that prints the imported pools, one a line. Pure."""
    return ["zpool", "list", "-H", "-o", "name"]


async def imported_pools(machine: Machine, pools: Sequence[str], name: str, say: Say) -> Sequence[str]:
    """Return `pools`, or all imported ones where none is named; nothing, and the reason, where there is none.

    `name` is the observer's that asks.
    """
    if not pools:
        try:
            listed = await machine.run(list_command(), timeout_s=PROBE_TIMEOUT_S, check=False)
        except MachineError as error:
            say(f"{name}: {error}")
            return ()
        pools = listed.out.split("\n")[:-1] if listed.status == 0 else ()
    if not pools:
        say(f"{name}: no pool is imported here, so there is none to observe")
    return pools
