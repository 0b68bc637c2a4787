"""Every observer has columns, and the example of docs/tuning.md is valid."""

import re

import pytest
import yaml

from plimsoll.lab.observers import OBSERVERS
from plimsoll.lab.tuning import Tuning
from tests.support.programs import DOCS


def test_every_observer_has_columns() -> None:
    assert all(observer.columns for observer in OBSERVERS)


@pytest.mark.parametrize(
    "example", re.findall(r"```yaml\n(.*?)```", (DOCS / "tuning.md").read_text("utf-8"), re.DOTALL)
)
def test_the_example_is_valid(example: str) -> None:
    Tuning.model_validate(yaml.safe_load(example)["tuning"])
