"""The machines of hosts.yml, and those that `--host` names."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from plimsoll.common.errors import SettingsError
from plimsoll.common.ssh import Access
from plimsoll.common.validation import Location, problems_of, read_model
from plimsoll.lab.machine import SshMachine
from plimsoll.lab.names import StrictModel, explained_in

MANUAL = "docs/hosts.md"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_%-]{0,252}")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,31}\$?")


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("must be letters, digits, '.', '_' and '-', at most 63, such as web-1")
    return value


Name = Annotated[str, AfterValidator(_name)]


def _address(value: str) -> str:
    if not _ADDRESS.fullmatch(value):
        raise ValueError("must be a host name or an IP address, such as 10.0.0.11")
    return value


Address = Annotated[str, AfterValidator(_address)]


def _user(value: str) -> str:
    if not _USER.fullmatch(value):
        raise ValueError("must be an account's name; SSH logs in by key or agent, never by password")
    return value


User = Annotated[str, AfterValidator(_user)]


class HostSettings(StrictModel):
    """One machine. Anything left out is what ssh itself would use."""

    model_config = explained_in("docs/hosts.md")

    name: Name = Field(
        description="Name of the host in output and for `--host`: letters, digits, `.`, `_`, `-`."
    )
    address: Address | None = Field(None, description="Host name or IP address. Default: the name.")
    port: int | None = Field(
        None, ge=1, le=65535, description="Port of its SSH server. Default: that of `~/.ssh/config`, else 22."
    )
    user: User | None = Field(
        None, description="Account to log in to. Default: that of `~/.ssh/config`, else yours."
    )
    key: Path | None = Field(
        None,
        description="File with the private key. Default: the keys of the agent and of `~/.ssh`. Load a "
        "key with a passphrase "
        "into the agent.",
    )
    known_hosts: Path | None = Field(
        None, description="File with the host's key. Default: `~/.ssh/known_hosts`."
    )
    become: bool = Field(
        False, description="Run commands as root with `sudo -n`. sudo must not ask for a password."
    )
    groups: list[Name] = Field([], description="Groups of the host, for `--group`.")

    def access(self) -> Access:
        """Return its login."""
        return Access(self.address or self.name, self.user, self.port, self.key, self.known_hosts)

    def machine(self) -> SshMachine:
        """Return the machine; it is not connected to yet."""
        return SshMachine(self.name, self.access(), self.become)


class HostsFile(StrictModel):
    """The whole file."""

    hosts: list[HostSettings] = Field(min_length=1, description="The machines.")


def choose_hosts(file: Path | None, names: Sequence[str], groups: Sequence[str]) -> list[HostSettings]:
    """Return the hosts of `file` that `names` or `groups` name, all where there are neither.

    Without `file`, `names` are addresses. Raises SettingsError with all problems.
    """
    if file is not None:
        return among(read_hosts(file), names, groups, str(file))
    if groups:
        raise SettingsError("--group: needs a hosts file: add --hosts FILE")
    if not names:
        raise SettingsError("--hosts: name the hosts: --hosts FILE, or --host user@host")
    hosts: dict[str, HostSettings] = {}
    problems = []
    for text in names:
        try:
            host = host_of(text)
        except ValidationError as error:
            first = problems_of(error)[0]
            problems.append(f"--host {text}: {first.key} {first.text}")
        except ValueError as error:
            problems.append(f"--host {text}: {error}")
        else:
            if host.name in hosts:  # the same machine by another port: named as it was typed
                host = host.model_copy(update={"name": text})
            hosts[host.name] = host
    if problems:
        raise SettingsError("\n".join(problems))
    return list(hosts.values())


def among(
    hosts: Sequence[HostSettings], names: Sequence[str], groups: Sequence[str], file: str
) -> list[HostSettings]:
    """Return those of `hosts` that are named or in a group, in the file's order. Raises SettingsError."""
    there = {host.name for host in hosts}
    grouped = {group for host in hosts for group in host.groups}
    problems = [f"--host {name}: {file} has no host of that name" for name in names if name not in there]
    problems += [
        f"--group {group}: no host in {file} is in it; groups: {', '.join(sorted(grouped)) or 'none'}"
        for group in groups
        if group not in grouped
    ]
    if problems:
        raise SettingsError("\n".join(problems))
    if not names and not groups:
        return list(hosts)
    return [host for host in hosts if host.name in names or set(groups) & set(host.groups)]


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
