"""Commands on this machine: what they return, how they fail, and that nothing of them is left."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import asyncssh
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.common.ssh import Access, connect_options, connect_trouble
from plimsoll.lab.errors import MachineError, last_words
from plimsoll.lab.machine import CommandResult, Line, LocalMachine
from plimsoll.lab.machine.process import LineSplit, decode_output, guard_command
from tests.support.programs import ROOT, wait_for

T = TypeVar("T")


def marked() -> str:
    """A word to find processes by."""
    return f"plimsoll-test-{uuid.uuid4().hex}"


def running(word: str) -> list[int]:
    """Processes that have `word` as an argument of their own, without the shells that were told it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in arguments[:2]:
            found.append(int(path.parent.name))
    return found


def named(word: str, *, deaf: bool = False) -> list[str]:
    """A command that runs for long under the name `word`, and one in the background beside it."""
    ignore = "trap '' TERM; " if deaf else ""
    script = f"{ignore}(exec -a {word} sleep 900) & echo up; (exec -a {word} sleep 900); wait"
    return ["bash", "-c", script]


def on_machine(act: Callable[[LocalMachine], Coroutine[Any, Any, T]]) -> T:
    async def whole() -> T:
        machine = LocalMachine()
        try:
            return await act(machine)
        finally:
            await machine.close()

    return asyncio.run(whole())


RUNS = [
    ("an argument is no shell's", ["echo", "a  b", "$HOME;'\""], None, 0, "a  b $HOME;'\"\n", ""),
    ("input comes whole", ["cat"], b"one\ntwo", 0, "one\ntwo", ""),
    ("empty input ends at once", ["cat"], b"", 0, "", ""),
    ("without input none is waited for", ["cat"], None, 0, "", ""),
    ("input that nobody reads is no error", ["true"], b"x" * 200_000, 0, "", ""),
    ("errors stand apart", ["sh", "-c", "echo out; echo err >&2; exit 3"], None, 3, "out\n", "err\n"),
    ("a signal is 128 and its number", ["sh", "-c", "kill -9 $$"], None, 137, "", ""),
    ("what is not UTF-8 is spelled out", ["printf", "\\377"], None, 0, "\\xff", ""),
]


@pytest.mark.parametrize(("why", "command", "stdin", "status", "out", "err"), RUNS, ids=[r[0] for r in RUNS])
def test_run(why: str, command: list[str], stdin: bytes | None, status: int, out: str, err: str) -> None:
    done = on_machine(lambda machine: machine.run(command, stdin=stdin, check=False))
    assert (done.status, done.out, done.err) == (status, out, err), why
    assert done.command == tuple(command)


FAILURES: list[tuple[str, list[str], float, str]] = [
    ("no such program", ["/no/such/program"], 60, "local: /no/such/program: ended with status 127: "),
    ("a status", ["sh", "-c", "echo no pool >&2; exit 4"], 60, "ended with status 4: no pool"),
    ("secrets are taken out", ["sh", "-c", "echo password=hunter2 >&2; exit 1"], 60, "password=REDACTED"),
    ("too slow", ["sleep", "900"], 0.2, "local: sleep 900: did not end within 0.2 s"),
    ("too much", ["yes"], 60, "local: yes: printed more than 16 MiB"),
    ("an argument that no program can be given", ["echo", "\0"], 60, "cannot be started"),
]


@pytest.mark.parametrize(("why", "command", "timeout_s", "said"), FAILURES, ids=[f[0] for f in FAILURES])
def test_a_failure_names_machine_command_and_last_words(
    why: str, command: list[str], timeout_s: float, said: str
) -> None:
    with pytest.raises(MachineError) as caught:
        on_machine(lambda machine: machine.run(command, timeout_s=timeout_s))
    assert said in str(caught.value), why
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=4))
def test_every_argument_comes_through_the_shell_as_it_is(arguments: list[str]) -> None:
    done = on_machine(lambda machine: machine.run(["printf", "%s\\0", *arguments]))
    assert done.out == "".join(f"{argument}\0" for argument in arguments or [""])


def test_lines_come_as_they_are_written() -> None:
    async def act(machine: LocalMachine) -> tuple[list[Line], int]:
        process = await machine.start(["sh", "-c", "echo one; sleep 0.3; echo two >&2; printf three; exit 5"])
        return [line async for line in process.lines()], await process.wait()

    lines, status = on_machine(act)
    assert status == 5
    assert {(line.stream, line.text) for line in lines} == {("out", "one"), ("err", "two"), ("out", "three")}
    assert lines[0].text == "one"
    assert lines[0].t_ns < min(line.t_ns for line in lines[1:])


