"""docs/proxmox.md and docs/libvirt.md name every key with what it does, and their examples are valid."""

import re

import pytest
import yaml
from pydantic import BaseModel

from lab.clones.libvirt.settings import LibvirtSettings
from lab.clones.proxmox.settings import DiskLimits, ProxmoxSettings
from tests.support.paths import DOCS

PAGES: dict[str, dict[str, type[BaseModel]]] = {
    "proxmox.md": {"": ProxmoxSettings, "limits.DISK.": DiskLimits},
    "libvirt.md": {"": LibvirtSettings},
}


@pytest.mark.parametrize("page", PAGES)
def test_every_key_is_documented_with_what_it_does(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `([a-zA-Z_.]+)` \| (.*) \|$", text, re.MULTILINE))
    keys = {
        f"{prefix}{name}": (field.description or "").rstrip(".")
        for prefix, model in PAGES[page].items()
        for name, field in model.model_fields.items()
    }
    assert {key: said.replace("\\", "") for key, said in documented.items()} == keys


@pytest.mark.parametrize("page", PAGES)
def test_its_examples_are_valid(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    examples = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        PAGES[page][""].model_validate(yaml.safe_load(example)["clone"])
