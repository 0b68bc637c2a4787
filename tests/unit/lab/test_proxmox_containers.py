"""The driver `proxmox` on containers, from the first clone to nothing left."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.lab.clones.proxmox import Proxmox, ProxmoxSettings
from plimsoll.lab.errors import LabError
from plimsoll.lab.proxmox import ProxmoxApi, connect
from plimsoll.lab.proxmox.api import guest_address
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Call, Serve
from tests.support.proxmox import SECRET, TEMPLATE, TOKEN_ID, ProxmoxServer, Vm, proxmox_server
from tests.support.scripted import FakeMachine

ENVIRONMENT = {"PLIMSOLL_PROXMOX_TOKEN_ID": TOKEN_ID, "PLIMSOLL_PROXMOX_TOKEN_SECRET": SECRET}
NAME = "plimsoll-bench--hdd"
MARK = f"plimsoll: {NAME}"
OURS = 901


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ProxmoxServer]:
    with proxmox_server(tmp_path) as made:
        made.vms[OURS] = Vm(
            "pve1",
            {
                "hostname": "site",
                "template": 1,
                "rootfs": "local:basevol-901-disk-0,size=8G",
                "mp0": "local:basevol-901-disk-1,mp=/var/lib/mysql,mountoptions=noatime,size=32G",
                "protection": 1,
            },
            kind="lxc",
        )
        yield made


def made(server: ProxmoxServer, lock_s: float = 30, **keys: Any) -> tuple[Proxmox, ProxmoxApi]:
    given = {"driver": "proxmox", "guest": "container", "api": server.api, "ca_file": server.ca}
    rest = {"node": "pve1", "template": OURS, "storage": "hdd-zfs"}
    said = ProxmoxSettings.model_validate(given | rest | keys)
    api = ProxmoxApi(connect(said, ENVIRONMENT), pause_s=0.005, patience_s=1, lock_s=lock_s)
    return Proxmox(said, NAME, api), api


@pytest.mark.parametrize("restore", ["rollback", "clone"])
def test_a_container_is_made_begun_anew_and_removed(server: ProxmoxServer, restore: str) -> None:
    clone, api = made(server, restore=restore)

    async def run() -> None:
        runner = StepRunner(FakeMachine(), api)
        await runner.do(clone.create())
        (number,) = server.named(NAME)
        guest = server.vms[number]
        assert (guest.kind, guest.running, guest.config["onboot"]) == ("lxc", False, 0)
        assert guest.config["rootfs"] == f"hdd-zfs:subvol-{number}-disk-0,size=8G"
        assert guest.config["mp0"].startswith(f"hdd-zfs:subvol-{number}-disk-1,mp=/var/lib/mysql,")
        for restored in (False, True):
            await runner.do([step for step in clone.reset(restored) if not isinstance(step, Serve)])
            assert server.vms[int(runner.captured["vmid"])].running
        assert clone.target(runner.captured).url == "http://192.0.2.77"
        await runner.do(clone.stop())
        await runner.do(clone.stop())
        (found,) = await clone.find(FakeMachine())
        assert found.what == f"the container {NAME} ({runner.captured['vmid']} on pve1)"
        await runner.do(found.remove)
        assert await clone.find(FakeMachine()) == []
        await runner.do(clone.destroy())

    asyncio.run(run())
    assert sorted(server.vms) == [TEMPLATE, OURS]
    assert server.vms[OURS].config["protection"] == 1, "the template is as it was"
    assert not [line for line in server.asked if "/qemu" in line]


def test_one_that_is_stopped_already_is_no_error_and_one_that_is_missing_is(server: ProxmoxServer) -> None:
    _, api = made(server)
    server.vms[120] = Vm("pve1", {"hostname": "a"}, kind="lxc")
    for verb in ("stop", "shutdown"):
        asyncio.run(api.call(Call(verb, "POST", f"/nodes/pve1/lxc/120/status/{verb}", task_timeout_s=9)))
        with pytest.raises(LabError, match=r"lxc/121\.conf' does not exist"):
            asyncio.run(api.call(Call(verb, "POST", f"/nodes/pve1/lxc/121/status/{verb}")))


def test_one_that_another_task_holds_is_waited_for(server: ProxmoxServer) -> None:
    _, api = made(server)
    server.vms[120] = Vm("pve1", {"hostname": "a", "lock": "backup"}, kind="lxc")
    start = Call("start it", "POST", "/nodes/pve1/lxc/120/status/start", task_timeout_s=9)
    server.lock_polls[120] = 3
    asyncio.run(api.call(start))
    server.vms[120].config["lock"], server.lock_polls[120] = "backup", 1_000_000
    _, api = made(server, lock_s=0.05)
    with pytest.raises(LabError, match=r"CT is locked \(backup\): .*pct unlock VMID for a container"):
        asyncio.run(api.call(start))


def test_one_that_is_being_copied_when_the_lab_dies_is_removed_once_it_is_whole(
    server: ProxmoxServer,
) -> None:
    clone, api = made(server)
    server.polls = 4

    async def run() -> None:
        begun = next(step for step in clone.create() if isinstance(step, Call) and step.method == "POST")
        params = tuple((key, value.replace("${vmid}", "105")) for key, value in begun.params)
        await api.call(Call("begin", begun.method, begun.path, params))
        assert server.named(NAME) == [105], "a container has its name before its volumes are copied"
        (found,) = await clone.find(FakeMachine())
        assert "lock" not in server.vms[105].config, "looking for it waited for the task"
        await StepRunner(FakeMachine(), api).do(found.remove)

    asyncio.run(run())
    assert sorted(server.vms) == [TEMPLATE, OURS]


STRANGERS = [
    ("a container with our name, and not ours", "lxc", {"hostname": NAME, "description": "somebody's"}),
    ("a virtual machine with our name and mark", "qemu", {"name": NAME, "description": MARK}),
    ("made a template", "lxc", {"hostname": NAME, "description": MARK, "template": 1}),
]


@pytest.mark.parametrize(("why", "kind", "config"), STRANGERS, ids=[row[0] for row in STRANGERS])
def test_what_is_not_ours_is_never_found(
    server: ProxmoxServer, why: str, kind: str, config: dict[str, Any]
) -> None:
    server.vms[120] = Vm("pve1", config, kind=kind)
    clone, _ = made(server)
    assert asyncio.run(clone.find(FakeMachine())) == [], why


def test_one_that_was_moved_to_another_node_is_found_there(server: ProxmoxServer) -> None:
    server.vms[130] = Vm("pve2", {"hostname": NAME, "description": MARK}, kind="lxc")
    clone, _ = made(server)
    (found,) = asyncio.run(clone.find(FakeMachine()))
    assert found.what.endswith("(130 on pve2)")


REFUSED = [
    (
        "a folder of the node is mounted into the template",
        {"mp1": "/srv/files,mp=/srv/files"},
        False,
        r"unable to clone mountpoint 'mp1' \(type bind\): Proxmox clones volumes only: take that",
    ),
    ("the template runs", {}, True, "only possible from a snapshot: shut it down, or make it a template"),
]


@pytest.mark.parametrize(("why", "config", "runs", "said"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_cannot_be_cloned_is_a_sentence(
    server: ProxmoxServer, why: str, config: dict[str, str], runs: bool, said: str
) -> None:
    server.vms[OURS].config |= config
    server.vms[OURS].running = runs
    clone, api = made(server)
    with pytest.raises(LabError, match=said):
        asyncio.run(StepRunner(FakeMachine(), api).do(clone.create()))


def test_its_mount_points_have_no_limits() -> None:
    given = {"driver": "proxmox", "guest": "container", "api": "pve1", "node": "pve1", "template": OURS}
    with pytest.raises(ValidationError, match="limits: Proxmox limits disks of virtual machines only"):
        ProxmoxSettings.model_validate(given | {"storage": "a1", "limits": {"scsi0": {"mbps_rd": 5}}})


ADDRESSES: list[tuple[str, Any, str | None]] = [
    (
        "a node of today",
        [{"name": "eth0", "inet": "10.0.0.5/24", "ip-addresses": [{"ip-address": "10.0.0.5", "prefix": 24}]}],
        "10.0.0.5",
    ),
    ("an older node", [{"name": "eth0", "inet": "10.0.0.5/24", "inet6": "2001:db8::5/64"}], "10.0.0.5"),
    ("an older node with IPv6 alone", [{"name": "eth0", "inet6": "2001:db8::5/64"}], "[2001:db8::5]"),
    ("loopback alone, before its network is up", [{"name": "lo", "inet": "127.0.0.1/8"}], None),
    ("a container that does not run", None, None),
]


@pytest.mark.parametrize(("why", "answer", "address"), ADDRESSES, ids=[row[0] for row in ADDRESSES])
def test_its_address_is_the_one_that_others_reach(why: str, answer: Any, address: str | None) -> None:
    assert guest_address(answer) == address, why
