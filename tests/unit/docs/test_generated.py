"""What `make docs` writes is not stale, and nothing in it is undocumented."""

import re
import subprocess
import sys

import click
import pytest

from tests.support.programs import ROOT
from tools import house
from tools.reference import undocumented


@pytest.mark.parametrize("tool", ["reference", "house", "tables"])
def test_what_make_docs_writes_is_not_stale(tool: str) -> None:
    ran = subprocess.run(
        [sys.executable, f"tools/{tool}.py", "check"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr


def test_a_command_or_flag_without_help_is_found() -> None:
    quiet = click.Command(
        "quiet", params=[click.Option(["--loud"]), click.Option(["--soft"], help="Softly.")]
    )
    root = click.Group("plimsoll", help="Say it.", commands={"quiet": quiet})
    assert undocumented(root) == [
        "plimsoll quiet has no help: give it a docstring",
        "plimsoll quiet --loud has no help: pass help=",
    ]


def test_every_floor_is_drawn() -> None:
    drawn = house.drawing()
    rooms = [room for floors in house.python_floors().values() for floor in floors for room in floor]
    names = [re.sub(r"^plimsoll\.((lab|analysis|scenarios)\.)?", "", room) for room in rooms]
    names += [room for floor in house.go_floors() for room in floor if room != "."]
    assert len(names) > 40
    assert [name for name in names if name not in drawn] == []


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(SystemExit, match="lacks the marks"):
        house.page("# The house\n")
