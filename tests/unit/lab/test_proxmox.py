"""The driver `proxmox` from the first clone to nothing left, against a server that speaks Proxmox's API."""

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lab.clones.proxmox import GuestName
from plimsoll.lab.errors import LabError
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Call, Serve, as_shell
from tests.support.proxmox import CLONE_NAME as NAME
from tests.support.proxmox import (
    SECRET,
    TEMPLATE,
    TEMPLATES,
    ProxmoxServer,
    Vm,
    proxmox_clone,
    proxmox_server,
)
from tests.support.scripted import FakeMachine

MARK = f"plimsoll: {NAME}"
both_guests = pytest.mark.parametrize("guest", ["vm", "container"])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ProxmoxServer]:
    with proxmox_server(tmp_path) as made:
        yield made


@pytest.fixture
def site() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()


LIMITS = {"limits": {"scsi0": {"mbps_rd": 150, "iops_wr": 120}}}
# The guest, how findings call it, its keys, and what its disks are then: NUMBER is the clone's.
LIVES: list[tuple[GuestName, str, dict[str, Any], dict[str, str]]] = [
    (
        "vm",
        "virtual machine",
        LIMITS,
        {"scsi0": "hdd-zfs:vm-NUMBER-disk-0,iothread=1,size=32G,mbps_rd=150,iops_wr=120"},
    ),
    (
        "container",
        "container",
        {},
        {
            "rootfs": "hdd-zfs:subvol-NUMBER-disk-0,size=8G",
            "mp0": "hdd-zfs:subvol-NUMBER-disk-1,mp=/var/lib/mysql,mountoptions=noatime,size=32G",
        },
    ),
]


@pytest.mark.parametrize(("guest", "called", "keys", "disks"), LIVES, ids=[row[0] for row in LIVES])
@pytest.mark.parametrize("restore", ["rollback", "clone"])
def test_a_clone_is_made_begun_anew_and_removed(
    server: ProxmoxServer,
    site: str,
    restore: str,
    guest: GuestName,
    called: str,
    keys: dict[str, Any],
    disks: dict[str, str],
) -> None:
    clone, api = proxmox_clone(server, guest, target=site, restore=restore, bwlimit=50000, **keys)

    def only_clone() -> tuple[str, Vm]:
        (number,) = server.named(NAME)
        found = {slot: server.vms[number].config[slot] for slot in disks}
        assert found == {slot: disk.replace("NUMBER", str(number)) for slot, disk in disks.items()}
        return str(number), server.vms[number]

    async def live() -> None:
        runner = StepRunner(FakeMachine(), api)
        await runner.do(clone.create())
        number, vm = only_clone()
        assert runner.captured["vmid"] == number
        assert (vm.running, vm.config["onboot"]) == (False, 0), "not started, neither with its node"
        await runner.do(clone.reset(restore=False))
        assert vm.running
        vm.config["onboot"] = 1  # changed by a run
        await runner.do(clone.stop())
        assert not vm.running
        await runner.do(clone.stop())
        await runner.do(clone.reset(restore=True))
        number, vm = only_clone()
        assert (vm.running, vm.config["onboot"]) == (True, 0)
        assert clone.target(runner.captured).url == site
        (found,) = await clone.find(FakeMachine())
        assert found.backend == "hdd"
        assert found.what == f"the {called} {NAME} ({number} on pve1)"
        await runner.do(found.remove)
        assert await clone.find(FakeMachine()) == []
        await runner.do(found.remove)
        await runner.do(clone.destroy())

    asyncio.run(live())
    assert sorted(server.vms) == sorted(TEMPLATES.values())
    assert server.vms[TEMPLATES[guest]].config["protection"] == 1, "the template is as it was"
    other = "/lxc" if guest == "vm" else "/qemu"
    assert not [line for line in server.asked if other in line]


@both_guests
def test_the_address_is_asked_for_as_soon_as_the_guest_runs(server: ProxmoxServer, guest: GuestName) -> None:
    clone, api = proxmox_clone(server, guest, target="http://${address}:8080", connect_to=None)
    server.agent_polls = 3

    async def start() -> dict[str, str]:
        runner = StepRunner(FakeMachine(), api)
        await runner.do([*clone.create(), *clone.reset(restore=False)[:-1]])
        return runner.captured

    captured = asyncio.run(start())
    assert clone.target(captured).url == "http://192.0.2.77:8080"
    waits = clone.reset(restore=False)[-1]
    assert isinstance(waits, Serve)
    assert waits.url == "http://${address}:8080"


