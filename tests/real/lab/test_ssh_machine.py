"""Commands on another machine, over a real sshd: the same as on this one."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.common.ssh import Access
from plimsoll.lab.errors import MachineError
from plimsoll.lab.hosts import hosts
from plimsoll.lab.machine import SshMachine
from tests.support.programs import LONGEST_S, ROOT, wait_for
from tests.support.servers import Sshd

T = TypeVar("T")


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


@pytest.fixture
def access(sshd: Sshd) -> Access:
    user = sshd.remote.partition("@")[0]
    return Access("127.0.0.1", user, sshd.port, sshd.key, sshd.known_hosts)


def on_machine(access: Access, act: Callable[[SshMachine], Coroutine[Any, Any, T]]) -> T:
    async def whole() -> T:
        machine = SshMachine("web-1", access)
        try:
            return await act(machine)
        finally:
            await machine.close()

    return asyncio.run(whole())


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


RUNS = [
    ("an argument is no shell's", ["echo", "a  b", "$HOME;'\""], None, 0, "a  b $HOME;'\"\n", ""),
    ("input comes whole", ["cat"], b"x" * 300_000, 0, "x" * 300_000, ""),
    ("without input there is none to wait for", ["cat"], None, 0, "", ""),
    ("errors stand apart", ["sh", "-c", "echo out; echo err >&2; exit 3"], None, 3, "out\n", "err\n"),
    ("a signal is 128 and its number", ["sh", "-c", "kill -9 $$"], None, 137, "", ""),
]


@pytest.mark.parametrize(("why", "command", "stdin", "status", "out", "err"), RUNS, ids=[r[0] for r in RUNS])
def test_run(
    access: Access, why: str, command: list[str], stdin: bytes | None, status: int, out: str, err: str
) -> None:
    done = on_machine(access, lambda machine: machine.run(command, stdin=stdin, check=False))
    assert (done.status, done.out, done.err) == (status, out, err), why


def test_failures_name_the_machine(access: Access) -> None:
    cases = [
        (["sh", "-c", "echo no pool >&2; exit 4"], 60.0, "web-1: .*ended with status 4: no pool"),
        (["sleep", "900"], 0.3, "web-1: sleep 900: did not end within 0.3 s"),
        (["yes"], 60.0, "web-1: yes: printed more than 16 MiB"),
    ]
    for command, timeout_s, said in cases:

        async def act(
            machine: SshMachine, command: list[str] = command, timeout_s: float = timeout_s
        ) -> None:
            await machine.run(command, timeout_s=timeout_s)

        with pytest.raises(MachineError, match=said):
            on_machine(access, act)
    assert on_machine(access, lambda machine: machine.read_text("/proc/version")).startswith("Linux")
    with pytest.raises(MachineError, match="/nope: No such file"):
        on_machine(access, lambda machine: machine.read_text("/nope"))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=4))
def test_every_argument_comes_through_both_shells_as_it_is(access: Access, arguments: list[str]) -> None:
    done = on_machine(access, lambda machine: machine.run(["printf", "%s\\0", *arguments]))
    assert done.out == "".join(f"{argument}\0" for argument in arguments or [""])


UNREACHABLE: list[tuple[str, dict[str, Any], str]] = [
    ("a host that is not known", {"known_hosts": Path("/dev/null")}, "compare the key"),
    ("a key that is not accepted", {"key": "other_key"}, "accepted no key"),
    ("a key with a passphrase", {"key": "locked_key"}, "ssh-agent"),
    ("a key that is not there", {"key": Path("/nope")}, "/nope"),
    ("nobody listens", {"port": 1}, "nothing listens at"),
    ("no such host", {"address": "no-such-host.invalid"}, "host no-such-host.invalid does not exist"),
]


@pytest.mark.parametrize(("why", "changed", "said"), UNREACHABLE, ids=[u[0] for u in UNREACHABLE])
def test_no_connection(sshd: Sshd, access: Access, why: str, changed: dict[str, Any], said: str) -> None:
    key = changed.get("key")
    if isinstance(key, str):
        changed = {**changed, "key": getattr(sshd, key)}
    with pytest.raises(MachineError) as caught:
        on_machine(replace(access, **changed), lambda machine: machine.run(["true"]))
    assert str(caught.value).startswith("web-1: "), why
    assert said in str(caught.value)


LONG = ["sh", "-c", "sleep 900 & echo $$ $!; wait"]


async def pids(machine: SshMachine) -> tuple[Any, list[int]]:
    process = await machine.start(LONG)
    line = await anext(process.lines())
    return process, [int(word) for word in line.text.split()]


def test_stop_ends_the_whole_group(access: Access) -> None:
    async def act(machine: SshMachine) -> tuple[int, list[int]]:
        process, found = await pids(machine)
        return await process.stop(), found

    status, found = on_machine(access, act)
    assert status == 128 + signal.SIGTERM
    assert not any(map(alive, found))


def test_what_runs_ends_with_the_connection(access: Access) -> None:
    async def act(machine: SshMachine) -> list[int]:
        process, found = await pids(machine)
        assert machine._connection is not None
        machine._connection.abort()
        with pytest.raises(MachineError, match="the connection broke"):
            await process.wait()
        assert (await machine.run(["echo", "again"])).out == "again\n", "it connects anew"
        return found

    found = on_machine(access, act)
    wait_for("the command is ended", lambda: not any(map(alive, found)))


@pytest.mark.slow
def test_cancelled_at_any_instant_of_its_beginning_a_command_is_ended(access: Access, tmp_path: Path) -> None:
    script = f"touch {tmp_path}/$$; exec sleep 900"

    async def act(machine: SshMachine) -> list[int]:
        await machine.run(["true"])  # connected
        for number in range(40):
            beginning = asyncio.create_task(machine.start(["sh", "-c", script]))
            await asyncio.sleep(number / 4000)
            beginning.cancel()
            with suppress(asyncio.CancelledError):
                await (await beginning).stop()
        await asyncio.sleep(0.5)  # for what nobody holds to be seen
        return [int(path.name) for path in tmp_path.iterdir()]

    begun = on_machine(access, act)
    wait_for("each is ended", lambda: not any(map(alive, begun)))


def test_a_fleet(sshd: Sshd, access: Access, tmp_path: Path) -> None:
    login = f"address: 127.0.0.1, port: {sshd.port}, user: {access.user}, known_hosts: {sshd.known_hosts}"
    entries = [f"{{name: web-{i}, key: {sshd.key}, {login}}}" for i in range(6)]
    entries.append(f"{{name: locked-out, key: {sshd.other_key}, {login}}}")
    file = tmp_path / "hosts.yml"
    file.write_text("hosts:\n" + "".join(f"- {entry}\n" for entry in entries))
    ran = CliRunner().invoke(
        hosts, ["exec", "--hosts", str(file), "--parallel", "3", "--", "printf", "\\033[2J;%s", "$HOME"]
    )
    assert ran.exit_code == 1, ran.output
    assert all(f"web-{i} | \\x1b[2J;$HOME" in ran.output for i in range(6))
    assert "7 hosts: 6 ok, 1 failed, 0 not done\nfirst failure: locked-out: " in ran.output
    assert "accepted no key" in ran.output


def test_an_interrupted_fleet_leaves_nothing_running(sshd: Sshd, access: Access, tmp_path: Path) -> None:
    login = f"address: 127.0.0.1, port: {sshd.port}, user: {access.user}, known_hosts: {sshd.known_hosts}"
    entries = [f"- {{name: web-{i}, key: {sshd.key}, {login}}}\n" for i in range(3)]
    (tmp_path / "hosts.yml").write_text("hosts:\n" + "".join(entries))
    (tmp_path / "pids").mkdir()
    program = "import sys; from plimsoll.lab.hosts import hosts; hosts(sys.argv[1:])"
    script = f"touch {tmp_path}/pids/$$; exec sleep 900"
    arguments = ["exec", "--hosts", str(tmp_path / "hosts.yml"), "--parallel", "2", "--", "sh", "-c", script]
    us = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    wait_for("two hosts are at it", lambda: len(list((tmp_path / "pids").iterdir())) == 2)
    us.send_signal(signal.SIGINT)
    out, _ = us.communicate(timeout=LONGEST_S)
    assert us.returncode == 1
    assert out == "3 hosts: 0 ok, 0 failed, 3 not done\nnot done: web-0, web-1, web-2\n"
    pids = list((tmp_path / "pids").iterdir())
    assert len(pids) == 2
    assert not any(alive(int(path.name)) for path in pids)
