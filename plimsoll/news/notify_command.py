"""News to a command of the user's."""

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence

import click

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.news import notification
from plimsoll.news.notification import Channel, ChannelKind, Message, NotDeliveredError
from plimsoll.news.webhook import URL_NAME


def run_command(words: Sequence[str], message: Message) -> None:
    """Run a command of the user's, no shell, with the Markdown as its input. Raises NotDeliveredError."""
    facts = {"PLIMSOLL_VERDICT": message.verdict, "PLIMSOLL_SUBJECT": printable(message.subject, 200)}
    environment = {name: value for name, value in os.environ.items() if name != URL_NAME}
    name = printable(words[0], 100)
    try:
        done = subprocess.run(  # noqa: S603 the user's own command
            list(words),
            input=message.markdown.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment | facts,
            timeout=notification.TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotDeliveredError(f"{name} did not end within {notification.TIMEOUT_S:g} s") from None
    except (OSError, ValueError) as error:
        raise NotDeliveredError(
            f"{name} cannot be run: {getattr(error, 'strerror', None) or error}"
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise NotDeliveredError(f"{name} ended with {done.returncode}: {printable(said, 200) or 'no word'}")


def _open(command: str | None, _: Mapping[str, str]) -> Channel | None:
    if command is None:
        return None
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SettingsError(f"--notify-command: {error}") from None
    if not words:
        raise SettingsError("--notify-command: is empty; give a program and its arguments")
    return lambda message: run_command(words, message)


COMMAND = ChannelKind(
    name="command",
    parameter="notify_command",
    option=click.option(
        "--notify-command", metavar="COMMAND", help="Run this on news, with the Markdown as its input."
    ),
    open=_open,
)
