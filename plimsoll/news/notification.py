"""A message of news, and what every kind of channel that carries it has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 30.0


class NotDeliveredError(Exception):
    """A message did not arrive; the message says why, without any secret."""


@dataclass(frozen=True)
class Message:
    """A message of news. `markdown` is whole; names in it are escaped."""

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
