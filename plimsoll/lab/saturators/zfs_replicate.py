"""Saturator `zfs-replicate`: at an interval, what is new goes to another pool, as by pve-zsync."""

from typing import Literal

from pydantic import Field

from plimsoll.lab.machine import Machine
from plimsoll.lab.saturators.saturator import Meter, OnEvent, SaturatorKind
from plimsoll.lab.saturators.send import Rhythm
from plimsoll.lab.saturators.sinks import Receiver, RemoteSink, at_receiver, over_ssh
from plimsoll.lab.saturators.zfs_send import (
    IS_OPENZFS,
    ZfsLoop,
    ZfsStream,
    aim_at_clone,
    find_stream_remains,
    processes,
    stream_checks,
)
from plimsoll.lab.steps.step import Check

# $1: the dataset that is sent; then the command that prints the free bytes where it is received. If either
# does not exist, another check reports that.
_FITS = """need=$(zfs get -H -p -o value referenced "$1" 2>/dev/null) || exit 0
shift
free=$("$@" 2>/dev/null) || exit 0
[ "$need" -le "$free" ] || {
    echo "$need bytes are sent at first, and there are $free: make room, or name another dataset" >&2
    exit 1
}"""


class ZfsReplicate(ZfsStream):
    """A snapshot at an interval, sent to another pool; the first one whole, then what is new."""

    kind: Literal["zfs-replicate"] = Field(description="`zfs-replicate`.")
    sink: Receiver = Field(discriminator="to", description="Where it is received: local or remote.")
    interval_s: float = Field(
        15.0,
        ge=1,
        le=86400,
        description="Seconds from one snapshot to the next. A round that takes longer is "
        "followed at once by the next.",
    )
    keep: int = Field(
        1,
        ge=1,
        le=100,
        description="Snapshots that stay, on both ends; older ones are destroyed after each round.",
    )

    @property
    def rhythm(self) -> Rhythm:
        """When to send, and what."""
        return Rhythm(incremental=True, every_s=self.interval_s, keep=self.keep)


class _Replication(ZfsLoop):
    def __init__(self, machine: Machine, settings: ZfsReplicate, label: str, on_event: OnEvent) -> None:
        super().__init__(machine, settings, label, on_event)
        if isinstance(settings.sink, RemoteSink):  # a local one takes what is sent: one pipe, one figure
            self.received = Meter()


def _in_brief(settings: ZfsReplicate) -> ZfsReplicate:
    brief: ZfsReplicate = settings.model_copy(update={"interval_s": 0.0, "keep": 1})
    return brief


def _checks(settings: ZfsReplicate) -> list[Check]:
    sink, found = settings.sink, stream_checks(settings)
    if isinstance(sink, RemoteSink):
        there = over_ssh(sink, ["zfs", "list", "-H", "-o", "name", sink.into])
        found += [
            Check(f"saturator.sink.into: {sink.host} cannot list the dataset {sink.into}", tuple(there)),
            Check(
                f"saturator.sink.host: {sink.host} has no python3", tuple(over_ssh(sink, ["python3", "-V"]))
            ),
        ]
    if not settings.dataset.startswith("@"):
        free = at_receiver(sink, ["zfs", "get", "-H", "-p", "-o", "value", "available", sink.into])
        words = ("sh", "-c", _FITS, "sh", settings.dataset, *free)
        found.append(Check(f"saturator.sink.into: {settings.dataset} does not fit into {sink.into}", words))
    return found


ZFS_REPLICATE = SaturatorKind(
    "zfs-replicate",
    ZfsReplicate,
    _Replication,
    aim=aim_at_clone,
    programs=frozenset({"python3", "zfs"}),
    questions=(IS_OPENZFS,),
    rounds=processes,
    checks=_checks,
    brief=_in_brief,
    find=find_stream_remains,
)
