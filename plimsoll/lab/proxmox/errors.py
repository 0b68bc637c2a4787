"""Explains Proxmox's errors, each in a sentence with the remedy. Pure."""

import re
from enum import Enum

from plimsoll.lab.errors import LabError

_LONGEST = 240
_LOCKED = re.compile(
    r"(?i)(?:VM|CT) is locked|can't lock file|unable to acquire lock|got lock request timeout"
)
_TAKEN = re.compile(
    r"(?i)unable to create (?:VM|CT) \d+: config file already exists|(?:VM|CT) (?:ID )?\d+ already exists"
)
_GONE = re.compile(
    r"(?i)Configuration file '[^']*' does not exist|no such (?:VM|CT|resource)|(?:VM|CT) \d+ does not exist"
)
_LATER = re.compile(r"(?i)guest agent is not running|agent (?:not|isn't) |got timeout|is not running")
_AT_REST = re.compile(r"(?i)(?:VM|CT) \d+ not running")
_BOUND = re.compile(r"(?i)unable to clone mountpoint '\w+' \(type (?:bind|device)\)")
_RUNS = re.compile(r"(?i)full clone of a running container is only possible from a snapshot")
_NO_SNAPSHOT = re.compile(r"(?i)snapshot feature is not available")


class FaultKind(Enum):
    """The kinds of errors, by what may be done about them."""

    UNREACHED = "the request was never carried out: it may be repeated"
    UNSURE = "nobody knows whether it was carried out: it may be repeated if it changes nothing"
    LOCKED = "another task holds the guest: it may be repeated"
    LATER = "it may succeed once the guest is up"
    TAKEN = "the number belongs to another guest"
    GONE = "there is no such guest"
    AT_REST = "the guest does not run: to stop it there is nothing to do"
    FINAL = "it fails however often it is repeated"


class ApiError(LabError):
    """The API did not do what was asked of it."""

    def __init__(self, message: str, kind: FaultKind = FaultKind.FINAL) -> None:
        super().__init__(message)
        self.kind = kind


def answered(api: str, what: str, status: int, reason: str, errors: object = None) -> ApiError:
    """Return the error for an answer of `status`; `reason` is its status line, `errors` go by parameter."""
    said = plain(reason) or f"status {status}"
    if isinstance(errors, dict) and "errors" not in errors:
        said = "; ".join([said, *(f"{plain(key)}: {plain(text)}" for key, text in errors.items())])
    where = f"{api}: {what}"
    if status == 401:
        return ApiError(
            f"{where}: the API token is not accepted ({said}): "
            "is it complete, does it exist, and is it still valid?"
        )
    if status == 403:
        return ApiError(
            f"{where}: the API token may not do this ({said}): grant it the privilege there, "
            "or create it without privilege separation; docs/proxmox.md has the list"
        )
    if status == 595:
        return ApiError(
            f"{where}: the API host cannot reach the node ({said}): is it on, and does the cluster have "
            "quorum?",
            FaultKind.UNREACHED,
        )
    if status in (502, 503, 596, 597, 598, 599):
        return ApiError(f"{where}: the node's answer broke off ({said})", FaultKind.UNSURE)
    return of_message(where, said)


def of_message(where: str, said: str) -> ApiError:
    """Return the error for the message of an answer, or of a task that failed."""
    if _LOCKED.search(said):
        return ApiError(
            f"{where}: {said}: wait for the task that holds the lock, or stop it; "
            "if no task holds the lock, remove it with qm unlock VMID (pct unlock VMID for a container) "
            "on the node",
            FaultKind.LOCKED,
        )
    if _TAKEN.search(said):
        return ApiError(f"{where}: {said}", FaultKind.TAKEN)
    if _GONE.search(said):
        return ApiError(f"{where}: {said}: are node and number right?", FaultKind.GONE)
    if _AT_REST.search(said):
        return ApiError(f"{where}: {said}", FaultKind.AT_REST)
    if _BOUND.search(said):
        return ApiError(
            f"{where}: {said}: Proxmox clones volumes only: take that mount point out of the template, or "
            "make it a volume of a storage"
        )
    if _RUNS.search(said):
        return ApiError(f"{where}: {said}: shut it down, or make it a template")
    if _NO_SNAPSHOT.search(said):
        return ApiError(f"{where}: {said}: this storage has no snapshots: set restore: clone")
    if _LATER.search(said):
        return ApiError(f"{where}: {said}", FaultKind.LATER)
    return ApiError(f"{where}: {said}")


def failed(where: str, exit_status: str, log: list[str]) -> ApiError:
    """Return the error for a task that ended with `exit_status`; `log` are its last lines."""
    error = of_message(f"{where}: the task failed", plain(exit_status) or "without saying why")
    lines = " | ".join(line for line in map(plain, log) if line)
    return ApiError(f"{error} (its log ends: {lines})" if lines else str(error), error.kind)


def plain(text: object) -> str:
    """Return a stranger's text as one line that may be printed."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
