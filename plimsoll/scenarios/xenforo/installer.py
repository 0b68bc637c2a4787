"""An installer's pages: described by a YAML file, read, judged, walked through until there is no form left.

It knows nothing of HTTP: its caller passes in `fetch`, and a test also the clock. Most pages have status 200,
whatever is wrong.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Protocol
from urllib.parse import urljoin

from cssselect import SelectorError
from lxml.cssselect import CSSSelector
from lxml.html import HtmlElement
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from plimsoll.common.hostile import printable
from plimsoll.common.validation import parse_model, read_model
from plimsoll.scenarios.running.client import Reply, StepFailedError, StepFailure, find_failure, visible_text
from plimsoll.scenarios.running.clonelist import Credentials

_MANUAL = "docs/xenforo.md"
Check = Callable[[Reply], StepFailure | None]
_REDIRECTS = 5
_LOCK_PAUSE_S = 1.0

# Further words for a full disk, those of MariaDB and MySQL.
_FULL = re.compile(r"The table '[^']*' is full")
_MOST = 48  # of the 64 routes that a run can name; the others are the login's and what stands for the rest
_NUMBER = re.compile(r"\d[\d.,:/%]*")
OTHER = "other"
TOKEN = "_xfToken"  # noqa: S105 the name of a field
_HIDDEN = ("script", "style", "template", "noscript", "head")


class UpgradeStage(Enum):
    """The place in the upgrade at which a page is expected."""

    OPEN = "open"  # the installer's first page
    LOGIN = "login"  # what the login answers
    START = "start"  # what start.path answers
    UPGRADE = "upgrade"  # what the start form or a continue form answers


def _check_selector(value: str) -> str:
    try:
        CSSSelector(value)
    except SelectorError as error:
        raise ValueError(
            f"is not a CSS selector ({error}): write one such as form.continue, or form[action*=upgrade]"
        ) from None
    return value


def _check_pattern(value: str) -> str:
    try:
        groups = re.compile(value).groups
    except re.error as error:
        raise ValueError(
            f"is not a regular expression ({error}): put it in single quotes, \\ before . [ ( +"
        ) from None
    if groups != 1:
        raise ValueError("needs one group (…), around the name of the phase")
    return value


def _check_path(value: str) -> str:
    if "://" in value or value.startswith("//") or "#" in value:
        raise ValueError("must be a path below the target, such as /install/")
    return value


Selector = Annotated[str, Field(min_length=1), AfterValidator(_check_selector)]
Pattern = Annotated[str, Field(min_length=1), AfterValidator(_check_pattern)]
InstallerPath = Annotated[str, Field(min_length=1), AfterValidator(_check_path)]
PageText = Annotated[str, Field(min_length=3), AfterValidator(lambda text: " ".join(text.split()))]


class _PageModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Login(_PageModel):
    """The form of name and password."""

    form: Selector
    user_field: Annotated[str, Field(min_length=1)]
    password_field: Annotated[str, Field(min_length=1)]
    fields: dict[str, str] = {}


class Start(_PageModel):
    """The form that begins the upgrade; `path` is opened first where the login does not lead to it."""

    form: Selector
    path: InstallerPath | None = None
    fields: dict[str, str] = {}


class Continue(_PageModel):
    """The form that leads from page to page."""

    form: Selector


class Texts(_PageModel):
    """Texts of pages; case and white space do not matter."""

    complete: PageText
    up_to_date: PageText | None = None
    locked: PageText | None = None
    expired: PageText | None = None


class PageLimits(_PageModel):
    """Limits of the walk through the pages."""

    same_page: int = Field(10, ge=2, le=100_000)
    pages: int = Field(100_000, ge=1, le=10_000_000)
    lock_wait_s: float = Field(60.0, ge=0, le=86_400, strict=False)


class CommandOutput(_PageModel):
    """Texts that the upgrade's command prints."""

    complete: PageText
    phase: Pattern | None = None


class Pages(_PageModel):
    """One software's installer."""

    path: InstallerPath
    login: Login
    start: Start
    continue_: Continue = Field(alias="continue")
    title: Selector
    errors: list[Selector] = Field(min_length=1)
    texts: Texts
    limits: PageLimits = PageLimits()
    command: CommandOutput | None = None


def read_pages(path: Path) -> Pages:
    """Read and check `path`. Raises SettingsError with all problems, each with its line and remedy."""
    return read_model(path, Pages, _MANUAL)


def parse_pages(text: str, name: str) -> Pages:
    """Return the pages that `text` describes; `name` is the file's, for messages. Raises SettingsError."""
    return parse_model(text, name, Pages, _MANUAL)


