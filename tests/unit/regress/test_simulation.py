"""The nightly look errs, and finds, as often as docs/statistics.md says.

PLIMSOLL_SLOW=1 simulates its tables anew, which takes half an hour on one core.
"""

import re

import numpy as np
import pytest

from plimsoll.analysis.regress import changes
from plimsoll.analysis.regress.changes import find_changes
from tests.support.programs import DOCS
from tests.unit.regress.regress_study import (
    PLAIN,
    TABLES,
    alarms,
    alike,
    any_of,
    delays,
    drifting,
    fails,
    false_alarms,
    normal,
    series,
    without_our_test,
)

DOC = (DOCS / "statistics.md").read_text(encoding="utf-8")
FEW = 20


@pytest.mark.slow
@pytest.mark.parametrize("noise", PLAIN, ids=[noise.name for noise in PLAIN])
def test_quiet_nights_are_quiet(noise: object) -> None:
    assert false_alarms(noise, FEW) == 0  # type: ignore[arg-type]


def test_the_document_promises_five_percent_for_quiet_nights() -> None:
    stated = dict(_rows("quiet"))
    for noise in PLAIN:
        any_series, any_gate = stated[noise.name][1], stated[noise.name][3]
        assert any_series <= 5
        assert any_gate <= 5


@pytest.mark.slow
def test_otava_alone_would_cry_wolf() -> None:
    with without_our_test():
        assert false_alarms(alike(0.5, 0.1), FEW) > 0.5
    assert false_alarms(alike(0.5, 0.1), FEW) <= 0.1


@pytest.mark.parametrize(("ratio", "soon"), [(1.3, 8), (1.5, 5), (2.0, 4)])
def test_regressions_are_found_and_soon(ratio: float, soon: int) -> None:
    found = delays(normal(0.1), ratio, FEW)
    assert len(found) >= FEW - 1
    assert np.median(found) <= soon


def test_a_gate_does_not_fail_on_quiet_nights_and_fails_on_slow_ones() -> None:
    assert fails(normal(0.1), 5) == []
    assert len(fails(normal(0.1), 5, ratio=1.5)) == 5


@pytest.mark.slow
def test_a_drift_that_adds_up_is_an_alarm_and_a_small_one_is_none() -> None:
    random = np.random.default_rng(4)
    assert sum(alarms(drifting(5).of(random, 100)) is not None for _ in range(FEW)) <= 1


def test_neither_order_nor_size_of_the_figures_matters_to_the_test() -> None:
    quiet = normal(0.1).of(np.random.default_rng(5), 60)
    quiet[50:] += 0.5
    (change,) = find_changes(list(quiet))
    (larger,) = find_changes(list(quiet + 7))
    (mirrored,) = find_changes(list(-quiet))
    assert change.at == larger.at == mirrored.at == 50
    assert change.p == pytest.approx(larger.p) == pytest.approx(mirrored.p)


def test_a_constant_series_has_no_change_and_a_constant_step_has_one() -> None:
    assert find_changes([1.0] * 40) == []
    (change,) = find_changes([1.0] * 30 + [1.5] * 5)
    assert (change.at, change.after_count) == (30, 5)


def test_of_many_nights_the_last_are_looked_at() -> None:
    logs = normal(0.1).of(np.random.default_rng(6), 400)
    logs[390:] += 0.6
    whole = series(logs)
    found = [change for change in find_changes(whole.scaled) if changes.is_sure(change, 400)]
    assert [change.at for change in found] == [390]


UNREPORTED = [
    ("nothing was reported", [30], [], [30]),
    ("it was reported", [30], [30], []),
    ("it was reported, and lies a little apart now", [32], [30], []),
    ("a second one while the first is reported", [30, 36], [30], [36]),
    ("both were reported", [30, 36], [31, 37], []),
    ("what was reported is long ago", [60], [30], [60]),
    ("one reported one stands for one", [29, 31], [30], [31]),
]


@pytest.mark.parametrize(
    ("what", "places", "reported", "left"), UNREPORTED, ids=[row[0] for row in UNREPORTED]
)
def test_what_was_reported_is_not_reported_again(
    what: str, places: list[int], reported: list[int], left: list[int]
) -> None:
    assert changes.select_unreported(places, reported) == left, what


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_the_document_has_the_rates_that_come_out(table: str) -> None:
    rows, histories = TABLES[table]
    _, *found = rows(histories)
    stated = _rows(table)
    assert [name for name, _ in stated] == [row[0] for row in found]
    for (name, said), row in zip(stated, found, strict=True):
        assert said == pytest.approx(_figures(row[1:]), abs=2.0), name


def test_any_of_eight_is_what_it_says() -> None:
    assert any_of(0.01) == pytest.approx(1 - 0.99**8)


def _rows(table: str) -> list[tuple[str, list[float]]]:
    part = DOC.partition(f"<!-- {table} nights -->")[2].strip().partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()[2:]]
    return [(row[0], _figures(row[1:])) for row in rows]


def _figures(cells: list[str]) -> list[float]:
    return [float(figure) for cell in cells for figure in re.findall(r"[\d.]+", cell)]
