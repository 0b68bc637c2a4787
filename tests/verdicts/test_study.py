"""The small form of the study: verdicts are wrong no more often than they may; the document has its tables.

PLIMSOLL_SLOW=1 asks all tables, and holds the document to the full form, which takes minutes.
"""

import os
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.support.docs import statistics_table
from tests.verdicts.study import FULL, SMALL, TABLES, most
from tests.verdicts.worlds import fewer_arrangements

pytestmark = pytest.mark.skipif(
    os.environ.get("PLIMSOLL_LAB") != "1", reason="takes a minute: part of make test-lab (PLIMSOLL_LAB=1)"
)


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with fewer_arrangements():
        yield


@cache
def _small(table: str) -> list[list[str]]:
    return list(TABLES[table](SMALL))


SLOW = [
    pytest.param(table, marks=pytest.mark.slow)
    for table in ("guarded errors", "unequal counts", "rare stalls")
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("table", ["looks", *SLOW])
def test_verdicts_are_wrong_no_more_often_than_they_may(table: str) -> None:
    heads, *rows = _small(table)
    assert rows
    for row in rows:
        for head, cell in zip(heads, row, strict=True):
            if head in ("wrong PASS", "wrong FAIL", "PASS with the gate"):
                assert _share(cell) <= most(SMALL), (head, row)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_plans_are_wrong_no_more_often_than_they_may() -> None:
    _, *rows = TABLES["plans"](SMALL)
    for row in rows:
        assert max(map(_share, row[3:5])) <= most(SMALL, standard_errors=3), row


@pytest.mark.parametrize("table", ["looks", pytest.param("unequal counts", marks=pytest.mark.slow)])
def test_without_the_guards_they_were(table: str) -> None:
    heads, *rows = _small(table)
    before = [at for at, head in enumerate(heads) if head.endswith("before")]
    assert max(_share(row[at]) for row in rows for at in before) > most(SMALL), (
        "or nothing is guarded against"
    )


def test_the_gate_on_stalls_passes_none_that_stalls_too_often() -> None:
    _, *rows = TABLES["stall gate"](SMALL)
    for runs, share, passed, failed in rows:
        if _share(share) >= 0.1:
            assert _share(passed) <= most(SMALL), (runs, share)
        if _share(share) <= 0.1:
            assert _share(failed) <= most(SMALL), (runs, share)


def test_what_moved_on_a_busy_machine_is_told_by_four_runs() -> None:
    _, *rows = TABLES["busy machine"](SMALL)
    for row in rows:
        assert _share(row[-1]) >= 0.95, row


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_number_of_further_runs_is_right() -> None:
    """Within 5 points in the full form; here within 5 and two standard errors."""
    _, *rows = TABLES["forecast looks"](3 * SMALL)
    for row in rows:
        given = 3 * SMALL * _share(row[2])
        assert abs(_share(row[-1]) - 0.8) <= 0.05 + 2 * (0.16 / given) ** 0.5, row


@pytest.mark.slow
def test_the_bound_within_a_run_is_shown_where_it_holds() -> None:
    _, *rows = TABLES["coverage"](SMALL)
    for requests, _, _, shown, wrong in rows:
        if "average" not in requests:
            assert _share(wrong) <= 0.025 + 2 * (0.025 * 0.975 / SMALL) ** 0.5, requests
        if requests.startswith("one stall") and not shown.startswith(("9", "100")):
            assert _share(shown) == 0, "one stall, or three, bound nothing"


@pytest.mark.parametrize("table", TABLES)
def test_the_document_has_every_table(table: str) -> None:
    assert statistics_table(table)[0] == next(TABLES[table](1))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("table", TABLES)
def test_the_document_has_the_rates_that_come_out(table: str) -> None:
    _, *rows = TABLES[table](FULL)
    _, *stated = statistics_table(table)
    assert len(stated) == len(rows)
    for documented, row in zip(stated, rows, strict=True):
        assert _shares(documented) == pytest.approx(_shares(row), abs=3.0), documented


def _shares(row: list[str]) -> list[float]:
    return [float(each) for each in re.findall(r"([\d.]+) %", " ".join(row))]


def _share(cell: str) -> float:
    return float(cell.removesuffix(" %")) / 100
