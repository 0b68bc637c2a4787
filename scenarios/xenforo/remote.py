"""Who and where a command is run over SSH: `user@host` or `user@host:port`."""

import re
from dataclasses import dataclass

_FORM = re.compile(r"(?:([^@\s]+)@)?(?:\[([0-9A-Fa-f:.]+)\]|([^@:\s\[\]]+))(?::(\d{1,5}))?")


@dataclass(frozen=True)
class Remote:
    """An account on a machine; without user and port those of ~/.ssh/config count."""

    host: str
    user: str | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Remote":
        """Read `text`. Raises ValueError, also where a password stands in it."""
        found = _FORM.fullmatch(text)
        port = int(found[4]) if found and found[4] else None
        if not found or (found[1] and ":" in found[1]) or (port is not None and not 0 < port < 65536):
            raise ValueError(
                "must be user@host or user@host:port; SSH logs in by key or agent, never by password"
            )
        return cls(found[2] or found[3], found[1], port)

    def __str__(self) -> str:
        """Return it as `parse` reads it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (f"{self.user}@" if self.user else "") + host + (f":{self.port}" if self.port else "")
