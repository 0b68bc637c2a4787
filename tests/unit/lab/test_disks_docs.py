"""docs/disks.md names every key with what it does, its limits are the program's, its examples are valid."""

import re

import yaml
from pydantic import BaseModel, TypeAdapter

from plimsoll.lab.clones.compose import ComposeSettings
from plimsoll.lab.disks import DISKS, AnyDisk
from plimsoll.lab.disks.disk import DiskSettings
from plimsoll.lab.disks.emulated import LIKE
from tests.support.paths import DOCS

TEXT = (DOCS / "disks.md").read_text(encoding="utf-8")
MODELS: dict[str, type[BaseModel]] = {
    **{f"{kind.name}.": kind.settings for kind in DISKS},
    "compose.": ComposeSettings,
}


def test_every_key_is_documented_with_what_it_does() -> None:
    documented = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \| (.*) \|$", TEXT, re.MULTILINE)
    keys = [
        (f"{prefix}{name}", (field.description or "").rstrip("."))
        for prefix, model in MODELS.items()
        for name, field in model.model_fields.items()
    ]
    assert documented == keys


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
