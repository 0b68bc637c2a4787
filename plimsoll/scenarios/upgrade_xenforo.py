"""The upgrade of a forum: through its installer's pages until the last, or by its command over SSH.

XenForo is proprietary: users bring their own copy. A YAML file describes its pages (docs/xenforo.md); the
default one describes the stand-in of `site/forum`.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

import asyncssh
import gevent
from locust.exception import StopUser

from plimsoll.common.hostile import printable, redact
from plimsoll.common.ssh import Access, connect_options, connect_trouble
from plimsoll.scenarios.running.client import Reply, SentRequest, SiteClient, StepFailedError, StepFailure
from plimsoll.scenarios.running.clonelist import credentials
from plimsoll.scenarios.running.locustfile import ScenarioUser, locustfile, on_locust
from plimsoll.scenarios.running.visits import Visits
from plimsoll.scenarios.settings import UpgradeXenforoSettings
from plimsoll.scenarios.xenforo.installer import (
    Check,
    CommandOutput,
    Form,
    InstallerWalk,
    StepNames,
    Texts,
    UpgradeStopped,
    contains_text,
)

ABOUT = {
    "does": "walks through the pages of a forum's upgrade until the last, or runs it over SSH",
    "needs": "an administrator's account on a forum that waits for its upgrade",
    "changes": "upgrades the forum: once a clone",
}
_LISTS, _THREADS = "forums/", "threads/"
_MOST_EVENTS = 10_000  # a progress bar prints many lines
_LONGEST_BYTES = 1 << 16
_ENDS = re.compile(rb"\r\n|\r|\n")
_FATAL = re.compile(r"PHP (?:Fatal|Parse) error:|^(?:Fatal|Parse) error:", re.M)
_DISK = re.compile(r"No space left on device|Errcode: 28\b|The table '[^']*' is full")
_CHUNK = 1 << 14
_LOOK_S = 0.5  # between two checks whether to stop


class UpgradeXenforo(ScenarioUser):
    """Upgrades the forum once."""

    scenario = "upgrade-xenforo"
    settings_type = UpgradeXenforoSettings

    def iterate(self, number: int) -> None:
        """Do the whole upgrade. The next run continues an interrupted one."""
        writer, installer = self.session.writer, self.settings.pages.path
        try:
            with Visits(
                self.settings, writer, lambda site: front_pages(site, installer), closed_before=True
            ) as visits:
                self._started_ns = time.monotonic_ns()
                self._upgrade_by_command() if self.settings.ssh else self._upgrade_by_pages()
                visits.wait_until_good(
                    self._started_ns, lambda name, ms, at: self.measure(name, ms, ended_ns=at)
                )
        except UpgradeStopped:
            raise StopUser from None
        except StepFailedError as error:
            raise StepFailedError(error.step, error.kind, error.detail, hopeless=True) from None

    def _upgrade_by_pages(self) -> None:
        def fetch(step: str, form: Form, check: Check) -> Reply:
            where = "data" if form.method == "POST" else "params"
            body: dict[str, Any] = {where: list(form.fields)}
            if step == "start":
                self._started_ns = time.monotonic_ns()
            return self.site.send(step, form.method, form.address, check=check, **body)

        walk = InstallerWalk(
            self.settings.pages, self.site.base, fetch, stopped=self._is_stopped, pause=gevent.sleep
        )
        times = walk.upgrade(credentials(self.settings))
        self.measure("upgrade_total", times.total_s, "s")
        self.measure("pages", times.pages, "pages")
        if times.lock_wait_s:
            self.measure("lock_wait", times.lock_wait_s, "s")
        self._measure_phases(times.phases_s)

    def _upgrade_by_command(self) -> None:
        settings, writer = self.settings, self.session.writer
        upgrade = RemoteUpgrade(
            Access.parse(settings.ssh, settings.ssh_key, settings.ssh_known_hosts),
            settings.ssh_command,
            settings.pages.command,
            settings.pages.texts,
            settings.timeout_s,
            report=self._report_request,
            line=lambda t_ns, text: writer.event(
                "output", t_ns=writer.since_start_ns(t_ns), line=printable(redact(text))
            ),
            stopped=self._is_stopped,
        )
        upgrade.run()
        self.measure("upgrade_total", upgrade.total_s, "s")
        self.measure("lines", upgrade.lines, "lines")
        self._measure_phases(upgrade.phases_s)

    def _measure_phases(self, phases_s: dict[str, float]) -> None:
        """Record the phases, each where it lay: they follow one another, and the last has just ended."""
        now_ns, left_s = time.monotonic_ns(), sum(phases_s.values())
        for name, seconds in phases_s.items():
            left_s -= seconds
            self.measure(f"phase: {name}", seconds, "s", ended_ns=now_ns - int(left_s * 1e9))

    def _is_stopped(self) -> bool:
        return self.session.work.ended


def front_pages(site: SiteClient, installer: str) -> list[str]:
    """Return the forum's index, and its first board and thread where it names them.

    `installer` is the path of the installer, which lies in a folder of the forum. Raises StepFailedError.
    """
    index = urljoin(urljoin(site.base, installer.lstrip("/")), "..")
    pages = [index]
    for part in (_LISTS, _THREADS):
        page = pages[-1]
        found = site.get("visit", page, base=site.base, check=lambda _: None).page.xpath("//a/@href")
        links = (urljoin(page, str(href)) for href in found)
        if link := next((link for link in links if part in link), None):
            pages.append(link)
    return pages


@dataclass(frozen=True)
class CommandEnd:
    """The end of a command. `stopped`: the scenario ended it; `silent`: nothing came for too long."""

    exit_status: int | None
    signal: str
    stopped: bool = False
    silent: bool = False


class SshSession:
    """A connection that runs commands; all calls are blocking."""

    def __init__(self, access: Access, timeout_s: float) -> None:
        """Connect. Raises what `plimsoll.common.ssh.connect_trouble` explains."""
        self._timeout_s = timeout_s
        self._runner = asyncio.Runner()
        try:
            self._connection = self._runner.run(self._connect(access, min(timeout_s, 30.0)))
        except BaseException:
            self._runner.close()
            raise

    @staticmethod
    async def _connect(access: Access, timeout_s: float) -> asyncssh.SSHClientConnection:
        return await asyncssh.connect(**connect_options(access, timeout_s))

    def run(
        self, command: str, each: Callable[[int, bytes], None], stopped: Callable[[], bool]
    ) -> CommandEnd:
        """Run `command`; `each` gets its output and errors, merged, with the instant (monotonic ns)."""
        return self._runner.run(_run(self._connection, command, each, stopped, self._timeout_s))

    def close(self) -> None:
        """End the connection."""
        self._connection.abort()
        self._runner.close()


async def _run(
    connection: asyncssh.SSHClientConnection,
    command: str,
    each: Callable[[int, bytes], None],
    stopped: Callable[[], bool],
    timeout_s: float,
) -> CommandEnd:
    process = await connection.create_process(
        command, encoding=None, stdin=asyncssh.DEVNULL, stderr=asyncssh.STDOUT
    )
    silent_since_s = time.monotonic()
    reading = asyncio.ensure_future(process.stdout.read(_CHUNK))
    try:
        while True:
            done, _ = await asyncio.wait([reading], timeout=_LOOK_S)
            if done:
                data = reading.result()
                if not data:
                    break
                each(time.monotonic_ns(), data)
                silent_since_s = time.monotonic()
                reading = asyncio.ensure_future(process.stdout.read(_CHUNK))
            elif stopped():
                process.terminate()
                return CommandEnd(None, "", stopped=True)
            elif time.monotonic() - silent_since_s > timeout_s:
                return CommandEnd(None, "", silent=True)
    finally:
        reading.cancel()
    completed = await process.wait(check=False)
    signal = str(completed.exit_signal[0]) if completed.exit_signal else ""
    return CommandEnd(None if signal else completed.exit_status, signal)


class LineSplitter:
    """Cuts bytes into lines as they come; a carriage return (of a progress bar) ends one, too."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the lines that are whole now, empty ones left out; an endless one is cut at 64 KiB."""
        *whole, self._rest = _ENDS.split(self._rest + data)
        while len(self._rest) > _LONGEST_BYTES:
            whole.append(self._rest[:_LONGEST_BYTES])
            self._rest = self._rest[_LONGEST_BYTES:]
        for line in whole:
            if line.strip():
                yield line.decode("utf-8", errors="replace")

    def end(self) -> Iterator[str]:
        """Yield the last line, if no line feed ended it."""
        yield from self.feed(b"\n")


