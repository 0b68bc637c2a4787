"""docs/status.md has every key of `plimsoll lab status --json`, and its texts are harmless."""

import re
from typing import get_args

import pytest
from pydantic import BaseModel

from plimsoll.lab.experiment.status.forecast import AFTER_S, BEFORE_S, MAKE_S
from plimsoll.lab.experiment.status.running import FEWEST, Activity, DiskFigures, LoadFigures, SendFigures
from plimsoll.lab.experiment.status.text import lines
from plimsoll.lab.experiment.status.watch import Failure, Runs, State, Status, VolumeCells
from tests.support.paths import DOCS

TEXT = (DOCS / "status.md").read_text(encoding="utf-8")
TABLE = TEXT.partition("## JSON")[2]
MODELS: list[tuple[str, type[BaseModel]]] = [
    ("", Status),
    ("now.", Activity),
    ("", LoadFigures),
    ("", SendFigures),
    ("", DiskFigures),
    ("", Failure),
    ("", Runs),
    ("", VolumeCells),
]


@pytest.mark.parametrize(("prefix", "model"), MODELS)
def test_every_key_is_documented(prefix: str, model: type[BaseModel]) -> None:
    names = [field.serialization_alias or name for name, field in model.model_fields.items()]
    assert [name for name in names if f"`{prefix}{name}`" not in TABLE] == []


def test_every_state_is_documented() -> None:
    assert [state for state in get_args(State) if f"`{state}`" not in TABLE] == []


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
