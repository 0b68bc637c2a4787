"""Files and folders that a saturator makes: named after its label, found and removed by that name."""

from plimsoll.lab.machine import Machine
from plimsoll.lab.names import own_name
from plimsoll.lab.saturators.sinks import FolderSink, LocalSink, RemoteSink, at_receiver
from plimsoll.lab.steps.step import Command, Remains

REMOVAL_S = 3600.0  # a copy of millions of files goes slowly
_SSH_FAILED = 255

_IS_THERE = '[ -e "$1" ] || [ -L "$1" ] || exit 1'

# What wrote there may be about to end, and write a last time. A link goes without what it leads to.
_REMOVE = """# rm -rf
for _ in $(seq 20); do
    [ -e "$1" ] || [ -L "$1" ] || exit 0
    ! rm -rf --one-file-system -- "$1" || exit 0
    sleep 1
done
exit 1"""


def own_path(folder: str, label: str, kind: str) -> str:
    """Return the path in `folder` that a saturator of this kind and label may make and remove."""
    # Without the kind it would be the name of the clone's own folder.
    return f"{folder.rstrip('/')}/{own_name(label)}.{kind}"


def own_file(sink: object, label: str, kind: str) -> str | None:
    """Return the file that is written for `sink`; None where none is, or where its folder is still open."""
    if not isinstance(sink, FolderSink) or not sink.folder.startswith("/"):
        return None
    return own_path(sink.folder, label, kind)


def removal(path: str) -> list[str]:
    """Return the command that removes a file or a folder of the lab, whether it is there or not."""
    return ["sh", "-c", _REMOVE, "sh", path]


async def left_at(
    machine: Machine, path: str, backend: str, sink: LocalSink | RemoteSink | None = None
) -> list[Remains]:
    """Return what is at `path`, on the host of `sink` where it has one. Looks only. Raises MachineError.

    A host that cannot be asked counts: what it has is found when it can be.
    """
    look, remove = ["sh", "-c", _IS_THERE, "sh", path], removal(path)
    if sink is not None:
        look, remove = at_receiver(sink, look), at_receiver(sink, remove)
    status = (await machine.run(look, check=False)).status
    asked = not (isinstance(sink, RemoteSink) and status == _SSH_FAILED)
    if status and asked:
        return []
    where = f" on {sink.host}" if isinstance(sink, RemoteSink) else ""
    what = path + where + ("" if asked else ", or not: it cannot be asked")
    return [Remains(what, backend, (Command("remove it", tuple(remove), timeout_s=REMOVAL_S),))]