def test_a_guest_that_never_gets_an_address_is_named(server: ProxmoxServer) -> None:
    clone, api = proxmox_clone(server, start_timeout_s=0.05)

    async def start() -> None:
        runner = StepRunner(FakeMachine(), api)
        await runner.do(clone.create())
        server.vms[int(runner.captured["vmid"])].address = None
        await runner.do(clone.reset(restore=False))

    with pytest.raises(LabError, match="the guest has no address: does its network assign one"):
        asyncio.run(start())


def test_what_is_shown_is_what_is_asked(server: ProxmoxServer) -> None:
    clone, api = proxmox_clone(server, vmid_range="9000-9099")
    plan = [as_shell(step) for step in clone.create()]
    assert plan[0] == "vmid = GET /cluster/nextid vmid=9000-9099"
    assert plan[1] == (
        f'vmid = POST /nodes/pve1/qemu/900/clone newid="${{vmid}}" name={NAME} '
        f"description='{MARK}' full=1 storage=hdd-zfs"
    )
    asyncio.run(StepRunner(FakeMachine(), api).do(clone.create()))
    asked = [line for line in server.asked if not line.endswith("/status") and "resources" not in line]
    calls = [step for step in clone.create() if isinstance(step, Call)]
    assert asked == [f"{call.method} {call.path}".replace("${vmid}", "9000") for call in calls]


OTHER, OTHERS = "plimsoll-bench--hdd2", "plimsoll-bench2--hdd"
STRANGERS: list[tuple[str, GuestName, Vm]] = [
    ("has our name, and is not ours", "vm", Vm("pve1", {"name": NAME, "description": "somebody's"})),
    ("has nearly our name", "vm", Vm("pve1", {"name": f"{NAME}x", "description": MARK})),
    ("is another backend's", "vm", Vm("pve1", {"name": OTHER, "description": f"plimsoll: {OTHER}"})),
    ("is another experiment's", "vm", Vm("pve1", {"name": OTHERS, "description": f"plimsoll: {OTHERS}"})),
    ("has our mark, and another name", "vm", Vm("pve1", {"name": "web", "description": MARK})),
    ("was made a template", "vm", Vm("pve1", {"name": NAME, "description": MARK, "template": 1})),
    ("speaks of us", "vm", Vm("pve1", {"name": NAME, "description": f"like {MARK}"})),
    (
        "a container with our name, and not ours",
        "container",
        Vm("pve1", {"hostname": NAME, "description": "somebody's"}, kind="lxc"),
    ),
    (
        "no container, with our name and mark",
        "container",
        Vm("pve1", {"name": NAME, "description": MARK}),
    ),
    (
        "a container that was made a template",
        "container",
        Vm("pve1", {"hostname": NAME, "description": MARK, "template": 1}, kind="lxc"),
    ),
]


@pytest.mark.parametrize(
    ("guest", "stranger"), [row[1:] for row in STRANGERS], ids=[row[0] for row in STRANGERS]
)
def test_what_is_not_ours_is_never_found(server: ProxmoxServer, guest: GuestName, stranger: Vm) -> None:
    server.vms[120] = stranger
    clone, _ = proxmox_clone(server, guest)
    assert asyncio.run(clone.find(FakeMachine())) == []


MOVED: list[tuple[GuestName, Vm]] = [
    ("vm", Vm("pve2", {"name": NAME, "description": f"{MARK}\nkeep an eye on it\n"})),
    ("container", Vm("pve2", {"hostname": NAME, "description": MARK}, kind="lxc")),
]


@pytest.mark.parametrize(("guest", "moved"), MOVED, ids=[row[0] for row in MOVED])
def test_a_clone_that_was_moved_to_another_node_is_found_there(
    server: ProxmoxServer, guest: GuestName, moved: Vm
) -> None:
    server.vms[130] = moved
    clone, api = proxmox_clone(server, guest)

    async def remove() -> None:
        (found,) = await clone.find(FakeMachine())
        assert found.what.endswith("(130 on pve2)")
        await StepRunner(FakeMachine(), api).do(found.remove)

    asyncio.run(remove())
    assert 130 not in server.vms


