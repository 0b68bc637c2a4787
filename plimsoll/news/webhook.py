"""News to a webhook. Its URL is a secret."""

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import click
import requests

from plimsoll.common.errors import SettingsError
from plimsoll.common.files import read_secret
from plimsoll.common.hostile import printable
from plimsoll.news import notification
from plimsoll.news.notification import Channel, ChannelKind, Message, NotDeliveredError

TRIES = 3
URL_NAME = "PLIMSOLL_WEBHOOK"


def post_webhook(url: str, message: Message) -> None:
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
                timeout=notification.TIMEOUT_S,
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


def _open(file: Path | None, environment: Mapping[str, str]) -> Channel | None:
    url = _url(file, environment)
    return None if url is None else lambda message: post_webhook(url, message)


WEBHOOK = ChannelKind(
    name="webhook",
    parameter="webhook_file",
    option=click.option(
        "--webhook-file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="POST news to the URL in this file; without it to that in PLIMSOLL_WEBHOOK, if set.",
    ),
    open=_open,
)
