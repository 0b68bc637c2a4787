"""Saturator `backup`: vzdump of a guest, or proxmox-backup-client of a folder, again and again."""

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from plimsoll.common.units import Size
from plimsoll.lab.disks.place import DataLocation
from plimsoll.lab.machine import Line, Machine
from plimsoll.lab.names import Folder
from plimsoll.lab.saturators.amounts import LineFigures
from plimsoll.lab.saturators.backup_sinks import (
    CLIENT_END,
    CLIENT_PROGRESS,
    PROGRESS,
    BackupSink,
    RepositorySink,
    StorageSink,
    backup_folder,
    client,
    group,
    own_note,
    own_snapshots,
    own_stored,
    release,
    stored,
    vzdump,
)
from plimsoll.lab.saturators.kind import CLONE, SaturatorKind, SaturatorSettings
from plimsoll.lab.saturators.own_files import REMOVAL_S, left_at, own_file, own_path, removal
from plimsoll.lab.saturators.pace_command import paced_total, written
from plimsoll.lab.saturators.runner import OnEvent, Runner, at_least
from plimsoll.lab.saturators.sinks import FolderSink, NullSink, folder_looks
from plimsoll.lab.steps.step import Command, Look, Remains, is_file, is_folder, is_program, unless

_SHORTEST_ROUND_S = 1.0
_RELEASE_S = 300.0
_ASK_S = 120.0
_NO_PROGRAM = 127
_SUFFIX = "vzdump"
_TEMPORARY = "/var/tmp"  # noqa: S108 where vzdump has its own; a folder that only its owner can remove
_IS_GUEST = 'qm config "$1" >/dev/null 2>&1 || pct config "$1" >/dev/null 2>&1'
_IS_BACKUP_SERVER = """pvesm status --storage "$1" 2>/dev/null |
    awk 'NR == 2 && $2 == "pbs" { found = 1 } END { exit !found }'"""

Guest = Annotated[int, Field(ge=100, le=999_999_999)]


class Backup(SaturatorSettings):
    """A backup, as Proxmox makes it."""

    kind: Literal["backup"] = Field(description="`backup`.")
    guest: Guest | Literal["@clone"] = Field(
        CLONE, description="Number of the guest to back up. Default: the clone."
    )
    folder: Folder | Literal["@clone"] = Field(
        CLONE, description="Folder to back up, with a repository. Default: the disk's."
    )
    sink: Annotated[BackupSink, Field(discriminator="to")] = Field(
        NullSink(), description="Where it goes: null, folder, storage or repository."
    )
    mode: Literal["snapshot", "suspend"] = Field(
        "snapshot", description="How vzdump keeps a guest consistent. The guest goes on at work."
    )
    compress: Literal["none", "zstd", "gzip", "lzo"] = Field(
        "none", description="How vzdump compresses what goes to null or a folder."
    )
    rate_bytes_per_s: Annotated[Size, Field(ge=1024)] | None = Field(
        None, description="Limit for what is read, in bytes a second. Default: none."
    )

    def model_post_init(self, _: object) -> None:
        """Check that what is named is what is backed up."""
        wrong, value = ("guest", self.guest) if self.of_folder else ("folder", self.folder)
        if value != CLONE:
            other = "a repository has a folder" if self.of_folder else "vzdump backs up a guest"
            raise ValueError(f"{wrong}: does not go with the sink {self.sink.to}: {other}; leave it out")

    @property
    def of_folder(self) -> bool:
        """True if a folder is backed up, not a guest."""
        return isinstance(self.sink, RepositorySink)


class _BackingUp(Runner):
    grace_s = 60.0  # vzdump has to call off the job in QEMU, and to unlock the guest

    def __init__(self, machine: Machine, settings: Backup, label: str, on_event: OnEvent) -> None:
        super().__init__(machine, settings.kind, settings.retries, on_event)
        self._settings, self._label = settings, label

    async def _prepare(self) -> None:
        await self._clean()

    async def _once(self) -> None:
        await at_least(
            _SHORTEST_ROUND_S, self._follow(command(self._settings, self._label), reader(self._settings))
        )
        if not isinstance(self._settings.sink, NullSink | FolderSink):
            await self._forget()

    async def _clean(self) -> None:
        said = self._settings
        if isinstance(said.guest, int) and not said.of_folder:
            await self.machine.run(release(said.guest, _own(self._label)), timeout_s=_RELEASE_S)
        if file := own_file(said.sink, self._label, _SUFFIX):
            await self.machine.run(removal(file), timeout_s=REMOVAL_S)
        await self._forget()

    async def _forget(self) -> None:
        """Remove the backups that are on a server."""
        if listing := _listing(self._settings, self._label):
            listed = await self.machine.run(listing, timeout_s=_ASK_S)
            for words in _forgetting(self._settings, self._label, listed.out):
                await self.machine.run(words, timeout_s=_ASK_S)


def _own(label: str) -> str:
    return own_path(_TEMPORARY, label, "backup")


def command(settings: Backup, label: str) -> list[str]:
    """Return the command that backs up once. Raises ValueError where the guest or folder is not known yet."""
    sink, rate = settings.sink, settings.rate_bytes_per_s
    if isinstance(sink, RepositorySink):
        return backup_folder(sink, settings.folder, label, rate)
    if not isinstance(settings.guest, int):
        raise ValueError("guest: is missing")
    options = ["--mode", settings.mode]
    if isinstance(sink, StorageSink):
        options += ["--storage", sink.storage, "--notes-template", own_note(label)]
        return vzdump(settings.guest, _own(label), options, rate)
    compress = "0" if settings.compress == "none" else settings.compress
    options += ["--compress", compress, "--stdout", "1"]
    # vzdump keeps to the rate by itself: a full pipe would hold up the guest's writes.
    dump = vzdump(settings.guest, _own(label), options, rate, copied=True)
    return written(dump, own_file(sink, label, _SUFFIX))


