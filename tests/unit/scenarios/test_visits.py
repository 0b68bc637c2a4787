"""Visits are due on time, whatever answers take; outages, gaps and the first good page are what they felt."""

import csv
import heapq
import itertools
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent.event import Event

from plimsoll.common.errors import OutputError
from plimsoll.scenarios.running.client import SiteClient
from plimsoll.scenarios.running.settings import ScenarioSettings
from plimsoll.scenarios.running.visits import (
    COLUMNS,
    MAINTENANCE,
    MOST_UNDER_WAY,
    Outage,
    OutageFigures,
    Prober,
    ProbesFile,
    Visit,
    find_outages,
    join_outages,
    measure_outages,
    page_fetcher,
)
from tests.support.servers import serve_wsgi

MS = 1_000_000


class FakeClock:
    """A clock that moves on when all greenlets wait for it: hours pass at once, and none is late."""

    def __init__(self) -> None:
        self._now_ns = 0
        self._waiting: list[tuple[int, int, Event]] = []
        self._order = itertools.count()

    def now_ns(self) -> int:
        return self._now_ns

    def sleep(self, seconds: float) -> None:
        event = Event()
        heapq.heappush(self._waiting, (self._now_ns + round(seconds * 1e9), next(self._order), event))
        event.wait()

    def spawn(self, act: Callable[..., None], *args: Any) -> Any:
        return gevent.spawn(act, *args)

    def run_until(self, until_ns: int) -> None:
        """Let all happen that is due by then."""
        while True:
            for _ in range(10):
                gevent.sleep(0)
            if not self._waiting or self._waiting[0][0] > until_ns:
                break
            self._now_ns, _, event = heapq.heappop(self._waiting)
            event.set()
        self._now_ns = until_ns


def taking(clock: FakeClock, seconds: Callable[[int], float], good: Callable[[int], bool]) -> Any:
    """A site whose answer to what is asked at some ms takes so long, and is good or not."""

    def ask(page: str) -> tuple[int, str]:
        at_ms = clock.now_ns() // MS
        clock.sleep(seconds(at_ms))
        return (200, "none") if good(at_ms) else (503, "upgrade_locked")

    return ask


