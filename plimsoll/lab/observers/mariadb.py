"""MariaDB's counters, from SHOW GLOBAL STATUS. The account is in a file that the client reads.

Where performance_schema is on and the account may read it, also what its files took. One client asks many
times, so that a busy host has to start it seldom.
"""

import time
from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
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
    number,
    per,
    rate,
)
from plimsoll.lab.steps.step import is_file

_STATUS = "SHOW GLOBAL STATUS"
_TABLE = "performance_schema.events_waits_summary_global_by_event_name"
_LOG, _DATA, _BINLOG = (
    f"wait/io/file/{file}" for file in ("innodb/innodb_log_file", "innodb/innodb_data_file", "sql/binlog")
)
_FILES = ", ".join(f"'{file}'" for file in (_LOG, _DATA, _BINLOG))
# Picoseconds, as performance_schema has them.
WAITS = "; ".join(
    f"SELECT CONCAT(EVENT_NAME, ' {field}'), {column} FROM {_TABLE} WHERE EVENT_NAME IN ({_FILES})"  # noqa: S608
    for field, column in (("waits", "COUNT_STAR"), ("ps", "SUM_TIMER_WAIT"))
)
_MS_OF_PS = 1 / 1e9
_PROBE_TIMEOUT_S = 10.0
# One that runs in a container lives on there when the observing ends, so it must not live for ever.
_ROUNDS = 60
_END = "end of a round"  # no status variable: those have a tab
# With what the answer takes on a busy host it is still under a second, so that few are left without. The
# client's own shell sleeps: SLEEP() would be a query that the server counts, and may log as slow.
_PAUSE = r"\! sleep 0.5 || sleep 1"
_MOST_FIELDS = 10_000
_LONGEST = 200
_MOST_ERRORS = 10

_Argument = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]


class MariadbSettings(StrictModel):
    """The client that reads MariaDB's counters, and its option file."""

    defaults_file: str = Field(
        description="Option file on the client's machine, with `user` and `password` under `[client]`. "
        "Nothing secret is ever "
        "on a command line.",
        pattern=r"^/[^\x00-\x1f]+$",
        examples=["/etc/mysql/debian.cnf"],
    )
    client: tuple[_Argument, ...] = Field(
        ("mariadb",),
        min_length=1,
        description="Command of the client. Put words before it to run it elsewhere: [docker, exec, db, "
        "mariadb].",
    )


def command(settings: MariadbSettings, query: str = _STATUS) -> list[str]:
    """Return the client's argument list. Pure; no secret is in it."""
    # The client wants --defaults-file before anything else.
    return [
        *settings.client,
        f"--defaults-file={settings.defaults_file}",
        "--batch",
        "--skip-column-names",
        "--unbuffered",
        "--connect-timeout=1",
        f"--execute={query}",
    ]


def repeat_query(query: str) -> str:
    """Return the statements with which one client asks again and again. Pure."""
    return f"{query};\nSELECT '{_END}';\n{_PAUSE}\n" * _ROUNDS


def client_command(settings: MariadbSettings, query: str) -> list[str]:
    """Return the command that keeps a client asking, also one that found no server. Pure."""
    return [
        "sh",
        "-c",
        'while :; do "$@" 2>&1 || sleep 1; done',
        "sh",
        *command(settings, repeat_query(query)),
    ]


def parse(text: str) -> dict[str, float]:
    """Return the status variables that are whole numbers."""
    found = {}
    for line in text.split("\n"):
        name, tab, value = line.rstrip("\r").partition("\t")
        if tab and (count := number(value)) is not None:
            found[name] = count
    return found


def reading_before(now: Reading, before: Reading | None) -> Reading | None:
    """Return `before`, or None if the server was restarted since: all its counters began at 0."""
    if before is None or now.get("Uptime", 0) < before.get("Uptime", 0):
        return None
    return before


def _checkpoint_percent(pair: ReadingPair) -> float | None:
    age, most = pair.gauge("Innodb_checkpoint_age"), pair.gauge("Innodb_checkpoint_max_age")
    return None if age is None or not most else 100 * age / most


