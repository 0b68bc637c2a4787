"""Watches the activity of pools by `zpool iostat`."""

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers import zpool
from plimsoll.lab.observers.imported import PROBE_TIMEOUT_S, imported_pools
from plimsoll.lab.observers.observer import Observer, Say
from plimsoll.lab.observers.settings import ObserverOptions
from plimsoll.lab.observers.watch import Watch


async def _prepare(machine: Machine, options: ObserverOptions, say: Say) -> Watch | None:
    pools = await imported_pools(machine, options.pools, "zpool", say)
    if not pools:
        return None
    try:
        for form in zpool.FORMS:
            probed = await machine.run(zpool.probe(form, pools), timeout_s=PROBE_TIMEOUT_S, check=False)
            if probed.status == 0:
                command = zpool.command(form, pools)
                columns = zpool.columns(pools)
                return Watch("zpool", columns, machine, command, zpool.Lines(form), "zpool iostat")
    except MachineError as error:
        say(f"zpool: {error}")
        return None
    say(f"zpool: zpool iostat printed: {probed.err.strip()[:200]}")
    return None


OBSERVER = Observer("zpool", zpool.COLUMNS, _prepare)
