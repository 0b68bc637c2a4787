"""Guesses and values in docs/status.md are those of the code, and the texts of the status are harmless."""

import re
from typing import Any, get_args

import pytest
from pydantic.fields import FieldInfo

from plimsoll.lab.experiment.status.forecast import AFTER_S, BEFORE_S, MAKE_S
from plimsoll.lab.experiment.status.running import FEWEST, Activity
from plimsoll.lab.experiment.status.text import lines
from plimsoll.lab.experiment.status.watch import Runs, State, Status
from tests.support.programs import DOCS

TEXT = (DOCS / "status.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        (State, Status.model_fields["state"]),
        (Activity.model_fields["what"].annotation, Activity.model_fields["what"]),
    ],
    ids=["state", "what"],
)
def test_a_key_names_all_of_its_values(values: Any, field: FieldInfo) -> None:
    """Its description is what docs/status.md says of it."""
    assert re.findall("`([^`]+)`", field.description or "") == [*get_args(values)]


def test_the_guesses_are_those_of_the_page() -> None:
    assert f"({MAKE_S:g} s, {BEFORE_S:g} s, {AFTER_S:g} s;" in re.sub(r"\s+", " ", TEXT)
    assert f"under {FEWEST:,} requests there is none" in TEXT


def test_what_a_machine_said_cannot_steer_the_terminal() -> None:
    runs = Runs(total=1, finished=0, left=0, set_aside=1, failed_tries=3)
    status = Status(
        experiment="one",
        directory="results/one",
        state="unfinished",
        begun_at=None,
        ended_at=None,
        runs=runs,
        now=None,
        last_failure=None,
        set_aside={"nvme": "\x1b[2J gone\nplimsoll: all is well"},
        ends_at=None,
        left_s=None,
        resume=None,
        report=None,
    )
    said = lines(status)
    assert r"\x1b[2J gone\x0aplimsoll: all is well" in said[-1]
    assert not any("\x1b" in line or "\n" in line for line in said)
