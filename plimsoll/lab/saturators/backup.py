"""Saturator `backup`: vzdump of a guest, or proxmox-backup-client of a folder, again and again."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from plimsoll.common.validation import Size
from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Line, Machine
from plimsoll.lab.names import Folder, StrictModel, own_name
from plimsoll.lab.saturators.saturator import (
    CLONE,
    LineProgress,
    Runner,
    SaturatorKind,
    SaturatorSettings,
    aim_folder,
)
from plimsoll.lab.saturators.sinks import (
    REMOVAL_S,
    FolderSink,
    NullSink,
    copied_bytes,
    copy_to_file_command,
    find_left,
    folder_checks,
    own_file,
    own_path,
    removal_command,
)
from plimsoll.lab.steps.step import Check, Command, Remains, is_file, is_folder, is_program, unless

_NAME = r"^[A-Za-z][A-Za-z0-9._-]{0,98}[A-Za-z0-9]$"
_REPOSITORY = r"^[A-Za-z0-9_.@!:\[\]%-]{1,300}$"
_FINGERPRINT = r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31}$"
# vzdump prints `INFO:  20% (4.2 GiB of 20.0 GiB) in 3s, read: …`, and `status: 1% (558.5 MiB of 32.0 GiB), …`
# until 6.2; for containers its client's lines, of which it has one a minute.
PROGRESS = re.compile(
    r"(?:^|\bINFO: +(?:status: )?)[0-9]{1,3}% \((?P<bytes>[0-9.]{1,20}) (?P<unit>[KMGTP]?i?B|bytes) of "
)
CLIENT_PROGRESS = re.compile(r"(?:^|INFO: +)processed (?P<bytes>[0-9.]{1,20}) (?P<unit>[KMGTP]?i?B) in ")
CLIENT_END = re.compile(
    r"(?:^ *|INFO: +)[\w.-]+\.(?:pxar|ppxar|img): had to backup [0-9.]{1,20} \w{1,3} of "
    r"(?P<bytes>[0-9.]{1,20}) (?P<unit>[KMGTP]?i?B) "
)


class StorageSink(StrictModel):
    """vzdump writes to a storage of the node, of the type of Proxmox Backup Server."""

    to: Literal["storage"] = Field(description="`storage`.")
    storage: str = Field(
        pattern=_NAME, description="Storage of Proxmox Backup Server, by its name on the node."
    )


class RepositorySink(StrictModel):
    """proxmox-backup-client writes to a Proxmox Backup Server."""

    to: Literal["repository"] = Field(description="`repository`.")
    repository: str = Field(pattern=_REPOSITORY, description="Repository: user@pbs!token@server:datastore.")
    password_file: Folder = Field(
        description="File on that machine with the password, or the token's secret, for PBS_PASSWORD_FILE."
    )
    fingerprint: str | None = Field(
        None,
        pattern=_FINGERPRINT,
        description="Fingerprint of the server's certificate, if no CA vouches for it.",
    )


BackupSink = NullSink | FolderSink | StorageSink | RepositorySink
# $1: the guest; $2: a folder of the lab's own, for temporary files; $3: empty, or setsid; then the options.
_VZDUMP = """# vzdump
guest=$1 own=$2 apart=$3
shift 3
rm -rf --one-file-system -- "$own" && mkdir -m 700 -- "$own" || exit
! vzdump help 2>&1 | grep -q -e -notification-mode || set -- "$@" --notification-mode legacy-sendmail
exec $apart vzdump "$guest" --tmpdir "$own" --remove 0 --lockwait 1 "$@" """
# $1: the guest; $2: the folder, which is there as long as a backup of the lab may be under way or left. What
# vzdump has begun is ended; what it did not come to put in order is put in order.
_RELEASE = """# end what is left of vzdump
[ -e "$2" ] || [ -L "$2" ] || exit 0
workers() { pgrep -f "^task UPID:[^:]*:[^:]*:[^:]*:[^:]*:vzdump:$1:"; }
! pids=$(workers "$1") || kill -TERM $pids
for _ in $(seq 120); do
    workers "$1" >/dev/null || break
    sleep 1
done
! workers "$1" >/dev/null || { echo "vzdump of $1 does not end" >&2; exit 1; }
for tool in qm pct; do
    config=$("$tool" config "$1" 2>/dev/null) || continue
    ! printf '%s\n' "$config" | grep -qx 'lock: backup' || "$tool" unlock "$1" || exit
done
! pct listsnapshot "$1" 2>/dev/null | grep -qE '(^|[ >])vzdump( |$)' ||
    pct delsnapshot "$1" vzdump --force || exit
