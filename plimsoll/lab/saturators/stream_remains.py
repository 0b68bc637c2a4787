"""What a saturator that sends a dataset leaves where it is killed: snapshots, and what was received."""

from plimsoll.lab.machine import Machine
from plimsoll.lab.names import own_name
from plimsoll.lab.saturators.sinks import LocalSink, RemoteSink, at_receiver
from plimsoll.lab.saturators.zfs import ZfsSource, ZfsStream
from plimsoll.lab.steps.step import Command, Remains

_MOST_S = 600.0
_SSH_FAILED = 255

# Ends with 0 where the dataset $1 is there, with 1 where it is not, or no ZFS.
_IS_THERE = 'zfs list -H -o name "$1" >/dev/null 2>&1 || exit 1'


async def stream_remains(machine: Machine, settings: ZfsStream, label: str, backend: str) -> list[Remains]:
    """Return the snapshots of a dataset that is not the lab's, and the dataset that was received.

    Looks only, by name. A receiver that cannot be asked counts: what it has is found when it can be.
    Raises MachineError.
    """
    source = ZfsSource(settings, label, openzfs=False)
    found = []
    for one in [source, *source.below]:
        dataset = one.listing()[-1]
        # A clone's snapshots go with the clone.
        if not dataset.startswith("@") and own_name(label) not in dataset.split("/"):
            found += await _snapshots(machine, one, dataset, backend)
    return found + await _received(machine, settings, source, backend)


async def _snapshots(machine: Machine, source: ZfsSource, dataset: str, backend: str) -> list[Remains]:
    names = source.own((await machine.run(source.listing(), check=False, timeout_s=_MOST_S)).out)
    destroy = (Command("destroy it", tuple(source.destroy(name)), timeout_s=_MOST_S) for name in names)
    return [
        Remains(f"the snapshot {name}", backend, (step,)) for name, step in zip(names, destroy, strict=True)
    ]


async def _received(machine: Machine, settings: ZfsStream, source: ZfsSource, backend: str) -> list[Remains]:
    sink = settings.sink
    if not isinstance(sink, LocalSink | RemoteSink):
        return []
    name, where = source.received(), f" on {sink.host}" if isinstance(sink, RemoteSink) else ""
    look = at_receiver(sink, ["sh", "-c", _IS_THERE, "sh", name])
    status = (await machine.run(look, check=False)).status
    if status not in (0, _SSH_FAILED):
        return []
    what = f"the dataset {name}{where}" + (", or not: it cannot be asked" if status else "")
    steps = tuple(
        Command("destroy what was received", tuple(at_receiver(sink, words)), timeout_s=_MOST_S)
        for words in source.forget()
    )
    return [Remains(what, backend, steps)]
