"""Sends news: each message once a channel, again next time where it did not arrive."""

import json
import os
import shlex
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import requests

from analysis.errors import SettingsError
from analysis.history.night import instant
from analysis.history.schema import writing
from analysis.history.store import History, now
from analysis.hostile import printable

TIMEOUT_S = 30.0
TRIES = 3
MOST_ATTEMPTS = 20  # nights: after that nobody waits for it
DEAD_AFTER_S = 600.0  # an attempt that has not ended by then was killed
# Neither sent, nor being sent by somebody who lives.
_PENDING = "(delivered_at IS NULL OR (delivered_at LIKE 'since %' AND delivered_at < ?))"
URL_NAME = "PLIMSOLL_WEBHOOK"


class NotDeliveredError(Exception):
    """A message did not arrive; the message says why, without any secret."""


@dataclass(frozen=True)
class Message:
    """What is sent. `markdown` is whole; names in it are escaped."""

    verdict: str
    subject: str
    markdown: str


Channel = Callable[[Message], None]


def channels(
    command: str | None, webhook_file: Path | None, environment: Mapping[str, str] = os.environ
) -> dict[str, Channel]:
    """Return how to send, by name. Raises SettingsError with all problems."""
    found: dict[str, Channel] = {}
    problems = []
    if command is not None:
        try:
            words = shlex.split(command)
        except ValueError as error:
            problems.append(f"--notify-command: {error}")
            words = ["-"]
        if not words:
            problems.append("--notify-command: is empty; give a program and its arguments")
        found["command"] = lambda message: by_command(words, message)
    try:
        url = _url(webhook_file, environment)
        if url is not None:
            found["webhook"] = lambda message: by_webhook(url, message)
    except SettingsError as error:
        problems.append(str(error))
    if problems:
        raise SettingsError("\n".join(problems))
    return found


def announce(history: History, key: str, message: Message, names: Sequence[str]) -> None:
    """Keep a message to be sent, once a `key`, by the channels `names`."""
    with writing(history.connection):
        cursor = history.connection.execute(
            "INSERT OR IGNORE INTO message (key, made_at, verdict, subject, markdown) VALUES (?, ?, ?, ?, ?)",
            (key, now(), message.verdict, message.subject, message.markdown),
        )
        if cursor.rowcount:
            for name in names:
                history.connection.execute(
                    "INSERT INTO delivery (message, channel) VALUES (?, ?)", (cursor.lastrowid, name)
                )


def deliver(history: History, by: Mapping[str, Channel]) -> list[str]:
    """Send what is to be sent, and note what arrived. Return what did not, a sentence each."""
    problems = []
    for name, send in by.items():
        pending = history.connection.execute(
            "SELECT message.* FROM delivery JOIN message "  # noqa: S608 our own text
            f"ON message.id = delivery.message WHERE channel = ? AND {_PENDING} AND attempts < ? "
            "ORDER BY message.id",
            (name, _abandoned(), MOST_ATTEMPTS),
        ).fetchall()
        for row in pending:
            if not _claimed(history, row["id"], name):
                continue
            try:
                send(Message(row["verdict"], row["subject"], row["markdown"]))
            except NotDeliveredError as error:
                _settle(history, row["id"], name, None)
                problems.append(f"the message did not go out, and will be sent again next time: {error}")
            else:
                _settle(history, row["id"], name, now())
    return problems


def _claimed(history: History, message: int, channel: str) -> bool:
    """Take a message to send it: of two processes, one gets it. An attempt counts before it is made."""
    with writing(history.connection):
        cursor = history.connection.execute(
            "UPDATE delivery SET attempts = attempts + 1, delivered_at = 'since ' || ? "  # noqa: S608 our own
            f"WHERE message = ? AND channel = ? AND {_PENDING}",
            (now(), message, channel, _abandoned()),
        )
        return cursor.rowcount == 1


def _abandoned() -> str:
    """Return the mark of the youngest attempt that must have died."""
    return f"since {instant(datetime.now(UTC) - timedelta(seconds=DEAD_AFTER_S))}"


def _settle(history: History, message: int, channel: str, at: str | None) -> None:
    with writing(history.connection):
        history.connection.execute(
            "UPDATE delivery SET delivered_at = ? WHERE message = ? AND channel = ?", (at, message, channel)
        )


def by_command(words: Sequence[str], message: Message) -> None:
    """Run a command of the user's, no shell, with the Markdown as its input. Raises NotDeliveredError."""
    told = {"PLIMSOLL_VERDICT": message.verdict, "PLIMSOLL_SUBJECT": printable(message.subject, 200)}
    kept = {name: value for name, value in os.environ.items() if name != URL_NAME}
    name = printable(words[0], 100)
    try:
        done = subprocess.run(  # noqa: S603 the user's own command
            list(words),
            input=message.markdown.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=kept | told,
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


def by_webhook(url: str, message: Message) -> None:
    """POST the message as JSON. Raises NotDeliveredError, which never shows the URL: it is a secret."""
    body = {
        "text": f"{printable(message.subject)}\n\n{message.markdown}",
        "verdict": message.verdict,
        "subject": printable(message.subject),
        "markdown": message.markdown,
    }
    problem = ""
    for _ in range(TRIES):
        try:
            answer = requests.post(
                url,
                data=json.dumps(body),
                headers={"Content-Type": "application/json"},
                timeout=TIMEOUT_S,
                allow_redirects=False,  # the message is for whom the user named
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


def _url(file: Path | None, environment: Mapping[str, str]) -> str | None:
    where = URL_NAME if file is None else f"--webhook-file: {file}"
    url = environment.get(URL_NAME, "") if file is None else _secret(file)
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


def _secret(path: Path) -> str:
    """Return the first line of `path`. Raises SettingsError if others may read it, or it cannot be read."""
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SettingsError(f"--webhook-file: {path} is open to others; run: chmod 600 {path}")
        return path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except OSError as error:
        raise SettingsError(f"--webhook-file: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"--webhook-file: {path} is no UTF-8 text") from None
