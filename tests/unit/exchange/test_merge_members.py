"""What the members of all instances sent adds up, also where one of them was killed."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.rundir.records import MEMBER, SENT_TO_LOGIN, WARMUP
from tests.support.rundir import INSTANCES, records, write_instance

TWO = {"clients": 2, "accounts": 2, "requests": 7, "sent_to_login": 3}
THREE = {"clients": 3, "accounts": 3, "requests": 7, "sent_to_login": 3}
NONE = {"clients": 0, "accounts": 0, "requests": 0, "sent_to_login": 0}


def shards(
    folder: Path, members: list[dict[str, int] | None], flagged: int = INSTANCES, killed: bool = False
) -> None:
    """Instances with ten requests of members each: three of the warm-up, and three sent to the login."""
    for index, own in enumerate(members):
        table = records(100)
        if index < flagged:
            table["flags"][:10] |= MEMBER
            table["flags"][:3] |= WARMUP
            table["flags"][7:10] |= SENT_TO_LOGIN
        status: dict[str, Any] = {"status": "running"} if killed and index == INSTANCES - 1 else {}
        write_instance(folder / str(index), index, table, members=own, **status)


def merged(folder: Path) -> dict[str, Any]:
    merge_shards([folder], folder / "merged")
    found: dict[str, Any] = json.loads((folder / "merged" / "summary.json").read_text())
    return found


@pytest.mark.parametrize(
    ("why", "members", "flagged", "killed", "expected"),
    [
        (
            "clients add up, accounts are used from the first on by each",
            [TWO, THREE, TWO, TWO],
            4,
            False,
            {"clients": 9, "accounts": 3, "requests": 28, "sent_to_login": 12},
        ),
        (
            "an instance may have no members among its clients",
            [TWO, NONE, NONE, TWO],
            1,
            False,
            {"clients": 4, "accounts": 2, "requests": 7, "sent_to_login": 3},
        ),
        (
            "of a killed one the records tell what was sent, and nobody how many there were",
            [TWO, TWO, TWO, TWO],
            4,
            True,
            {"clients": None, "accounts": None, "requests": 28, "sent_to_login": 12},
        ),
    ],
)
def test_members_add_up(
    tmp_path: Path,
    why: str,
    members: list[dict[str, int] | None],
    flagged: int,
    killed: bool,
    expected: dict[str, int],
) -> None:
    shards(tmp_path, members, flagged, killed)
    assert merged(tmp_path)["members"] == expected, why


def test_a_run_without_members_says_nothing_of_them(tmp_path: Path) -> None:
    shards(tmp_path, [None] * INSTANCES, flagged=0)
    assert "members" not in merged(tmp_path)
