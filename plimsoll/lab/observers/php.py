"""PHP-FPM's pool and OPcache: who waits for a worker, and whether PHP compiles what it compiled before."""

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, model_validator

from plimsoll.lab.machine import Machine, script_command
from plimsoll.lab.names import StrictModel
from plimsoll.lab.observers.observer import (
    Column,
    CommandStream,
    Log,
    Observer,
    ObserverOptions,
    OwnKeys,
    Reading,
    ReadingPair,
    gauge,
    rate,
)

_SCRIPT = Path(__file__).with_name("php_script.py")
_LARGEST = 1 << 53
_LONGEST = 200
_RESTARTS = ("oom_restarts", "hash_restarts", "manual_restarts")
_QUEUE, _QUEUE_LENGTH = "listen queue", "listen queue len"

_PAGE = r"^(/|http://[^/])[^\x00-\x20]*$"


class PhpSettings(StrictModel):
    """How PHP-FPM and OPcache are asked for their state, by the host itself."""

    fastcgi: str | None = Field(
        None,
        description="Socket of the pool, or of its `pm.status_listen`: `/run/php/php8.2-fpm.sock`, "
        "`127.0.0.1:9000`.",
        pattern=r"^(/[^\x00-\x1f]+|[^/\s:]+:[0-9]{1,5}|\[[0-9a-fA-F:]+\]:[0-9]{1,5})$",
        examples=["/run/php/php8.2-fpm.sock"],
    )
    status: str = Field(
        "/status",
        description="The pool's `pm.status_path`, or its address on the host: "
        "`http://127.0.0.1/status?json`.",
        pattern=_PAGE,
    )
    opcache: str | None = Field(
        None,
        description="Script that prints opcache_get_status(false) as JSON: its path on PHP's machine, or "
        "its address.",
        pattern=_PAGE,
    )

    @model_validator(mode="after")
    def _can_be_asked(self) -> "PhpSettings":
        by_socket = [page for page in (self.status, self.opcache) if page and not page.startswith("http")]
        if by_socket and self.fastcgi is None:
            raise ValueError(f"fastcgi: {by_socket[0]} is asked for at a socket: /run/php/php8.2-fpm.sock")
        return self


def _share(part: str, whole: str) -> Column:
    """Return a column: how much of `whole` `part` is, in percent."""

    def percent(pair: ReadingPair) -> float | None:
        of, all_ = pair.gauge(part), pair.gauge(whole)
        return None if of is None or not all_ else 100 * of / all_

    return Column("busy_percent", f"{part} / {whole}", percent)


COLUMNS = (
    gauge("status_wait_ms", "wait for the status page"),
    gauge("queue_count", _QUEUE),
    gauge("active_count", "active processes"),
    gauge("idle_count", "idle processes"),
    _share("active processes", "total processes"),
    rate("accepted_per_s", "accepted conn"),
    rate("max_children_reached_per_s", "max children reached"),
    rate("slow_requests_per_s", "slow requests"),
    rate("opcache_hits_per_s", "hits"),
    rate("opcache_misses_per_s", "misses"),
    gauge("opcache_used_bytes", "used_memory"),
    gauge("opcache_free_bytes", "free_memory"),
    gauge("opcache_wasted_bytes", "wasted_memory"),
    rate("opcache_restarts_per_s", " + ".join(_RESTARTS)),
)


def command(settings: PhpSettings) -> list[str]:
    """Return the command that asks once a second until it is ended. Pure."""
    return script_command(_SCRIPT, settings.fastcgi or "", settings.status, settings.opcache or "")


def parse(line: str) -> tuple[int, Reading, str | None] | None:
    """Return the instant (ns of the host), the figures, and what went wrong; None if there is no answer.

    What comes from a site is hostile: only numbers are kept.
    """
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or not isinstance(answer.get("at_ns"), int):
        return None
    found = _numbers(answer.get("status"))
    # Of a Unix socket FPM knows no queue, and says 0 for its length, too.
    if not found.pop(_QUEUE_LENGTH, 0):
        found.pop(_QUEUE, None)
    opcache = answer.get("opcache")
    if isinstance(opcache, dict):
        statistics = _numbers(opcache.get("opcache_statistics"))
        found |= _numbers(opcache.get("memory_usage")) | statistics
        if all(name in statistics for name in _RESTARTS):
            found[" + ".join(_RESTARTS)] = sum(statistics[name] for name in _RESTARTS)
    if (waited_ms := _numbers(answer).get("waited_ms")) is not None:
        found["wait for the status page"] = waited_ms
    error = answer.get("error")
    return answer["at_ns"], found, error[:_LONGEST] if isinstance(error, str) else None


def _numbers(answer: object) -> dict[str, float]:
    if not isinstance(answer, Mapping):
        return {}
    return {
        str(name): float(value)
        for name, value in answer.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST
    }


class PhpReader:
    """Reads the answers of the process that asks; an error is logged once until another comes."""

    def __init__(self) -> None:
        self.log: Log = lambda _: None
        self._error: str | None = None
        self._before: Reading | None = None
        self._before_ns = 0
        self._pair: ReadingPair | None = None

    def add(self, line: str) -> None:
        """Take a line."""
        if not (found := parse(line)):
            return
        at_ns, reading, error = found
        if error and error != self._error:
            self._error = error
            self.log(f"php: {error}")
        self._pair = ReadingPair(reading, self._before, (at_ns - self._before_ns) / 1e9)
        if len(reading) > 1:  # more than how long it waits
            self._before, self._before_ns = reading, at_ns

    def take(self) -> ReadingPair:
        """Return the answer that came since the last call; an empty one where none did."""
        taken, self._pair = self._pair, None
        return taken or ReadingPair({}, None, 1.0)


class PhpWatch(CommandStream):
    """One process that asks; a Stream."""

    def __init__(self, machine: Machine, settings: PhpSettings) -> None:
        self._answers = PhpReader()
        super().__init__("php", COLUMNS, machine, command(settings), self._answers)

    async def start(self, log: Log) -> None:
        """Start the process. Raises MachineError."""
        self._answers.log = log
        await super().start(log)


async def _prepare(machine: Machine, options: ObserverOptions, _log: Log) -> PhpWatch | None:
    settings = options.own(PhpSettings)
    return PhpWatch(machine, settings) if settings else None


OBSERVER = Observer(
    "php",
    COLUMNS,
    _prepare,
    OwnKeys(
        PhpSettings,
        "How the php observer asks PHP-FPM and OPcache.",
        needs="a socket: php: {fastcgi: /run/php/php8.2-fpm.sock}",
    ),
)
