"""Driver `proxmox`: a clone of a virtual machine or a container, made and removed through Proxmox's API."""

from collections.abc import Mapping
from typing import Any

from plimsoll.lab.clones.address import needs_address, serves, target
from plimsoll.lab.clones.clone import CloneKit, Driver, Seen, Surroundings, Target
from plimsoll.lab.clones.proxmox.guests import GUESTS
from plimsoll.lab.clones.proxmox.look import look
from plimsoll.lab.clones.proxmox.settings import ProxmoxSettings
from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.errors import LabError
from plimsoll.lab.machine import Machine
from plimsoll.lab.proxmox import ProxmoxApi, connect
from plimsoll.lab.proxmox.api import NEXT_ID
from plimsoll.lab.steps.step import Call, Remains, Step

_PRISTINE = "pristine"  # the snapshot of the clone as it was made
_SHORT_S = 120.0  # for tasks that move no data
_CAPTURED = "${vmid}"


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
        return [*steps, serves(said.target, said.connect_to, said.start_timeout_s)]

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
        return target(self._settings.target, self._settings.connect_to, captured)

    def data(self) -> DataLocation:
        """Return its number, if lab.yml leaves one; its volumes are known once it stands (see `look`)."""
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
            raise LabError(f"{self._settings.api}: there is no API token to search with")
        said, kind = self._settings, self._guest
        await self._api.settled(self._from, said.template, kind.clone_task, said.clone_timeout_s)
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


async def _kit(settings: ProxmoxSettings, around: Surroundings) -> CloneKit:
    api = ProxmoxApi(connect(settings))

    async def seen(captured: Mapping[str, str]) -> Seen:
        path = f"/nodes/{settings.node}/{GUESTS[settings.guest].path}/{captured['vmid']}"
        return await look(api, around.machine, settings.node, path)

    return CloneKit(Proxmox(settings, around.name, api), api, look=seen)


PROXMOX = Driver("proxmox", ProxmoxSettings, _kit, needs_disk=False)
