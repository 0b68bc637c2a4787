"""Clones with QEMU: the commands, what is found of a clone, and the image that `make vm-image` makes."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from plimsoll.lab.clones import qemu as qemu_scripts
from plimsoll.lab.clones.qemu import Qemu, QemuSettings, mac
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Command, Serve, Step, as_shell
from tests.support.programs import DOCS, ROOT
from tests.support.scripted import FakeMachine, ScriptedMachine

NAME = "plimsoll-bench--hdd"
IMAGE = "/srv/site.qcow2"
COLD = Command("make caches cold", ("true",))
LIMIT = Command("make it slow", ("slow",))
UNLIMIT = Command("make it fast", ("fast",))


def clone(place: Place | None = None, **keys: object) -> Qemu:
    settings = QemuSettings.model_validate({"driver": "qemu", "image": IMAGE, "port": 8081} | keys)
    return Qemu(settings, NAME, place or Place("/mnt/hdd"))


def lines(steps: list[Step]) -> list[str]:
    """What `check --plan` prints, with scripts by their last line."""
    return [re.sub(r"sh -c '.*?\n?([^\n]*)' sh ", "sh ", as_shell(step), flags=re.DOTALL) for step in steps]


def qemu_words(qemu: Qemu) -> tuple[str, ...]:
    return next(s.words for s in qemu.reset(False) if isinstance(s, Command) and "-daemonize" in s.words)


ZFS = Place("/tank/lab", "zfs", "tank/lab")
BTRFS = Place("/mnt/b", "btrfs")


@pytest.mark.parametrize(
    ("what", "place", "keys", "expected"),
    [
        (
            "a copy of the image",
            Place("/mnt/hdd"),
            {},
            [
                "room in /mnt/hdd for what /srv/site.qcow2 takes and 268435456 bytes",
                f"mkdir -m 0711 -- /mnt/hdd/{NAME}",
                f"qemu-img convert -t writeback -f qcow2 -O qcow2 {IMAGE} /mnt/hdd/{NAME}/disk.qcow2",
            ],
        ),
        (
            "a raw copy of a raw image: never guessed, since a guest could write what is guessed from",
            Place("/mnt/hdd"),
            {"image": "/srv/a.img", "format": "raw"},
            [
                "room in /mnt/hdd for what /srv/a.img takes and 268435456 bytes",
                f"mkdir -m 0711 -- /mnt/hdd/{NAME}",
                f"qemu-img convert -t writeback -f raw -O raw /srv/a.img /mnt/hdd/{NAME}/disk.raw",
            ],
        ),
        (
            "a file over the image",
            Place("/mnt/hdd"),
            {"full": False},
            [
                "room in /mnt/hdd for 268435456 bytes",
                f"mkdir -m 0711 -- /mnt/hdd/{NAME}",
                f"qemu-img create -q -f qcow2 -F qcow2 -b {IMAGE} /mnt/hdd/{NAME}/disk.qcow2",
            ],
        ),
        (
            "on ZFS a dataset of its own, and a snapshot of it",
            ZFS,
            {"format": "raw"},
            [
                "room in /tank/lab for what /srv/site.qcow2 takes and 268435456 bytes",
                f"zfs create tank/lab/{NAME}",
                f"mountpoint -q -- /tank/lab/{NAME}",
                f"qemu-img convert -t writeback -f qcow2 -O raw {IMAGE} /tank/lab/{NAME}/disk.raw",
                f"zfs snapshot tank/lab/{NAME}@plimsoll-pristine",
            ],
        ),
        (
            "on Btrfs a subvolume of its own, and a snapshot of it",
            BTRFS,
            {"full": False},
            [
                "room in /mnt/b for 268435456 bytes",
                f"btrfs subvolume create /mnt/b/{NAME}",
                f"qemu-img create -q -f qcow2 -F qcow2 -b {IMAGE} /mnt/b/{NAME}/disk.qcow2",
                f"btrfs subvolume snapshot -r /mnt/b/{NAME} /mnt/b/{NAME}.pristine",
            ],
        ),
        (
            "a ZFS volume as large as the image's disk",
            ZFS,
            {"format": "zvol", "volblocksize": "16K"},
            [
                "room in /tank/lab for what /srv/site.qcow2 takes and 268435456 bytes",
                f"mkdir -m 0711 -- /tank/lab/{NAME}",
                f"disk_size=$(sh qcow2 {IMAGE})",
                'zfs create -s -o volblocksize=16K -V "${disk_size}" ' + f"tank/lab/{NAME}",
                f"test -b /dev/zvol/tank/lab/{NAME}",
                f"qemu-img convert -t writeback -n -f qcow2 -O raw {IMAGE} /dev/zvol/tank/lab/{NAME}",
                f"zfs snapshot tank/lab/{NAME}@plimsoll-pristine",
            ],
        ),
    ],
)
def test_create_makes_the_disk(what: str, place: Place, keys: dict[str, object], expected: list[str]) -> None:
    assert lines(clone(place, **keys).create())[1:] == expected, what


def test_reset_starts_it_fast_with_cold_caches_and_makes_the_disk_slow_when_it_serves() -> None:
    place = Place("/mnt/hdd", cold=(COLD,), limit=(LIMIT,), unlimit=(UNLIMIT,), group="${disk_group}")
    steps = clone(place, accelerator="tcg").reset(restore=True)
    assert [step.says for step in steps] == [
        "make it fast",
        "switch it off",
        "remove its folder",
        "see that there is room for it",
        "make its folder",
        "copy the image",
        "make caches cold",
        "make the pipes of its monitor",
        "start it",
        "see whether it runs on kvm or tcg",
        "see that the site serves",
        "make it slow",
    ]
    start = next(step for step in steps if step.says == "start it")
    assert isinstance(start, Command)
    assert start.words[:6] == (
        "sh",
        "-c",
        start.words[2],
        "sh",
        "${disk_group}",
        "qemu-system-x86_64",
    )
    assert steps[-2] == Serve("see that the site serves", "http://127.0.0.1:8081", None, 600)


@pytest.mark.parametrize(
    ("what", "place", "keys", "expected"),
    [
        ("a dataset", ZFS, {}, [f"zfs rollback -r tank/lab/{NAME}@plimsoll-pristine"]),
        ("a volume", ZFS, {"format": "zvol"}, [f"zfs rollback -r tank/lab/{NAME}@plimsoll-pristine"]),
        (
            "a subvolume",
            BTRFS,
            {},
            [f"sh /mnt/b/{NAME}", f"btrfs subvolume snapshot /mnt/b/{NAME}.pristine /mnt/b/{NAME}"],
        ),
    ],
)
def test_snapshots_bring_it_back(
    what: str, place: Place, keys: dict[str, object], expected: list[str]
) -> None:
    steps = clone(place, **keys).reset(restore=True)
    at = next(i for i, step in enumerate(steps) if step.says == "make the pipes of its monitor")
    assert lines(steps[1:at]) == expected, what


def test_without_restore_the_disk_stays_and_the_guest_is_shut_down() -> None:
    says = [step.says for step in clone().reset(restore=False)]
    assert says[:3] == ["shut it down", "make the pipes of its monitor", "start it"]


def test_a_free_port_is_chosen_where_none_is_given() -> None:
    qemu = clone(port=None)
    assert "choose a free port" in [step.says for step in qemu.reset(False)]
    assert qemu.target({"site_port": "4711"}).url == "http://127.0.0.1:4711"
    with pytest.raises(KeyError):
        qemu.target({})


@pytest.mark.parametrize(
    ("what", "keys", "word"),
    [
        ("the site's port", {}, "user,id=net,hostfwd=tcp:127.0.0.1:8081-:80"),
        (
            "the guest's SSH too, on an address of the lab's network",
            {"ssh_port": 2222, "address": "10.0.0.7"},
            "user,id=net,hostfwd=tcp:10.0.0.7:8081-:80,hostfwd=tcp:10.0.0.7:2222-:22",
        ),
        (
            "a bridge",
            {"bridge": "br0", "target": "http://10.0.0.9", "port": None},
            "bridge,id=net,br=br0",
        ),
        ("its own network card, always the same", {}, f"virtio-net-pci,netdev=net,mac={mac(NAME)}"),
        ("the name by which it is found", {}, f"guest={NAME}"),
        ("memory", {"memory_bytes": "1G"}, "1024M"),
    ],
)
def test_qemu_gets_each_setting(what: str, keys: dict[str, object], word: str) -> None:
    assert word in qemu_words(clone(None, **keys)), what


def test_kvm_is_taken_where_qemu_can_have_it() -> None:
    words = qemu_words(clone())
    assert [words[i + 1] for i, word in enumerate(words) if word == "-accel"] == ["kvm", "tcg"]


def test_commas_in_a_path_are_doubled_so_that_no_option_hides_in_it() -> None:
    words = qemu_words(clone(Place("/mnt/a,readonly=on,b")))
    at = f"/mnt/a,,readonly=on,,b/{NAME}"
    assert f"file={at}/disk.qcow2,format=qcow2,if=virtio,cache=none" in words
    assert f"pipe,id=monitor,path={at}/monitor" in words
    assert f"file,id=console,path={at}/console" in words
    assert f"/mnt/a,readonly=on,b/{NAME}/pid" in words


def test_a_volume_needs_a_dataset() -> None:
    with pytest.raises(ValueError, match="zvol"):
        clone(format="zvol")


def test_destroy_switches_off_and_removes_by_name_alone() -> None:
    assert lines(clone().destroy()) == [
        f"sh {NAME} /mnt/hdd/{NAME}/monitor.in 0",
        f"sh /mnt/hdd/{NAME}",
    ]
    assert lines(clone(ZFS, format="zvol").destroy())[1:] == [
        f"sh tank/lab/{NAME}",
        f"sh /tank/lab/{NAME}",
    ]


def test_what_is_described_has_the_disk_and_how_it_is_used() -> None:
    assert clone().describe() == {
        "driver": "qemu",
        "disk": f"/mnt/hdd/{NAME}/disk.qcow2",
        "image": IMAGE,
        "format": "qcow2",
        "full": True,
        "cache": "none",
        "memory_bytes": 2 << 30,
        "cpus": 2,
        "accelerator": "auto",
    }


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
            for _ in range(2):  # the second time nothing is left to do
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
def test_what_is_missing_is_reported_with_the_remedy(
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


VM_IMAGE = ROOT / "site" / "vm-image"


@pytest.mark.parametrize(
    ("what", "settings", "message"),
    [
        ("a size that is none", {"VM_FREE_GIB": "8G"}, "not a whole number of GiB"),
        ("another format", {"VM_IMAGE": "{folder}/site.raw"}, "the name of the image must end in .qcow2"),
        ("a path that Docker cannot mount", {"VM_IMAGE": "{folder}/a:b.qcow2"}, "cannot be mounted"),
        ("a folder in its place", {"VM_IMAGE": "{folder}/there.qcow2"}, "is a folder"),
        ("a key that is not there", {"VM_SSH_KEY": "{folder}/none"}, "there is no such file"),
        ("the private key", {"VM_SSH_KEY": "{folder}/private"}, "name the public one"),
        ("something else than a key", {"VM_SSH_KEY": "{folder}/text"}, "contains no public SSH key"),
    ],
)
def test_a_wrong_setting_is_refused(
    tmp_path: Path, what: str, settings: dict[str, str], message: str
) -> None:
    (tmp_path / "there.qcow2").mkdir()
    (tmp_path / "private").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (tmp_path / "text").write_text("hello\n")
    before = sorted(tmp_path.iterdir())
    given = {"VM_IMAGE": "{folder}/site.qcow2", "VM_SSH_KEY": "", "VM_FREE_GIB": ""} | settings
    environment = os.environ | {key: value.format(folder=tmp_path) for key, value in given.items()}
    done = subprocess.run(
        [VM_IMAGE], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, ""), what
    assert message in done.stderr
    assert done.stderr.startswith("make vm-image: ")
    assert sorted(tmp_path.iterdir()) == before


def test_usage_names_every_setting() -> None:
    done = subprocess.run([VM_IMAGE, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    for setting in ("VM_IMAGE", "VM_SSH_KEY", "VM_FREE_GIB", "SITE_SIZE"):
        assert setting in done.stderr


def test_every_setting_of_make_vm_image_is_documented() -> None:
    settings = re.findall(r"^(VM_[A-Z_]+)=", VM_IMAGE.read_text(encoding="utf-8"), re.MULTILINE)
    page = (DOCS / "vm.md").read_text(encoding="utf-8")
    assert set(settings) == set(re.findall(r"^\| `(VM_[A-Z_]+)` \|", page, re.MULTILINE))