@dataclass(frozen=True)
class Form:
    """A form to send; `address` is absolute, `fields` are its hidden ones in their order."""

    address: str
    method: str
    fields: tuple[tuple[str, str], ...]

    def with_fields(self, further: dict[str, str]) -> "Form":
        """Return the form with further fields; one that is there already is replaced."""
        kept = tuple(field for field in self.fields if field[0] not in further)
        return Form(self.address, self.method, kept + tuple(further.items()))

    def without_token(self) -> "Form":
        """Return the form without its token, which is new each time."""
        return Form(self.address, self.method, tuple(f for f in self.fields if f[0] != TOKEN))


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
class InstallerWalk:
    """One upgrade. `site` is the target, with a slash at its end; `stopped` is asked before each page."""

    pages: Pages
    site: str
    fetch: Fetch
    stopped: Callable[[], bool] = lambda: False
    pause: Callable[[float], None] = time.sleep
    clock_s: Callable[[], float] = time.monotonic

    def upgrade(self, account: Credentials) -> UpgradeTimes:
        """Go through the whole upgrade. Raises StepFailedError or UpgradeStopped."""
        page = self._log_in(account)
        if self.pages.start.path:
            page = self._open("open upgrade", self.pages.start.path, UpgradeStage.START)
        times, names = UpgradeTimes(), StepNames()
        begun_s = self.clock_s()
        # An upgrade that was interrupted may show its continue form at once.
        if not find_form(page, self.pages.continue_.form) or find_form(page, self.pages.start.form):
            page = self._start_upgrade(page, times)
        begun_s += times.lock_wait_s
        advance = StallDetector(self.pages.limits.same_page)
        while form := find_form(page, self.pages.continue_.form):
            name = names.name(find_text(page, self.pages.title))
            advance.note_page(name, form, page)
            sent_s = self.clock_s()
            page = self._send(f"continue: {name}", form, UpgradeStage.UPGRADE)
            took_s = self.clock_s() - sent_s
            times.pages += 1
            times.phases_s[name] = times.phases_s.get(name, 0.0) + took_s
            if times.pages >= self.pages.limits.pages and find_form(page, self.pages.continue_.form):
                raise StepFailedError(
                    f"continue: {name}", "upgrade_failed", f"no end after limits.pages ({times.pages}) pages"
                )
        times.total_s = self.clock_s() - begun_s
        return times

    def _log_in(self, account: Credentials) -> Reply:
        page = self._open("open installer", self.pages.path, UpgradeStage.OPEN)
        login = self.pages.login
        form = find_form(page, login.form)
        if form is None:
            return page
        names = {login.user_field: account.user, login.password_field: account.password}
        return self._send("log in", form.with_fields(names | login.fields), UpgradeStage.LOGIN)

    def _start_upgrade(self, page: Reply, times: UpgradeTimes) -> Reply:
        """Send the start form; while another upgrade is running, again, for as long as the settings say."""
        form = find_form(page, self.pages.start.form)
        if form is None:
            raise StepFailedError("start", "check_failed", "start.form is not on the page after the login")
        form = form.with_fields(self.pages.start.fields)
        begun_s, waited_s = self.clock_s(), 0.0
        while True:
            patient = waited_s < self.pages.limits.lock_wait_s
            started = self._send("start", form, UpgradeStage.UPGRADE, may_be_locked=patient)
            if not (patient and is_locked(self.pages, started)):
                times.lock_wait_s = waited_s
                return started
            self.pause(_LOCK_PAUSE_S)
            waited_s = self.clock_s() - begun_s

    def _open(self, step: str, path: str, stage: UpgradeStage) -> Reply:
        return self._send(step, Form(urljoin(self.site, path.lstrip("/")), "GET", ()), stage)

    def _send(self, step: str, form: Form, stage: UpgradeStage, *, may_be_locked: bool = False) -> Reply:
        """Send a form and follow where it leads, each a request of its own under the same name."""

        def check(reply: Reply) -> StepFailure | None:
            found = judge_page(self.pages, reply, stage)
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


class StallDetector:
    """Notices an upgrade that shows the same page again and again."""

    def __init__(self, most: int) -> None:
        self._most, self._last, self._times = most, (Form("", "", ()), ""), 0

    def note_page(self, name: str, form: Form, page: Reply) -> None:
        """Look at one more page. Raises StepFailedError if form and text were the same too often."""
        now = (form.without_token(), element_text(page.page))
        self._times = self._times + 1 if now == self._last else 1
        self._last = now
        if self._times >= self._most:
            raise StepFailedError(
                f"continue: {name}",
                "upgrade_failed",
                f"the upgrade does not advance: the same page {self._times} times (limits.same_page)",
            )


class StepNames:
    """Gives each title its name; after 48 names every further one is `other`."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def name(self, title: str) -> str:
        """Return the name of `title`: numbers become #, so that a counter in it makes no new name."""
        name = printable(" ".join(_NUMBER.sub("#", title).split()), 60) or "untitled"
        if name not in self._known:
            if len(self._known) >= _MOST:
                return OTHER
            self._known.add(name)
        return name


