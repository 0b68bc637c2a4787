"""Members who were sent to the login are mismatches."""

from pathlib import Path

import pytest

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import MEMBER, SENT_TO_LOGIN
from tests.support.rundir import records, write_run

ROWS = [
    ("a member's page, as in the log", 200, 200, MEMBER, 0),
    ("a redirect where the log has a page", 302, 200, MEMBER, 1),
    ("the login, where the log has a page", 302, 200, MEMBER | SENT_TO_LOGIN, 1),
    ("the login, where the log has a redirect", 302, 302, MEMBER | SENT_TO_LOGIN, 1),
    ("the login, where the log says nothing", 302, 0, MEMBER | SENT_TO_LOGIN, 1),
    ("another redirect, as in the log", 302, 302, MEMBER, 0),
]


@pytest.mark.parametrize(
    ("what", "status", "logged", "flags", "mismatches"), ROWS, ids=[row[0] for row in ROWS]
)
def test_who_is_sent_to_the_login_is_a_mismatch(
    what: str, status: int, logged: int, flags: int, mismatches: int, tmp_path: Path
) -> None:
    table = records(3, status=[200, status, 200], logged_status=[200, logged, 200], flags=[0, flags, 0])
    directory = RunDirectory.open(write_run(tmp_path / "run", table))
    assert measure_figures(directory).total.status_mismatch == mismatches, what
