"""The hosts file: which machines there are, and how to log in to them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from analysis.yamlfile import Location, read_model
from lab.machine import Access

MANUAL = "docs/hosts.md"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_%-]{0,252}")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,31}\$?")
_FORM = re.compile(r"(?:([^@\s]+)@)?(?:\[([0-9A-Fa-f:.]+)\]|([^@:\s\[\]]+))(?::(\d{1,5}))?")


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


class Host(BaseModel):
    """One machine. What is not given is what ssh itself would take."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name = Field(description="What the host is called in output and by --host.")
    address: Address | None = Field(None, description="Host name or IP address. Default: the name.")
    port: int | None = Field(None, ge=1, le=65535, description="Port of its sshd.")
    user: User | None = Field(None, description="Account to log in to.")
    key: Path | None = Field(None, description="Private key. Default: the agent's and ssh's own.")
    known_hosts: Path | None = Field(None, description="File with its host key. Default: ~/.ssh/known_hosts.")
    become: bool = Field(False, description="Run commands as root, by sudo without a password.")
    groups: list[Name] = Field([], description="Groups that it is in, for --group.")

    def access(self) -> Access:
        """Return how to log in to it."""
        address = self.address or self.name
        return Access(self.name, address, self.port, self.user, self.key, self.known_hosts, self.become)


class HostsFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hosts: list[Host] = Field(min_length=1, description="The machines.")


def read_hosts(path: Path) -> list[Host]:
    """Read and check `path`. Raises SettingsError with all problems."""
    return read_model(path, HostsFile, MANUAL, _twice).hosts


def host_of(text: str) -> Host:
    """Return the host that `user@host:port` names. Raises ValueError."""
    found = _FORM.fullmatch(text)
    if not found or (found[1] and ":" in found[1]):
        raise ValueError("must be host, user@host or user@host:port")
    address = found[2] or found[3]
    return Host(
        name=re.sub(r"[^A-Za-z0-9.-]", "-", address).lstrip(".-") or "host",
        address=address,
        user=found[1],
        port=int(found[4]) if found[4] else None,
    )


def _twice(file: HostsFile) -> Iterator[tuple[Location, str]]:
    first: dict[str, int] = {}
    for i, host in enumerate(file.hosts):
        if host.name in first:
            yield ("hosts", i, "name"), f"{host.name} is the name of hosts.{first[host.name]} already"
        first.setdefault(host.name, i)
