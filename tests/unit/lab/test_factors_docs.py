"""The examples of docs/factors.md are right."""

import re

import pytest

from plimsoll.common.validation import parse_model
from plimsoll.lab.experiment.labfile import MANUAL, Lab
from plimsoll.lab.experiment.problems import key_problems
from tests.support.programs import DOCS, ROOT

TEXT = (DOCS / "factors.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
def test_the_examples_are_right(example: str) -> None:
    parse_model(example, "docs/factors.md", Lab, MANUAL, key_problems)


@pytest.mark.parametrize("name", ["recordsize-sweep.yml", "send-rate-sweep.yml"])
def test_the_files_are_right(name: str) -> None:
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    assert parse_model(text, name, Lab, MANUAL, key_problems).factors
