"""The examples of docs/proxmox.md and docs/libvirt.md are valid."""

import re

import pytest
import yaml
from pydantic import BaseModel

from plimsoll.lab.clones.libvirt import LibvirtSettings
from plimsoll.lab.clones.proxmox import ProxmoxSettings
from plimsoll.lab.experiment.problems import read_lab
from tests.support.programs import DOCS, ROOT

PAGES: dict[str, type[BaseModel]] = {"proxmox.md": ProxmoxSettings, "libvirt.md": LibvirtSettings}


@pytest.mark.parametrize("page", PAGES)
def test_its_examples_are_valid(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    examples = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        PAGES[page].model_validate(yaml.safe_load(example)["clone"])


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
    text = (DOCS / "proxmox.md").read_text(encoding="utf-8")
    granted = set(re.findall(r"pveum acl modify (/\S+)", text))
    clones = [backend.clone.model_dump() for backend in read_lab(MOVE).backends]
    used = {f"/vms/{clone['template']}" for clone in clones} | {f"/pool/{clone['pool']}" for clone in clones}
    used |= {f"/storage/{clone['storage']}" for clone in clones}
    assert granted == used | {"/sdn/zones/localnetwork/vmbr0"}
    assert set(re.findall(r"--roles (\w+)", text)) == set(re.findall(r"pveum role add (\w+)", text))
