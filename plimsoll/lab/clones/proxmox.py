"""Driver `proxmox`: a clone of a guest of Proxmox VE, on one of its storages, by the API."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from plimsoll.lab.clones.clone import (
    CloneContext,
    CloneDetails,
    CloneKit,
    Driver,
    GuestSettings,
    StopTimeout,
    Target,
    TargetUrl,
    needs_address,
    resolve_target,
)
from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import StrictModel, checked_dataset, explained_in
from plimsoll.lab.proxmox import ApiSettings, ProxmoxApi, connect
from plimsoll.lab.proxmox.api import NEXT_ID
from plimsoll.lab.proxmox.volumes import find_dataset, find_folder, is_of_node, parse_volumes, storage_facts
from plimsoll.lab.steps.step import Call, Remains, Serve, Step

_DISK = re.compile(r"(?:scsi(?:[12]?\d|30)|virtio(?:\d|1[0-5])|sata[0-5]|ide[0-3])")
_RANGE = re.compile(r"([1-9]\d{2,8})-([1-9]\d{2,8})")
GuestName = Literal["vm", "container"]
_PRISTINE = "pristine"  # the snapshot of the clone as it was made
_SHORT_S = 120.0  # for tasks that move no data
_CAPTURED = "${vmid}"


def _named(what: str, form: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not re.fullmatch(form, value):
            raise ValueError(f"must be {what}")
        return value

    return check


def _disk(value: str) -> str:
    if not _DISK.fullmatch(value):
        raise ValueError("must be a disk of the template, such as scsi0 or virtio1")
    return value


def _range(value: str) -> str:
    found = _RANGE.fullmatch(value)
    if not found or not int(found[1]) <= int(found[2]) < int(found[1]) + 10_000:
        raise ValueError("must be two numbers from 100 up, at most 10000 apart, such as 9000-9099")
    return value


_NODE = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
Node = Annotated[str, AfterValidator(_named("a node's name, such as pve1", _NODE))]

Storage = Annotated[
    str,
    AfterValidator(_named("a storage's name, such as local-zfs", r"[A-Za-z][A-Za-z0-9._-]{0,98}[A-Za-z0-9]")),
]

Pool = Annotated[
    str,
    AfterValidator(_named("a resource pool's name, such as lab", r"[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+){0,2}")),
]
DiskKey = Annotated[str, AfterValidator(_disk)]


class DiskLimits(StrictModel):
    """Limits of one disk of the clone. Proxmox's own words: `mbps` is MB a second, `iops` operations."""

    mbps_rd: float | None = Field(None, ge=1, description="Limit for reads, in MB a second.")
    mbps_wr: float | None = Field(None, ge=1, description="Limit for writes, in MB a second.")
    iops_rd: int | None = Field(None, ge=10, description="Limit for reads, in operations a second.")
    iops_wr: int | None = Field(None, ge=10, description="Limit for writes, in operations a second.")

    def words(self) -> str:
        """Return the text added to the disk's line of the configuration."""
        return "".join(f",{key}={value:g}" for key, value in self if value is not None)


