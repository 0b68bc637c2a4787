"""Clones with QEMU: of a tiny guest on each merge, of the image of `make vm-image` where there is time.

They boot, serve, are brought back, are killed, and leave nothing.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from plimsoll.lab.clones.qemu import Qemu, QemuSettings
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Remains
from tests.support import guests
from tests.support.programs import LONGEST_S, REPLAY, ROOT, eventually, free_port, need
from tests.support.site import ROLES, make, need_docker, run

PAGES = ("/", "/static/pages/index.html", "/forum/", "/feed/", "/?s=harbour", "/wp-login.php")
LINE = '192.0.2.{} - - [10/Oct/2000:13:55:{:02} +0000] "GET {} HTTP/1.1" 200 24 "-" "curl/8"\n'
BUILD_S = 1200


@dataclass(frozen=True)
class Image:
    """The image, and the key that opens its guests."""

    path: Path
    key: Path


def begin_build(settings: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Starts a build in a process group of its own."""
    environment = os.environ | settings
    return subprocess.Popen(
        [ROOT / "site" / "vm-image"], env=environment, start_new_session=True, stderr=subprocess.DEVNULL
    )


def containers(image: Path) -> list[str]:
    """What of Docker's has to do with builds of the image."""
    checksum = run("sh", "-c", 'printf %s "$1" | cksum', "sh", image).stdout.split()[0]
    name = f"plimsoll-vm-{checksum}"
    listed = [
        run("docker", "ps", "-aq", "--filter", f"label=plimsoll.vm-image={name}"),
        run("docker", "ps", "-aq", "--filter", f"label=plimsoll.site={name}"),
        run("docker", "network", "ls", "-q", "--filter", f"label=com.docker.compose.project={name}"),
    ]
    return [line for done in listed for line in done.stdout.split()]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """An image of a small site (or the one at PLIMSOLL_VM_IMAGE=IMAGE:KEY, to write tests).

    Its first build is killed while it fills the site, and its third interrupted: neither leaves anything.
    """
    for program in ("qemu-system-x86_64", "qemu-img", "ssh"):
        need(program)
    if running := os.environ.get("PLIMSOLL_VM_IMAGE"):
        path, _, key = running.rpartition(":")
        yield Image(Path(path), Path(key))
        return
    need_docker()
    folder = tmp_path_factory.mktemp("image")
    made = Image(folder / "site.qcow2", folder / "key")
    run(need("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", made.key)
    settings = {"VM_IMAGE": str(made.path), "VM_SSH_KEY": f"{made.key}.pub", "SITE_SIZE": "small"}
    keys = [folder / "key", folder / "key.pub"]

    killed = begin_build(settings)
    assert eventually(lambda: bool(containers(made.path)), BUILD_S)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert containers(made.path), "a kill leaves something, which the next build removes"

    done = make("vm-image", settings, BUILD_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert containers(made.path) == []
    assert sorted(folder.iterdir()) == [*keys, made.path], "the image, and nothing beside it"

    inode = made.path.stat().st_ino
    interrupted = begin_build(settings)
    assert eventually(lambda: bool(containers(made.path)), BUILD_S)
    os.killpg(interrupted.pid, signal.SIGINT)
    assert interrupted.wait() == 130
    assert containers(made.path) == []
    assert sorted(folder.iterdir()) == [*keys, made.path]
    assert made.path.stat().st_ino == inode, "the image that there was stays"
    yield made


def clone(image: Image, folder: Path, backend: str, **keys: object) -> Qemu:
    given = {"driver": "qemu", "image": str(image.path), "accelerator": "tcg", "memory_bytes": "1G"}
    folder.mkdir(exist_ok=True)
    name = f"plimsoll-vm{os.getpid()}--{backend}"
    settings = QemuSettings.model_validate(given | {"stop_timeout_s": 180} | keys)
    return Qemu(settings, name, Place(str(folder)))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The disk of a guest without a boot loader: a QEMU before the others in PATH gives it its kernel."""
    guests.need_libvirt()
    qemu = need("qemu-system-x86_64")
    disk, initrd = guests.disk(tmp_path), guests.initrd(tmp_path)
    program = tmp_path / "bin" / "qemu-system-x86_64"
    program.parent.mkdir()
    booted = f"-kernel {guests.kernel()} -initrd {initrd} -append 'console=ttyS0 quiet panic=-1'"
    program.write_text(f'#!/bin/sh\nexec {qemu} "$@" {booted}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return disk


def test_clones_of_a_tiny_guest_serve_and_leave_nothing(tiny: Path, tmp_path: Path) -> None:
    machine, before = LocalMachine(), tiny.read_bytes()
    folders = [tmp_path / "raw, if=none 'x'", tmp_path / "linked"]
    image = Image(tiny, tiny)  # nobody logs in
    clones = [
        clone(image, folders[0], "full", format="raw", memory_bytes="256M"),
        clone(image, folders[1], "linked", full=False, memory_bytes="256M"),
    ]

    async def life(one: Qemu) -> None:
        runner = StepRunner(machine)
        assert await one.find(machine) == []
        await runner.do([*one.create(), *one.reset(restore=False)])
        assert runner.captured["accelerator"] == "tcg"
        assert [added(one, runner) for _ in range(2)] == ["1\n", "2\n"]
        await runner.do(one.reset(restore=False))
        assert added(one, runner) == "3\n", "it was shut down well, and what was written is there"
        await runner.do(one.reset(restore=True))
        assert added(one, runner) == "1\n", "as it was created"
        found = await one.find(machine)
        assert [each.what.split()[1] for each in found] == ["virtual", "folder"]
        for _ in range(2):
            for each in found:
                await runner.do(each.remove)
        assert await one.find(machine) == []

    async def run_all() -> None:
        try:
            await asyncio.gather(*map(life, clones))
        finally:
            for one in clones:
                await StepRunner(machine).do(one.destroy())

    asyncio.run(run_all())
    assert [list(folder.iterdir()) for folder in folders] == [[], []]
    assert tiny.read_bytes() == before, "the image is only read"


def added(one: Qemu, runner: StepRunner) -> str:
    """Asks the page that writes."""
    with urllib.request.urlopen(f"{one.target(runner.captured).url}/cgi-bin/add", timeout=LONGEST_S) as reply:  # noqa: S310
        text: str = reply.read().decode()
        return text


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=LONGEST_S) as reply:  # noqa: S310
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def in_guest(image: Image, port: int) -> Callable[..., str]:
    """Runs commands in a guest, by SSH with the key."""
    options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes", "LogLevel=ERROR"]
    ssh = ["ssh", "-i", str(image.key), "-p", str(port), *(word for o in options for word in ("-o", o))]

    def ask(*command: str) -> str:
        done = run(*ssh, "root@127.0.0.1", *command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    return ask


def replayed(url: str, folder: Path) -> dict[str, int]:
    """Replays a few pages, one a second. Returns how many requests there were, and how they ended."""
    log = folder / "access.log"
    log.write_text("".join(LINE.format(i % 3 + 1, i, PAGES[i % len(PAGES)]) for i in range(24)))
    command = [need(REPLAY), "run", "--quiet", "--out", folder / "results", "--target", url, log]
    done = run(*map(str, command), timeout_s=300)
    assert done.returncode == 0, done.stderr
    summary = json.loads((folder / "results" / "latest" / "summary.json").read_text())
    counted: dict[str, int] = summary["requests"]
    return counted


@pytest.mark.slow
def test_two_clones_serve_a_replay_and_leave_nothing(image: Image, tmp_path: Path) -> None:
    machine, before = LocalMachine(), image.path.stat()
    folders = [tmp_path / "raw, if=none 'x'", tmp_path / "linked"]
    ssh_port = free_port()
    full = clone(image, folders[0], "full", format="raw", ssh_port=ssh_port)
    linked = clone(image, folders[1], "linked", full=False)
    runners = {full: StepRunner(machine), linked: StepRunner(machine)}

    async def boot(one: Qemu) -> None:
        assert await one.find(machine) == []
        await runners[one].do(one.create())
        await runners[one].do(one.reset(restore=False))

    async def run_all() -> None:
        await asyncio.gather(boot(full), boot(linked))
        urls = {one: one.target(runners[one].captured).url for one in runners}
        assert {runner.captured["accelerator"] for runner in runners.values()} == {"tcg"}
        both = zip(urls.values(), folders, strict=True)
        for requests in await asyncio.gather(*(asyncio.to_thread(replayed, *one) for one in both)):
            assert (requests["total"], requests["ok"]) == (24, 24)
        await asyncio.to_thread(look_inside, in_guest(image, ssh_port))

        # A change goes when it is restored. What is stopped has ended by itself, its file system unmounted.
        ask = in_guest(image, ssh_port)
        await asyncio.to_thread(ask, "echo changed > /data/static/pages/changed.html")
        assert status(f"{urls[full]}/static/pages/changed.html") == 200
        await runners[full].do(full.stop())
        disk = next(folders[0].glob("plimsoll-*/disk.raw"))
        header = run("dumpe2fs", "-h", f"{disk}?offset={1 << 20}").stdout
        assert "needs_recovery" not in header
        assert "clean" in next(line for line in header.splitlines() if line.startswith("Filesystem state"))
        await runners[linked].do(linked.stop())
        await runners[full].do(full.reset(restore=True))
        assert status(f"{full.target(runners[full].captured).url}/static/pages/changed.html") == 404

        found = [await one.find(machine) for one in runners]
        assert [[one.what.split()[1] for one in each] for each in found] == [
            ["virtual", "folder"],
            ["folder"],
        ]
        for one, each in zip(runners, found, strict=True):
            for _ in range(2):
                for what in each:
                    await runners[one].do(what.remove)
            await runners[one].do(one.destroy())
            assert await one.find(machine) == []

    try:
        asyncio.run(run_all())
    finally:
        for one in runners:
            asyncio.run(StepRunner(machine).do(one.destroy()))
    assert [sorted(p.name for p in folder.iterdir()) for folder in folders] == [["access.log", "results"]] * 2
    after = image.path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    ), "the image is only read"


def look_inside(ask: Callable[..., str]) -> None:
    """The guest is as docs/vm.md says."""
    assert ask("systemctl --failed --no-legend") == ""
    roles = [f"plimsoll@{role}" for role in ROLES]
    assert ask("systemctl", "is-active", *roles).split() == ["active"] * len(roles)
    listening = {line.split()[3] for line in ask("ss -ltnH").splitlines()}
    assert {at for at in listening if not at.startswith("127.")} == {"0.0.0.0:80", "0.0.0.0:22", "[::]:22"}
    assert ask("grep ^root: /etc/shadow").split(":")[1] in ("*", "!", "!*")
    assert ask("systemctl list-timers --no-legend") == ""
    assert "passwordauthentication no" in ask("sshd -T")
    assert ask("ls /etc/ssh").count("ssh_host_") == 2, "one key, made here"


# What a lab does with one backend, printing each step before it is done; it is killed at one of them.
LIFE = """
import asyncio, sys
from plimsoll.lab.clones.qemu import Qemu
from plimsoll.lab.clones.qemu import QemuSettings
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.disks.disk import Place

clone = Qemu(QemuSettings.model_validate_json(sys.argv[1]), sys.argv[2], Place(sys.argv[3]))
runner = StepRunner(LocalMachine(), on_step=lambda step: print(step.says, flush=True))
asyncio.run(runner.do([*clone.create(), *clone.reset(restore=True)]))
"""
INSTANTS = (
    "copy the image",
    "switch it off",
    "choose a free port",
    "make the pipes of its monitor",
    "start it",
    "see whether it runs on kvm or tcg",
    "see that the site serves",
)


@pytest.mark.slow
@pytest.mark.parametrize("instant", INSTANTS)
def test_what_a_killed_lab_leaves_is_found_and_removed(image: Image, tmp_path: Path, instant: str) -> None:
    place, backend = tmp_path / "place", f"k{INSTANTS.index(instant)}"
    given = {"driver": "qemu", "image": str(image.path), "accelerator": "tcg", "memory_bytes": "256M"}
    settings = QemuSettings.model_validate(given | {"full": instant == "copy the image"})
    place.mkdir()
    name = f"plimsoll-vm{os.getpid()}--{backend}"
    qemu = Qemu(settings, name, Place(str(place)))
    # What nearly has the name, and what a link leads to, stays.
    (place / f"{name}x").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (place / name.replace("vm", "vn")).symlink_to(tmp_path / "elsewhere")

    command = [sys.executable, "-c", LIFE, settings.model_dump_json(), name, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as lab:
        assert lab.stdout
        assert any(line.strip() == instant for line in lab.stdout)
        lab.kill()

    async def clean() -> list[Remains]:
        """Removes what is found until two looks find nothing: QEMU may just be going into the background."""
        runner, nothing = StepRunner(LocalMachine()), 0
        for _ in range(LONGEST_S):
            found = await qemu.find(runner.machine)
            for one in found:
                await runner.do(one.remove)
            nothing = 0 if found else nothing + 1
            if nothing == 2:
                return []
            await asyncio.sleep(1)
        return found

    assert asyncio.run(clean()) == []
    assert sorted(path.name for path in place.iterdir()) == sorted([f"{name}x", name.replace("vm", "vn")])
    assert (tmp_path / "elsewhere").exists()