@dataclass(frozen=True)
class OutputPhase:
    """The time between two lines that name phases; instants of the monotonic clock."""

    name: str
    start_ns: int
    end_ns: int


class PhaseFinder:
    """Finds the phases in lines: one lasts from a line that names it to the next such line."""

    def __init__(self, pattern: str | None, start_ns: int) -> None:
        self._pattern = re.compile(pattern) if pattern else None
        self._names, self._name, self._start_ns = StepNames(), "begin", start_ns

    def line(self, text: str, t_ns: int) -> OutputPhase | None:
        """Return the piece that this line ends, if it does."""
        found = self._pattern.search(text) if self._pattern else None
        return self._next(self._names.name(found[1] or ""), t_ns) if found else None

    def end(self, t_ns: int) -> OutputPhase:
        """Return the last piece."""
        return self._next("", t_ns)

    def _next(self, name: str, t_ns: int) -> OutputPhase:
        piece = OutputPhase(self._name, self._start_ns, t_ns)
        self._name, self._start_ns = name, t_ns
        return piece


class LastLines:
    """The last lines of the output, which tell the outcome."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=50)

    def line(self, text: str) -> None:
        """Take one more line."""
        self._lines.append(text)

    def text(self, most: int = 50) -> str:
        """Return the last `most` lines."""
        return "\n".join(list(self._lines)[-most:])


@dataclass
class RemoteUpgrade:
    """One upgrade by command. `report` takes a record, `line` what was printed and when (monotonic ns)."""

    access: Access
    command: str
    words: CommandOutput
    texts: Texts
    timeout_s: float
    report: Callable[[SentRequest], None]
    line: Callable[[int, str], None]
    stopped: Callable[[], bool]
    phases_s: dict[str, float] = field(default_factory=dict)
    total_s: float = 0.0
    lines: int = 0

    def run(self) -> None:
        """Connect and run the command to its end. Raises StepFailedError or UpgradeStopped."""
        connection = self._connect()
        try:
            self._run(connection)
        finally:
            connection.close()

    def _connect(self) -> SshSession:
        begun_ns = time.monotonic_ns()
        try:
            connection = SshSession(self.access, self.timeout_s)
        except Exception as error:
            why = connect_trouble(error, self.access, "--ssh-key", "--ssh-known-hosts")
            found = StepFailure(why.kind, why.sentence)
            self._record("connect", begun_ns, time.monotonic_ns(), found=found)
            raise StepFailedError("connect", found.kind, found.detail) from None
        self._record("connect", begun_ns, time.monotonic_ns())
        return connection

    def _run(self, connection: SshSession) -> None:
        begun_ns = time.monotonic_ns()
        lines, tail, phases = LineSplitter(), LastLines(), PhaseFinder(self.words.phase, begun_ns)

        def take(text: str, t_ns: int) -> None:
            tail.line(text)
            self.lines += 1
            if self.lines <= _MOST_EVENTS:
                self.line(t_ns, text)
            if piece := phases.line(text, t_ns):
                self._record_phase(piece)

        def each(t_ns: int, data: bytes) -> None:
            for text in lines.feed(data):
                take(text, t_ns)

        try:
            ended = connection.run(self.command, each, self.stopped)
        except Exception as error:
            found = StepFailure("closed_early", f"the connection broke: {error or type(error).__name__}")
            self._record_phase(phases.end(time.monotonic_ns()), found)
            raise StepFailedError("command", found.kind, found.detail) from None
        done_ns = time.monotonic_ns()
        for text in lines.end():
            take(text, done_ns)
        if ended.stopped:
            self._record_phase(phases.end(done_ns), StepFailure("aborted", "interrupted"))
            raise UpgradeStopped
        if ended.silent:
            outcome: StepFailure | None = StepFailure(
                "timeout", f"no output for {self.timeout_s:g} s (--timeout-s)"
            )
        else:
            outcome = judge_output(self.words, self.texts, ended.exit_status, ended.signal, tail)
        last = phases.end(done_ns)
        self._record_phase(last, outcome)
        if outcome:
            raise StepFailedError(f"command: {last.name}", outcome.kind, outcome.detail)
        self.total_s = (done_ns - begun_ns) / 1e9

    def _record_phase(self, piece: OutputPhase, found: StepFailure | None = None) -> None:
        self.phases_s[piece.name] = self.phases_s.get(piece.name, 0.0) + (piece.end_ns - piece.start_ns) / 1e9
        self._record(f"command: {piece.name}", piece.start_ns, piece.end_ns, found=found)

    def _record(self, step: str, start_ns: int, end_ns: int, found: StepFailure | None = None) -> None:
        total_us = (end_ns - start_ns) // 1000
        self.report(
            SentRequest(
                step=step,
                method="SSH",
                url=f"ssh://{self.access}",
                start_ns=start_ns,
                total_us=total_us,
                ttfb_us=0,
                connect_us=total_us if step == "connect" else 0,
                bytes=0,
                status=0,
                error=found.kind if found else "none",
                detail=found.detail if found else "",
                server_cpu_ms=None,
            )
        )


def judge_output(
    command: CommandOutput, texts: Texts, exit_status: int | None, signal: str, tail: LastLines
) -> StepFailure | None:
    """Return the failure of a command that has ended, or None. `signal` is empty if none killed it."""
    text, last = tail.text(), tail.text(3).replace("\n", " | ")
    if _DISK.search(text):
        return StepFailure("out_of_disk", last)
    if _FATAL.search(text):
        return StepFailure("php_fatal", last)
    if exit_status == 0 and contains_text(" ".join(text.split()), command.complete):
        return None
    if contains_text(text, texts.locked):
        return StepFailure("upgrade_locked", last)
    if contains_text(text, texts.up_to_date):
        return StepFailure("wrong_version", f"nothing to upgrade: {last}")
    if signal:
        return StepFailure("upgrade_failed", f"the command was killed by signal {signal}: {last}")
    if exit_status is None:
        return StepFailure("closed_early", f"the connection ended before the command did: {last}")
    if exit_status:
        return StepFailure("upgrade_failed", f"the command exited with {exit_status}: {last}")
    return StepFailure(
        "upgrade_failed", f"the command exited with 0, but did not say {command.complete!r}: {last}"
    )


run = on_locust(UpgradeXenforo)


locustfile(UpgradeXenforo)
