"""The table that The Grinder itself makes at the end of a worker's log."""

import re
from pathlib import Path

_ROW = re.compile(r"^(Test \d+|Totals) +(\d+) +(\d+) +(\S+) +(\S+) ", re.MULTILINE)


def its_own_table(worker_log: Path) -> dict[str, tuple[str, str, str, str]]:
    """Tests, errors, mean and deviation of each test, without those that enclose others, and of all."""
    rows = _ROW.findall(worker_log.read_text())
    return {name: (tests, errors, mean, deviation) for name, tests, errors, mean, deviation in rows}
