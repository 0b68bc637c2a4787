"""The driver `proxmox` from the first clone to nothing left, against a server that speaks Proxmox's API."""

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.lab.clones.proxmox import Proxmox, ProxmoxSettings
from plimsoll.lab.errors import LabError
from plimsoll.lab.proxmox import ProxmoxApi, connect
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Call, Serve, as_shell
from tests.support.proxmox import SECRET, TEMPLATE, TOKEN_ID, ProxmoxServer, Vm, proxmox_server
from tests.support.scripted import FakeMachine

ENVIRONMENT = {"PLIMSOLL_PROXMOX_TOKEN_ID": TOKEN_ID, "PLIMSOLL_PROXMOX_TOKEN_SECRET": SECRET}
NAME = "plimsoll-bench--hdd"
MARK = f"plimsoll: {NAME}"


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


def settings(server: ProxmoxServer, **keys: Any) -> ProxmoxSettings:
    given = {
        "driver": "proxmox",
        "api": server.api,
        "ca_file": server.ca,
        "node": "pve1",
        "template": TEMPLATE,
    }
    return ProxmoxSettings.model_validate(given | {"storage": "hdd-zfs"} | keys)


def made(server: ProxmoxServer, **keys: Any) -> tuple[Proxmox, ProxmoxApi]:
    said = settings(server, **keys)
    api = ProxmoxApi(connect(said, ENVIRONMENT), pause_s=0.005, patience_s=30, lock_s=30)
    return Proxmox(said, NAME, api), api


@pytest.mark.parametrize("restore", ["rollback", "clone"])
def test_a_clone_is_made_begun_anew_and_removed(server: ProxmoxServer, site: str, restore: str) -> None:
    clone, api = made(
        server,
        target=site,
        restore=restore,
        limits={"scsi0": {"mbps_rd": 150, "iops_wr": 120}},
        bwlimit=50000,
    )

    async def run() -> None:
        runner = StepRunner(FakeMachine(), api)
        await runner.do(clone.create())
        (vmid,) = server.named(NAME)
        vm = server.vms[vmid]
        assert runner.captured["vmid"] == str(vmid)
        disk = f"hdd-zfs:vm-{vmid}-disk-0,iothread=1,size=32G,mbps_rd=150,iops_wr=120"
        assert vm.config["scsi0"] == disk
        assert (vm.running, vm.config["onboot"]) == (False, 0), "not started, neither with its node"
        await runner.do(clone.reset(restore=False))
        assert vm.running
        vm.config["changed"] = "by a run"
        await runner.do(clone.stop())
        assert not vm.running
        await runner.do(clone.stop())
        await runner.do(clone.reset(restore=True))
        (vmid,) = server.named(NAME)
        assert server.vms[vmid].running
        assert server.vms[vmid].config["scsi0"].endswith("mbps_rd=150,iops_wr=120")
        assert clone.target(runner.captured).url == site
        (found,) = await clone.find(FakeMachine())
        assert found.backend == "hdd"
        assert found.what == f"the virtual machine {NAME} ({vmid} on pve1)"
        await runner.do(found.remove)
        assert await clone.find(FakeMachine()) == []
        await runner.do(found.remove)
        await runner.do(clone.destroy())

    asyncio.run(run())
    assert list(server.vms) == [TEMPLATE]
    assert server.vms[TEMPLATE].config["protection"] == 1, "the template is as it was"


def test_the_address_comes_from_the_guest_agent_as_soon_as_it_runs(server: ProxmoxServer) -> None:
    clone, api = made(server, target="http://${address}:8080", connect_to=None)
    server.agent_polls = 3

    async def run() -> dict[str, str]:
        runner = StepRunner(FakeMachine(), api)
        await runner.do([*clone.create(), *clone.reset(restore=False)[:-1]])
        return runner.captured

    captured = asyncio.run(run())
    assert clone.target(captured).url == "http://192.0.2.77:8080"
    waits = clone.reset(restore=False)[-1]
    assert isinstance(waits, Serve)
    assert waits.url == "http://${address}:8080"


def test_a_guest_that_never_gets_an_address_is_named(server: ProxmoxServer) -> None:
    clone, api = made(server, start_timeout_s=0.05)

    async def run() -> None:
        runner = StepRunner(FakeMachine(), api)
        await runner.do(clone.create())
        server.vms[int(runner.captured["vmid"])].address = None
        await runner.do(clone.reset(restore=False))

    with pytest.raises(LabError, match="the guest has no address: does its network assign one"):
        asyncio.run(run())


def test_what_is_shown_is_what_is_asked(server: ProxmoxServer) -> None:
    clone, api = made(server, vmid_range="9000-9099")
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


STRANGERS = [
    ("has our name, and is not ours", 120, NAME, "somebody's", {}),
    ("has nearly our name", 121, f"{NAME}x", MARK, {}),
    ("is another backend's", 122, "plimsoll-bench--hdd2", "plimsoll: plimsoll-bench--hdd2", {}),
    ("is another experiment's", 123, "plimsoll-bench2--hdd", "plimsoll: plimsoll-bench2--hdd", {}),
    ("has our mark, and another name", 124, "web", MARK, {}),
    ("was made a template", 125, NAME, MARK, {"template": 1}),
    ("speaks of us", 126, NAME, f"like {MARK}", {}),
]