def test_a_number_that_has_become_somebody_elses_is_left_alone(server: ProxmoxServer) -> None:
    server.vms[131] = Vm("pve1", {"name": "payroll"}, running=True)
    clone, api = proxmox_clone(server)

    async def remove() -> None:
        runner = StepRunner(FakeMachine(), api)
        runner.captured["vmid"] = "131"
        await runner.do(clone.destroy())

    with pytest.raises(
        LabError, match="name is payroll, not plimsoll-bench--hdd: it does not belong to the lab"
    ):
        asyncio.run(remove())
    assert server.vms[131].running


NAMED: list[tuple[str, GuestName, list[int]]] = [
    ("a virtual machine gets its name when its disks are copied", "vm", []),
    ("a container has it before", "container", [105]),
]


@pytest.mark.parametrize(("guest", "named"), [row[1:] for row in NAMED], ids=[row[0] for row in NAMED])
def test_a_clone_that_was_being_copied_when_the_lab_died_is_removed_once_it_is_whole(
    server: ProxmoxServer, guest: GuestName, named: list[int]
) -> None:
    clone, api = proxmox_clone(server, guest)
    server.polls = 4

    async def die_and_clean() -> None:
        begun = next(call for call in clone.create() if isinstance(call, Call) and call.method == "POST")
        params = tuple((key, value.replace("${vmid}", "105")) for key, value in begun.params)
        await api.call(Call("begin", begun.method, begun.path, params))
        assert server.named(NAME) == named
        (found,) = await clone.find(FakeMachine())
        assert "lock" not in server.vms[105].config, "looking for it waited for the task"
        await StepRunner(FakeMachine(), api).do(found.remove)

    asyncio.run(die_and_clean())
    assert sorted(server.vms) == sorted(TEMPLATES.values())


REFUSED = [
    (
        "a folder of the node is mounted into the template",
        {"mp1": "/srv/files,mp=/srv/files"},
        False,
        r"unable to clone mountpoint 'mp1' \(type bind\): Proxmox clones volumes only: take that",
    ),
    ("the template runs", {}, True, "only possible from a snapshot: shut it down, or make it a template"),
]


@pytest.mark.parametrize(
    ("config", "runs", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_container_that_cannot_be_cloned_is_a_sentence(
    server: ProxmoxServer, config: dict[str, str], runs: bool, message: str
) -> None:
    template = server.vms[TEMPLATES["container"]]
    template.config |= config
    template.running = runs
    clone, api = proxmox_clone(server, "container")
    with pytest.raises(LabError, match=message):
        asyncio.run(StepRunner(FakeMachine(), api).do(clone.create()))


def test_linked_clones_and_clones_for_another_node_are_asked_for(server: ProxmoxServer) -> None:
    linked, _ = proxmox_clone(server, full=False, storage=None)
    call = linked.create()[1]
    assert isinstance(call, Call)
    assert dict(call.params)["full"] == "0"
    assert "storage" not in dict(call.params)
    away, api = proxmox_clone(server, node="pve2", template_node="pve1")
    asyncio.run(StepRunner(FakeMachine(), api).do(away.create()))
    assert [server.vms[vmid].node for vmid in server.named(NAME)] == ["pve2"]


def test_its_description_is_without_secrets(server: ProxmoxServer) -> None:
    clone, _ = proxmox_clone(server, limits={"scsi0": {"mbps_rd": 150}})
    description = clone.describe()
    assert description["limits"] == {"scsi0": {"mbps_rd": 150.0}}
    assert (description["storage"], description["template"], description["full"]) == (
        "hdd-zfs",
        TEMPLATE,
        True,
    )
    assert SECRET not in str(description)


def test_fixed_targets_stay_as_they_are(server: ProxmoxServer) -> None:
    clone, _ = proxmox_clone(server, target="https://site.lab/", connect_to="${address}:443")
    target = clone.target({"address": "[2001:db8::7]"})
    assert (target.url, target.connect_to) == ("https://site.lab", "[2001:db8::7]:443")
