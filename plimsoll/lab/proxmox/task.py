"""Tasks: Proxmox's work in the background, and the signs that it is done. Pure."""

import re
from dataclasses import dataclass
from typing import Any

_UPID = re.compile(
    r"UPID:(?P<node>[A-Za-z0-9][A-Za-z0-9.-]*):[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:[0-9A-Fa-f]{8}:"
    r"(?P<kind>[^:\s/]+):(?P<id>[^:\s/]*):(?P<user>[^:\s/]+):"
)


@dataclass(frozen=True)
class Task:
    """A task by its UPID: `UPID:node:pid:pstart:starttime:type:id:user:`."""

    upid: str
    node: str
    kind: str
    id: str
    user: str

    @property
    def path(self) -> str:
        """Its path in the API."""
        return f"/nodes/{self.node}/tasks/{self.upid}"


def task(answer: Any) -> Task | None:
    """Return the task that `answer` names, None where it names none."""
    found = _UPID.fullmatch(answer) if isinstance(answer, str) else None
    return Task(answer, found["node"], found["kind"], found["id"], found["user"]) if found else None


def succeeded(exit_status: str) -> bool:
    """Return whether a task that ended did what it was for; warnings are no failure."""
    return exit_status == "OK" or exit_status.startswith("WARNINGS")
