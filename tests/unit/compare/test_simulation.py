"""Verdicts on simulated experiments come at the rates that docs/statistics.md states.

PLIMSOLL_SLOW=1 simulates all of its tables anew, which takes a minute on one core.
"""

import math
import re

import pytest

from tests.support.docs import statistics_table
from tests.verdicts.drifts import COMPARISONS, DRIFTS, NOISES, TABLES, World, pooled_alarms, rates, wrong
from tests.verdicts.worlds import fewer_arrangements

FEW = 400
ALPHA = 0.05
# Four standard errors: these tests draw the same numbers each time, but not the same everywhere.
MOST = ALPHA + 4 * math.sqrt(ALPHA * (1 - ALPHA) / FEW)
WAVE = next(name for name in DRIFTS if "ABBA" in name)


@pytest.mark.parametrize("drift", DRIFTS)
@pytest.mark.parametrize("repeats", [4, 8])
def test_alarms_are_false_no_more_often_than_they_may(drift: str, repeats: int) -> None:
    at_the_limit = rates(World(repeats, drift), 1.0, FEW)
    assert at_the_limit["FAIL"] <= MOST
    assert at_the_limit["PASS"] <= MOST
    assert min(at_the_limit["lower"], at_the_limit["upper"]) >= 1 - MOST
    assert rates(World(repeats, drift), 1.1, FEW)["FAIL"] <= 0.01, "A/A with the default limit"


@pytest.mark.parametrize("repeats", [4, 8])
def test_a_wave_as_long_as_the_order_takes_an_order_that_is_drawn(repeats: int) -> None:
    assert rates(World(repeats, WAVE, order="abba"), 1.0, FEW)["FAIL"] > MOST, (
        "or the document warns of nothing"
    )
    assert rates(World(repeats, WAVE), 1.0, FEW)["FAIL"] <= MOST


@pytest.mark.parametrize("noise", NOISES)
def test_three_gates_are_wrong_together_no_more_often_than_one(noise: str) -> None:
    assert max(wrong(World(8, noise=noise, gates=3), FEW)) <= MOST


def test_differences_that_are_there_are_found() -> None:
    assert rates(World(6, ratio=1.3), 1.1, FEW)["FAIL"] > 0.8
    assert rates(World(6, ratio=0.9), 1.1, FEW)["PASS"] > 0.9
    steady = next(name for name in DRIFTS if "steady" in name)
    dealt = rates(World(8, steady), 1.1, FEW)["PASS"]
    alike = rates(World(8, steady, order="abba"), 1.1, FEW, alike=True)["PASS"]
    assert dealt > 2 * alike, "drift must not widen the test"


def test_pooling_requests_makes_false_alarms() -> None:
    assert pooled_alarms(0.0, FEW) <= MOST
    assert pooled_alarms(0.2, FEW) > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_the_document_has_the_rates_that_come_out(table: str) -> None:
    with fewer_arrangements():
        stated, found = _rows(statistics_table(table)), _rows(list(TABLES[table](COMPARISONS)))
    assert [row[0] for row in stated] == [row[0] for row in found]
    for (name, shares), (_, simulated) in zip(stated, found, strict=True):
        assert shares == pytest.approx(simulated, abs=3.0), name


@pytest.mark.parametrize("table", TABLES)
def test_the_document_has_every_table(table: str) -> None:
    assert statistics_table(table)[0] == next(TABLES[table](1))


def _rows(table: list[list[str]]) -> list[tuple[str, list[float]]]:
    """Rows by what they are of; their percentages."""
    found = []
    for cells in table[1:]:
        shares = [float(cell.removesuffix(" %")) for cell in cells if re.fullmatch(r"[\d.]+ %", cell)]
        found.append((" ".join(cells[: len(cells) - len(shares)]), shares))
    return found
