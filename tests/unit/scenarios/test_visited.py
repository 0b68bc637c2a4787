"""What visits felt: outages, gaps and the first good page, from instants and answers."""

import pytest

from plimsoll.scenarios.running.visits import (
    MAINTENANCE,
    Outage,
    OutageFigures,
    Visit,
    find_outages,
    join_outages,
    measure_outages,
)

MS = 1_000_000
KINDS = {".": "none", "m": MAINTENANCE, "x": "http_error", "t": "timeout"}


def visits(drawn: str, took_ms: dict[int, int] | None = None) -> list[Visit]:
    """One visit each 100 ms, a letter each; answers took 10 ms, or as `took_ms` has it by place."""
    return [
        Visit(
            "/",
            at * 100 * MS,
            at * 100 * MS,
            (at * 100 + (took_ms or {}).get(at, 10)) * MS,
            200 if letter == "." else 503,
            KINDS[letter],
        )
        for at, letter in enumerate(drawn)
    ]


def ms(start: int, stop: int | None, maintenance: int) -> Outage:
    return Outage(start * MS, None if stop is None else stop * MS, maintenance * MS)


OUTAGES = [
    ("....", [], "a site that is always good"),
    ("..mm..", [ms(200, 400, 200)], "maintenance, from the first bad visit to the first good one"),
    ("..xx..", [ms(200, 400, 0)], "an error is no maintenance"),
    ("..mmxt..", [ms(200, 600, 200)], "both, one after the other"),
    (".m.m.", [ms(100, 200, 100), ms(300, 400, 100)], "every second page is out"),
    ("..mm", [ms(200, None, 200)], "it is not over when the visits end"),
    ("mm..", [ms(0, 200, 200)], "it was out from the beginning"),
    ("", [], "no visit at all"),
]


@pytest.mark.parametrize(("drawn", "expected", "why"), OUTAGES, ids=[row[2] for row in OUTAGES])
def test_outages_lie_between_due_instants(drawn: str, expected: list[Outage], why: str) -> None:
    assert find_outages(visits(drawn), len(drawn) * 100 * MS) == expected, why
    assert find_outages(reversed(visits(drawn)), len(drawn) * 100 * MS) == expected, (
        "whatever order they ended in"
    )


FELT = [
    (
        ".....",
        {},
        (0, 0, 100, None),
        "nothing: the gap is that of the visits, and no page was the first again",
    ),
    ("..mm..", {}, (200, 200, 300, 360), "the first good page came 10 ms after it was due"),
    ("..mm..", {4: 150}, (200, 200, 400, 460), "it was slow, and the one after it was there first"),
    ("..tt..", {2: 9000, 3: 9000}, (200, 0, 300, 360), "time-outs count where they were due"),
    (".....", {2: 260}, (0, 0, 200, None), "a slow page is no outage, and a gap"),
]


@pytest.mark.parametrize(("drawn", "took", "expected", "why"), FELT, ids=[row[3] for row in FELT])
def test_figures(
    drawn: str, took: dict[int, int], expected: tuple[float, float, float | None, float | None], why: str
) -> None:
    found = measure_outages(visits(drawn, took), since_ns=50 * MS, end_ns=len(drawn) * 100 * MS)
    said = (found.outage_ms, found.maintenance_ms, found.longest_gap_ms, found.first_good_ms)
    assert said == expected, why
    assert found.is_over


def test_an_outage_that_is_not_over_has_no_first_good_page_and_a_gap_to_the_end() -> None:
    found = measure_outages(visits("..mm"), since_ns=0, end_ns=1000 * MS)
    assert found == OutageFigures(800, 800, 890, None, 1000 * MS, is_over=False)


def test_no_good_page_is_no_figure_of_gaps() -> None:
    assert measure_outages(visits("mm"), 0, 200 * MS).longest_gap_ms is None


def test_outages_close_to_one_another_are_one_episode() -> None:
    found = find_outages(visits(".m.m......m."), 1200 * MS)
    assert join_outages(found, 1200 * MS, apart_ns=500 * MS) == [(100 * MS, 400 * MS), (1000 * MS, 1100 * MS)]
    assert join_outages(found, 1200 * MS, apart_ns=700 * MS) == [(100 * MS, 1100 * MS)]
    assert join_outages([], 0, 1) == []
