"""docs/lab.md has every key of lab.yml, with its default and what it does, and commands that there are."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from plimsoll.common.validation import parse_model
from plimsoll.lab.clones.golden import SiteSettings
from plimsoll.lab.clones.static import StaticSettings
from plimsoll.lab.experiment.labfile import (
    MANUAL,
    Backend,
    Factor,
    Fileio,
    Lab,
    Limits,
    Member,
    Notify,
    Phases,
    ReplayOptions,
    ScenarioChoice,
)
from plimsoll.lab.experiment.problems import key_problems
from plimsoll.lab.fileio.fio import FsyncMatrix
from tests.support.paths import DOCS

TEXT = (DOCS / "lab.md").read_text(encoding="utf-8")
KEYS = TEXT.partition("## The file")[2].partition("## What happens")[0]
SECTIONS: dict[str, type[BaseModel]] = {
    "": Lab,
    "fileio.": Fileio,
    "fileio.fsync.": FsyncMatrix,
    "phases.": Phases,
    "limits.": Limits,
    "notify.": Notify,
    "site.": SiteSettings,
    "backends.": Backend,
    "scenarios.": ScenarioChoice,
    "together.": Member,
    "factors.": Factor,
    "options.": ReplayOptions,
    "clone.": StaticSettings,
}


def _rows(prefix: str, model: type[BaseModel]) -> list[str]:
    rows = []
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else ""
        if isinstance(field.default, str | int | float | Path) and not default:
            default = f"`{field.default}`"
        rows.append(f"| `{prefix}{name}` | {default} | {(field.description or '').rstrip('.')} |")
    return rows


@pytest.mark.parametrize("prefix", SECTIONS)
def test_every_key_is_documented_with_its_default(prefix: str) -> None:
    form = re.compile(rf"\| `{re.escape(prefix)}[a-z_]+` \| .*")
    documented = [line for line in KEYS.splitlines() if form.fullmatch(line) and line.count(" | ") == 2]
    assert documented == _rows(prefix, SECTIONS[prefix])


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
def test_the_examples_are_right(example: str) -> None:
    parse_model(example, "docs/lab.md", Lab, MANUAL, key_problems)