class ProxmoxSettings(GuestSettings, ApiSettings):
    """A clone of a virtual machine or a container on Proxmox VE."""

    model_config = explained_in("docs/proxmox.md")

    driver: Literal["proxmox"] = Field(description="`proxmox`: a clone of a guest there.")
    guest: GuestName = Field(
        "vm", description="What is cloned: `vm`, a virtual machine, or `container`, a container (LXC)."
    )
    node: Node = Field(description="Node to run the clone on.")
    template: int = Field(
        ge=100, le=999_999_999, description="Number of the guest to clone, preferably a template."
    )
    template_node: Node | None = Field(None, description="Node that has the template. Default: node.")
    full: bool = Field(
        True, description="true copies the disks. false makes a linked clone on the template's storage."
    )
    storage: Storage | None = Field(
        None, description="Storage under test, which the disks are copied to. Not for linked clones."
    )
    bwlimit: int | None = Field(None, ge=0, description="Limit for copying the disks, in KiB a second.")
    pool: Pool | None = Field(None, description="Resource pool to put the clone into.")
    vmid_range: Annotated[str, AfterValidator(_range)] | None = Field(
        None, description="Range of numbers for the clone, FIRST-LAST. Default: the next free number."
    )
    limits: dict[DiskKey, DiskLimits] = Field(
        {}, description="Limits for the disks of a virtual machine: {scsi0: {mbps_rd: 150}}."
    )
    restore: Literal["rollback", "clone"] = Field(
        "rollback",
        description="How to restore a changed site: roll back to a snapshot on the storage, or clone it "
        "again.",
    )
    target: TargetUrl = Field(
        "http://${address}",
        description="Base URL of the site on the clone. ${address} stands for the address that the guest "
        "agent reports, or the node for a container.",
    )
    clone_timeout_s: float = Field(3600.0, gt=0, description="Seconds to wait for the disks to be copied.")
    stop_timeout_s: Annotated[StopTimeout, Field(ge=1)] = 120

    @model_validator(mode="after")
    def _fits(self) -> "ProxmoxSettings":
        if self.full and self.storage is None:
            raise ValueError("storage: is missing: name the storage to copy the disks to, or set full: false")
        if not self.full and self.storage is not None:
            raise ValueError(
                "storage: a linked clone stays on its template's storage; leave storage out, or set full: "
                "true"
            )
        if self.guest == "container" and self.limits:
            raise ValueError("limits: Proxmox limits disks of virtual machines only; leave limits out")
        if empty := [disk for disk, limits in self.limits.items() if not limits.words()]:
            raise ValueError(f"limits: {', '.join(empty)}: sets no limit; name one, or leave the disk out")
        return self


@dataclass(frozen=True)
class GuestKind:
    """One kind of guest.

    `called`: its name in sentences. `path`: its part of the API's paths, and its `type` in the API's lists.
    `name`: the parameter, and the key of its configuration, that has its name. `clone_task`: the type of the
    task that clones one. `address`: the path, below its own, that tells its addresses; `asks` says so.
    """

    called: str
    path: str
    name: str
    clone_task: str
    address: str
    asks: str


GUESTS: dict[GuestName, GuestKind] = {
    "vm": GuestKind(
        called="virtual machine",
        path="qemu",
        name="name",
        clone_task="qmclone",
        address="agent/network-get-interfaces",
        asks="ask the guest agent for its address",
    ),
    "container": GuestKind(
        called="container",
        path="lxc",
        name="hostname",
        clone_task="vzclone",
        address="interfaces",
        asks="ask the node for its address",
    ),
}


