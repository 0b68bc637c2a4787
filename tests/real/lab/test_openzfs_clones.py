"""The data of clones on OpenZFS itself: a database in datasets of its own, and the volume of a guest.

They are made, written to, restored and removed over SSH, in the machine of docs/zfs-vm.md. Part of
`make test-lab-full`, since its image takes long to make: PLIMSOLL_SLOW=1.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from plimsoll.lab.clones.qemu import QemuDisk, QemuSettings
from plimsoll.lab.clones.sitedata import SiteData
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.hosts.hostsfile import HostSettings
from plimsoll.lab.machine import SshMachine
from plimsoll.lab.steps.runner import StepRunner
from tests.support.disks import clear
from tests.support.guests import ZfsVm

pytestmark = pytest.mark.slow

HOME = "/srv/clones"  # on the machine's own disk
PLACE = Place("/tank/clones", "zfs", "tank/lab/clones")
PARTS = {"@database": {"recordsize": "16384", "logbias": "throughput"}, "@web": {"compression": "lz4"}}
# MariaDB on a folder, asked once, and stopped.
_SERVED = f"""set -eu
setsid mariadbd --no-defaults --user=root --datadir="$1" --socket={HOME}/db.sock --pid-file={HOME}/db.pid \
    --skip-networking </dev/null >{HOME}/db.log 2>&1 &
until mariadb-admin --socket={HOME}/db.sock ping >/dev/null 2>&1; do sleep 1; done
mariadb --socket={HOME}/db.sock -N -e "$2"
mariadb-admin --socket={HOME}/db.sock shutdown
"""
_GOLDEN = f"""set -eu
mkdir -p {HOME}/site/mysql {HOME}/site/wordpress {HOME}/site/static {HOME}/site/forum
echo '<?php // a page' >{HOME}/site/wordpress/index.php
mariadb-install-db --no-defaults --user=root --datadir={HOME}/site/mysql \\
    --auth-root-authentication-method=normal >/dev/null
"""


@pytest.fixture
def dataset(vm: ZfsVm) -> Iterator[str]:
    """The dataset that clones are made below. Nothing is in it at the end."""
    assert PLACE.dataset
    vm.run("zfs", "create", "-o", f"mountpoint={PLACE.folder}", PLACE.dataset)
    yield PLACE.dataset
    left = vm.run("zfs", "list", "-H", "-o", "name", "-t", "all", "-r", PLACE.dataset).split()
    vm.run("zfs", "destroy", "-r", PLACE.dataset)
    assert left == [PLACE.dataset]


def over_ssh(vm: ZfsVm, work: Callable[[SshMachine], Awaitable[None]]) -> None:
    """Do what is asynchronous on that machine."""

    async def all_of_it() -> None:
        machine = HostSettings.model_validate({"name": "vm", **vm.host}).machine()
        try:
            await work(machine)
        finally:
            await machine.close()

    asyncio.run(all_of_it())


def test_a_database_in_a_dataset_of_its_own_is_as_it_was_after_a_restore(vm: ZfsVm, dataset: str) -> None:
    vm.run("mkdir", "-p", HOME)
    vm.run("sh", "-c", _GOLDEN)
    site = SiteData(PLACE, "clone", f"{HOME}/site", parts=PARTS)

    def ask(query: str) -> str:
        return vm.run("sh", "-c", _SERVED, "sh", f"{site.folder}/mysql", query).strip()

    async def life(machine: SshMachine) -> None:
        runner = StepRunner(machine)
        await runner.do(site.make())
        properties = ("zfs", "get", "-H", "-p", "-o", "value", "recordsize,logbias", f"{dataset}/clone/mysql")
        assert vm.run(*properties).split() == ["16384", "throughput"]
        asked = ask("CREATE DATABASE site; CREATE TABLE site.posts (id INT); SHOW DATABASES LIKE 'site'")
        assert asked == "site"
        vm.run("rm", f"{site.folder}/wordpress/index.php")
        await runner.do(site.restore())
        assert ask("SHOW DATABASES LIKE 'site'") == ""
        assert "a page" in vm.run("cat", f"{site.folder}/wordpress/index.php")
        assert len(await clear(machine, lambda there: site.find(there, "zfs"))) == 1
        assert await site.find(machine, "zfs") == []

    over_ssh(vm, life)
    vm.run("rm", "-rf", HOME)


def test_a_guests_volume_is_as_it_was_after_a_restore(vm: ZfsVm, dataset: str) -> None:
    image = f"{HOME}/guest.qcow2"
    vm.run("mkdir", "-p", HOME)
    vm.run("sh", "-c", f"head -c 8M /dev/urandom >{HOME}/raw && qemu-img convert -O qcow2 {HOME}/raw {image}")
    settings = QemuSettings.model_validate(
        {"driver": "qemu", "image": image, "format": "zvol", "volblocksize": "16K"}
    )
    disk = QemuDisk.of(settings, PLACE, "guest")

    def same() -> bool:
        return vm.ask("cmp", f"{HOME}/raw", disk.path).returncode == 0

    async def life(machine: SshMachine) -> None:
        runner = StepRunner(machine)
        await runner.do(disk.make())
        of = ("zfs", "get", "-H", "-p", "-o", "value", "type,volblocksize,volsize", f"{dataset}/guest")
        assert vm.run(*of).split() == ["volume", "16384", str(8 << 20)]
        assert same()
        vm.run("dd", "if=/dev/zero", f"of={disk.path}", "bs=1M", "count=1", "conv=fsync")
        assert not same()
        await runner.do(disk.restore())
        assert same()
        assert len(await clear(machine, lambda there: disk.find(there, "zvol"))) == 2
        assert await disk.find(machine, "zvol") == []

    over_ssh(vm, life)
    vm.run("rm", "-rf", HOME)
