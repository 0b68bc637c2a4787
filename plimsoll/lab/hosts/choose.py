"""The choice of the hosts that a command runs on."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from plimsoll.common.errors import SettingsError
from plimsoll.common.validation import problems_of
from plimsoll.lab.hosts.settings import HostSettings, host_of, read_hosts


def chosen(file: Path | None, names: Sequence[str], groups: Sequence[str]) -> list[HostSettings]:
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
            if host.name in hosts:  # the same machine by another port: told apart by what was typed
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
