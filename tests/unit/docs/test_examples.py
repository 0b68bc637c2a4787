"""The settings in examples/ are right: the pages open with them."""

from pathlib import Path

import pytest

from analysis.comparing.gates import read_gates
from lab.experiment.settings import read_lab
from tests.support.paths import ROOT

LABS = sorted(path for path in (ROOT / "examples").glob("*.yml") if path.name != "gates.yml")


@pytest.mark.parametrize("path", LABS, ids=lambda path: path.stem)
def test_an_example_of_lab_yml_has_no_problem(path: Path) -> None:
    assert read_lab(path).backends


def test_the_gates_have_no_problem() -> None:
    assert read_gates(ROOT / "examples" / "gates.yml").gates
