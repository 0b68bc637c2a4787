"""The Grinder 3.11: Java with Jython. Its agent starts one worker process, which logs every test."""

from collections.abc import Iterable

from benchmarks.attack import Flood, NotUnderstoodError, Throughput
from benchmarks.paths import GRINDER, HERE

# Java translates Jython to machine code while it runs, which on one core takes many seconds. The Grinder gets
# them beforehand, so that it is compared at its best.
WARM_UP_S = 15
DATA_LOG = "log/peer-0-data.log"


def files(flood: Flood) -> dict[str, str]:
    return {
        "grinder.properties": f"""grinder.processes=1
grinder.threads={flood.connections}
grinder.runs=0
grinder.duration={(WARM_UP_S + flood.seconds) * 1000}
grinder.hostID=peer
grinder.useConsole=false
grinder.numberOfOldLogs=0
grinder.logDirectory={flood.scratch}/log
grinder.script={HERE}/grinder/grinder.py
peers.url={flood.url}
""",
    }


def command(flood: Flood) -> list[str]:
    return [
        *("java", "-cp", str(GRINDER / "lib" / "*")),
        "org.python.util.jython",
        str(HERE / "grinder" / "agent.py"),
        str(flood.scratch / "grinder.properties"),
    ]


def read(flood: Flood, data_log: Iterable[str]) -> Throughput:
    """From its data log: the tests that ended within the last seconds of the run."""
    ends_ms: list[int] = []
    failed_at_ms: list[int] = []
    for line in data_log:
        columns = line.split(", ")
        if not columns[0].isdigit():
            continue  # the header
        end_ms = int(columns[3]) + int(columns[4])
        ends_ms.append(end_ms)
        if columns[5] != "0" or columns[8] != "0":
            failed_at_ms.append(end_ms)
    if not ends_ms:
        raise NotUnderstoodError("The Grinder's data log is empty")
    first_ms, last_ms = min(ends_ms), max(ends_ms)
    from_ms = last_ms - flood.seconds * 1000
    counted = sum(end_ms > from_ms for end_ms in ends_ms)
    return Throughput(
        requests=counted,
        seconds=flood.seconds,
        errors=sum(end_ms > from_ms for end_ms in failed_at_ms),
        warm_up_requests=len(ends_ms) - counted,
        warm_up_seconds=max(0, from_ms - first_ms) / 1000,
    )
