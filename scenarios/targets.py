"""Where --connect-to leads, as k6 and Chromium want it: an address and a port."""

import json
import socket

from scenarios.consent import origin
from scenarios.errors import SettingsError


def resolved(connect_to: str) -> str:
    """Return HOST:PORT with an address in place of the name. Raises SettingsError."""
    host, _, port = connect_to.rpartition(":")
    try:
        address = str(socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise SettingsError(f"--connect-to: {host} cannot be resolved: {error.strerror}") from None
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def k6_hosts(target: str, connect_to: str) -> str:
    """Return k6's option `hosts` as JSON: the target's name and port lead to `connect_to`."""
    _, name, port = origin(target)
    return json.dumps({f"{name}:{port}": resolved(connect_to)})
