"""The events of shards, moved into the run that the shards become."""

from collections.abc import Sequence
from contextlib import suppress

from plimsoll.analysis.exchange.shard import ShardRun
from plimsoll.rundir.events import Event, read_events
from plimsoll.rundir.names import EVENTS_FILE
from plimsoll.rundir.write import RunWriter

_OF_EACH = "run"  # the shard's own start and stop
_OF_ALL = "warm-up"  # every instance says so; it is one instant of the run


def copy_events(shards: Sequence[ShardRun], offsets_ns: Sequence[int], run: RunWriter) -> None:
    """Append all events of `shards`, moved by `offsets_ns`; measures count again.

    An event of an instance gets its index as `instance`. Lines that cannot be read, such as one that a kill
    cut off, are left out.
    """
    once: set[tuple[str, object]] = set()
    for one, offset_ns in zip(shards, offsets_ns, strict=True):
        for event in read_events(one.path / EVENTS_FILE).events:
            with suppress(ValueError, KeyError, TypeError):
                _copy(event, one, offset_ns, run, once)


def _copy(event: Event, one: ShardRun, offset_ns: int, run: RunWriter, once: set[tuple[str, object]]) -> None:
    t_ns, further = event.t_ns + offset_ns, dict(event.further)
    if event.name == "measure":
        name, value, unit = (further[key] for key in ("name", "value", "unit"))
        try:
            run.measure(name, value, unit, iteration=further.get("iteration"), t_ns=t_ns)
        except ValueError:  # it stays damaged, and is named where the run is read
            run.event(event.name, t_ns=t_ns, **further | {"value": str(value)})
        return
    if event.name == _OF_EACH or (event.name, event.phase) in once:
        return
    if event.name == _OF_ALL:
        once.add((event.name, event.phase))
    elif one.facts.shard:
        further["instance"] = one.facts.shard.index
    run.event(event.name, phase=event.phase, t_ns=t_ns, **further)
