"""How an experiment ends, and who is notified: at its end, of a failure, of what is set aside."""

import os
import queue
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from plimsoll.common.errors import PlimsollError
from plimsoll.common.hostile import markdown_text
from plimsoll.common.notify import URL_NAME, Channel, Message, NotDeliveredError, open_channels
from plimsoll.lab.experiment.labfile import OCCASIONS, Notify, Occasion
from plimsoll.lab.experiment.machines import BusyError

_DELIVERY_S = 150.0  # at the end, for what is still on its way: a web hook is tried three times, 30 s each
LogLine = Callable[[str], None]
ExitReason = Literal["finished", "unfinished", "interrupted", "busy", "failed"]


class RunResult(BaseModel):
    """`directory` is the experiment's, None where it did not begin; `report` the path of its report.

    `not_measured`: volumes that fileio has not measured whole, and why. `exit_reason`: `finished` (all runs
    are, and all volumes measured), `unfinished` (some are not), `interrupted`, `busy` (another experiment
    uses a machine) or `failed`. `error` says why it is not `finished`.
    """

    directory: str | None = None
    report: str | None = None
    finished: list[str] = []
    not_done: list[str] = []
    set_aside: dict[str, str] = {}
    not_measured: dict[str, str] = {}
    exit_reason: ExitReason
    error: str | None = None


def failure_result(error: PlimsollError) -> RunResult:
    """Return the result of an experiment that ended with `error`. Pure."""
    return RunResult(exit_reason="busy" if isinstance(error, BusyError) else "failed", error=str(error))


class Notices:
    """Sends notices in a thread, one after the other. One that does not arrive is reported; nothing fails."""

    def __init__(
        self,
        experiment: str,
        directory: Path,
        channels: Sequence[Channel],
        occasions: Collection[Occasion],
        say: LogLine,
    ) -> None:
        self._experiment, self._directory = experiment, str(directory)
        self._channels, self._occasions, self._say = channels, occasions, say
        self._waiting: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def send(self, occasion: Occasion, verdict: str, subject: str, rows: Sequence[str] = ()) -> None:
        """Send a notice soon, where this occasion is asked for. `subject` and `rows` may be hostile."""
        if not self._channels or occasion not in self._occasions:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver, name="notices", daemon=True)
            self._thread.start()
        rows = [*rows, f"Folder: {self._directory}"]
        self._waiting.put(build_message(self._experiment, verdict, subject, rows))

    def send_end(self, result: RunResult) -> None:
        """Send how the experiment ended."""
        done, total = len(result.finished), len(result.finished) + len(result.not_done)
        rows = [f"{done} of {total} runs are finished."] if total else []
        rows += [f"Set aside: {name}: {why}" for name, why in result.set_aside.items()]
        rows += [f"fileio on {name} is not finished: {why}" for name, why in result.not_measured.items()]
        if result.error and not result.set_aside and not result.not_measured:
            rows.append(result.error)
        rows += [f"Report: {result.report}"] if result.report else []
        self.send("end", result.exit_reason, f"the experiment {_ENDS[result.exit_reason]}", rows)

    @contextmanager
    def send_on_error(self) -> Iterator[None]:
        """Send an end by an interruption or an error within the block, and wait until it is sent."""
        try:
            yield
        except KeyboardInterrupt:
            self.send_end(RunResult(exit_reason="interrupted", error="plimsoll run --resume continues it."))
            self.close()
            raise
        except PlimsollError as error:
            if not isinstance(error, BusyError):  # then it did not begin
                self.send_end(RunResult(exit_reason="failed", error=str(error)))
            self.close()
            raise

    def close(self) -> None:
        """Wait until all notices are sent, for so long as that may take."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(_DELIVERY_S)

    def _deliver(self) -> None:
        while (message := self._waiting.get()) is not None:
            for send in self._channels:
                try:
                    send(message)
                except NotDeliveredError as error:
                    self._say(f"A notice did not go out: {error}")


_ENDS = {
    "finished": "is finished",
    "unfinished": "has ended; not all runs are finished",
    "interrupted": "was interrupted",
    "failed": "failed",
    "busy": "did not begin",
}


def build_message(experiment: str, verdict: str, subject: str, rows: Sequence[str]) -> Message:
    """Return a notice. Pure."""
    whole = f"{experiment}: {subject}"
    body = [f"- {markdown_text(row, 1000)}" for row in rows]
    return Message(verdict, whole, "\n".join([f"# Plimsoll: {markdown_text(whole)}", "", *body]) + "\n")


def open_notices(
    notify: Notify | None,
    experiment: str,
    directory: Path,
    options: Mapping[str, Any],
    say: LogLine,
    environment: Mapping[str, str] = os.environ,
) -> Notices:
    """Return the notices that lab.yml and the options of the command ask for; the options come first.

    The URL in PLIMSOLL_WEBHOOK is used only where lab.yml has `notify`: a night's is meant for
    `plimsoll regress`. Raises SettingsError with all problems.
    """
    asked = notify or Notify()
    given = {name: value for name, value in options.items() if value is not None}
    settings = {"notify_command": asked.command, "webhook_file": asked.webhook_file} | given
    wanted = environment if notify else {name: environment[name] for name in environment if name != URL_NAME}
    channels = open_channels(settings, wanted)
    if notify and not channels and (silence := notify.silence(environment)):
        say(f"{silence}.")
    return Notices(experiment, directory, list(channels.values()), asked.occasions or OCCASIONS, say)
