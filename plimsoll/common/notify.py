"""Messages to a command or a webhook: how `plimsoll regress` and `plimsoll run` notify their users.

The contract comes first; a channel is a section of this file and a line in `CHANNELS`.
"""

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from plimsoll.common.errors import SettingsError
from plimsoll.common.files import read_secret
from plimsoll.common.hostile import printable

TIMEOUT_S = 30.0
URL_NAME = "PLIMSOLL_WEBHOOK"  # its value is a secret
_TRIES = 3


class NotDeliveredError(Exception):
    """A message did not arrive; the message says why, without any secret."""


@dataclass(frozen=True)
class Message:
    """A notification. `markdown` is complete; names in it are escaped."""

    verdict: str
    subject: str
    markdown: str


Channel = Callable[[Message], None]  # raises NotDeliveredError


@dataclass(frozen=True)
class ChannelKind:
    """One kind of channel: its name in the history, its option of the command line, and how to open it.

    `open` takes the option's value and the environment, and returns None where neither asks for the channel.
    It raises SettingsError.
    """

    name: str
    parameter: str
    option: Callable[[Callable[..., Any]], Callable[..., Any]]
    open: Callable[[Any, Mapping[str, str]], Channel | None]


def send_to_command(words: Sequence[str], message: Message) -> None:
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
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotDeliveredError(f"{name} did not end within {TIMEOUT_S:g} s") from None
    except (OSError, ValueError) as error:
        raise NotDeliveredError(
            f"{name} cannot be run: {getattr(error, 'strerror', None) or error}"
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise NotDeliveredError(f"{name} ended with {done.returncode}: {printable(said, 200) or 'no word'}")


def _open_command(command: str | None, _: Mapping[str, str]) -> Channel | None:
    if command is None:
        return None
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SettingsError(f"--notify-command: {error}") from None
    if not words:
        raise SettingsError("--notify-command: is empty; give a program and its arguments")
    return lambda message: send_to_command(words, message)


COMMAND = ChannelKind(
    name="command",
    parameter="notify_command",
    option=click.option(
        "--notify-command",
        metavar="COMMAND",
        help="Run this command when there is news, with the Markdown as its input.",
    ),
    open=_open_command,
)


def post_webhook(url: str, message: Message) -> None:
    """POST the message as JSON. Raises NotDeliveredError, which never shows the URL: it is a secret."""
    import requests

    body = {
        "text": f"{printable(message.subject)}\n\n{message.markdown}",
        "verdict": message.verdict,
        "subject": printable(message.subject),
        "markdown": message.markdown,
    }
    problem = ""
    for _ in range(_TRIES):
        try:
            answer = requests.post(
                url,
                data=json.dumps(body),
                headers={"Content-Type": "application/json"},
                timeout=TIMEOUT_S,
                allow_redirects=False,  # the message is for the address that the user named
            )
        except requests.RequestException as error:
            problem = f"the webhook cannot be reached ({type(error).__name__})"
            continue
        if answer.status_code < 300:
            return
        problem = f"the webhook answered {answer.status_code}"
        if answer.status_code < 500 and answer.status_code != 429:
            break
    raise NotDeliveredError(problem)


def _read_url(file: Path | None, environment: Mapping[str, str]) -> str | None:
    where = URL_NAME if file is None else f"--webhook-file: {file}"
    url = environment.get(URL_NAME, "") if file is None else read_secret("--webhook-file", file)
    if not url and file is None:
        return None
    try:
        parts = urlsplit(url)
        well = (
            parts.scheme in ("http", "https") and bool(parts.hostname) and not any(c.isspace() for c in url)
        )
    except ValueError:
        well = False
    if not well:
        raise SettingsError(f"{where}: must hold one URL that begins with https:// or http://")
    return url


def _open_webhook(file: Path | None, environment: Mapping[str, str]) -> Channel | None:
    url = _read_url(file, environment)
    return None if url is None else lambda message: post_webhook(url, message)


WEBHOOK = ChannelKind(
    name="webhook",
    parameter="webhook_file",
    option=click.option(
        "--webhook-file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="POST news to the URL in this file. Default: the URL in PLIMSOLL_WEBHOOK, if set.",
    ),
    open=_open_webhook,
)


CHANNELS: list[ChannelKind] = [COMMAND, WEBHOOK]


def channel_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of all channels."""
    for kind in reversed(CHANNELS):
        function = kind.option(function)
    return function


def open_channels(
    options: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> dict[str, Channel]:
    """Return the channels that are asked for, by name. Raises SettingsError with all problems."""
    found: dict[str, Channel] = {}
    problems = []
    for kind in CHANNELS:
        try:
            channel = kind.open(options[kind.parameter], environment)
        except SettingsError as error:
            problems.append(str(error))
            continue
        if channel is not None:
            found[kind.name] = channel
    if problems:
        raise SettingsError("\n".join(problems))
    return found
