"""What a WordPress core upgrade shows: the offer, its reply line by line, the database, the result. Pure.

The pages are read without regard to the site's language. The reply comes line by line while the work is done:
each line is a paragraph of WordPress's `show_message`. A line says what begins, so it also ends what went on
before. English lines are known by their words, also in a translation that is not complete. In other languages
the first is known by the address of the package in it, and the last by its link to the about page. Those
between two that are known are known by their order, if there are as many as phases.
"""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qs, urljoin, urlsplit

from plimsoll.scenarios.running.client import Reply, StepFailure, find_failure, visible_text
from plimsoll.scenarios.wordpress.account import fields, form_address, is_logged_out

# The phases of WordPress's upgrade, in its order, and its English messages for them.
_LINES = {
    "download": "Downloading update from",
    "unpack": "Unpacking the update",
    "verify": "Verifying the unpacked files",
    "prepare": "Preparing to install the latest version",
    "maintenance-on": "Enabling Maintenance mode",
    "copy": "Copying the required files",
    "maintenance-off": "Disabling Maintenance mode",
    "database": "Upgrading database",
    "finish": "WordPress updated successfully",
}
# Before the first line the phase is `start`: the updater prepares.
PHASES = ("start", *_LINES)
# These take many files or a request: lines that came at once with one between them were held back. They are
# some microseconds apart where a server sends each in a chunk of its own.
_LONG = {"download", "unpack", "copy", "database"}
_AT_ONCE_NS = 1_000_000
HELD_BACK = (
    "the reply did not come line by line: for wp-admin/update-core.php set fastcgi_buffering off in nginx or "
    "flushpackets=on in Apache, and proxy_buffering off in a proxy before it"
)
NOT_UNDERSTOOD = "a line of the reply was not understood"
_WRAP, _FOOTER = b'class="wrap', b'id="wpfooter"'
_LONGEST_LINE = 1 << 20
_LONGEST_BODY = 4 << 20
_TAGS = re.compile(r"<[^>]*>")
_ADDRESS = '<span class="code">'
_DONE = "about.php?updated"
_LOCKED = re.compile(r"Another update is currently in progress")
_FULL = re.compile(
    r"run out of disk space|[Nn]ot enough (?:free )?disk space|Failed writing (?:body|received)"
)
_UNCOPIED = re.compile(r"Could not copy files?\b")
_CUT = re.compile(r"End of Central Dir|PCLZIP_ERR_(?:BAD_FORMAT|INVALID_ZIP)")
_PERMISSION = re.compile(r"inconsistent file permissions|is unable to copy some files")
_BODY_VERSION = re.compile(r"(?:^|\s)version-(\d+(?:-\d+)*)(?=\s|$)")
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True)
class Offer:
    """One button of the updates page; not `pressable` where the site's PHP or MySQL is too old for it."""

    version: str
    address: str
    fields: tuple[tuple[str, str], ...]
    pressable: bool
    said: str


@dataclass(frozen=True)
class UpdatePage:
    """The page `wp-admin/update-core.php`: the version that runs (None: not shown) and those on offer."""

    version: str | None
    offers: tuple[Offer, ...]


@dataclass(frozen=True)
class DatabasePage:
    """The page `wp-admin/upgrade.php`; `press` is its button's address, None if nothing is left to do."""

    known: bool
    press: str | None
    said: str


def choose_offer(page: Reply, from_version: str | None, to_version: str | None) -> Offer | StepFailure:
    """Return the offer of the updates page to install, or the reason why there is none."""
    shown = read_update_page(page)
    runs = f"this is WordPress {shown.version}" if shown.version else "this is an unknown WordPress"
    if "/upgrade.php" in page.url:
        return StepFailure(
            "wrong_version",
            "the database of this clone is older than its WordPress: finish that upgrade first, at "
            "wp-admin/upgrade.php, or clone again",
        )
    if from_version and not (shown.version and version_fits(shown.version, from_version)):
        return StepFailure(
            "wrong_version", f"{runs}, and not {from_version} (--from-version); nothing was changed"
        )
    offers = newer_offers(shown.offers, shown.version)
    if not offers:
        return StepFailure(
            "wrong_version",
            f"{runs}, and no newer version is offered: it has been upgraded, or it reaches neither "
            "wordpress.org nor a mirror",
        )
    if to_version:
        offers = tuple(offer for offer in offers if version_fits(offer.version, to_version))
        if not offers:
            there = ", ".join(sorted({offer.version for offer in newer_offers(shown.offers, shown.version)}))
            return StepFailure(
                "wrong_version",
                f"{runs}, and it is offered {there}, not {to_version} (--to-version); nothing was changed",
            )
    offer = next((one for one in offers if one.pressable), None)
    return offer or StepFailure(
        "check_failed", f"the newer version cannot be installed here: {offers[0].said}"
    )


