"""What of a machine is a clone of QEMU's, by name: what is found and ended, and what only looks alike."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from plimsoll.lab.clones import qemu as qemu_scripts
from plimsoll.lab.clones.qemu import Qemu, QemuSettings
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Command
from tests.support.scripted import FakeMachine, ScriptedMachine

NAME = "plimsoll-bench--hdd"
ZFS = Place("/tank/lab", "zfs", "tank/lab")


def clone(place: Place | None = None, **keys: object) -> Qemu:
    settings = QemuSettings.model_validate({"driver": "qemu", "image": "/srv/site.qcow2"} | keys)
    return Qemu(settings, NAME, place or Place("/mnt/hdd"))


def found(qemu: Qemu, machine: FakeMachine | ScriptedMachine) -> list[str]:
    return [one.what for one in asyncio.run(qemu.find(machine))]


def test_nothing_is_found_on_a_machine_without_any_of_it() -> None:
    assert found(clone(), FakeMachine()) == []
    assert found(clone(ZFS, format="zvol"), FakeMachine()) == []


def test_process_volume_and_folder_are_found_and_their_backend() -> None:
    def answer(command: Sequence[str]) -> tuple[int, str, str]:
        if command[0] == "sh":
            return 0, "4711\n", ""
        if command[0] == "zfs":
            return 0, f"tank/lab/{NAME}\n", ""
        return 0, "d 77\n", ""

    machine = ScriptedMachine(answer)
    assert found(clone(ZFS, format="zvol"), machine) == [
        f"the virtual machine {NAME} (process 4711)",
        f"the dataset tank/lab/{NAME}",
        f"the folder /tank/lab/{NAME}",
    ]
    assert {one.backend for one in asyncio.run(clone().find(machine))} == {"hdd"}
    assert all(words[0] in ("sh", "zfs", "find") for words in machine.ran)


@pytest.mark.parametrize(
    ("what", "kind"), [("a link to elsewhere", "l 77"), ("a file", "f 77"), ("nothing", "")]
)
def test_what_is_no_folder_of_ours_is_not_found(what: str, kind: str) -> None:
    def answer(command: Sequence[str]) -> tuple[int, str, str]:
        return (0, f"{kind}\n", "") if command[0] == "find" else (0, "", "")

    assert found(clone(), ScriptedMachine(answer)) == [], what


@contextmanager
def running(program: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of `program`, which is a shell by another name, with these arguments."""
    command = [str(program), "-c", "echo; read -r end; exit 0", "sh", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_of_processes_only_qemu_with_exactly_our_name_is_found_and_ended(tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell
    qemu, other = tmp_path / "qemu-system-x86_64", tmp_path / "editor"
    for program in (qemu, other):
        shutil.copy(shell, program)
    alike = [
        running(qemu, "-name", f"guest={NAME}2"),
        running(qemu, "-name", f"guest={NAME},debug-threads=on"),
        running(qemu, "-name", f"guest=x{NAME}"),
        running(qemu, "-name", f"guest={NAME}\n"),
        running(other, "-name", f"guest={NAME}"),
    ]
    with running(qemu, "-name", f"guest={NAME}") as ours:
        strangers = [context.__enter__() for context in alike]
        try:
            machine = LocalMachine()

            async def look() -> list[str]:
                done = await machine.run(["sh", "-c", qemu_scripts.OURS, "sh", NAME])
                return list(qemu_scripts.read_pids(done.out))

            assert asyncio.run(look()) == [str(ours.pid)]
            off = [qemu_scripts.switch_off(NAME, str(tmp_path), 0)]
            for _ in range(2):  # the second time there is nothing to do
                reaper = asyncio.run(_do_and_reap(machine, off, ours))
                assert reaper in (-15, -9)
            assert asyncio.run(look()) == []
            assert [stranger.poll() for stranger in strangers] == [None] * len(strangers)
        finally:
            for context in alike:
                context.__exit__(None, None, None)


async def _do_and_reap(
    machine: LocalMachine, steps: list[Command], process: "subprocess.Popen[bytes]"
) -> int:
    await StepRunner(machine).do(steps)
    return await asyncio.to_thread(process.wait)


@pytest.mark.parametrize(
    ("what", "arguments", "message"),
    [
        ("an image that is not there", ("{folder}/none.qcow2", "qcow2"), "none.qcow2 does not exist"),
        ("volumes without the kernel's ZFS", ("{folder}/a.qcow2", "zvol"), "zvols need"),
    ],
)
def test_what_is_missing_is_said_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, arguments: tuple[str, str], message: str
) -> None:
    for name in ("qemu-img", "qemu-system-x86_64"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "a.qcow2").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if message == "zvols need" and Path("/dev/zfs").is_char_device():
        pytest.skip("this machine has the kernel's ZFS")
    step = qemu_scripts.check_image(arguments[0].format(folder=tmp_path), arguments[1])
    with pytest.raises(MachineError, match=message):
        asyncio.run(StepRunner(LocalMachine()).do([step]))