COLUMNS = (
    rate("queries_per_s", "Queries"),
    rate("slow_queries_per_s", "Slow_queries"),
    gauge("threads_running_count", "Threads_running"),
    gauge("threads_connected_count", "Threads_connected"),
    rate("pool_requests_per_s", "Innodb_buffer_pool_read_requests"),
    rate("pool_misses_per_s", "Innodb_buffer_pool_reads"),
    gauge("pool_dirty_pages_count", "Innodb_buffer_pool_pages_dirty"),
    rate("pool_waits_per_s", "Innodb_buffer_pool_wait_free"),
    rate("data_reads_per_s", "Innodb_data_reads"),
    rate("data_writes_per_s", "Innodb_data_writes"),
    rate("data_read_bytes_per_s", "Innodb_data_read"),
    rate("data_written_bytes_per_s", "Innodb_data_written"),
    rate("fsyncs_per_s", "Innodb_data_fsyncs"),
    rate("log_written_bytes_per_s", "Innodb_os_log_written"),
    rate("log_waits_per_s", "Innodb_log_waits"),
    rate("row_lock_waits_per_s", "Innodb_row_lock_waits"),
    rate("row_lock_time_ms_per_s", "Innodb_row_lock_time"),
    gauge("row_lock_current_waits_count", "Innodb_row_lock_current_waits"),
    rate("log_write_requests_per_s", "Innodb_log_write_requests"),
    rate("log_writes_per_s", "Innodb_log_writes"),
    rate("log_fsyncs_per_s", "Innodb_os_log_fsyncs"),
    gauge("log_pending_fsyncs_count", "Innodb_os_log_pending_fsyncs"),
    gauge("pending_fsyncs_count", "Innodb_data_pending_fsyncs"),
    gauge("checkpoint_age_bytes", "Innodb_checkpoint_age"),
    Column("checkpoint_percent", "Innodb_checkpoint_age / Innodb_checkpoint_max_age", _checkpoint_percent),
    per("log_file_wait_ms", f"{_LOG} ps", f"{_LOG} waits", _MS_OF_PS),
    per("data_file_wait_ms", f"{_DATA} ps", f"{_DATA} waits", _MS_OF_PS),
    per("binlog_wait_ms", f"{_BINLOG} ps", f"{_BINLOG} waits", _MS_OF_PS),
)


class MariadbReader:
    """What a client printed: the last whole round, and errors, each of which is reported once.

    `take` gives a pair whose elapsed time is that between two rounds: after a gap a rate is that of the gap.
    """

    def __init__(self, query: str = _STATUS, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.log: Log = lambda _: None
        self._echoes = {"-" * 14, *query.split("; ")}  # what a client prints around an error
        self._now_ns = now_ns
        self._errors = set[str]()
        self._coming: dict[str, float] = {}
        self._round: tuple[Reading, int] | None = None
        self._before: tuple[Reading, int] | None = None

    def add(self, line: str) -> None:
        """Take a line: of a round, its end, or why there is none."""
        if line.rstrip("\r") == _END:
            self._round, self._coming = (self._coming, self._now_ns()), {}
        elif "\t" in line:
            self._coming |= parse(line) if len(self._coming) < _MOST_FIELDS else {}
        elif line.strip() and line not in self._echoes:
            self._coming = {}
            error, _, _ = line.partition(":")
            if error not in self._errors and len(self._errors) < _MOST_ERRORS:
                self._errors.add(error)
                self.log(f"mariadb: {line.strip()[:_LONGEST]}")

    def take(self) -> ReadingPair:
        """Return the round that came since the last call; an empty one where none did."""
        if self._round is None:
            return ReadingPair({}, None, 1.0)
        reading, at_ns = self._round
        before, before_ns = self._before or (None, 0)
        self._before, self._round = self._round, None
        return ReadingPair(reading, reading_before(reading, before), (at_ns - before_ns) / 1e9)


class MariadbWatch(CommandStream):
    """One client that asks; a Stream."""

    def __init__(self, machine: Machine, settings: MariadbSettings, query: str = _STATUS) -> None:
        self._rounds = MariadbReader(query)
        super().__init__(
            "mariadb", COLUMNS, machine, client_command(settings, query), self._rounds, "the client"
        )

    async def start(self, log: Log) -> None:
        """Start the process. Raises MachineError."""
        self._rounds.log = log
        await super().start(log)


async def _prepare(machine: Machine, options: ObserverOptions, log: Log) -> MariadbWatch | None:
    settings = options.own(MariadbSettings)
    if settings is None:
        return None
    query = f"{_STATUS}; {WAITS}" if await _tells_waits(machine, settings, log) else _STATUS
    return MariadbWatch(machine, settings, query)


async def _tells_waits(machine: Machine, settings: MariadbSettings, log: Log) -> bool:
    """Return whether performance_schema is on and open: otherwise the query would fail or be empty."""
    try:
        asked = await machine.run(command(settings, WAITS), timeout_s=_PROBE_TIMEOUT_S, check=False)
    except MachineError:
        return False  # the sampling will say so
    if "denied" in asked.err and "performance_schema" in asked.err:
        log("mariadb: may not read performance_schema: GRANT SELECT ON performance_schema.* TO the account")
    return asked.status == 0 and bool(parse(asked.out))


OBSERVER = Observer(
    "mariadb",
    COLUMNS,
    _prepare,
    OwnKeys(
        MariadbSettings,
        "How the mariadb observer reads its counters.",
        needs="an option file: mariadb: {defaults_file: /…}",
        checks=lambda settings: [is_file("observe.mariadb.defaults_file", settings.defaults_file)],
    ),
)