rm -rf --one-file-system -- "$2" """

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
        CLONE,
        description="Number of the guest to back up. Default: the clone's, if its vmid_range is one "
        "number, such as 9001-9001.",
    )
    folder: Folder | Literal["@clone"] = Field(
        CLONE,
        description="With the sink `repository`, in place of a guest: the folder to back up. Default: "
        "the disk's.",
    )
    sink: Annotated[BackupSink, Field(discriminator="to")] = Field(
        NullSink(), description="Where it goes: `null` (the default), `folder`, `storage` or `repository`."
    )
    mode: Literal["snapshot", "suspend"] = Field(
        "snapshot",
        description="How vzdump keeps a guest consistent: `snapshot` or `suspend`; `stop` would stop "
        "the site.",
    )
    compress: Literal["none", "zstd", "gzip", "lzo"] = Field(
        "none",
        description="How vzdump compresses what goes to `null` or `folder`: `none`, `zstd`, `gzip` or `lzo`.",
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


class _BackupRunner(Runner[Backup]):
    shortest_round_s = 1.0
    grace_s = 60.0  # vzdump has to call off the job in QEMU, and to unlock the guest

    async def _once(self) -> None:
        await self._follow(command(self.settings, self.label), reader(self.settings))
        if not isinstance(self.settings.sink, NullSink | FolderSink):
            await self._forget()

    async def _clean(self) -> None:
        said = self.settings
        if isinstance(said.guest, int) and not said.of_folder:
            await self.machine.run(release_command(said.guest, _own(self.label)), timeout_s=_RELEASE_S)
        if file := own_file(said.sink, self.label, _SUFFIX):
            await self.machine.run(removal_command(file), timeout_s=REMOVAL_S)
        await self._forget()

    async def _forget(self) -> None:
        """Remove the backups that are on a server."""
        if listing := _listing(self.settings, self.label):
            listed = await self.machine.run(listing, timeout_s=_ASK_S)
            for words in _forgetting(self.settings, self.label, listed.out):
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
        options += ["--storage", sink.storage, "--notes-template", own_name(label)]
        return vzdump(settings.guest, _own(label), options, rate)
    compress = "0" if settings.compress == "none" else settings.compress
    options += ["--compress", compress, "--stdout", "1"]
    # vzdump keeps to the rate by itself: a full pipe would hold up the guest's writes.
    dump = vzdump(settings.guest, _own(label), options, rate, copied=True)
    return copy_to_file_command(dump, own_file(sink, label, _SUFFIX))


def reader(settings: Backup) -> Callable[[Line], int | None]:
    """Return what reads the bytes so far from the lines of `command`."""
    forms = (PROGRESS, CLIENT_PROGRESS, CLIENT_END)
    figures, is_copied = (
        [LineProgress(form) for form in forms],
        isinstance(settings.sink, NullSink | FolderSink),
    )

    def read(line: Line) -> int | None:
        if is_copied:
            found = copied_bytes(line.text) if line.stream == "out" else None
        else:
            found = next((bytes_ for one in figures if (bytes_ := one.read(line)) is not None), None)
        # What vzdump merely reports goes to its errors too.
        return 0 if found is None and line.text.startswith("INFO: ") else found

    return read


def _listing(settings: Backup, label: str) -> list[str]:
    """Return the command that lists backups on a server; none if they go to none."""
    sink = settings.sink
    if isinstance(sink, StorageSink) and isinstance(settings.guest, int):
        return stored_command(sink.storage, settings.guest)
    if isinstance(sink, RepositorySink):
        return client(sink, "snapshot", "list", group(label), "--output-format", "json")
    return []


def _forgetting(settings: Backup, label: str, listed: str) -> list[list[str]]:
    """Return the commands that remove the label's backups among those `listed` on a server."""
    sink = settings.sink
    if isinstance(sink, StorageSink):
        return [["pvesm", "free", volume] for volume in find_own_backups(listed, sink.storage, label)]
    if isinstance(sink, RepositorySink):
        return [client(sink, "snapshot", "forget", one) for one in own_snapshots(listed, label)]
    return []


def _aim(settings: Backup, at: DataLocation) -> Backup:
    changed: dict[str, object] = {}
    if settings.of_folder:
        if settings.folder != CLONE:
            return settings
        return settings.model_copy(update={"folder": aim_folder("folder", at)})
    if settings.guest == CLONE:
        if at.guest is None:
            raise ValueError(
                "guest: is missing: the lab knows no guest's number of this clone: name a guest, or give a "
                "clone on Proxmox a vmid_range of one number, such as 9001-9001"
            )
        changed["guest"] = at.guest
    if isinstance(settings.sink, FolderSink) and settings.sink.folder == CLONE:
        changed["sink"] = FolderSink(to="folder", folder=aim_folder("sink.folder", at))
    return settings.model_copy(update=changed)