def test_wait_throws_away_what_nobody_asked_for() -> None:
    async def act(machine: LocalMachine) -> int:
        return await (await machine.start(["sh", "-c", "yes | head -n 300000; exit 6"])).wait()

    assert on_machine(act) == 6


@pytest.mark.parametrize("deaf", [False, True], ids=["TERM ends it", "only KILL ends it"])
def test_stop_ends_the_whole_group(deaf: bool) -> None:
    word = marked()

    async def act(machine: LocalMachine) -> int:
        process = await machine.start(named(word, deaf=deaf))
        await anext(process.lines())
        return await process.stop(grace_s=0.2 if deaf else 5)

    assert on_machine(act) == (128 + signal.SIGKILL if deaf else 128 + signal.SIGTERM)
    assert not running(word)


def test_a_process_that_nobody_reads_can_be_stopped() -> None:
    async def act(machine: LocalMachine) -> int:
        process = await machine.start(["yes"])
        await asyncio.sleep(0.2)
        return await process.stop()

    assert on_machine(act) == 128 + signal.SIGTERM


def test_a_command_leaves_nothing_running_behind_it() -> None:
    word = marked()
    on_machine(lambda machine: machine.run(["bash", "-c", f"(exec -a {word} sleep 900) & exit 0"]))
    assert not running(word)


def test_a_time_out_ends_the_whole_group() -> None:
    word = marked()
    with pytest.raises(MachineError, match="did not end within"):
        on_machine(lambda machine: machine.run(named(word), timeout_s=0.3))
    assert not running(word)


def test_a_cancelled_command_is_ended() -> None:
    word = marked()

    async def act(machine: LocalMachine) -> None:
        task = asyncio.create_task(machine.run(named(word)))
        while not running(word):
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not running(word)

    on_machine(act)


@pytest.mark.parametrize("command", [["sleep", "900"], ["yes"]], ids=["silent", "loud, and nobody listens"])
@pytest.mark.parametrize("after_s", [0, 0.3], ids=["just begun", "begun before"])
def test_close_ends_what_runs(command: list[str], after_s: float) -> None:
    async def act(machine: LocalMachine) -> int:
        process = await machine.start(command)
        await asyncio.sleep(after_s)
        await machine.close()
        return await process.wait()

    assert on_machine(act) == 128 + signal.SIGTERM


def test_nothing_is_left_when_this_program_is_killed() -> None:
    word = marked()
    program = f"""
import asyncio
from plimsoll.lab.machine import LocalMachine
async def main():
    process = await LocalMachine().start({named(word)!r})
    await process.wait()
asyncio.run(main())
"""
    us = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    wait_for("the command runs", lambda: len(running(word)) == 2)
    os.kill(us.pid, signal.SIGKILL)
    us.wait()
    wait_for("the command is ended", lambda: not running(word))


def test_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"caf\xe9\n")
    assert on_machine(lambda machine: machine.read_text(str(tmp_path / "file"))) == "caf\\xe9\n"
    assert "cpu" in on_machine(lambda machine: machine.read_text("/proc/stat"))
    with pytest.raises(MachineError, match="local: /nope cannot be read: No such file"):
        on_machine(lambda machine: machine.read_text("/nope"))


SPLITS = [
    ("pieces are joined", [b"a", b"b\nc", b"\n"], ["ab", "c"]),
    ("the last needs no end", [b"a\nb"], ["a", "b"]),
    ("a line of Windows", [b"a\r\n"], ["a"]),
    ("empty lines count", [b"\n\n"], ["", ""]),
    ("progress as programs print it", [b"1%\r 2%\r 3%\n"], ["1%", " 2%", " 3%"]),
    ("a carriage return before the text", [b"\r1%", b"\r2%"], ["", "1%", "2%"]),
    ("progress that comes in pieces is given as far as it came", [b"\r1", b"2%\r"], ["", "1", "12%"]),
    ("the same line twice", [b"1%\r", b"1%\r1%\n", b"1%\n"], ["1%", "1%", "1%", "1%"]),
    ("what stands behind a line end waits", [b"a\nb", b"c\n"], ["a", "bc"]),
    ("a line of Windows in pieces", [b"a\r", b"\nb\r"], ["a", "b"]),
    ("a line without an end comes in pieces", [b"x" * 70_000], ["x" * 65_536, "x" * 4_464]),
]


