"""Resolves --connect-to for k6 and Chromium, which take an address and a port."""

import socket

from plimsoll.common.errors import SettingsError
from plimsoll.scenarios.running.settings import origin


def resolved(connect_to: str) -> str:
    """Return HOST:PORT with an address in place of the name. Raises SettingsError."""
    host, _, port = connect_to.rpartition(":")
    try:
        address = str(socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise SettingsError(f"--connect-to: {host} cannot be resolved: {error.strerror}") from None
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def k6_hosts(target: str, connect_to: str) -> dict[str, str]:
    """Return k6's option `hosts`: the target's name and port lead to `connect_to`. Raises SettingsError."""
    _, name, port = origin(target)
    return {f"{name}:{port}": resolved(connect_to)}
