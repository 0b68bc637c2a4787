"""Saturator `zfs-send`: a dataset is sent again and again."""

from typing import Literal

from pydantic import Field

from plimsoll.lab.saturators.kind import SaturatorKind
from plimsoll.lab.saturators.sinks import SendSettings
from plimsoll.lab.saturators.stream_remains import stream_remains
from plimsoll.lab.saturators.zfs import (
    IS_OPENZFS,
    ZfsLoop,
    ZfsStream,
    aimed_at_clone,
    processes,
    stream_looks,
)


class ZfsSend(SendSettings, ZfsStream):
    """`zfs send` of one dataset."""

    kind: Literal["zfs-send"] = Field(description="`zfs-send`.")


ZFS_SEND = SaturatorKind(
    "zfs-send",
    ZfsSend,
    ZfsLoop,
    aim=aimed_at_clone,
    programs=frozenset({"python3", "zfs"}),
    questions=(IS_OPENZFS,),
    rounds=processes,
    looks=stream_looks,
    find=stream_remains,
)
