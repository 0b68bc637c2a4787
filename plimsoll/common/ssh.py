"""The login to a machine over SSH: by key or agent, never to a host that is not known."""

import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import asyncssh

_FORM = re.compile(r"(?:([^@\s]+)@)?(?:\[([0-9A-Fa-f:.]+)\]|([^@:\s\[\]]+))(?::(\d{1,5}))?")


@dataclass(frozen=True)
class Access:
    """An account on a machine, and how to log in to it; None means what ssh itself would take."""

    address: str
    user: str | None = None
    port: int | None = None
    key: Path | None = None
    known_hosts: Path | None = None

    @classmethod
    def parse(cls, text: str, key: Path | None = None, known_hosts: Path | None = None) -> "Access":
        """Read `user@host:port`. Raises ValueError, also where a password stands in it."""
        found = _FORM.fullmatch(text)
        port = int(found[4]) if found and found[4] else None
        if not found or (found[1] and ":" in found[1]) or (port is not None and not 0 < port < 65536):
            raise ValueError(
                "must be user@host or user@host:port; SSH logs in by key or agent, never by password"
            )
        return cls(found[2] or found[3], found[1], port, key, known_hosts)

    def __str__(self) -> str:
        """Return it as `parse` reads it."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return (f"{self.user}@" if self.user else "") + host + (f":{self.port}" if self.port else "")


@dataclass(frozen=True)
class ConnectTrouble:
    """Why a connection failed: an error kind of a run's records, and a sentence with the remedy."""

    kind: Literal["connect_failed", "connect_refused", "login_failed", "timeout"]
    sentence: str


def connect_options(access: Access, timeout_s: float) -> dict[str, Any]:
    """Return the options of asyncssh's connect: keys and agent only, no host that is not known. Pure."""
    options: dict[str, Any] = {
        "host": access.address,
        "preferred_auth": ["publickey"],
        "password": None,
        "connect_timeout": timeout_s,
        "login_timeout": timeout_s,
        "keepalive_interval": 15,
    }
    if access.user:
        options["username"] = access.user
    if access.port:
        options["port"] = access.port
    if access.key:
        options["client_keys"] = [str(access.key.expanduser())]
    if access.known_hosts:
        options["known_hosts"] = str(access.known_hosts.expanduser())
    return options


def connect_trouble(
    error: Exception, access: Access, key: str = "key", known_hosts: str = "known_hosts"
) -> ConnectTrouble:
    """Explain why there is no connection. `key`, `known_hosts`: what the user calls these settings. Pure."""
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return ConnectTrouble(
            "connect_failed",
            f"the host key of {access} is not in {access.known_hosts or '~/.ssh/known_hosts'}: "
            f"connect once with ssh and compare the key, or set {known_hosts} to the file that has it",
        )
    if isinstance(error, asyncssh.PermissionDenied):
        return ConnectTrouble(
            "login_failed", f"{access} accepted no key: name one with {key}, or load one into the agent"
        )
    if isinstance(error, asyncssh.KeyImportError | asyncssh.KeyEncryptionError):
        return ConnectTrouble(
            "login_failed", f"{access.key}: {error}: load a key with a passphrase into ssh-agent"
        )
    if isinstance(error, ConnectionRefusedError):
        return ConnectTrouble(
            "connect_refused", f"nothing listens at {access}: is sshd running, and is the port right?"
        )
    if isinstance(error, TimeoutError):
        return ConnectTrouble(
            "timeout", f"no answer from {access}: is the machine up, and the address right?"
        )
    if isinstance(error, socket.gaierror):
        return ConnectTrouble("connect_failed", f"host {access.address} does not exist: correct its address")
    if isinstance(error, FileNotFoundError | PermissionError) and error.filename:
        return ConnectTrouble("connect_failed", f"{error.filename} cannot be read: {error.strerror}")
    return ConnectTrouble("connect_failed", f"no connection to {access}: {error or type(error).__name__}")
