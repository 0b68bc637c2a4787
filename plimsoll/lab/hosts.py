"""`plimsoll hosts`: one command on many machines, which hosts.yml lists.

What hosts say is hostile: none of it reaches the terminal raw.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click
from pydantic import AfterValidator, Field, ValidationError

from plimsoll.common.commands import CommandGroup
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.ssh import Access
from plimsoll.common.validation import Location, problems_of, read_model
from plimsoll.lab.errors import MachineError, last_words
from plimsoll.lab.machine import Line, Machine, SshMachine
from plimsoll.lab.names import StrictModel, explained_in

_MOST_CHARACTERS = 1 << 20  # that are kept of one host's output
_LONGEST = 4096
MANUAL = "docs/hosts.md"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_%-]{0,252}")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,31}\$?")


@click.group(cls=CommandGroup)
def hosts() -> None:
    """Run commands on the machines of a lab.

    \b
    Examples:
        plimsoll hosts exec --hosts hosts.yml -- uptime
    """  # noqa: D301 \b is click's: keep these lines as they are


@hosts.command("exec")
@click.argument("command", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--hosts", "file", metavar="FILE", type=click.Path(path_type=Path), help="YAML file that lists the hosts."
)
@click.option(
    "--host",
    "names",
    metavar="NAME",
    multiple=True,
    help="A host of the file; without a file, user@host:port. May be repeated.",
)
@click.option(
    "--group", "groups", metavar="G", multiple=True, help="Hosts of the file in this group. May be repeated."
)
@click.option(
    "--parallel",
    metavar="N",
    default=32,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Number of hosts at a time.",
)
@click.option(
    "--timeout-s",
    metavar="NUMBER",
    default=600.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True, max=86400),
    help="Seconds after which a command that still runs is ended and counts as failed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcomes as JSON on standard output.")
@click.pass_context
def exec_(
    ctx: click.Context,
    command: tuple[str, ...],
    file: Path | None,
    names: tuple[str, ...],
    groups: tuple[str, ...],
    parallel: int,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Run a command on many hosts over SSH, and show the output of each as it ends.

    \b
    Examples:
        plimsoll hosts exec --hosts hosts.yml -- uptime
        plimsoll hosts exec --hosts hosts.yml --group db -- sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches'
        plimsoll hosts exec --host root@10.0.0.11 --host root@10.0.0.12:2222 -- rm -rf /srv/clones/old

    The command is a list of arguments, not a line for a shell; for pipes and redirections run a shell.

    Exit codes: 0 it ended with 0 on all hosts; 1 it failed on some, or was interrupted; 2 wrong usage.
    """  # noqa: D301 \b is click's: keep these lines as they are
    where = choose_hosts(file, names, groups)
    outcomes: list[HostOutcome] = []

    def each(outcome: HostOutcome) -> None:
        outcomes.append(outcome)
        if not as_json:
            click.echo("\n".join(outcome_lines(outcome)))

    try:
        asyncio.run(run_everywhere([host.machine() for host in where], command, parallel, timeout_s, each))
    except KeyboardInterrupt:
        click.echo("interrupted: the commands that still ran were ended", err=True)
    except BaseExceptionGroup as group:  # standard output was closed, say: click knows what to do
        raise group.exceptions[0] from None
    done = {outcome.host for outcome in outcomes}
    not_done = [host.name for host in where if host.name not in done]
    if as_json:
        click.echo(json.dumps(outcome_data(command, outcomes, not_done), indent=2))
    else:
        click.echo("\n".join(summary_lines(outcomes, not_done)))
    ctx.exit(0 if not not_done and all(outcome.well for outcome in outcomes) else 1)


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


@dataclass(frozen=True)
class HostOutcome:
    """The outcome of the command on one host. `trouble` is empty where all went well."""

    host: str
    status: int | None
    trouble: str
    duration_s: float
    lines: tuple[Line, ...] = ()
    left_out: int = 0  # lines that were not kept

    @property
    def well(self) -> bool:
        """True if the command ended with status 0."""
        return not self.trouble


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