class Proxmox:
    """See Clone. Without `api` its steps can be shown, and nothing can be found."""

    driver = "proxmox"

    def __init__(self, settings: ProxmoxSettings, name: str, api: ProxmoxApi | None = None) -> None:
        self._settings, self._name, self._api = settings, name, api
        self._mark = f"plimsoll: {self._name}"  # in its description: anybody may choose the same name
        self._from = settings.template_node or settings.node
        self._guest = GUESTS[settings.guest]

    def create(self) -> list[Step]:
        """Clone the template, with limits and a snapshot to go back to."""
        said = self._settings
        numbers = () if said.vmid_range is None else (("vmid", said.vmid_range),)
        return [
            Call("choose a free number", "GET", NEXT_ID, numbers, capture="vmid"),
            Call(
                f"clone {said.template} as {self._name}, under another number if that one gets taken",
                "POST",
                f"/nodes/{self._from}/{self._guest.path}/{said.template}/clone",
                tuple(self._clone_params()),
                capture="vmid",
                field="newid",
                task_timeout_s=said.clone_timeout_s,
            ),
            Call(
                "keep it from starting with the node, whatever the template says",
                "PUT",
                f"{self._path()}/config",
                (("onboot", "0"),),
            ),
            *self._limit(),
            *(
                [
                    self._post(
                        "take a snapshot to roll back to",
                        "snapshot",
                        (("snapname", _PRISTINE), ("description", self._mark)),
                        said.clone_timeout_s,
                    )
                ]
                if said.restore == "rollback"
                else []
            ),
        ]

    def reset(self, restore: bool) -> list[Step]:
        """Switch it off and on, so that a guest's own caches are cold; with `restore` as it was made."""
        said = self._settings
        before: list[Step] = self.stop()
        if restore and said.restore == "clone":
            before = [*self.destroy(), *self.create()]
        elif restore:
            before.append(
                self._post(
                    "roll it back to the snapshot", f"snapshot/{_PRISTINE}/rollback", (), said.clone_timeout_s
                )
            )
        steps = [*before, self._post("start it", "status/start", (), said.start_timeout_s)]
        if needs_address(said.target, said.connect_to):
            steps.append(
                Call(
                    self._guest.asks,
                    "GET",
                    f"{self._path()}/{self._guest.address}",
                    capture="address",
                    field="address",
                    until_s=said.start_timeout_s,
                )
            )
        return [*steps, Serve("see that the site serves", said.target, said.connect_to, said.start_timeout_s)]

    def stop(self) -> list[Step]:
        """Shut it down; switch it off where it takes too long."""
        wait_s = self._settings.stop_timeout_s
        params = (("timeout", str(wait_s)), ("forceStop", "1"))
        return [self._post("shut it down", "status/shutdown", params, wait_s + _SHORT_S)]

    def destroy(self) -> list[Step]:
        """Switch it off and remove it with its disks."""
        return self._remove(self._settings.node, _CAPTURED)

    def target(self, captured: Mapping[str, str]) -> Target:
        """Return the target at which it is reached."""
        return resolve_target(self._settings.target, self._settings.connect_to, captured)

    def data(self) -> DataLocation:
        """Return its number, if lab.yml leaves one; its volumes are known once it stands."""
        first, _, last = (self._settings.vmid_range or "").partition("-")
        return DataLocation(guest=int(first) if first and first == last else None)

    def describe(self) -> dict[str, Any]:
        """Return a description of how it was made, without the token."""
        kept = {
            "api",
            "node",
            "guest",
            "template",
            "full",
            "storage",
            "bwlimit",
            "limits",
            "restore",
            "target",
        }
        said = self._settings.model_dump(mode="json", include=kept, exclude_none=True)
        return {"driver": self.driver, "name": self._name, **said}

    async def find(self, machine: Machine) -> list[Remains]:
        """Find guests with the clone's name and mark, once cloning that is under way has ended."""
        if self._api is None:
            raise LabError(f"{self._settings.api}: an API token is required to look for clones")
        said, kind = self._settings, self._guest
        await self._api.wait_until_settled(self._from, said.template, kind.clone_task, said.clone_timeout_s)
        found = []
        for node, vmid in await self._named(self._api):
            path = f"/nodes/{node}/{kind.path}/{vmid}/config"
            config = await self._api.call(Call("read its description", "GET", path, may_be_gone=True))
            lines = str((config or {}).get("description", "")).splitlines()
            if self._mark in map(str.strip, lines) and not int((config or {}).get("template", 0)):
                what = f"the {kind.called} {self._name} ({vmid} on {node})"
                steps = tuple(self._remove(node, str(vmid)))
                found.append(Remains(what, self._name.rpartition("--")[2], steps, {"vmid": str(vmid)}))
        return found

    async def _named(self, api: ProxmoxApi) -> list[tuple[str, int]]:
        """Return the nodes and numbers of the guests with the clone's name.

        Nodes list their own at once; the list of the cluster is up to half a minute late, and is needed
        only for what was moved to another node.
        """
        rows = dict[int, str]()
        nodes = list(dict.fromkeys((self._settings.node, self._from)))
        for row in await api.call(Call("list", "GET", "/cluster/resources", (("type", "vm"),))):
            if row.get("type") != self._guest.path or row.get("name") != self._name:
                continue
            if row["node"] not in nodes:
                rows[int(row["vmid"])] = str(row["node"])
        for node in nodes:
            for row in await api.call(Call("list", "GET", f"/nodes/{node}/{self._guest.path}")) or ():
                if row.get("name") == self._name:
                    rows[int(row["vmid"])] = node
        return [(node, vmid) for vmid, node in sorted(rows.items())]

    def _clone_params(self) -> list[tuple[str, str]]:
        said = self._settings
        params = [("newid", _CAPTURED), (self._guest.name, self._name), ("description", self._mark)]
        params.append(("full", str(int(said.full))))
        optional = {
            "storage": said.storage,
            "bwlimit": said.bwlimit,
            "pool": said.pool,
            "target": None if said.node == self._from else said.node,
        }
        return params + [(key, str(value)) for key, value in optional.items() if value is not None]

    def _limit(self) -> list[Step]:
        """Add limits to the disks' lines, which only the clone has; nobody may change it in between."""
        path, steps = f"{self._path()}/config", list[Step]()
        for disk, limits in self._settings.limits.items():
            line = f"disk_{disk}"
            steps += [
                Call("read its configuration's digest", "GET", path, capture="digest", field="digest"),
                Call(f"read the configuration of {disk}", "GET", path, capture=line, field=disk),
                Call(
                    f"limit {disk}",
                    "PUT",
                    path,
                    ((disk, f"${{{line}}}{limits.words()}"), ("digest", "${digest}")),
                ),
            ]
        return steps

    def _remove(self, node: str, vmid: str) -> list[Step]:
        path = f"/nodes/{node}/{self._guest.path}/{vmid}"
        purge = (("purge", "1"), ("destroy-unreferenced-disks", "1"))
        return [
            Call(
                "check that it still belongs to the lab",
                "GET",
                f"{path}/config",
                expects=((self._guest.name, self._name),),
                may_be_gone=True,
            ),
            Call("switch it off", "POST", f"{path}/status/stop", task_timeout_s=_SHORT_S, may_be_gone=True),
            Call(
                "allow its removal, whatever the template says",
                "PUT",
                f"{path}/config",
                (("protection", "0"),),
                may_be_gone=True,
            ),
            Call(
                "remove it with its disks",
                "DELETE",
                path,
                purge,
                task_timeout_s=self._settings.clone_timeout_s,
                may_be_gone=True,
            ),
        ]

    def _post(self, says: str, below: str, params: tuple[tuple[str, str], ...], timeout_s: float) -> Call:
        return Call(says, "POST", f"{self._path()}/{below}", params, task_timeout_s=timeout_s)

    def _path(self) -> str:
        return f"/nodes/{self._settings.node}/{self._guest.path}/{_CAPTURED}"


