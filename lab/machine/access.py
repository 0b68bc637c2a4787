"""How to log in to a machine over SSH: by key or agent, never to a host that is not known."""

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh


@dataclass(frozen=True)
class Access:
    """A machine and how to log in to it; None means what ssh itself would take."""

    name: str
    address: str
    port: int | None = None
    user: str | None = None
    key: Path | None = None
    known_hosts: Path | None = None
    become: bool = False  # run commands as root, by `sudo -n`

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return (f"{self.user}@" if self.user else "") + host + (f":{self.port}" if self.port else "")


def connect_options(access: Access, timeout_s: float) -> dict[str, Any]:
    """Return what asyncssh's connect is given. Pure."""
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


def connect_trouble(error: Exception, access: Access) -> str:
    """Explain in one sentence why there is no connection, with the remedy. Pure."""
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        known = access.known_hosts or "~/.ssh/known_hosts"
        return (
            f"the host key of {access} is not in {known}: connect once with ssh and compare the key, "
            "or say with known_hosts where it is"
        )
    if isinstance(error, asyncssh.PermissionDenied):
        return f"{access} accepted no key: say which with key, or load one into the agent"
    if isinstance(error, asyncssh.KeyImportError | asyncssh.KeyEncryptionError):
        return f"{access.key}: {error}: load a key with a passphrase into ssh-agent"
    if isinstance(error, ConnectionRefusedError):
        return f"nobody listens at {access}: is sshd running, and is the port right?"
    if isinstance(error, TimeoutError):
        return f"no answer from {access}: is the machine up, and the address right?"
    if isinstance(error, socket.gaierror):
        return f"there is no host {access.address}: correct address"
    if isinstance(error, FileNotFoundError | PermissionError) and error.filename:
        return f"{error.filename} cannot be read: {error.strerror}"
    return f"no connection to {access}: {error or type(error).__name__}"
