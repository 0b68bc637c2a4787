"""The names of The Grinder's tests. The data log has their numbers only.

A worker writes their descriptions into the table at the end of its own log, `load-0.log` beside
`load-0-data.log` (before 3.7: `out_load-0.log` beside `data_load-0.log`), where tests that enclose others
stand in parentheses. A data log that `bin/replay` wrote has `routes.json` beside it.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.analysis.exchange.lines import CutOffError, ImportingError, read_file_lines
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.rundir.names import FACTS_FILE, ROUTES_FILE
from plimsoll.rundir.read import read_json

_LONGEST = 48
_TAIL_BYTES, _HEAD_LINES = 1 << 20, 50
_DATA_LOGS = (
    (re.compile(r"(.+)-data\.log(\d*)(?:\.gz)?"), r"\1.log\2"),
    (re.compile(r"data_(.+)\.log(\d*)(?:\.gz)?"), r"out_\1.log\2"),
)
_TABLE = "Final statistics for this process"
_ROW = re.compile(r'(\()?Test (-?\d{1,10})\b[^"]*(?:"(.*?)"?)?')
_VERSION = re.compile(r"The Grinder (?:version )?(\d[\w.-]{0,20})")
_GIVEN = re.compile(r"\s*(-?\d{1,10})(?:\s*[=:,]\s*|\s+)(\S.*?)\s*")


@dataclass
class TestNames:
    """Descriptions by number of test; numbers of tests that enclose others; the version of The Grinder."""

    descriptions: dict[int, str] = field(default_factory=dict)
    composite: set[int] = field(default_factory=set)
    version: str | None = None
    _used: dict[str, int] = field(default_factory=dict)

    def of(self, number: int) -> str:
        """Return what to call test `number`: its description, short, and no other test's."""
        name = self.descriptions.get(number, "").strip()
        if not name:
            return f"test {number}"
        name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
        if self._used.setdefault(name, number) != number:
            name = f"{name} (test {number})"
        return name

    def add(self, further: "TestNames") -> None:
        """Take what is new in `further`."""
        self.descriptions = further.descriptions | self.descriptions
        self.composite |= further.composite
        self.version = self.version or further.version


def read_test_names(path: Path) -> dict[int, str]:
    """Return what file `path` calls the tests: a number and a name on each line. Raises SettingsError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from None
    names, wrong = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if found := _GIVEN.fullmatch(line):
            names[int(found[1])] = found[2]
        else:
            wrong.append(
                f"{path}: line {number}: {line.strip()[:60]!r} is no number and name, such as: 1 Front page"
            )
    if wrong:
        raise SettingsError("\n".join(printable(one) for one in wrong))
    return names


def find_test_names(data_log: Path) -> TestNames:
    """Return what is known beside `data_log`; nothing where nothing is there."""
    found = TestNames()
    for worker_log in _worker_logs(data_log):
        if worker_log.is_file():
            with suppress(OSError, ImportingError):  # names are a courtesy
                return _from_worker_log(worker_log)
    if (data_log.parent / FACTS_FILE).is_file():
        routes = read_json(data_log.parent / ROUTES_FILE)
        if isinstance(routes, list):
            found.descriptions = {number: str(route) for number, route in enumerate(routes, 1)}
    return found


def _worker_logs(data_log: Path) -> list[Path]:
    for pattern, name in _DATA_LOGS:
        if found := pattern.fullmatch(data_log.name):
            plain = data_log.with_name(found.expand(name))
            return [plain, plain.with_name(f"{plain.name}.gz")]
    return []


def _from_worker_log(path: Path) -> TestNames:
    found, in_table = TestNames(), False
    for line in _head_and_tail(path):
        if found.version is None and (version := _VERSION.search(line)):
            found.version = version[1]
        if _TABLE in line:
            in_table = True
        elif in_table and (row := _ROW.fullmatch(line.strip())):
            number = int(row[2])
            if row[3]:
                found.descriptions.setdefault(number, row[3])
            if row[1]:
                found.composite.add(number)
    return found


def _head_and_tail(path: Path) -> Iterator[str]:
    """Yield the first lines, and those of the last MiB: between stands each request. Of gzip, all lines."""
    whole = path.suffix == ".gz"
    rest = 0 if whole else max(path.stat().st_size - _TAIL_BYTES, 0)
    if whole or rest:
        try:
            for number, line in enumerate(read_file_lines(path)):
                if not whole and number == _HEAD_LINES:
                    break
                yield line.decode("utf-8", errors="replace")
        except CutOffError:
            return
    if not whole:
        with path.open("rb") as file:
            file.seek(rest)
            for line in file.read(_TAIL_BYTES).splitlines():
                yield line.decode("utf-8", errors="replace")