def find_offer_failure(reply: Reply, from_version: str | None, to_version: str | None) -> StepFailure | None:
    """Return the reason against the upgrade, or None; a redirect within the admin pages does not count."""
    if is_logged_out(reply):
        return StepFailure(
            "login_failed",
            "the site accepted the login, then asks to log in again: its database stores nothing (disk "
            "full?), or "
            "the login was for another address of the site",
        )
    if (found := find_failure(reply)) or reply.location:
        return found
    chosen = choose_offer(reply, from_version, to_version)
    return chosen if isinstance(chosen, StepFailure) else None


def read_update_page(reply: Reply) -> UpdatePage:
    """Read the updates page; forms that reinstall the present version are not offers."""
    offers = []
    for form in reply.page.xpath("//form[@name='upgrade']"):
        address = form_address(reply, form)
        if parse_qs(urlsplit(address).query).get("action") != ["do-core-upgrade"]:
            continue
        sent = fields(form)
        button = form.xpath(".//input[@name='upgrade'] | .//button[@name='upgrade']")
        if button:
            sent.append(("upgrade", str(button[0].get("value") or "")))
        around = form.xpath("ancestor::li[1]") or [form]
        said = " ".join(str(around[0].text_content()).split())[:200]
        offers.append(Offer(dict(sent).get("version", ""), address, tuple(sent), bool(button), said))
    return UpdatePage(shown_version(reply), tuple(offers))


def shown_version(reply: Reply) -> str | None:
    """Return the version that an admin page runs on, by its body's class (`version-6-1-9`); None if unseen.

    What follows the numbers, as in `6.9-RC1`, is not in the class.
    """
    for body in reply.page.xpath("//body"):
        if found := _BODY_VERSION.search(str(body.get("class") or "")):
            return found[1].replace("-", ".")
    return None


def is_version(text: str) -> bool:
    """Return True if `text` is a version, or the start of one: `6`, `6.1`, `6.1.9`."""
    return bool(_NUMBERS.fullmatch(text))


def version_fits(version: str, wanted: str) -> bool:
    """Return True if `version` is `wanted` or one of its releases: 6.1.9 fits 6.1, and 6.10 does not."""
    have, want = _numbers(version), _numbers(wanted)
    return have[: len(want)] == want


def newer_offers(offers: Iterable[Offer], version: str | None) -> tuple[Offer, ...]:
    """Return the offers that are above `version`."""
    if version is None:
        return tuple(offers)
    return tuple(offer for offer in offers if _numbers(offer.version) > _trim(_numbers(version)))


def same_version(one: str, other: str) -> bool:
    """Return True if two versions have the same numbers: 6.8 is 6.8.0, and 6.9-RC1 is 6.9."""
    return _trim(_numbers(one)) == _trim(_numbers(other))