@pytest.mark.parametrize(("why", "vmid", "name", "description", "more"), STRANGERS)
def test_what_is_not_ours_is_never_found(
    server: ProxmoxServer, why: str, vmid: int, name: str, description: str, more: dict[str, Any]
) -> None:
    server.vms[vmid] = Vm("pve1", {"name": name, "description": description, **more})
    clone, _ = made(server)
    assert asyncio.run(clone.find(FakeMachine())) == [], why


def test_a_clone_that_was_moved_to_another_node_is_found_there(server: ProxmoxServer) -> None:
    server.vms[130] = Vm("pve2", {"name": NAME, "description": f"{MARK}\nkeep an eye on it\n"})
    clone, api = made(server)

    async def run() -> None:
        (found,) = await clone.find(FakeMachine())
        assert found.what.endswith("(130 on pve2)")
        await StepRunner(FakeMachine(), api).do(found.remove)

    asyncio.run(run())
    assert 130 not in server.vms


def test_a_number_that_has_become_somebody_elses_is_left_alone(server: ProxmoxServer) -> None:
    server.vms[131] = Vm("pve1", {"name": "payroll"}, running=True)
    clone, api = made(server)

    async def run() -> None:
        runner = StepRunner(FakeMachine(), api)
        runner.captured["vmid"] = "131"
        await runner.do(clone.destroy())

    with pytest.raises(
        LabError, match="name is payroll, not plimsoll-bench--hdd: it does not belong to the lab"
    ):
        asyncio.run(run())
    assert server.vms[131].running


def test_a_clone_that_was_under_way_when_the_lab_died_is_found_when_it_has_its_name(
    server: ProxmoxServer,
) -> None:
    clone, api = made(server)
    server.polls = 4

    async def run() -> None:
        begun = next(call for call in clone.create() if isinstance(call, Call) and call.method == "POST")
        params = tuple((key, value.replace("${vmid}", "105")) for key, value in begun.params)
        await api.call(Call("begin", begun.method, begun.path, params))
        assert server.named(NAME) == [], "Proxmox names it when it has copied the disks"
        (found,) = await clone.find(FakeMachine())
        await StepRunner(FakeMachine(), api).do(found.remove)

    asyncio.run(run())
    assert list(server.vms) == [TEMPLATE]


def test_linked_clones_and_clones_for_another_node_are_asked_for(server: ProxmoxServer) -> None:
    linked, _ = made(server, full=False, storage=None)
    call = linked.create()[1]
    assert isinstance(call, Call)
    assert dict(call.params)["full"] == "0"
    assert "storage" not in dict(call.params)
    away, api = made(server, node="pve2", template_node="pve1")
    asyncio.run(StepRunner(FakeMachine(), api).do(away.create()))
    assert [server.vms[vmid].node for vmid in server.named(NAME)] == ["pve2"]


def test_its_description_is_without_secrets(server: ProxmoxServer) -> None:
    clone, _ = made(server, limits={"scsi0": {"mbps_rd": 150}})
    said = clone.describe()
    assert said["limits"] == {"scsi0": {"mbps_rd": 150.0}}
    assert (said["storage"], said["template"], said["full"]) == ("hdd-zfs", TEMPLATE, True)
    assert SECRET not in str(said)


WRONG = [
    ("a full clone has to go somewhere", {"storage": None}, "storage: is missing"),
    (
        "a linked clone has its template's storage",
        {"full": False},
        "a linked clone stays on its template's storage",
    ),
    ("a storage is a name", {"storage": "a,b"}, "must be a storage's name"),
    ("a node is a name", {"node": "pve1/../x"}, "must be a node's name"),
    ("a disk is one of a machine's", {"limits": {"net0": {"mbps_rd": 5}}}, "must be a disk of the template"),
    ("a limit limits something", {"limits": {"scsi0": {}}}, "sets no limit"),
    ("a range goes upwards", {"vmid_range": "300-200"}, "must be two numbers"),
    ("an address stands where the host is", {"target": "http://site/${address}"}, "in place of the host"),
    ("nothing else is filled in", {"target": "http://${vmid}"}, "must not contain"),
    ("a target is a URL", {"target": "${address}"}, "in place of the host"),
    ("a place to connect to has a port", {"connect_to": "10.0.0.5"}, "must be HOST:PORT"),
    ("an API is a host", {"api": "https://pve1:8006"}, "without https"),
    ("a fingerprint is SHA-256", {"ca_file": None, "fingerprint": "AA:BB"}, "32 pairs"),
]


@pytest.mark.parametrize(("why", "keys", "said"), WRONG)
def test_settings_that_cannot_be_are_refused(
    server: ProxmoxServer, why: str, keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        settings(server, **keys)


def test_fixed_targets_stay_as_they_are(server: ProxmoxServer) -> None:
    clone, _ = made(server, target="https://site.lab/", connect_to="${address}:443")
    target = clone.target({"address": "[2001:db8::7]"})
    assert (target.url, target.connect_to) == ("https://site.lab", "[2001:db8::7]:443")
