"""The documents say what is there, and what they show works."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.statistics.percentiles import P999
from plimsoll.cli import main
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import ROOT
from tests.support.rundir import traffic, write_run

DOCS = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if path.exists()]


def test_the_example_that_reads_a_run_directory_works(tmp_path: Path) -> None:
    table = traffic(60, 30)
    write_run(tmp_path / "results" / "latest", table[(table["error"] == 0) & (table["status"] < 400)])
    text = (ROOT / "docs" / "run-format.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code
    assert len(code[1].splitlines()) == 5
    ran = subprocess.run(
        [sys.executable, "-c", code[1]], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    said = (
        measure_figures(RunDirectory.open(tmp_path / "results" / "latest"))
        .samples["response"]
        .percentile_ms(P999)
    )
    assert f"{said} ms" in ran.stdout


def _commands(group: click.Group = main, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its whole name; scenarios have a test of their own."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        whole = f"{path} {name}".strip()
        if isinstance(command, click.Group) and name != "scenario":
            yield from _commands(command, whole)
        elif command is not None:
            yield whole, command


COMMANDS = dict(_commands())


def _flags() -> list[tuple[str, str]]:
    found = []
    for name, command in COMMANDS.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                found += [(name, flag) for flag in [*parameter.opts, *parameter.secondary_opts]]
    return found


def test_there_are_commands_to_document() -> None:
    assert {"report", "merge", "import k6", "scenario"} <= COMMANDS.keys()


@pytest.mark.parametrize(("command", "flag"), _flags())
def test_every_flag_is_documented(command: str, flag: str) -> None:
    pages = [text for path in DOCS if f"plimsoll {command}" in (text := path.read_text(encoding="utf-8"))]
    assert any(f"`{flag}" in text for text in pages), f"{flag} of plimsoll {command} is in no document"


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_documented_and_its_help_has_an_example(command: str) -> None:
    assert any(f"`plimsoll {command}" in path.read_text(encoding="utf-8") for path in DOCS)
    assert re.search(rf"Examples?:\n\s+plimsoll {command} ", _help(command))


def _help(command: str) -> str:
    """Return what --help prints. Scenarios patch the process that imports them, so theirs is another."""
    if command == "scenario":
        words = [sys.executable, "-m", "plimsoll", command, "--help"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout
    ran = CliRunner().invoke(main, [*command.split(), "--help"], prog_name="plimsoll")
    assert ran.exit_code == 0
    return ran.output
