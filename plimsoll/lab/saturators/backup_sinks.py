"""Where a backup of Proxmox goes, and how its programs are called for that. Pure.

Held against the sources of pve-manager, pve-common and qemu-server (August 2026) and proxmox-backup (2024).
"""

import json
import re
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from plimsoll.lab.names import Folder, StrictModel, own_name
from plimsoll.lab.saturators.sinks import FolderSink, NullSink

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
        description="File on that machine with the password, or the token's secret."
    )
    fingerprint: str | None = Field(
        None,
        pattern=_FINGERPRINT,
        description="Fingerprint of the server's certificate, if no CA vouches for it.",
    )


BackupSink = NullSink | FolderSink | StorageSink | RepositorySink


# $1: the guest; $2: a folder of the lab's own, for temporary files; $3: empty, or setsid; then the options.
VZDUMP = """# vzdump
guest=$1 own=$2 apart=$3
shift 3
rm -rf --one-file-system -- "$own" && mkdir -m 700 -- "$own" || exit
! vzdump help 2>&1 | grep -q -e -notification-mode || set -- "$@" --notification-mode legacy-sendmail
exec $apart vzdump "$guest" --tmpdir "$own" --remove 0 --lockwait 1 "$@" """

# $1: the guest; $2: the folder, which is there as long as a backup of the lab may be under way or left. What
# vzdump has begun is ended; what it did not come to put in order is put in order.
RELEASE = """# end what is left of vzdump
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


def vzdump(
    guest: int, own: str, options: list[str], rate_bytes_per_s: int | None, copied: bool = False
) -> list[str]:
    """Return the command that backs a guest up; `own`: the folder for its temporary files.

    `copied`: its output goes to a copier, which tells it to end. In the copier's process group it would be
    told twice, and the second time in the middle of calling the backup off.
    """
    rate = ["--bwlimit", str(rate_bytes_per_s // 1024)] if rate_bytes_per_s else []
    return ["sh", "-c", VZDUMP, "sh", str(guest), own, "setsid" if copied else "", *rate, *options]


def release(guest: int, own: str) -> list[str]:
    """Return the command that ends such a backup, and unlocks the guest."""
    return ["sh", "-c", RELEASE, "sh", str(guest), own]


def own_note(label: str) -> str:
    """Return the note by which a backup on a storage is known."""
    return own_name(label)


def stored(storage: str, guest: int) -> list[str]:
    """Return the command that lists a guest's backups on a storage, as JSON."""
    path = f"/nodes/localhost/storage/{storage}/content"
    return ["pvesh", "get", path, "--content", "backup", "--vmid", str(guest), "--output-format", "json"]


def own_stored(listed: str, storage: str, label: str) -> list[str]:
    """Return the volumes among those `stored` lists that bear the label's note, and no others."""
    start = f"{storage}:backup/"
    return [
        one["volid"]
        for one in _rows(listed)
        if isinstance(one.get("volid"), str)
        and one["volid"].startswith(start)
        and str(one.get("notes", "")).strip() == own_note(label)
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