async def _prepare(settings: ProxmoxSettings, around: CloneContext) -> CloneKit:
    api = ProxmoxApi(connect(settings))

    async def read(captured: Mapping[str, str]) -> CloneDetails:
        path = f"/nodes/{settings.node}/{GUESTS[settings.guest].path}/{captured['vmid']}"
        return await read_details(api, around.machine, settings.node, path)

    return CloneKit(Proxmox(settings, around.name, api), api, read_details=read)


PROXMOX = Driver("proxmox", ProxmoxSettings, _prepare, needs_disk=False)


async def read_details(api: ProxmoxApi, machine: Machine, node: str, path: str) -> CloneDetails:
    """Return what there is of the guest at `path` of the API, and its datasets, if `machine` is its node.

    Raises LabError where the API does not answer.
    """
    config = await api.call(Call("read its disks", "GET", f"{path}/config")) or {}
    rows = await api.call(Call("read the storages", "GET", "/storage")) or ()
    storages = {str(row.get("storage")): row for row in rows if isinstance(row, dict)}
    name = await machine.run(["uname", "-n"], check=False)  # a node is called after its host name
    is_node = name.status == 0 and name.out.strip().partition(".")[0] == node
    volumes, datasets = list[dict[str, Any]](), dict[str, None]()
    for volume in parse_volumes(config):
        storage: Mapping[str, Any] = storages.get(volume.storage or "", {})
        dataset = find_dataset(storage, volume.name or "")
        there = is_node and is_of_node(storage)
        if is_node and (folder := find_folder(storage)):
            dataset = await _dataset_below(machine, folder)
            there = dataset is not None
        volumes.append({**volume.facts(), "on": storage_facts(storage), "dataset": dataset})
        if there and dataset and _is_name(dataset):
            datasets[dataset] = None
    more = {"scsihw": config["scsihw"]} if "scsihw" in config else {}
    return CloneDetails({**more, "volumes": volumes}, tuple(datasets))


async def _dataset_below(machine: Machine, folder: str) -> str | None:
    """Return the dataset that `folder` lies on; None where it is on another file system."""
    try:
        done = await machine.run(
            ["findmnt", "-n", "-o", "FSTYPE,SOURCE", "-T", folder], check=False, timeout_s=10.0
        )
    except MachineError as error:
        if not error.command:
            raise
        return None
    kind, _, source = done.out.strip().partition(" ")
    return source.strip() if done.status == 0 and kind == "zfs" else None


def _is_name(dataset: str) -> bool:
    """Return whether a dataset that the API named may become part of a command."""
    try:
        checked_dataset(dataset)
    except ValueError:
        return False
    return True