def test_slow_answers_delay_no_later_visit() -> None:
    clock, kept = FakeClock(), []
    stalled = taking(clock, lambda at_ms: 5.0 if 300 <= at_ms < 700 else 0.01, lambda _: True)
    with Prober({"visitors": stalled}, ["/", "/a"], 100 * MS, lambda *one: kept.append(one), clock) as prober:
        clock.run_until(1_950 * MS)
        assert len(prober.visits["visitors"]) == 16, "those of the stall are still under way"
        clock.run_until(6_050 * MS)
    visits = sorted((visit for _, visit in kept), key=lambda visit: visit.due_ns)
    assert {later.due_ns - before.due_ns for before, later in pairwise(visits)} == {100 * MS}
    assert all(visit.start_ns == visit.due_ns for visit in visits)
    assert [visit.page for visit in visits[:4]] == ["/", "/a", "/", "/a"]
    assert [(visit.done_ns - visit.due_ns) // MS for visit in visits[2:5]] == [10, 5000, 5000]


def test_visits_do_not_pile_up_before_a_site_that_is_slow() -> None:
    clock, kept = FakeClock(), []
    slow = taking(clock, lambda _: 9.0, lambda _: True)
    quick = taking(clock, lambda _: 0.01, lambda _: True)
    asks = {"members": slow, "visitors": quick}
    with Prober(asks, ["/"], 100 * MS, lambda who, visit: kept.append((who, visit)), clock):
        clock.run_until(8_000 * MS)
        assert {visit.error for who, visit in kept if who == "members"} == {"held_back"}
        assert {visit.error for who, visit in kept if who == "visitors"} == {"none"}, "each kind for itself"
        clock.run_until(20_000 * MS)
    members = sorted((visit for who, visit in kept if who == "members"), key=lambda visit: visit.due_ns)
    assert [visit.error for visit in members[:17]] == ["none"] * MOST_UNDER_WAY + ["held_back"]
    assert find_outages(members, 20_000 * MS) == [], "what was not sent says nothing"


def test_several_kinds_of_visitors_are_due_between_one_another() -> None:
    clock = FakeClock()
    quick = taking(clock, lambda _: 0.01, lambda _: True)
    with Prober({"visitors": quick, "members": quick}, ["/"], 100 * MS, lambda *_: None, clock) as prober:
        clock.run_until(290 * MS)
    due = {who: [visit.due_ns // MS for visit in visits] for who, visits in prober.visits.items()}
    assert due == {"visitors": [0, 100, 200], "members": [50, 150, 250]}


def test_it_waits_until_everybody_has_had_good_pages_for_a_while() -> None:
    clock, ended = FakeClock(), []
    fast = taking(clock, lambda _: 0.01, lambda _: True)
    out = taking(clock, lambda _: 0.01, lambda at_ms: at_ms >= 3000)
    with Prober({"visitors": fast, "members": out}, ["/"], 100 * MS, lambda *_: None, clock) as prober:

        def wait() -> None:
            prober.wait_until_good(2.0, 30.0)
            prober.stop()
            ended.append(clock.now_ns())

        gevent.spawn(wait)
        clock.run_until(10_000 * MS)
    assert 5000 * MS <= ended[0] <= 5300 * MS
    assert prober.end_ns <= ended[0]


def test_it_waits_no_longer_than_it_may() -> None:
    clock, ended = FakeClock(), []
    out = taking(clock, lambda _: 0.01, lambda _: False)
    with Prober({"members": out}, ["/"], 100 * MS, lambda *_: None, clock) as prober:

        def wait() -> None:
            prober.wait_until_good(2.0, 30.0)
            ended.append(clock.now_ns())

        gevent.spawn(wait)
        clock.run_until(60_000 * MS)
    assert 30_000 * MS <= ended[0] <= 30_100 * MS


@pytest.fixture
def server() -> Iterator[tuple[str, Event, list[str]]]:
    """A site; its page `/held` is answered when the test lets it. What it was asked, as it is asked."""
    held, asked = Event(), []

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        path = environ["PATH_INFO"]
        asked.append(f"{path} {environ.get('HTTP_COOKIE', '')}".strip())
        if path == "/held":
            held.wait()
        status, headers, body = {
            "/closed": ("503 Service Unavailable", [("Retry-After", "600")], b"Briefly unavailable"),
            "/broken": ("500 Internal Server Error", [], b"oh"),
            "/moved": ("302 Found", [("Location", "/")], b""),
            "/fatal": ("200 OK", [], b"<b>Fatal error</b>: x"),
        }.get(path, ("200 OK", [("Set-Cookie", "who=me; Path=/")], b"<p>a page</p>"))
        start(status, [*headers, ("Content-Length", str(len(body)))])
        return [body]

    with serve_wsgi(answer) as url:
        yield url, held, asked
        held.set()


@pytest.fixture
def site(server: tuple[str, Event, list[str]]) -> Iterator[SiteClient]:
    client = SiteClient(ScenarioSettings(target=server[0]), lambda _: None, 20)
    yield client
    client.close()


ANSWERS = [
    ("/", (200, "none"), "a page"),
    ("/closed", (503, "upgrade_locked"), "WordPress's maintenance page"),
    ("/broken", (500, "http_error"), "an error"),
    ("/moved", (302, "check_failed"), "a page that was there and now leads elsewhere"),
    ("/fatal", (200, "php_fatal"), "an error of status 200"),
    ("/held", (0, "timeout"), "no answer in time"),
    ("http://127.0.0.2:1/", (0, "check_failed"), "another host, which is not asked"),
]


@pytest.mark.parametrize(("page", "expected", "why"), ANSWERS, ids=[row[2] for row in ANSWERS])
def test_what_an_answer_is_to_a_visitor(
    site: SiteClient, page: str, expected: tuple[int, str], why: str
) -> None:
    assert page_fetcher(site, longest_s=0.3)(page) == expected, why


def test_many_wait_for_answers_at_once(site: SiteClient, server: tuple[str, Event, list[str]]) -> None:
    _, held, asked = server
    with Prober({"visitors": page_fetcher(site)}, ["/held"], 10 * MS, lambda *_: None) as prober:
        with gevent.Timeout(60):
            while len(asked) < 12:
                gevent.sleep(0.01)
        assert {visit.error for visit in prober.visits["visitors"]} <= {"held_back"}, "none has an answer yet"
        held.set()
        prober.stop()
    assert sum(visit.error == "none" for visit in prober.visits["visitors"]) >= 12
    assert {visit.error for visit in prober.visits["visitors"]} <= {"none", "held_back"}


def test_a_member_is_who_logged_in(site: SiteClient, server: tuple[str, Event, list[str]]) -> None:
    url, _, asked = server
    site.get("a step", "")
    member = SiteClient(ScenarioSettings(target=url), lambda _: None)
    member.take_cookies(site)
    assert page_fetcher(member)("/") == (200, "none")
    member.close()
    assert asked == ["/", "/ who=me"]


def test_each_visit_is_a_line_of_the_file(tmp_path: Path) -> None:
    file = ProbesFile(tmp_path / "probes.csv", lambda ns: ns - 1000)
    file.keep("visitors", Visit('/a,"b"\n\x1b[2J', 2000, 5000, 25_000, 503, "upgrade_locked"))
    with (tmp_path / "probes.csv").open(newline="") as read:  # a kill -9 would leave it so
        rows = list(csv.reader(read))
    file.close()
    assert rows[0] == list(COLUMNS)
    assert rows[1] == ["1000", "visitors", '/a,"b"\\x0a\\x1b[2J', "3", "20", "503", "upgrade_locked"]


def test_a_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="probes"):
        ProbesFile(tmp_path / "none" / "probes.csv", lambda ns: ns)


# Outages, from instants and answers.


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
