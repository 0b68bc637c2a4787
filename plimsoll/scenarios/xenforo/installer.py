"""The upgrade through its pages: log in, start, continue until there is no form left.

It knows nothing of HTTP: its caller passes in `fetch`, and a test also the clock.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urljoin

from plimsoll.scenarios.running.client import Reply, StepFailedError, Trouble
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.xenforo.form import Form, form_of, seen_text, text_at
from plimsoll.scenarios.xenforo.judge import UpgradeStage, is_locked, judge
from plimsoll.scenarios.xenforo.names import StepNames
from plimsoll.scenarios.xenforo.pages import Pages

Check = Callable[[Reply], Trouble | None]
_REDIRECTS = 5
_LOCK_PAUSE_S = 1.0


class Fetch(Protocol):
    """Sends one form (or, without fields, opens an address) under the name of a step.

    Returns the reply, redirects not followed. Raises StepFailedError for what `check` finds.
    """

    def __call__(self, step: str, form: Form, check: Check) -> Reply:
        """Send it."""
        ...


@dataclass
class UpgradeTimes:
    """Times of an upgrade; `phases_s` is by the title of the page that led to a page."""

    pages: int = 0
    total_s: float = 0.0
    lock_wait_s: float = 0.0
    phases_s: dict[str, float] = field(default_factory=dict)


class UpgradeStopped(Exception):  # noqa: N818 it is not an error
    """The run was interrupted between two pages; a later run can continue the upgrade."""


@dataclass
class Walk:
    """One upgrade. `site` is the target, with a slash at its end; `stopped` is asked before each page."""

    pages: Pages
    site: str
    fetch: Fetch
    stopped: Callable[[], bool] = lambda: False
    pause: Callable[[float], None] = time.sleep
    clock_s: Callable[[], float] = time.monotonic

    def upgrade(self, account: Credentials) -> UpgradeTimes:
        """Go through the whole upgrade. Raises StepFailedError or UpgradeStopped."""
        page = self._logged_in(account)
        if self.pages.start.path:
            page = self._open("open upgrade", self.pages.start.path, UpgradeStage.START)
        times, names = UpgradeTimes(), StepNames()
        begun_s = self.clock_s()
        # An upgrade that was interrupted may show its continue form at once.
        if not form_of(page, self.pages.continue_.form) or form_of(page, self.pages.start.form):
            page = self._started(page, times)
        begun_s += times.lock_wait_s
        advance = Advance(self.pages.limits.same_page)
        while form := form_of(page, self.pages.continue_.form):
            name = names.name(text_at(page, self.pages.title))
            advance.see(name, form, page)
            page, took_s = self._continued(name, form)
            times.pages += 1
            times.phases_s[name] = times.phases_s.get(name, 0.0) + took_s
            if times.pages >= self.pages.limits.pages and form_of(page, self.pages.continue_.form):
                raise StepFailedError(
                    f"continue: {name}", "upgrade_failed", f"no end after limits.pages ({times.pages}) pages"
                )
        times.total_s = self.clock_s() - begun_s
        return times

    def _logged_in(self, account: Credentials) -> Reply:
        page = self._open("open installer", self.pages.path, UpgradeStage.OPEN)
        login = self.pages.login
        form = form_of(page, login.form)
        if form is None:
            return page
        names = {login.user_field: account.user, login.password_field: account.password}
        return self._sent("log in", form.with_fields(names | login.fields), UpgradeStage.LOGIN)

    def _started(self, page: Reply, times: UpgradeTimes) -> Reply:
        """Send the start form; while another upgrade is running, again, for as long as the settings say."""
        form = form_of(page, self.pages.start.form)
        if form is None:
            raise StepFailedError("start", "check_failed", "start.form is not on the page after the login")
        form = form.with_fields(self.pages.start.fields)
        begun_s, waited_s = self.clock_s(), 0.0
        while True:
            patient = waited_s < self.pages.limits.lock_wait_s
            started = self._sent("start", form, UpgradeStage.UPGRADE, may_be_locked=patient)
            if not (patient and is_locked(self.pages, started)):
                times.lock_wait_s = waited_s
                return started
            self.pause(_LOCK_PAUSE_S)
            waited_s = self.clock_s() - begun_s

    def _continued(self, name: str, form: Form) -> tuple[Reply, float]:
        begun_s = self.clock_s()
        page = self._sent(f"continue: {name}", form, UpgradeStage.UPGRADE)
        return page, self.clock_s() - begun_s

    def _open(self, step: str, path: str, stage: UpgradeStage) -> Reply:
        return self._sent(step, Form(urljoin(self.site, path.lstrip("/")), "GET", ()), stage)

    def _sent(self, step: str, form: Form, stage: UpgradeStage, *, may_be_locked: bool = False) -> Reply:
        """Send a form and follow where it leads, each a request of its own under the same name."""

        def check(reply: Reply) -> Trouble | None:
            found = judge(self.pages, reply, stage)
            return None if may_be_locked and found and found.kind == "upgrade_locked" else found

        for _ in range(_REDIRECTS):
            if self.stopped():
                raise UpgradeStopped
            reply = self.fetch(step, form, check)
            if not reply.location:
                return reply
            form = Form(urljoin(reply.url, reply.location), "GET", ())
        raise StepFailedError(
            step, "check_failed", f"more than {_REDIRECTS} redirects, the last to {form.address}"
        )


class Advance:
    """Notices an upgrade that shows the same page again and again."""

    def __init__(self, most: int) -> None:
        self._most, self._last, self._times = most, (Form("", "", ()), ""), 0

    def see(self, name: str, form: Form, page: Reply) -> None:
        """Look at one more page. Raises StepFailedError if form and text were the same too often."""
        now = (form.without_token(), seen_text(page.page))
        self._times = self._times + 1 if now == self._last else 1
        self._last = now
        if self._times >= self._most:
            raise StepFailedError(
                f"continue: {name}",
                "upgrade_failed",
                f"the upgrade does not advance: the same page {self._times} times (limits.same_page)",
            )
