"""MariaDB's counters, from SHOW GLOBAL STATUS. The account is in a file that the client reads."""

from lab.machine import Machine
from lab.observers.counters import Reading, gauge, number, rate
from lab.observers.observer import Observer, Say, Source
from lab.observers.settings import MariadbSettings, ObserverOptions

_QUERY = "SHOW GLOBAL STATUS"


def command(settings: MariadbSettings) -> list[str]:
    """Return the client's argument list. Pure; no secret is in it."""
    # The client wants --defaults-file before anything else.
    return [
        *settings.client,
        f"--defaults-file={settings.defaults_file}",
        "--batch",
        "--skip-column-names",
        "--connect-timeout=1",
        f"--execute={_QUERY}",
    ]


def parse(text: str) -> dict[str, float]:
    """Return the status variables that are whole numbers."""
    found = {}
    for line in text.split("\n"):
        name, tab, value = line.rstrip("\r").partition("\t")
        if tab and (count := number(value)) is not None:
            found[name] = count
    return found


def earlier(now: Reading, before: Reading | None) -> Reading | None:
    """Return `before`, or None if the server was restarted since: all its counters began at 0."""
    if before is None or now.get("Uptime", 0) < before.get("Uptime", 0):
        return None
    return before


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
)


async def _prepare(_machine: Machine, options: ObserverOptions, _say: Say) -> Source | None:
    if options.mariadb is None:
        return None
    asked = tuple(command(options.mariadb))
    return Source("mariadb", COLUMNS, lambda texts: parse(texts[0]), command=asked, earlier=earlier)


OBSERVER = Observer("mariadb", COLUMNS, _prepare)
