"""The upgrade by its command over SSH: every phase a record, every line an event."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from plimsoll.common.ssh import Access, connect_trouble
from plimsoll.scenarios.running.client import Sent, StepFailedError, Trouble
from plimsoll.scenarios.xenforo.installer import CommandOutput, Texts, UpgradeStopped
from plimsoll.scenarios.xenforo.output import LastLines, LineSplitter, OutputPhase, PhaseFinder, judge_output
from plimsoll.scenarios.xenforo.ssh import Ended, SshSession

_MOST_EVENTS = 10_000  # a progress bar prints many lines


@dataclass
class RemoteUpgrade:
    """One upgrade by command. `report` takes a record, `line` what was printed and when (monotonic ns)."""

    access: Access
    command: str
    words: CommandOutput
    texts: Texts
    timeout_s: float
    report: Callable[[Sent], None]
    line: Callable[[int, str], None]
    stopped: Callable[[], bool]
    phases_s: dict[str, float] = field(default_factory=dict)
    total_s: float = 0.0
    lines: int = 0

    def run(self) -> None:
        """Connect and run the command to its end. Raises StepFailedError or UpgradeStopped."""
        connection = self._connected()
        try:
            self._run(connection)
        finally:
            connection.close()

    def _connected(self) -> SshSession:
        begun_ns = time.monotonic_ns()
        try:
            connection = SshSession(self.access, self.timeout_s)
        except Exception as error:
            why = connect_trouble(error, self.access, "--ssh-key", "--ssh-known-hosts")
            found = Trouble(why.kind, why.sentence)
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
                self._piece(piece)

        def each(t_ns: int, data: bytes) -> None:
            for text in lines.feed(data):
                take(text, t_ns)

        try:
            ended = connection.run(self.command, each, self.stopped)
        except Exception as error:
            found = Trouble("closed_early", f"the connection broke: {error or type(error).__name__}")
            self._piece(phases.end(time.monotonic_ns()), found)
            raise StepFailedError("command", found.kind, found.detail) from None
        done_ns = time.monotonic_ns()
        for text in lines.end():
            take(text, done_ns)
        if ended.stopped:
            self._piece(phases.end(done_ns), Trouble("aborted", "interrupted"))
            raise UpgradeStopped
        outcome = self._outcome(ended, tail)
        last = phases.end(done_ns)
        self._piece(last, outcome)
        if outcome:
            raise StepFailedError(f"command: {last.name}", outcome.kind, outcome.detail)
        self.total_s = (done_ns - begun_ns) / 1e9

    def _outcome(self, ended: Ended, tail: LastLines) -> Trouble | None:
        if ended.silent:
            return Trouble("timeout", f"no output for {self.timeout_s:g} s (--timeout-s)")
        return judge_output(self.words, self.texts, ended.exit_status, ended.signal, tail)

    def _piece(self, piece: OutputPhase, found: Trouble | None = None) -> None:
        self.phases_s[piece.name] = self.phases_s.get(piece.name, 0.0) + (piece.end_ns - piece.start_ns) / 1e9
        self._record(f"command: {piece.name}", piece.start_ns, piece.end_ns, found=found)

    def _record(self, step: str, start_ns: int, end_ns: int, found: Trouble | None = None) -> None:
        total_us = (end_ns - start_ns) // 1000
        self.report(
            Sent(
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
