"""What visitors and members feel while something is done to a site: visits, measures, events."""

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urljoin

from pydantic import Field

from plimsoll.rundir.events import PROBES
from plimsoll.rundir.names import PROBES_FILE
from plimsoll.rundir.writer import RunWriter
from plimsoll.scenarios.running.client import SiteClient, StepFailedError
from plimsoll.scenarios.running.prober import Ask, Prober, ProbesFile, asker
from plimsoll.scenarios.running.settings import IdleKeys, ScenarioSettings, origin
from plimsoll.scenarios.running.visited import GOOD, Felt, episodes, felt, outages

VISITORS, MEMBERS = "visitors", "members"
_GOOD_S, _MOST_S = 2.0, 30.0
_APART_NS = 1_000_000_000
_CLOSED = 503
_CONNECTIONS = 20  # more than are under way

Measure = Callable[[str, float, int], None]  # name, ms, when what it tells of ended
Find = Callable[[SiteClient], list[str]]  # the pages that visitors of a site of this kind read


class ProbedSettings(ScenarioSettings):
    """Settings of a scenario beside which the site is visited."""

    idle_keys: ClassVar[IdleKeys] = [
        ("probe_pages", lambda its: not its.probe_ms, "there are no visits: give a --probe-ms above 0"),
    ]

    probe_ms: int = Field(
        100,
        ge=0,
        le=60_000,
        description="Milliseconds from one visit to the next meanwhile, of each kind of visitor; 0: none.",
    )
    probe_pages: str | None = Field(
        None, description="Paths to visit, by commas; default: some pages that the site's front page names."
    )


class Visits:
    """Visits to a site from here to the end of the block, by visitors and by members.

    None of their requests is one of the scenario's: they have a file of their own.
    """

    def __init__(
        self,
        settings: ProbedSettings,
        writer: RunWriter,
        find: Find,
        member: SiteClient | None = None,
        *,
        closed_before: bool = False,
    ) -> None:
        """Visit the pages that `find` finds, unless the settings name others; as `member` is logged in, too.

        `closed_before`: a page that is closed (503) from the beginning is visited all the same, and has been
        out since then.
        """
        self._writer, self._find, self._closed_before = writer, find, closed_before
        self._interval_ms, self._named = settings.probe_ms, settings.probe_pages
        self._clients = {VISITORS: SiteClient(settings, lambda _: None, _CONNECTIONS)}
        if member is not None:
            self._clients[MEMBERS] = SiteClient(settings, lambda _: None, _CONNECTIONS)
            self._clients[MEMBERS].take_cookies(member)
        self._prober: Prober | None = None
        self._told = False
        self._file: ProbesFile | None = None
        self._close = ExitStack()

    def __enter__(self) -> Self:
        for client in self._clients.values():
            self._close.callback(client.close)
        if not self._interval_ms:
            return self
        asks = {who: asker(client) for who, client in self._clients.items()}
        if pages := self._good_pages(asks):
            self._file = ProbesFile(self._writer.directory / PROBES_FILE, self._writer.since_start_ns)
            self._close.callback(self._file.close)
            prober = Prober(asks, pages, self._interval_ms * 1_000_000, self._file.keep)
            self._prober = self._close.enter_context(prober)
            self._pages = pages
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the visits. Where the block failed, its outages are events, and no measures."""
        try:
            if self._prober and not self._told and isinstance(error, Exception):
                self._prober.stop()
                self._tell(self._prober)
        finally:
            self._close.close()

    def await_good(self, since_ns: int, measure: Measure) -> None:
        """Wait until the site is good again for everybody, and record what everybody felt since `since_ns`.

        Where it is not within half a minute, an outage counts to there, and an event says so.
        """
        if self._prober is None:
            return
        self._prober.await_good(_GOOD_S, _MOST_S)
        self._prober.stop()
        self._tell(self._prober)
        for who, visits in self._prober.visits.items():
            found = felt(visits, since_ns, self._prober.end_ns)
            self._measured(who, found, measure)
            if not found.is_over:
                self._writer.event(PROBES, phase="not good again", who=who, waited_s=_MOST_S)

    def _good_pages(self, asks: dict[str, Ask]) -> list[str]:
        """Return the pages that everybody gets before anything is done."""
        good = []
        for page in self._asked_for() or self._reachable():
            said = {who: ask(page) for who, ask in asks.items()}
            bad: dict[str, Any] = {
                who: f"{error} ({status})"
                for who, (status, error) in said.items()
                if error != GOOD and not (self._closed_before and status == _CLOSED)
            }
            if bad:
                self._writer.event(PROBES, phase="left out", page=page, **bad)
            else:
                good.append(page)
        return good

    def _asked_for(self) -> list[str]:
        site = self._clients[VISITORS]
        return [site.url("visit", page.strip()) for page in (self._named or "").split(",") if page.strip()]

    def _reachable(self) -> list[str]:
        site = self._clients[VISITORS]
        try:
            pages = [urljoin(site.base, page) for page in self._find(site)]
        except (StepFailedError, LookupError, TypeError):
            pages = []
        return [page for page in dict.fromkeys([*pages] or [site.base]) if origin(page) == origin(site.base)]

    def _tell(self, prober: Prober) -> None:
        self._told = True
        writer = self._writer
        every = [visit for visits in prober.visits.values() for visit in visits]
        further: dict[str, Any] = {who: len(visits) for who, visits in prober.visits.items()}
        further["late_ms"] = max(((one.start_ns - one.due_ns) / 1e6 for one in every), default=None)
        writer.event(PROBES, phase="told", pages=self._pages, interval_ms=self._interval_ms, **further)
        if self._file and self._file.broken:
            writer.event(PROBES, phase="not kept", detail=self._file.broken)
        for who, visits in prober.visits.items():
            for start_ns, stop_ns in episodes(outages(visits, prober.end_ns), prober.end_ns, _APART_NS):
                writer.event(f"outage: {who}", phase="start", t_ns=writer.since_start_ns(start_ns))
                writer.event(f"outage: {who}", phase="stop", t_ns=writer.since_start_ns(stop_ns))

    def _measured(self, who: str, found: Felt, measure: Measure) -> None:
        measure(f"outage: {who}", found.outage_ms, found.ended_ns)
        if not self._closed_before:  # a forum's closed page is in its own words: an error as any other
            measure(f"maintenance: {who}", found.maintenance_ms, found.ended_ns)
        if found.longest_gap_ms is not None:
            measure(f"longest gap: {who}", found.longest_gap_ms, found.ended_ns)
        if found.first_good_ms is not None:
            measure(f"first good page: {who}", found.first_good_ms, found.ended_ns)
