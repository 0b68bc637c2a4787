"""Reads the reply of a WordPress core upgrade, which comes line by line while the work is done. Pure.

Each line is a paragraph of WordPress's `show_message`. A line says what begins, so it also ends what went on
before. English lines are known by their words, also in a translation that is not complete. In other languages
the first is known by the address of the package in it, and the last by its link to the about page. Those
between two that are known are known by their order, if there are as many as phases.
"""

import html
import re
from dataclasses import dataclass
from typing import Literal

from plimsoll.scenarios.running.client import Reply, Trouble, trouble

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


class Upgrade:
    """An upgrade, as far as its reply tells so far."""

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
        marks = self._stops(before)
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
        return self._stops(before)

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
    def timed(self) -> bool:
        """True if the phases of an upgrade that has ended are reliable: all are there, one after another."""
        return not self.held_back and tuple(phase.name for phase in self.phases) == PHASES

    @property
    def held_back(self) -> bool:
        """True if lines came later than they were written, as a server that buffers makes them.

        The instants of all lines are then those of the buffer.
        """
        return any(
            phase.name in _LONG and phase.stop_ns - phase.start_ns < _AT_ONCE_NS for phase in self.phases
        )

    def whole(self, reply: Reply) -> Reply:
        """Return `reply` with the body that went by; an error has its own."""
        return Reply(reply.url, reply.status, reply.headers, bytes(self._body) or reply.body, reply.total_us)

    def _line(self, line: ReplyLine) -> None:
        self.lines.append(line)
        self.done |= _DONE in line.markup
        if name := self._begins(line):
            self._begin(name, line.t_ns)
        elif _is_progress(line) and _ADDRESS not in line.markup:
            self._unknown.append(line)

    def _begins(self, line: ReplyLine) -> str | None:
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
        """Begin a phase, and those before it whose lines nobody knew, if these are as many."""
        between = PHASES[PHASES.index(self._known) + 1 : PHASES.index(name)]
        if len(between) == len(self._unknown):
            for passed, line in zip(between, self._unknown, strict=True):
                self._next_phase(passed, line.t_ns)
        self._unknown = []
        if name != self._known:
            self._next_phase(name, t_ns)

    def _stops(self, since: int) -> list[PhaseMark]:
        """Return the stops of the phases from place `since` on, and starts that were not given.

        A phase whose lines came at once was too short to be seen.
        """
        marks = []
        for phase in self.phases[since:]:
            if self.held_back or phase.stop_ns == phase.start_ns:
                continue
            if phase.name != self._marked:
                marks.append(PhaseMark(phase.name, "start", phase.start_ns))
            marks.append(PhaseMark(phase.name, "stop", phase.stop_ns))
        return marks

    def _next_phase(self, name: str, t_ns: int) -> None:
        self.phases.append(Phase(self._known, self._since_ns, t_ns))
        self._known, self._since_ns = name, t_ns


def upgrade_trouble(upgrade: Upgrade, reply: Reply) -> Trouble | None:
    """Return the reason why the upgrade with the whole reply `reply` failed; None if it succeeded."""
    if found := trouble(reply):
        return Trouble(found.kind, _during(upgrade, found.detail))
    if upgrade.done:
        return None
    said = " ".join(line.text for line in upgrade.lines if not _is_progress(line)).strip()
    last = upgrade.phase
    if _LOCKED.search(said):
        return Trouble(
            "upgrade_locked",
            f"{said} If none is, an earlier one broke off: wait 15 minutes, or delete the option "
            "core_updater.lock (wp option delete core_updater.lock)",
        )
    if b"request-filesystem-credentials-form" in reply.body or b'name="connection_type"' in reply.body:
        return Trouble(
            "upgrade_failed",
            "the site asks for FTP credentials, since PHP may not write its files: give them to PHP's user "
            "(chown), or define FS_METHOD as direct in wp-config.php",
        )
    if _FULL.search(said) or (last == "unpack" and _UNCOPIED.search(said)):
        # The folder it unpacks into was made a moment ago, by the same user: only space can be missing.
        return Trouble("out_of_disk", _during(upgrade, said))
    if _UNCOPIED.search(said) and not _PERMISSION.search(said):
        said += " (the disk is full, or PHP may not write that file)"
    if _CUT.search(said):
        said += " (the package came only in part: the disk is full, or the mirror's file is damaged)"
    if said:
        return Trouble("upgrade_failed", _during(upgrade, said))
    if last == "start":
        return Trouble(
            "upgrade_failed", "the site did nothing and gave no reason; it may no longer offer the upgrade"
        )
    return Trouble("upgrade_failed", f"the reply ended in phase {last} without reporting success or failure")


def _is_progress(line: ReplyLine) -> bool:
    """Return True if `line` reports progress: it then ends in an ellipsis, in all languages."""
    return _ADDRESS in line.markup or line.text.endswith(("…", "..."))


def _during(upgrade: Upgrade, said: str) -> str:
    return said if upgrade.phase == "start" else f"in phase {upgrade.phase}: {said}"
