"""The files for other programs that a comparison is written to: JUnit XML and Markdown."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from plimsoll.analysis.comparing.comparison import Comparison
from plimsoll.analysis.comparing.junit import junit
from plimsoll.analysis.comparing.markdown import markdown
from plimsoll.common.errors import OutputError
from plimsoll.common.files import open_output

_PATH = click.Path(path_type=Path)


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --junit and --markdown."""
    for flag, name, says in (
        ("--markdown", "markdown_file", "Write a summary in Markdown."),
        ("--junit", "junit_file", "Write JUnit XML."),
    ):
        command = click.option(flag, name, metavar="FILE", type=_PATH, help=says)(command)
    return command


@dataclass(frozen=True)
class Documents:
    """Where to write them; None is nowhere. `command` is the subcommand that they are named by."""

    command: str
    junit: Path | None
    markdown: Path | None

    def __post_init__(self) -> None:
        for path in (self.junit, self.markdown):
            if path is not None and path.is_dir():
                raise OutputError(f"{path}: is a directory; give the name of a file")

    @property
    def wanted(self) -> bool:
        """True where any is to be written."""
        return self.junit is not None or self.markdown is not None

    def write(self, comparison: Comparison) -> None:
        """Write each, whole or not at all. Raises OutputError."""
        if self.junit is not None:
            _write(self.junit, junit(comparison, self.command))
        if self.markdown is not None:
            _write(self.markdown, markdown(comparison).encode())


def _write(path: Path, data: bytes) -> None:
    with open_output(path) as file:
        file.write(data)
