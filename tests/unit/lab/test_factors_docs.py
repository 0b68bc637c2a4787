"""docs/factors.md names every factor that needs no key, and its examples are right."""

import re

import pytest

from plimsoll.common.validation import parse_model
from plimsoll.lab.experiment.labfile import MANUAL, SHORT, Lab
from plimsoll.lab.experiment.problems import key_problems
from tests.support.paths import DOCS, ROOT

TEXT = (DOCS / "factors.md").read_text(encoding="utf-8")
NAMES = TEXT.partition("<!-- names")[2].partition("Anything else")[0]


def test_every_name_is_in_the_list() -> None:
    rows = [line.split(" | ")[0] for line in NAMES.splitlines() if line.startswith("| `")]
    named = [name.replace("-", "_") for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(named) == sorted(SHORT)


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
def test_the_examples_are_right(example: str) -> None:
    parse_model(example, "docs/factors.md", Lab, MANUAL, key_problems)


@pytest.mark.parametrize("name", ["recordsize-sweep.yml", "send-rate-sweep.yml"])
def test_the_files_are_right(name: str) -> None:
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    assert parse_model(text, name, Lab, MANUAL, key_problems).factors
