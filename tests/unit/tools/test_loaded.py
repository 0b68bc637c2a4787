"""The help of a command loads nothing that only its work needs; nor does a report what only others need."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from plimsoll.cli import GROUPS, main
from plimsoll.common.config import ENGINE
from plimsoll.scenarios import MODULES, find_scenario
from tests.support.programs import FIXTURES

MOST_MODULES = 200  # click alone takes 110 of Python's own
HEAVY = {
    *("PIL", "asyncio", "asyncssh", "dns", "gevent", "jinja2", "locust", "lxml", "numpy", "plotly"),
    *("prometheus_client", "proxmoxer", "pyarrow", "pydantic", "pypdf", "requests", "rich", "scipy"),
    *("sqlite3", "starlette", "uvicorn", "yaml"),
}
# Options that are read from settings: models of pydantic, which brings some modules more.
WITH_SETTINGS = [
    *(["clone"], ["clone", "add"], ["clone", "list"], ["scenario", "clean-up"]),
    *(
        ["scenario", name]
        for name in MODULES
        if find_scenario(name).settings().__module__ == "plimsoll.scenarios.settings"
    ),
]
MOST_WITH_SETTINGS = 300
ONE_RUN = FIXTURES / "run-go"
ONLY_OTHERS = {
    *("numpy.ma", "numpy.random", "plotly", "scipy", "tomllib", "yaml"),
    *("plimsoll.analysis.statistics.standardised", "plimsoll.common.validation"),
}
PROGRAM = """
import sys
from plimsoll.cli import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code
print("loaded", *sys.modules)
"""


def helps(words: list[str], command: click.Command) -> Iterator[list[str]]:
    """Yield the words of the command and of those below it."""
    yield words
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from helps([*words, name], below)


def all_helps() -> Iterator[list[str]]:
    yield []
    for name in (name for commands in GROUPS.values() for name in commands):
        if name not in ENGINE | {"clone"}:
            command = main.get_command(click.Context(main), name)
            assert command
            yield from helps([name], command)
    yield from WITH_SETTINGS


@pytest.mark.parametrize(
    "words", [pytest.param(words, id=" ".join(words) or "plimsoll") for words in all_helps()]
)
def test_the_help_loads_nothing_heavy(words: list[str]) -> None:
    modules = loaded(*words, "--help")
    assert HEAVY.intersection(modules) <= ({"pydantic", "yaml"} if words in WITH_SETTINGS else set())
    assert len(modules) < (MOST_WITH_SETTINGS if words in WITH_SETTINGS else MOST_MODULES)


def test_the_report_on_one_run_loads_nothing_that_only_others_need(tmp_path: Path) -> None:
    modules = loaded("report", str(ONE_RUN), "--out", str(tmp_path / "report.html"))
    assert not ONLY_OTHERS.intersection(modules)


def loaded(*words: str) -> list[str]:
    """Return the modules that the command of these words has loaded when it ends."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1].split()[1:]