def _checks(settings: Backup) -> list[Check]:
    sink, found = settings.sink, folder_checks(settings.sink)
    if isinstance(sink, RepositorySink):
        found += [is_program("saturator", "proxmox-backup-client")]
        found += [is_file("saturator.sink.password_file", sink.password_file)]
        found += [] if settings.folder == CLONE else [is_folder("saturator.folder", settings.folder)]
        login = f"saturator.sink.repository: {sink.repository} cannot be logged in to"
        return [*found, Check(login, unless(_NO_PROGRAM, client(sink, "status")), _ASK_S)]
    found.append(is_program("saturator", "vzdump"))
    if isinstance(sink, StorageSink):
        problem = (
            f"saturator.sink.storage: {sink.storage} is not a storage of Proxmox Backup Server: pvesm status "
            "names them; for any other, give its folder as sink: {to: folder, folder: /…}"
        )
        found.append(Check(problem, ("sh", "-c", _IS_BACKUP_SERVER, "sh", sink.storage)))
    if isinstance(settings.guest, int):
        problem = f"saturator.guest: this node has no guest {settings.guest}: qm list shows those that it has"
        found.append(Check(problem, ("sh", "-c", _IS_GUEST, "sh", str(settings.guest))))
    return found


async def _find(machine: Machine, settings: Backup, label: str, backend: str) -> list[Remains]:
    """Return what is still under way or locked, the archive, and backups on a server."""
    found: list[Remains] = []
    if not settings.of_folder and isinstance(settings.guest, int):
        step = Command("end it", tuple(release_command(settings.guest, _own(label))), timeout_s=_RELEASE_S)
        found += [
            Remains(f"a backup of the guest {settings.guest}, marked by {one.what}", backend, (step,))
            for one in await find_left(machine, _own(label), backend)
        ]
    if file := own_file(settings.sink, label, _SUFFIX):
        found += await find_left(machine, file, backend)
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


def vzdump(
    guest: int, own: str, options: list[str], rate_bytes_per_s: int | None, copied: bool = False
) -> list[str]:
    """Return the command that backs a guest up; `own`: the folder for its temporary files.

    `copied`: its output goes to a copier, which tells it to end. In the copier's process group it would
    be signalled twice, the second time in the middle of calling the backup off.
    """
    rate = ["--bwlimit", str(rate_bytes_per_s // 1024)] if rate_bytes_per_s else []
    return ["sh", "-c", _VZDUMP, "sh", str(guest), own, "setsid" if copied else "", *rate, *options]


def release_command(guest: int, own: str) -> list[str]:
    """Return the command that ends such a backup, and unlocks the guest."""
    return ["sh", "-c", _RELEASE, "sh", str(guest), own]


def stored_command(storage: str, guest: int) -> list[str]:
    """Return the command that lists a guest's backups on a storage, as JSON."""
    path = f"/nodes/localhost/storage/{storage}/content"
    return ["pvesh", "get", path, "--content", "backup", "--vmid", str(guest), "--output-format", "json"]


def find_own_backups(listed: str, storage: str, label: str) -> list[str]:
    """Return the volumes among those `stored` lists that bear the label's note, and no others."""
    start = f"{storage}:backup/"
    return [
        one["volid"]
        for one in _rows(listed)
        if isinstance(one.get("volid"), str)
        and one["volid"].startswith(start)
        and str(one.get("notes", "")).strip() == own_name(label)
    ]


def client(sink: RepositorySink, *words: str) -> list[str]:
    """Return how proxmox-backup-client is called: it reads its password from a file."""
    named = [f"PBS_PASSWORD_FILE={sink.password_file}", f"PBS_REPOSITORY={sink.repository}"]
    named += [f"PBS_FINGERPRINT={sink.fingerprint}"] if sink.fingerprint else []
    return ["env", *named, "proxmox-backup-client", *words]


def backup_folder(sink: RepositorySink, folder: str, label: str, rate_bytes_per_s: int | None) -> list[str]:
    """Return the command that backs a folder up, as a host of the lab's own name."""
    rate = ["--rate", f"{rate_bytes_per_s}B"] if rate_bytes_per_s else []
    named = ["--backup-type", "host", "--backup-id", own_name(label)]
    return client(sink, "backup", f"clone.pxar:{folder}", *named, *rate)


def group(label: str) -> str:
    """Return the group of the label's backups on a server."""
    return f"host/{own_name(label)}"


def own_snapshots(listed: str, label: str) -> list[str]:
    """Return the snapshots of the label in what `snapshot list --output-format json` printed."""
    found = []
    for one in _rows(listed):
        time_s = one.get("backup-time")
        if (
            one.get("backup-type") == "host"
            and one.get("backup-id") == own_name(label)
            and type(time_s) is int
        ):
            at = datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            found.append(f"{group(label)}/{at}")
    return found


def _rows(text: str) -> list[dict[str, Any]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


BACKUP = SaturatorKind(
    "backup",
    Backup,
    _BackupRunner,
    aim=_aim,
    programs=frozenset({"python3"}),
    rounds=lambda _: 1,
    checks=_checks,
    find=_find,
)
