"""The events of shards, moved into the run that the shards become."""

import json
from collections.abc import Sequence

from analysis.merging.shard import ShardRun
from plimsoll.rundir.names import EVENTS_FILE
from plimsoll.rundir.writer import RunWriter

_OF_EACH = "run"  # the shard's own start and stop
_OF_ALL = "warm-up"  # every instance says so; it is one instant of the run


def copy_events(shards: Sequence[ShardRun], offsets_ns: Sequence[int], run: RunWriter) -> None:
    """Append all events of `shards`, moved by `offsets_ns`; measures count again.

    An event of an instance gets its index as `instance`. Lines that cannot be read, such as one that a kill
    cut off, are left out.
    """
    once: set[tuple[str, object]] = set()
    for one, offset_ns in zip(shards, offsets_ns, strict=True):
        try:
            with (one.path / EVENTS_FILE).open(encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    _copy(line, one, offset_ns, run, once)
        except OSError:
            continue


def _copy(line: str, one: ShardRun, offset_ns: int, run: RunWriter, once: set[tuple[str, object]]) -> None:
    try:
        event = json.loads(line)
        t_ns, name = int(event.pop("t_ns")) + offset_ns, str(event.pop("event"))
        if name == "measure":
            run.measure(
                event["name"], event["value"], event["unit"], iteration=event.get("iteration"), t_ns=t_ns
            )
            return
        if name == _OF_EACH or (name, event.get("phase")) in once:
            return
        if name == _OF_ALL:
            once.add((name, event.get("phase")))
        elif one.facts.shard:
            event["instance"] = one.facts.shard.index
        run.event(name, t_ns=t_ns, **event)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
