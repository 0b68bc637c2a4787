"""The examples of docs/lab.md are right."""

import re

import pytest

from plimsoll.common.validation import parse_model
from plimsoll.lab.experiment.labfile import (
    MANUAL,
    Lab,
)
from plimsoll.lab.experiment.problems import key_problems
from tests.support.programs import DOCS

TEXT = (DOCS / "lab.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
def test_the_examples_are_right(example: str) -> None:
    parse_model(example, "docs/lab.md", Lab, MANUAL, key_problems)
