"""Explains Proxmox's errors, each in a sentence with the remedy. Pure."""

import re
from enum import Enum

from lab.errors import LabError

_LONGEST = 240
_LOCKED = re.compile(r"(?i)VM is locked|can't lock file|unable to acquire lock|got lock request timeout")
_TAKEN = re.compile(r"(?i)unable to create VM \d+: config file already exists|VM (?:ID )?\d+ already exists")
_GONE = re.compile(
    r"(?i)Configuration file '[^']*' does not exist|no such (?:VM|resource)|VM \d+ does not exist"
)
_LATER = re.compile(r"(?i)guest agent is not running|agent (?:not|isn't) |got timeout|is not running")
_NO_SNAPSHOT = re.compile(r"(?i)snapshot feature is not available")


class FaultKind(Enum):
    """The kinds of errors, by what may be done about them."""

    UNREACHED = "the request was never carried out: it may be repeated"
    UNSURE = "nobody knows whether it was carried out: it may be repeated if it changes nothing"
    LOCKED = "another task holds the virtual machine: it may be repeated"
    LATER = "it may succeed once the guest is up"
    TAKEN = "the number belongs to another virtual machine"
    GONE = "there is no such virtual machine"
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
            "if no task holds the lock, remove it with qm unlock VMID on the node",
            FaultKind.LOCKED,
        )
    if _TAKEN.search(said):
        return ApiError(f"{where}: {said}", FaultKind.TAKEN)
    if _GONE.search(said):
        return ApiError(f"{where}: {said}: are node and number right?", FaultKind.GONE)
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
