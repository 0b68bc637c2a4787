"""Every request of the driver keeps to what Proxmox documents; the docs name each privilege.

The description is in tests/fixtures/proxmox/api.yml. No Proxmox VE was asked.
"""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lab.clones.proxmox import GUESTS, GuestName, read_details
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.problems import read_lab
from plimsoll.lab.proxmox.volumes import KINDS
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Call, Serve
from tests.support.programs import DOCS, ROOT
from tests.support.proxmox import ProxmoxServer, proxmox_clone, proxmox_server
from tests.support.proxmox_api import call_of, documented, privileges, problems
from tests.support.scripted import FakeMachine

EVERYTHING: dict[GuestName, dict[str, Any]] = {
    "vm": {"limits": {"scsi0": {"mbps_rd": 150, "mbps_wr": 99.5, "iops_rd": 120, "iops_wr": 120}}},
    "container": {},
}
PAGE = (DOCS / "proxmox.md").read_text(encoding="utf-8")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ProxmoxServer]:
    with proxmox_server(tmp_path) as made:
        yield made


async def everything(server: ProxmoxServer, guest: GuestName) -> None:
    """Make every call that the driver can make on such a guest."""
    for keys in (
        {"vmid_range": "9000-9099"},
        {"restore": "clone", "node": "pve2", "template_node": "pve1"},
        {"full": False, "storage": None},
    ):
        clone, api = proxmox_clone(server, guest, pool="lab", bwlimit=50000, **EVERYTHING[guest] | keys)
        runner = StepRunner(FakeMachine(), api)
        await runner.do(clone.create())
        for restore in (False, True):
            await runner.do([step for step in clone.reset(restore) if not isinstance(step, Serve)])
        node, number = keys.get("node", "pve1"), runner.captured["vmid"]
        await read_details(api, FakeMachine(), str(node), f"/nodes/{node}/{GUESTS[guest].path}/{number}")
        for found in await clone.find(FakeMachine()):
            await runner.do(found.remove)


async def faults(server: ProxmoxServer) -> None:
    """Make the calls that are made only where something goes wrong: a task fails, or takes too long."""
    clone, api = proxmox_clone(server)
    server.fail_task("qmclone", "clone failed")
    with pytest.raises(LabError, match="the task failed"):
        await StepRunner(FakeMachine(), api).do(clone.create())
    server.polls = 1_000_000
    begun = next(step for step in clone.create() if isinstance(step, Call) and step.method == "POST")
    params = tuple((key, value.replace("${vmid}", "105")) for key, value in begun.params)
    with pytest.raises(LabError, match="its task was stopped"):
        await api.call(Call("clone", begun.method, begun.path, params, task_timeout_s=0.05))


def test_all_requests_keep_to_the_description_and_it_has_no_others(server: ProxmoxServer) -> None:
    async def run() -> None:
        await everything(server, "vm")
        await everything(server, "container")
        await faults(server)

    asyncio.run(run())
    made = [(verb, path) for verb, _, path in (line.partition(" ") for line in server.asked)]
    wrong = [problems(*line, params) for line, params in zip(made, server.params, strict=True)]
    assert [why for why in wrong if why] == []
    assert {found[0] for line in made if (found := call_of(*line))} == set(documented()["calls"])


CLONE = "/nodes/pve1/qemu/900/clone"
CONFIG = "/nodes/pve1/qemu/105/config"
WRONG: list[tuple[str, str, str, dict[str, str], str]] = [
    ("the path does not exist", "GET", "/nodes/pve1/openvz", {}, "path"),
    ("a path is asked with another verb", "POST", "/cluster/nextid", {}, "path"),
    ("a parameter is missing", "POST", CLONE, {"name": "a"}, "newid"),
    ("a number is none", "POST", CLONE, {"newid": "first"}, "newid"),
    ("a number is below all that may be", "POST", CLONE, {"newid": "99"}, "newid"),
    ("a parameter is another kind of guest's", "POST", CLONE, {"newid": "105", "hostname": "a"}, "hostname"),
    ("a name is none", "POST", CLONE, {"newid": "105", "name": "a_b"}, "name"),
    ("a flag is a word", "POST", CLONE, {"newid": "105", "full": "maybe"}, "full"),
    ("a limit has a fraction", "POST", CLONE, {"newid": "105", "bwlimit": "1.5"}, "bwlimit"),
    ("a word is not of the list", "GET", "/cluster/resources", {"type": "qemu"}, "type"),
    ("a disk has a key twice", "PUT", CONFIG, {"scsi0": "a:b,mbps_rd=1,mbps_rd=2"}, "scsi0"),
    ("a disk has a key that does not exist", "PUT", CONFIG, {"virtio1": "a:b,speed=1"}, "virtio1"),
    ("a disk has a key of another bus", "PUT", CONFIG, {"sata0": "a:b,iothread=1"}, "sata0"),
    ("another disk has", "PUT", CONFIG, {"virtio0": "a:b,ssd=1"}, "virtio0"),
    ("operations have a fraction", "PUT", CONFIG, {"scsi0": "a:b,iops_rd=1.5"}, "scsi0"),
    (
        "a snapshot's name is too long",
        "POST",
        "/nodes/p/lxc/105/snapshot",
        {"snapname": "a" * 41},
        "snapname",
    ),
]


