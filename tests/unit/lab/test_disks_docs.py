"""docs/disks.md: its limits are the program's, its examples are valid."""

import re

import yaml
from pydantic import TypeAdapter

from plimsoll.lab.clones.compose import ComposeSettings
from plimsoll.lab.disks import AnyDisk
from plimsoll.lab.disks.disk import DiskSettings
from plimsoll.lab.disks.emulated import LIKE
from tests.support.programs import DOCS

TEXT = (DOCS / "disks.md").read_text(encoding="utf-8")


def test_the_limits_are_those_that_are_set() -> None:
    rows = dict(re.findall(r"^\| ([a-z-]+) \| ([0-9]+ MB \| [0-9,]+) \|$", TEXT, re.MULTILINE))
    assert rows == {
        name: f"{limits.bytes_per_s / 1e6:g} MB | {limits.operations_per_s:,}"
        for name, limits in LIKE.items()
        if limits.bytes_per_s
    }


def test_its_examples_are_valid() -> None:
    disks: TypeAdapter[DiskSettings] = TypeAdapter(AnyDisk)
    (example,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    for document in yaml.safe_load_all(example):
        disks.validate_python(document["disk"])
        ComposeSettings.model_validate(document["clone"])
