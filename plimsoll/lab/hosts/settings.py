"""The hosts file: which machines there are, and how to log in to them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from plimsoll.common.ssh import Access
from plimsoll.common.validation import Location, read_model
from plimsoll.lab.machine import SshMachine
from plimsoll.lab.names.model import StrictModel, explained_in

MANUAL = "docs/hosts.md"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_%-]{0,252}")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,31}\$?")


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("must be letters, digits, '.', '_' and '-', at most 63, such as web-1")
    return value


def _address(value: str) -> str:
    if not _ADDRESS.fullmatch(value):
        raise ValueError("must be a host name or an IP address, such as 10.0.0.11")
    return value


def _user(value: str) -> str:
    if not _USER.fullmatch(value):
        raise ValueError("must be an account's name; SSH logs in by key or agent, never by password")
    return value


Name = Annotated[str, AfterValidator(_name)]
Address = Annotated[str, AfterValidator(_address)]
User = Annotated[str, AfterValidator(_user)]


class HostSettings(StrictModel):
    """One machine. Anything left out is what ssh itself would use."""

    model_config = explained_in("docs/hosts.md")

    name: Name = Field(description="Name of the host in output and for --host.")
    address: Address | None = Field(None, description="Host name or IP address. Default: the name.")
    port: int | None = Field(None, ge=1, le=65535, description="Port of its SSH server.")
    user: User | None = Field(None, description="Account to log in to.")
    key: Path | None = Field(None, description="Private key. Default: the agent's keys and ssh's own.")
    known_hosts: Path | None = Field(
        None, description="File of known host keys. Default: ~/.ssh/known_hosts."
    )
    become: bool = Field(False, description="Run commands as root, by sudo without a password.")
    groups: list[Name] = Field([], description="Groups of the host, for --group.")

    def access(self) -> Access:
        """Return its login."""
        return Access(self.address or self.name, self.user, self.port, self.key, self.known_hosts)

    def machine(self) -> SshMachine:
        """Return the machine; it is not connected to yet."""
        return SshMachine(self.name, self.access(), self.become)


class HostsFile(StrictModel):
    """The whole file."""

    hosts: list[HostSettings] = Field(min_length=1, description="The machines.")


def read_hosts(path: Path) -> list[HostSettings]:
    """Read and check `path`. Raises SettingsError with all problems."""
    return read_model(path, HostsFile, MANUAL, _twice).hosts


def host_of(text: str) -> HostSettings:
    """Return the host that `user@host:port` names. Raises ValueError."""
    access = Access.parse(text)
    return HostSettings(
        name=re.sub(r"[^A-Za-z0-9.-]", "-", access.address).lstrip(".-") or "host",
        address=access.address,
        user=access.user,
        port=access.port,
    )


def _twice(file: HostsFile) -> Iterator[tuple[Location, str]]:
    first: dict[str, int] = {}
    for i, host in enumerate(file.hosts):
        if host.name in first:
            yield ("hosts", i, "name"), f"{host.name} is already the name of hosts.{first[host.name]}"
        first.setdefault(host.name, i)
