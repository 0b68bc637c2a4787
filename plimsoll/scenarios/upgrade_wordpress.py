"""The core upgrade of WordPress: presses the button, times every phase, and verifies the result.

A failed upgrade has status 200 as well, and "updated successfully" can stand before the end of the database's
part. So only a site that runs its new version, with a database to match, counts as a success.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

import gevent

from plimsoll.rundir.events import PHASE, PHASES_UNKNOWN
from plimsoll.scenarios.running.client import Reply, SiteClient, StepFailedError, StepFailure
from plimsoll.scenarios.running.clonelist import credentials
from plimsoll.scenarios.running.locustfile import ScenarioUser, locustfile, on_locust
from plimsoll.scenarios.running.visits import Visits, find_page_failure
from plimsoll.scenarios.settings import UpgradeWordpressSettings
from plimsoll.scenarios.wordpress.account import ANYWHERE, expect_logged_in, log_in, rest_address
from plimsoll.scenarios.wordpress.upgrade import (
    HELD_BACK,
    NOT_UNDERSTOOD,
    Offer,
    Phase,
    PhaseMark,
    UpgradeReply,
    choose_offer,
    describe_state,
    find_database_failure,
    find_front_failure,
    find_offer_failure,
    find_upgrade_failure,
    read_database_page,
    same_version,
    shown_version,
)

ABOUT = {
    "does": "presses the button of the core upgrade, times every phase, and verifies the result",
    "needs": "an administrator's account on a WordPress that is offered a newer version",
    "changes": "upgrades WordPress: once a clone",
}

# PHP may keep a file of the former version compiled for so long (opcache.revalidate_freq).
_STALE_S = 10
_FEED = "//link[@rel='alternate'][@type='application/rss+xml']/@href"
_NEWEST = {"per_page": "1", "_fields": "link"}


class UpgradeWordpress(ScenarioUser):
    """Upgrades WordPress once."""

    scenario = "upgrade-wordpress"
    settings_type = UpgradeWordpressSettings

    def begin(self) -> None:
        """Log in."""
        log_in(self.site, credentials(self.settings))

    def iterate(self, number: int) -> None:
        """Do the whole upgrade."""
        try:
            self._upgrade()
        except StepFailedError as error:
            raise StepFailedError(error.step, error.kind, error.detail, hopeless=True) from None

    def _upgrade(self) -> None:
        offer = self._offer()
        with Visits(self.settings, self.session.writer, front_pages, self.site) as visits:
            pressed_ns = time.monotonic_ns()
            try:
                total_ms = self._press(offer)
                total_ms += self._finish_database()
                self._verify(offer)
            except StepFailedError as error:
                raise StepFailedError(
                    error.step, error.kind, f"{error.detail}; {self._describe_site_after()}"
                ) from None
            self.measure("upgrade", total_ms)
            visits.wait_until_good(pressed_ns, lambda name, ms, at: self.measure(name, ms, ended_ns=at))

    def _offer(self) -> Offer:
        """Return the version to install. Nothing is changed so far."""
        wanted = self.settings.from_version, self.settings.to_version
        page = self.site.get_page(
            "update page", "wp-admin/update-core.php", check=lambda reply: find_offer_failure(reply, *wanted)
        )
        offer = choose_offer(page, *wanted)
        if isinstance(offer, StepFailure):
            raise StepFailedError("update page", offer.kind, offer.detail)
        self.session.writer.event(
            "upgrade", phase="offer", from_version=shown_version(page), to_version=offer.version
        )
        return offer

    def _press(self, offer: Offer) -> float:
        """Press the button and read the reply as it comes; return the duration in ms."""
        pressed_ns = time.monotonic_ns()
        upgrade = UpgradeReply(pressed_ns)
        try:
            self.site.post(
                "upgrade",
                offer.address,
                base=offer.address,
                data=list(offer.fields),
                headers={"Accept-Encoding": "identity"},  # a compressor would hold lines back
                on_chunk=lambda t_ns, piece: self._mark(upgrade.take(t_ns, piece)),
                check=expect_logged_in(
                    lambda reply: find_upgrade_failure(upgrade, upgrade.whole_reply(reply))
                ),
            )
        finally:
            self._mark(upgrade.end(time.monotonic_ns()))
            if upgrade.is_held_back:
                self.session.writer.event(PHASES_UNKNOWN, detail=HELD_BACK)
        if upgrade.has_reliable_times:
            for phase in upgrade.phases:
                if phase.stop_ns > phase.start_ns:  # else both lines came at once: too short to be seen
                    self.measure(f"{PHASE}{phase.name}", _duration_ms(phase), ended_ns=phase.stop_ns)
        elif not upgrade.is_held_back:
            self.session.writer.event(PHASES_UNKNOWN, detail=NOT_UNDERSTOOD)
        return (upgrade.phases[-1].stop_ns - pressed_ns) / 1e6

    def _finish_database(self) -> float:
        """Press the database's button if WordPress left it undone; return the duration in ms."""
        step, path = "verify: database", "wp-admin/upgrade.php"
        shown = self.site.get(step, path, check=find_database_failure)
        button = read_database_page(shown).press
        if button is None:
            return 0.0
        name = "database-pressed"
        start_ns = time.monotonic_ns()
        self._mark([PhaseMark(name, "start", start_ns)])
        self.site.get("database", button, base=shown.url)
        phase = Phase(name, start_ns, time.monotonic_ns())
        self._mark([PhaseMark(name, "stop", phase.stop_ns)])
        self.measure(f"{PHASE}{name}", _duration_ms(phase), ended_ns=phase.stop_ns)
        self.site.get(step, path, check=lambda reply: find_database_failure(reply, pressed=True))
        return _duration_ms(phase)

    def _verify(self, offer: Offer) -> None:
        step = "verify: version"
        for _ in range(_STALE_S):
            about = self.site.get(step, "wp-admin/about.php", check=expect_logged_in())
            version = shown_version(about)
            if version and same_version(version, offer.version):
                break
            gevent.sleep(1)
        else:
            error = StepFailedError(step, "wrong_version", f"WordPress is {version}, not {offer.version}")
            self.fault(error)
            raise error
        self.site.get_page("verify: front page", "", check=find_front_failure)
        self.session.writer.event("upgrade", phase="verified", version=version)

    def _describe_site_after(self) -> str:
        """Return a description of the site after a failed upgrade."""
        seen: list[str] = []

        def look(reply: Reply) -> StepFailure | None:
            seen.append(describe_state(reply))
            return None

        try:
            self.site.get("state", "wp-admin/about.php", check=look)
        except StepFailedError as error:
            seen.append(f"the site does not answer now ({error.kind.replace('_', ' ')})")
        self.session.writer.event("upgrade", phase="state", detail=seen[-1])
        return seen[-1]

    def _mark(self, marks: Iterable[PhaseMark]) -> None:
        writer = self.session.writer
        for each in marks:
            writer.event(f"{PHASE}{each.name}", phase=each.phase, t_ns=writer.since_start_ns(each.t_ns))


def front_pages(site: SiteClient) -> list[str]:
    """Return the front page, and the newest article and the feed where the site names them."""

    def post() -> Any:
        return site.get("visit", rest_address(ANYWHERE, "wp/v2/posts", _NEWEST)).data[0]["link"]

    def feed() -> Any:
        return site.get("visit", "", check=find_page_failure).page.xpath(_FEED)[0]

    return [site.base, *_find_urls(post), *_find_urls(feed)]


def _find_urls(find: Callable[[], Any]) -> list[str]:
    try:
        return [str(find())]
    except (StepFailedError, LookupError, TypeError):
        return []


def _duration_ms(phase: Phase) -> float:
    return (phase.stop_ns - phase.start_ns) / 1e6


run = on_locust(UpgradeWordpress)


locustfile(UpgradeWordpress)
