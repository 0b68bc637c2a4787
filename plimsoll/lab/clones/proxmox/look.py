"""Looks at a clone on Proxmox once it stands: its disks or mount points, and the storages below them."""

from collections.abc import Mapping
from typing import Any

from plimsoll.lab.clones.clone import Seen
from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import checked_dataset
from plimsoll.lab.proxmox import ProxmoxApi
from plimsoll.lab.proxmox.volumes import dataset_of, folder_of, is_of_node, storage_facts, volumes_of
from plimsoll.lab.steps.step import Call


async def look(api: ProxmoxApi, machine: Machine, node: str, path: str) -> Seen:
    """Return what there is of the guest at `path` of the API, and its datasets, if `machine` is its node.

    Raises LabError where the API does not answer.
    """
    config = await api.call(Call("read its disks", "GET", f"{path}/config")) or {}
    rows = await api.call(Call("read the storages", "GET", "/storage")) or ()
    storages = {str(row.get("storage")): row for row in rows if isinstance(row, dict)}
    is_node = await _is_node(machine, node)
    volumes, datasets = list[dict[str, Any]](), dict[str, None]()
    for volume in volumes_of(config):
        storage: Mapping[str, Any] = storages.get(volume.storage or "", {})
        dataset = dataset_of(storage, volume.name or "")
        there = is_node and is_of_node(storage)
        if is_node and (folder := folder_of(storage)):
            dataset = await _dataset_below(machine, folder)
            there = dataset is not None
        volumes.append({**volume.facts(), "on": storage_facts(storage), "dataset": dataset})
        if there and dataset and _is_name(dataset):
            datasets[dataset] = None
    more = {"scsihw": config["scsihw"]} if "scsihw" in config else {}
    return Seen({**more, "volumes": volumes}, tuple(datasets))


async def _is_node(machine: Machine, node: str) -> bool:
    """Return whether `machine` is the node itself, which is called after its host name."""
    done = await machine.run(["uname", "-n"], check=False)
    return done.status == 0 and done.out.strip().partition(".")[0] == node


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
