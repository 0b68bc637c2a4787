"""Where the application listens, and by which names a browser may call it. Pure."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable


@dataclass(frozen=True)
class Address:
    """An address and a port; port 0 is any that is free."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """True where only this machine comes to it."""
        if self.host == "localhost":
            return True
        address = ip_of(self.host)
        return address is not None and address.is_loopback

    def url(self, port: int) -> str:
        """Return what to open in a browser; an address that stands for all of them by this machine's own."""
        address = ip_of(self.host)
        host = "127.0.0.1" if address is not None and address.is_unspecified else self.host
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def parsed_address(text: str) -> Address:
    """Return `HOST:PORT`, or `[IPv6]:PORT`. Raises SettingsError."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
        well = bool(host) and port is not None and parts.netloc == text and "@" not in text
    except ValueError:
        well, host, port = False, None, None
    if not well or host is None or port is None:
        raise SettingsError(
            f"--listen: {printable(text)} is no address; give HOST:PORT, as in 127.0.0.1:8090"
        )
    return Address(host, port)


def ip_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that `host` is, None of a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def host_of(netloc: str) -> str | None:
    """Return the host, in lower case, of `HOST[:PORT]` in a header; None where it is none."""
    try:
        parts = urlsplit(f"//{netloc}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == netloc and "@" not in netloc else None


def is_own(netloc: str, names: frozenset[str]) -> bool:
    """Return whether a browser that says `Host: netloc` means this server, and not another one's name.

    Where a stranger's name leads to this machine (DNS rebinding), its pages may read what is served under it.
    An IP address has no such owner.
    """
    host = host_of(netloc)
    return host is not None and (host == "localhost" or host in names or ip_of(host) is not None)