@pytest.mark.parametrize(
    ("method", "path", "params", "at"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_what_does_not_keep_to_it_is_found(method: str, path: str, params: dict[str, str], at: str) -> None:
    assert list(problems(method, path, params)) == [at]


def test_the_server_refuses_what_does_not_keep_to_it(server: ProxmoxServer) -> None:
    _, api = proxmox_clone(server)
    wrong = Call("start it", "POST", "/nodes/pve1/qemu/900/status/start", (("newid", "105"),))
    with pytest.raises(LabError, match="newid: property is not defined in schema"):
        asyncio.run(api.call(wrong))


def test_every_kind_of_storage_has_a_name() -> None:
    assert sorted(KINDS) == sorted(documented()["storage_types"])


def test_the_page_says_for_each_call_which_privileges_it_needs() -> None:
    """The rows of its table are `| call | privilege | what it is needed on |`; GUEST is qemu and lxc."""
    rows = re.findall(r"^\| `([A-Z]+ /[^`]*)` \| ([^|]*) \| ([^|]*) \|$", PAGE, re.MULTILINE)
    on_page = dict[str, set[tuple[frozenset[str], str]]]()
    for line, privilege, place in rows:
        for kind in ("qemu", "lxc") if "GUEST" in line else ("",):
            names = frozenset(re.findall(r"[A-Z][A-Za-z.]+\.[A-Za-z]+", privilege))
            on_page.setdefault(line.replace("GUEST", kind), set()).update({(names, place)} if names else ())
    assert {
        line: {(frozenset(names), place) for names, place in privileges(line)} for line in on_page
    } == on_page
    assert set(on_page) == set(documented()["calls"])


def test_the_roles_on_the_page_have_what_all_calls_need_and_no_more() -> None:
    given = {
        name for role in re.findall(r"pveum role add \w+ --privs '([^']+)'", PAGE) for name in role.split()
    }
    needed = [names for line in documented()["calls"] for names, _ in privileges(line)]
    assert [names for names in needed if not names & given] == []
    assert given <= set().union(*needed)


MOVE = ROOT / "examples" / "proxmox-zfs.yml"


def test_the_move_between_two_mirrors_says_of_each_line_what_it_is_for() -> None:
    lines = [line for line in MOVE.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert [line for line in lines if not re.search(r"# \w", line)] == []


def test_the_move_sends_what_each_clone_lies_on() -> None:
    """The dataset is known before the clone is made only if its number is."""
    for backend in read_lab(MOVE).backends:
        clone, saturator = backend.clone.model_dump(), backend.saturator
        assert saturator is not None
        first, last = clone["vmid_range"].split("-")
        assert first == last
        pool = clone["storage"].removesuffix("-zfs")
        assert saturator.model_dump()["dataset"] == f"{pool}/vm-{first}-disk-0"


def test_the_page_grants_rights_on_what_the_move_uses_and_on_nothing_else() -> None:
    granted = set(re.findall(r"pveum acl modify (/\S+)", PAGE))
    clones = [backend.clone.model_dump() for backend in read_lab(MOVE).backends]
    used = {f"/vms/{clone['template']}" for clone in clones} | {f"/pool/{clone['pool']}" for clone in clones}
    used |= {f"/storage/{clone['storage']}" for clone in clones}
    assert granted == used | {"/sdn/zones/localnetwork/vmbr0"}
    assert set(re.findall(r"--roles (\w+)", PAGE)) == set(re.findall(r"pveum role add (\w+)", PAGE))