def reader(settings: Backup) -> Callable[[Line], int | None]:
    """Return what reads the bytes so far from the lines of `command`."""
    forms = (PROGRESS, CLIENT_PROGRESS, CLIENT_END)
    figures, is_copied = (
        [LineFigures(form) for form in forms],
        isinstance(settings.sink, NullSink | FolderSink),
    )

    def read(line: Line) -> int | None:
        if is_copied:
            found = paced_total(line.text) if line.stream == "out" else None
        else:
            found = next((bytes_ for one in figures if (bytes_ := one.read(line)) is not None), None)
        # What vzdump merely reports goes to its errors too.
        return 0 if found is None and line.text.startswith("INFO: ") else found

    return read


def _listing(settings: Backup, label: str) -> list[str]:
    """Return the command that lists backups on a server; none if they go to none."""
    sink = settings.sink
    if isinstance(sink, StorageSink) and isinstance(settings.guest, int):
        return stored(sink.storage, settings.guest)
    if isinstance(sink, RepositorySink):
        return client(sink, "snapshot", "list", group(label), "--output-format", "json")
    return []


def _forgetting(settings: Backup, label: str, listed: str) -> list[list[str]]:
    """Return the commands that remove the label's backups among those `listed` on a server."""
    sink = settings.sink
    if isinstance(sink, StorageSink):
        return [["pvesm", "free", volume] for volume in own_stored(listed, sink.storage, label)]
    if isinstance(sink, RepositorySink):
        return [client(sink, "snapshot", "forget", one) for one in own_snapshots(listed, label)]
    return []


def _aimed(settings: Backup, at: DataLocation) -> Backup:
    changed: dict[str, object] = {}
    if settings.of_folder:
        if settings.folder == CLONE and not at.folder:
            raise ValueError("folder: is missing: the lab knows no folder of this clone; name one")
        return settings.model_copy(update={"folder": at.folder}) if settings.folder == CLONE else settings
    if settings.guest == CLONE:
        if at.guest is None:
            raise ValueError(
                "guest: is missing: the lab knows no guest's number of this clone: name a guest, or give a "
                "clone on Proxmox a vmid_range of one number, such as 9001-9001"
            )
        changed["guest"] = at.guest
    if isinstance(settings.sink, FolderSink) and settings.sink.folder == CLONE:
        if not at.folder:
            raise ValueError("sink.folder: is missing: the lab knows no folder of this clone; name one")
        changed["sink"] = FolderSink(to="folder", folder=at.folder)
    return settings.model_copy(update=changed)


def _looks(settings: Backup) -> list[Look]:
    sink, found = settings.sink, folder_looks(settings.sink)
    if isinstance(sink, RepositorySink):
        found += [is_program("saturator", "proxmox-backup-client")]
        found += [is_file("saturator.sink.password_file", sink.password_file)]
        found += [] if settings.folder == CLONE else [is_folder("saturator.folder", settings.folder)]
        login = f"saturator.sink.repository: {sink.repository} cannot be logged in to"
        return [*found, Look(login, unless(_NO_PROGRAM, client(sink, "status")), _ASK_S)]
    found.append(is_program("saturator", "vzdump"))
    if isinstance(sink, StorageSink):
        problem = (
            f"saturator.sink.storage: {sink.storage} is no storage of Proxmox Backup Server: pvesm status "
            "names them; for any other, give its folder as sink: {to: folder, folder: /…}"
        )
        found.append(Look(problem, ("sh", "-c", _IS_BACKUP_SERVER, "sh", sink.storage)))
    if isinstance(settings.guest, int):
        problem = f"saturator.guest: there is no guest {settings.guest} on this node: qm list names them"
        found.append(Look(problem, ("sh", "-c", _IS_GUEST, "sh", str(settings.guest))))
    return found


async def _find(machine: Machine, settings: Backup, label: str, backend: str) -> list[Remains]:
    """Return what is still under way or locked, the archive, and backups on a server."""
    found: list[Remains] = []
    if not settings.of_folder and isinstance(settings.guest, int):
        step = Command("end it", tuple(release(settings.guest, _own(label))), timeout_s=_RELEASE_S)
        found += [
            Remains(f"a backup of the guest {settings.guest}, marked by {one.what}", backend, (step,))
            for one in await left_at(machine, _own(label), backend)
        ]
    if file := own_file(settings.sink, label, _SUFFIX):
        found += await left_at(machine, file, backend)
    return found + await _on_server(machine, settings, label, backend)


async def _on_server(machine: Machine, settings: Backup, label: str, backend: str) -> list[Remains]:
    """Return the backups on a server. One that cannot be asked counts: it is asked again later."""
    if not (listing := _listing(settings, label)):
        return []
    listed = await machine.run(listing, check=False, timeout_s=_ASK_S)
    if listed.status == _NO_PROGRAM:
        return []
    if listed.status:
        ask = Command("ask for them", tuple(listing), timeout_s=_ASK_S)
        return [Remains("backups on a server, or not: it cannot be asked", backend, (ask,))]
    return [
        Remains(f"the backup {words[-1]}", backend, (Command("remove it", tuple(words), timeout_s=_ASK_S),))
        for words in _forgetting(settings, label, listed.out)
    ]


BACKUP = SaturatorKind(
    "backup",
    Backup,
    _BackingUp,
    aim=_aimed,
    programs=frozenset({"python3"}),
    rounds=lambda _: 1,
    looks=_looks,
    find=_find,
)
