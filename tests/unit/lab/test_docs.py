"""Pages on the lab: their examples are valid, and the figures that they give are those of the code."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from plimsoll.lab.clones import AnyClone
from plimsoll.lab.disks import AnyDisk
from plimsoll.lab.disks.emulated import LIKE
from plimsoll.lab.tuning import Tuning
from tests.support.labfile import parse_lab
from tests.support.programs import DOCS

DISK: TypeAdapter[Any] = TypeAdapter(AnyDisk)
CLONE: TypeAdapter[Any] = TypeAdapter(AnyClone)


def read_clone(example: str) -> None:
    CLONE.validate_python(yaml.safe_load(example)["clone"])


def read_disks(example: str) -> None:
    for document in yaml.safe_load_all(example):
        DISK.validate_python(document["disk"])
        CLONE.validate_python(document["clone"])


def read_tuning(example: str) -> None:
    Tuning.model_validate(yaml.safe_load(example)["tuning"])


# How an example of each page is read.
READERS: dict[str, Callable[[str], object]] = {
    "lab.md": parse_lab,
    "factors.md": parse_lab,
    "disks.md": read_disks,
    "tuning.md": read_tuning,
    "vm.md": read_clone,
    "libvirt.md": read_clone,
    "proxmox.md": read_clone,
}


@pytest.mark.parametrize("page", READERS)
def test_the_examples_of_a_page_are_valid(page: str) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", text_of(page), re.DOTALL)
    assert examples
    for example in examples:
        READERS[page](example)


def test_the_limits_of_emulated_disks_are_those_that_are_set() -> None:
    rows = dict(re.findall(r"^\| ([a-z-]+) \| ([0-9]+ MB \| [0-9,]+) \|$", text_of("disks.md"), re.MULTILINE))
    assert rows == {
        name: f"{limits.bytes_per_s / 1e6:g} MB | {limits.operations_per_s:,}"
        for name, limits in LIKE.items()
        if limits.bytes_per_s
    }


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")