def judge_page(pages: Pages, reply: Reply, stage: UpgradeStage) -> StepFailure | None:
    """Return the failure that stops the upgrade at `reply`, or None."""
    found = find_failure(reply)
    if found and found.kind not in ("http_error", "no_permission", "nonce_expired"):
        return found
    if reply.location:
        return None
    if box := next((text for each in pages.errors if (text := find_text(reply, each))), ""):
        return StepFailure(_box_kind(pages, box, stage), box)
    if found:
        return found
    if find_form(reply, pages.login.form):
        if stage is UpgradeStage.OPEN:
            return None
        if stage is UpgradeStage.LOGIN:
            return StepFailure("login_failed", f"the login form came back: {visible_text(reply.text)}")
        return StepFailure("nonce_expired", "the session is over: the login form came back")
    if find_form(reply, pages.continue_.form):
        return None
    if stage is UpgradeStage.UPGRADE:
        return _judge_last_page(pages, reply)
    if find_form(reply, pages.start.form) or (pages.start.path and stage is not UpgradeStage.START):
        return None
    text = element_text(reply.page)
    if contains_text(text, pages.texts.up_to_date):
        return StepFailure("wrong_version", f"nothing to upgrade: {visible_text(reply.text)}")
    return StepFailure(
        "check_failed",
        "neither login.form, start.form nor continue.form of the --installer file is on the page: "
        f"{visible_text(reply.text)}",
    )


def is_locked(pages: Pages, reply: Reply) -> bool:
    """Return True if the page says that another upgrade is running."""
    found = judge_page(pages, reply, UpgradeStage.UPGRADE)
    return found is not None and found.kind == "upgrade_locked"


def contains_text(text: str, wanted: str | None) -> bool:
    """Return True if `text` contains `wanted`, in any case; False if `wanted` is None."""
    return wanted is not None and wanted.casefold() in text.casefold()


def _box_kind(pages: Pages, box: str, stage: UpgradeStage) -> str:
    if contains_text(box, pages.texts.locked):
        return "upgrade_locked"
    if contains_text(box, pages.texts.expired):
        return "nonce_expired"
    if contains_text(box, pages.texts.up_to_date):
        return "wrong_version"
    if _FULL.search(box):
        return "out_of_disk"
    return "login_failed" if stage is UpgradeStage.LOGIN else "upgrade_failed"


def _judge_last_page(pages: Pages, reply: Reply) -> StepFailure | None:
    text = element_text(reply.page)
    if contains_text(text, pages.texts.complete):
        return None
    if contains_text(text, pages.texts.locked):
        return StepFailure("upgrade_locked", visible_text(reply.text))
    return StepFailure(
        "upgrade_failed",
        f"a page without a continue form, and it does not say {pages.texts.complete!r}: "
        f"{visible_text(reply.text)}",
    )


def find_form(reply: Reply, selector: str) -> Form | None:
    """Return the first form that `selector` finds, or that contains its match; None if there is none."""
    for found in CSSSelector(selector)(reply.page):
        form = next((e for e in (found, *found.iterancestors()) if e.tag == "form"), None)
        if form is not None and not _is_hidden(form):
            return _read(reply, form)
    return None


def _read(reply: Reply, form: HtmlElement) -> Form:
    bases = reply.page.xpath("//base/@href")
    base = urljoin(reply.url, str(bases[0])) if bases else reply.url
    action = form.get("action")
    name = form.get("id")
    inputs = form.xpath(".//input") + (reply.page.xpath("//input[@form=$name]", name=name) if name else [])
    fields = [
        (str(e.get("name")), str(e.get("value") or ""))
        for e in inputs
        if (e.get("type") or "").lower() == "hidden" and e.get("name") and e.get("disabled") is None
    ]
    method = "POST" if (form.get("method") or "").lower() == "post" else "GET"
    # An empty action means the page itself, whatever its base.
    address = urljoin(base, action.strip()) if action and action.strip() else reply.url
    return Form(address, method, tuple(fields))


def find_text(reply: Reply, selector: str) -> str:
    """Return the visible text of the first element with text that `selector` finds; else an empty string."""
    for found in CSSSelector(selector)(reply.page):
        if not _is_hidden(found) and (text := element_text(found)):
            return text
    # A page's title is in its head.
    return " ".join(str(reply.page.findtext(".//title") or "").split()) if selector == "title" else ""


def element_text(element: HtmlElement) -> str:
    """Return the text in `element` without scripts and the like, white space collapsed."""
    # Collected without recursion: a page may be nested to any depth.
    parts: list[str] = []
    waiting: list[HtmlElement | str] = [element]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            parts.append(one)
            continue
        if isinstance(one.tag, str) and one.tag not in _HIDDEN:
            for child in reversed(one):
                waiting += [child.tail or "", child]
            waiting.append(one.text or "")
    return " ".join(" ".join(parts).split())


def _is_hidden(element: HtmlElement) -> bool:
    return any(e.tag in _HIDDEN for e in (element, *element.iterancestors()))