@pytest.mark.parametrize(("why", "pieces", "lines"), SPLITS, ids=[s[0] for s in SPLITS])
def test_bytes_become_lines(why: str, pieces: list[bytes], lines: list[str]) -> None:
    split = LineSplit()
    assert [line for piece in pieces for line in split.feed(piece)] + split.end() == lines, why


def test_progress_is_given_when_it_comes() -> None:
    """rsync and dd write `\\r` and a line each second: the end of a line comes with the next one."""
    split = LineSplit()
    assert split.feed(b"\r  32768   0%") == ["", "  32768   0%"]
    assert split.feed(b"\r  65536 100%") == ["  65536 100%"]
    assert split.feed(b"\n") == []
    assert split.end() == []


@given(st.lists(st.text("\r\na1", max_size=6).map(str.encode)))
def test_nothing_of_lines_is_lost(pieces: list[bytes]) -> None:
    """Whatever the pieces, the lines of the whole are among what is given."""
    split, whole = LineSplit(), b"".join(pieces).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    given_ = [line for piece in pieces for line in split.feed(piece)] + split.end()
    assert {decode_output(line) for line in whole.split(b"\n") if line} <= set(given_)


def test_last_words() -> None:
    assert last_words("first\nlast \n\n") == "last"
    assert last_words("") == ""
    assert len(last_words("x" * 5000)) == 200


def test_root_is_asked_for_without_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\necho "asked: $1 $2" >&2\nshift 2\nexec "$@"\n')
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "file").write_text("text")

    async def act() -> tuple[CommandResult, str]:
        machine = LocalMachine(become=True)
        return await machine.run(["cat"], stdin=b"in"), await machine.read_text(str(tmp_path / "file"))

    done, text = asyncio.run(act())
    assert (done.out, done.err, text) == ("in", "asked: -n --\n", "text")


def test_only_what_is_given_is_passed_to_ssh() -> None:
    bare = connect_options(Access("host"), 30)
    assert bare["preferred_auth"] == ["publickey"], "never a password"
    assert bare["password"] is None
    assert not {"port", "username", "client_keys", "known_hosts"} & bare.keys(), "ssh's own settings count"
    full = connect_options(Access("host", "me", 2222, Path("/k"), Path("/kh")), 30)
    assert (full["port"], full["username"], full["client_keys"], full["known_hosts"]) == (
        2222,
        "me",
        ["/k"],
        "/kh",
    )


TROUBLE: list[tuple[Exception, str]] = [
    (
        asyncssh.HostKeyNotVerifiable("x"),
        "the host key of me@[fe80::1]:22 is not in /kh: connect once with ssh",
    ),
    (asyncssh.PermissionDenied("x"), "accepted no key: name one with key, or load one into the agent"),
    (asyncssh.KeyEncryptionError("locked"), "load a key with a passphrase into ssh-agent"),
    (ConnectionRefusedError(), "nothing listens at me@[fe80::1]:22: is sshd running"),
    (TimeoutError(), "no answer from me@[fe80::1]:22: is the machine up"),
    (socket.gaierror(), "host fe80::1 does not exist"),
    (FileNotFoundError(2, "No such file", "/k"), "/k cannot be read: No such file"),
    (asyncssh.ConnectionLost("gone"), "no connection to me@[fe80::1]:22: gone"),
]


@pytest.mark.parametrize(("error", "said"), TROUBLE, ids=[type(t[0]).__name__ for t in TROUBLE])
def test_no_connection_is_one_sentence_with_the_remedy(error: Exception, said: str) -> None:
    access = Access("fe80::1", "me", 22, Path("/k"), Path("/kh"))
    assert said in connect_trouble(error, access).sentence


def test_a_command_is_not_begun_with_half_of_its_input(tmp_path: Path) -> None:
    command = guard_command(["touch", str(tmp_path / "begun")], 10, False)
    ran = subprocess.run(command, input=b"123", capture_output=True, timeout=60)
    assert ran.returncode == 125
    assert ran.stderr == b"its input did not arrive completely\n"
    assert not list(tmp_path.iterdir())


def test_a_command_may_be_cancelled_at_any_instant_of_its_beginning() -> None:
    async def main() -> None:
        machine = LocalMachine()
        for number in range(40):
            beginning = asyncio.create_task(machine.start(["sleep", "600"]))
            for _ in range(number):
                await asyncio.sleep(0)
            beginning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait_for(beginning, 60)
        await machine.close()

    asyncio.run(main())