def _numbers(version: str) -> tuple[int, ...]:
    found = _NUMBERS.match(version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


def _trim(numbers: tuple[int, ...]) -> tuple[int, ...]:
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers


@dataclass(frozen=True)
class ReplyLine:
    """One line of the reply, and when it was there; `t_ns` is of the caller's clock."""

    t_ns: int
    markup: str

    @property
    def text(self) -> str:
        """The visible text."""
        return " ".join(html.unescape(_TAGS.sub("", self.markup)).split())


@dataclass(frozen=True)
class Phase:
    """Something that WordPress did, from the line that says it begins to the next one."""

    name: str
    start_ns: int
    stop_ns: int


@dataclass(frozen=True)
class PhaseMark:
    """The start or the stop of a phase."""

    name: str
    phase: Literal["start", "stop"]
    t_ns: int


class ReplyLines:
    """Takes the reply as it comes, in pieces of any size, and gives its lines."""

    def __init__(self) -> None:
        self._buffer = b""
        self._begun = self._ended = False

    def take(self, t_ns: int, piece: bytes) -> list[ReplyLine]:
        """Return the lines that `piece`, which came at `t_ns`, completed."""
        if self._ended:
            return []
        self._buffer += piece
        if not self._begun:
            at = self._buffer.find(_WRAP)
            if at < 0:
                self._buffer = self._buffer[-len(_WRAP) :]
                return []
            self._begun, self._buffer = True, self._buffer[at:]
        found = []
        while not self._ended and (line := self._next()) is not None:
            found.append(ReplyLine(t_ns, line.decode("utf-8", errors="replace")))
        return found

    def _next(self) -> bytes | None:
        start, footer = self._buffer.find(b"<p>"), self._buffer.find(_FOOTER)
        if footer >= 0 and (start < 0 or footer < start):
            self._ended, self._buffer = True, b""
            return None
        if start < 0:
            self._buffer = self._buffer[-len(_FOOTER) :]
            return None
        stop = self._buffer.find(b"</p>", start)
        if stop < 0:
            self._buffer = self._buffer[start : start + _LONGEST_LINE]
            return None
        line, self._buffer = self._buffer[start + 3 : stop], self._buffer[stop + 4 :]
        return line


class UpgradeReply:
    """An upgrade, as far as its reply has shown."""

    def __init__(self, start_ns: int) -> None:
        """Begin when the button is pressed, at `start_ns`."""
        self.lines: list[ReplyLine] = []
        self.phases: list[Phase] = []
        self._known, self._since_ns = "start", start_ns
        self._marked = ""  # the phase whose start was given
        self._unknown: list[ReplyLine] = []  # of progress, since the last that is known
        self.done = False
        self._reader, self._body = ReplyLines(), bytearray()
        self._english = False

    def take(self, t_ns: int, piece: bytes) -> list[PhaseMark]:
        """Take a piece of the reply that came at `t_ns`; return which phases it ended and began."""
        self._body += piece[: max(_LONGEST_BODY - len(self._body), 0)]
        before = len(self.phases)
        for line in self._reader.take(t_ns, piece):
            self._line(line)
        marks = self._find_stops(before)
        if marks:
            self._marked = self._known
            marks.append(PhaseMark(self._known, "start", self._since_ns))
        return marks

    def end(self, t_ns: int) -> list[PhaseMark]:
        """End the last phase: the reply has ended, or broken off, at `t_ns`. Return what is known of it."""
        before = len(self.phases)
        passed = PHASES[PHASES.index(self._known) + 1 : PHASES.index(self.phase) + 1]
        for name, line in zip(passed, self._unknown, strict=False):
            self._next_phase(name, line.t_ns)
        self._unknown = []
        self.phases.append(Phase(self._known, self._since_ns, t_ns))
        return self._find_stops(before)

    @property
    def phase(self) -> str:
        """The phase that goes on, as far as that is known.

        Where no line is English, each that is not known yet began one.
        """
        following = PHASES[PHASES.index(self._known) :]
        if self._english or following[0] in ("database", "finish"):
            return self._known
        return following[min(len(self._unknown), following.index("database"))]

    @property
    def has_reliable_times(self) -> bool:
        """True if the phases of an upgrade that has ended are reliable: all are there, one after another."""
        return not self.is_held_back and tuple(phase.name for phase in self.phases) == PHASES

    @property
    def is_held_back(self) -> bool:
        """True if lines came later than they were written, as a server that buffers makes them.

        The instants of all lines are then those of the buffer.
        """
        return any(
            phase.name in _LONG and phase.stop_ns - phase.start_ns < _AT_ONCE_NS for phase in self.phases
        )

    def whole_reply(self, reply: Reply) -> Reply:
        """Return `reply` with the body that went by; an error has its own."""
        return Reply(reply.url, reply.status, reply.headers, bytes(self._body) or reply.body, reply.total_us)

    def _line(self, line: ReplyLine) -> None:
        self.lines.append(line)
        self.done |= _DONE in line.markup
        if name := self._find_phase(line):
            self._begin(name, line.t_ns)
        elif _is_progress(line) and _ADDRESS not in line.markup:
            self._unknown.append(line)

    def _find_phase(self, line: ReplyLine) -> str | None:
        """Return the phase that `line` is known to begin; None where it is not, or says something else."""
        if _DONE in line.markup:
            return "finish"
        for name, beginning in _LINES.items():
            if line.text.startswith(beginning):
                self._english = True
                return name
        # An address after the first: a package without a signature, which does not matter.
        return "download" if _ADDRESS in line.markup and self._known == "start" else None

    def _begin(self, name: str, t_ns: int) -> None:
        """Begin a phase, and those before it whose lines were not recognised, if these are as many."""
        between = PHASES[PHASES.index(self._known) + 1 : PHASES.index(name)]
        if len(between) == len(self._unknown):
            for passed, line in zip(between, self._unknown, strict=True):
                self._next_phase(passed, line.t_ns)
        self._unknown = []
        if name != self._known:
            self._next_phase(name, t_ns)

    def _find_stops(self, since: int) -> list[PhaseMark]:
        """Return the stops of the phases from place `since` on, and starts that were not given.

        A phase whose lines came at once was too short to be seen.
        """
        marks = []
        for phase in self.phases[since:]:
            if self.is_held_back or phase.stop_ns == phase.start_ns:
                continue
            if phase.name != self._marked:
                marks.append(PhaseMark(phase.name, "start", phase.start_ns))
            marks.append(PhaseMark(phase.name, "stop", phase.stop_ns))
        return marks

    def _next_phase(self, name: str, t_ns: int) -> None:
        self.phases.append(Phase(self._known, self._since_ns, t_ns))
        self._known, self._since_ns = name, t_ns


def find_upgrade_failure(upgrade: UpgradeReply, reply: Reply) -> StepFailure | None:
    """Return the reason why the upgrade with the whole reply `reply` failed; None if it succeeded."""
    if found := find_failure(reply):
        return StepFailure(found.kind, _name_phase(upgrade, found.detail))
    if upgrade.done:
        return None
    said = " ".join(line.text for line in upgrade.lines if not _is_progress(line)).strip()
    last = upgrade.phase
    if _LOCKED.search(said):
        return StepFailure(
            "upgrade_locked",
            f"{said} If none is running, an earlier one was interrupted: wait 15 minutes, or delete the "
            f"option "
            "core_updater.lock (wp option delete core_updater.lock)",
        )
    if b"request-filesystem-credentials-form" in reply.body or b'name="connection_type"' in reply.body:
        return StepFailure(
            "upgrade_failed",
            "the site asks for FTP credentials, since PHP may not write its files: give them to PHP's user "
            "(chown), or define FS_METHOD as direct in wp-config.php",
        )
    if _FULL.search(said) or (last == "unpack" and _UNCOPIED.search(said)):
        # The folder it unpacks into was made a moment ago, by the same user: only space can be missing.
        return StepFailure("out_of_disk", _name_phase(upgrade, said))
    if _UNCOPIED.search(said) and not _PERMISSION.search(said):
        said += " (the disk is full, or PHP may not write that file)"
    if _CUT.search(said):
        said += " (the package came only in part: the disk is full, or the mirror's file is damaged)"
    if said:
        return StepFailure("upgrade_failed", _name_phase(upgrade, said))
    if last == "start":
        return StepFailure(
            "upgrade_failed", "the site did nothing and gave no reason; it may no longer offer the upgrade"
        )
    return StepFailure(
        "upgrade_failed", f"the reply ended in phase {last} without reporting success or failure"
    )


def _is_progress(line: ReplyLine) -> bool:
    """Return True if `line` reports progress: it then ends in an ellipsis, in all languages."""
    return _ADDRESS in line.markup or line.text.endswith(("…", "..."))


def _name_phase(upgrade: UpgradeReply, said: str) -> str:
    return said if upgrade.phase == "start" else f"in phase {upgrade.phase}: {said}"


def find_database_failure(reply: Reply, *, pressed: bool = False) -> StepFailure | None:
    """Return the failure on `wp-admin/upgrade.php`, or None; once `pressed`, nothing may be left to do."""
    if found := find_failure(reply):
        return found
    page = read_database_page(reply)
    if not page.known:
        return StepFailure("check_failed", f"wp-admin/upgrade.php says: {page.said or 'nothing'}")
    if pressed and page.press:
        return StepFailure("upgrade_failed", f"the database is still the old one: {page.said}")
    return None


def read_database_page(reply: Reply) -> DatabasePage:
    """Read `wp-admin/upgrade.php`: its one button leads to `step=1` (work to do) or to the site (none)."""
    said = visible_text(reply.text)
    links = [str(link.get("href") or "") for link in reply.page.xpath("//p[contains(@class, 'step')]//a")]
    for link in links:
        address = urljoin(reply.url, link)
        parts = urlsplit(address)
        if parts.path.endswith("/upgrade.php") and parse_qs(parts.query).get("step") == ["1"]:
            return DatabasePage(True, address, said)
    return DatabasePage(bool(links), None, said)


def find_front_failure(reply: Reply) -> StepFailure | None:
    """Return the failure on the front page, or None."""
    if (found := find_failure(reply)) or reply.location:
        return found
    if reply.status != 200 or "<" not in reply.text:
        return StepFailure("check_failed", f"the front page is not a page: status {reply.status}")
    return None


def describe_state(reply: Reply) -> str:
    """Return a description of the site after a failed upgrade, from an admin page."""
    if found := find_failure(reply):
        return f"now the site has another problem: {found.detail}"
    if is_logged_out(reply):
        return "now the site asks to log in again"
    if "/upgrade.php" in reply.location:
        return "now its files are new and its database is not"
    version = shown_version(reply)
    return (
        f"now the site answers as WordPress {version}"
        if version
        else f"now it says: {visible_text(reply.text)}"
    )
