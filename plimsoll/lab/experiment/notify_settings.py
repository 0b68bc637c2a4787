"""The key `notify` of lab.yml: who is told what, and how."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from plimsoll.common.notify import URL_NAME
from plimsoll.lab.names import StrictModel

Occasion = Literal["end", "failure", "set-aside"]
OCCASIONS: tuple[Occasion, ...] = ("end", "failure", "set-aside")


class Notify(StrictModel):
    """Notices of an experiment. No secret stands here: the URL of a web hook is in a file of its own."""

    command: str | None = Field(None, description="Command to run, with the notice as its input in Markdown.")
    webhook_file: Path | None = Field(
        None, description="File that holds the URL to POST to. Default: that in PLIMSOLL_WEBHOOK, if set."
    )
    occasions: list[Occasion] = Field(
        list(OCCASIONS),
        min_length=1,
        description="What to tell of: [end, failure, set-aside], which is the default, or some of them.",
    )

    def unheard(self, environment: Mapping[str, str]) -> str | None:
        """Return what to do where these keys, with the environment, tell nobody; None where they tell."""
        if self.command or self.webhook_file or environment.get(URL_NAME):
            return None
        return (
            f"notify: tells nobody: give command or webhook_file, set {URL_NAME}, or start plimsoll run "
            "with --notify-command or --webhook-file"
        )

    @field_validator("command")
    @classmethod
    def _words(cls, command: str | None) -> str | None:
        try:
            empty = command is not None and not shlex.split(command)
        except ValueError as error:
            raise ValueError(f"is no command line: {error}") from None
        if empty:
            raise ValueError("is empty; give a program and its arguments")
        return command
