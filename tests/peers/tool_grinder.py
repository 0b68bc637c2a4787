"""The Grinder 3.11: Java with Jython. Its agent starts one worker process, which logs its totals."""

import re

from .attack import Flood, NotUnderstoodError, Throughput
from .paths import GRINDER, HERE

LOG = "log/peer-0.log"


def files(flood: Flood) -> dict[str, str]:
    return {
        "grinder.properties": f"""grinder.processes=1
grinder.threads={flood.connections}
grinder.runs=0
grinder.duration={flood.seconds * 1000}
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


def read(flood: Flood, log: str) -> Throughput:
    """From the worker's log: a line of totals, and how long the worker's clock ran."""
    elapsed = re.search(r"elapsed time is (\d+) ms", log)
    totals = re.search(r"^Totals\s+(\d+)\s+(\d+)\s", log, re.MULTILINE)
    if elapsed is None or totals is None:
        raise NotUnderstoodError("The Grinder's worker logged no totals")
    return Throughput(int(totals[1]), int(elapsed[1]) / 1000, int(totals[2]))