async def run_everywhere(
    machines: Sequence[Machine],
    command: Sequence[str],
    parallel: int,
    timeout_s: float,
    each: Callable[[HostOutcome], None],
) -> None:
    """Run `command` on all; `each` gets every outcome as it comes. Cancelled, it ends what runs."""
    waiting = iter(machines)
    async with asyncio.TaskGroup() as group:
        for _ in range(min(parallel, len(machines))):
            group.create_task(_work(waiting, command, timeout_s, each))


async def _work(
    waiting: Iterator[Machine], command: Sequence[str], timeout_s: float, each: Callable[[HostOutcome], None]
) -> None:
    for machine in waiting:
        try:
            each(await run_on(machine, command, timeout_s))
        finally:
            await machine.close()


async def run_on(machine: Machine, command: Sequence[str], timeout_s: float) -> HostOutcome:
    """Run `command` on one host; `timeout_s` counts from when it is logged in to. Cancelled, it ends it."""
    begun_s = time.monotonic()
    kept = _Kept()
    status = None
    try:
        process = await machine.start(command)
        try:
            async with asyncio.timeout(timeout_s):
                async for line in process.lines():
                    kept.add(line)
                status = await process.wait()
            trouble = f"ended with status {status}" if status else ""
        except TimeoutError:
            await process.stop()
            trouble = f"did not end within {timeout_s:g} s (--timeout-s)"
        except asyncio.CancelledError:
            await process.stop()
            raise
    except MachineError as error:
        trouble = error.what
    return HostOutcome(
        machine.name, status, trouble, time.monotonic() - begun_s, tuple(kept.lines), kept.left_out
    )


class _Kept:
    """The first lines, so that one host cannot fill the memory."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.left_out = 0
        self._room = _MOST_CHARACTERS

    def add(self, line: Line) -> None:
        self._room -= len(line.text) + 1
        if self._room < 0:
            self.left_out += 1
        else:
            self.lines.append(line)


def outcome_lines(outcome: HostOutcome) -> list[str]:
    """Return the outcome on one host: a heading, and its output (`|`) and errors (`!`). Pure."""
    name = printable(outcome.host)
    lines = [f"{name}: {printable(outcome.trouble) or 'ok'}, {outcome.duration_s:.1f} s"]
    for line in outcome.lines:
        mark = "|" if line.stream == "out" else "!"
        lines.append(f"{name} {mark} {printable(line.text.expandtabs(), _LONGEST)}".rstrip())
    if outcome.left_out:
        lines.append(f"{name}: {outcome.left_out} further lines are not shown")
    return lines


def summary_lines(outcomes: Sequence[HostOutcome], not_done: Sequence[str]) -> list[str]:
    """Return a summary of all hosts. Pure."""
    failed = [outcome for outcome in outcomes if not outcome.well]
    counts = f"{len(outcomes) - len(failed)} ok, {len(failed)} failed"
    total = len(outcomes) + len(not_done)
    lines = [f"{total} host{'' if total == 1 else 's'}: {counts}, {len(not_done)} not done"]
    if failed:
        first = failed[0]
        words = last_words("\n".join(line.text for line in first.lines if line.stream == "err"))
        what = f"{first.host}: {first.trouble}" + (f": {words}" if words else "")
        lines += [f"first failure: {printable(what, 600)}", f"failed: {_names([one.host for one in failed])}"]
    if not_done:
        lines.append(f"not done: {_names(not_done)}")
    return lines


def outcome_data(
    command: Sequence[str], outcomes: Sequence[HostOutcome], not_done: Sequence[str]
) -> dict[str, Any]:
    """Return the outcomes as data for JSON. Pure."""
    return {
        "format": 1,
        "command": list(command),
        "ok": sum(outcome.well for outcome in outcomes),
        "failed": sum(not outcome.well for outcome in outcomes),
        "not_done": list(not_done),
        "hosts": [
            {
                "name": outcome.host,
                "status": outcome.status,
                "trouble": outcome.trouble or None,
                "duration_s": round(outcome.duration_s, 3),
                "output": [{"stream": line.stream, "text": line.text} for line in outcome.lines],
                "left_out": outcome.left_out,
            }
            for outcome in outcomes
        ],
    }


def _names(names: Sequence[str]) -> str:
    return ", ".join(printable(name) for name in names)
