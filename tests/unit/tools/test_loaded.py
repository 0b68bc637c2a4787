"""The help of a command is there at once: it loads nothing that only the work itself needs."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from plimsoll.cli import GROUPS, main
from plimsoll.common.config import ENGINE
from plimsoll.scenarios import MODULES, find_scenario

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
PROGRAM = """
import sys
from plimsoll.cli import main
try:
    main(sys.argv[1:] + ["--help"])
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
    ran = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    loaded = ran.stdout.splitlines()[-1].split()[1:]
    assert HEAVY.intersection(loaded) <= ({"pydantic", "yaml"} if words in WITH_SETTINGS else set())
    assert len(loaded) < (MOST_WITH_SETTINGS if words in WITH_SETTINGS else MOST_MODULES)
