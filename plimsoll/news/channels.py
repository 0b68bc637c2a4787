"""The registry of channels: adding one is its module and its line here."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.common.errors import SettingsError
from plimsoll.news.notification import Channel, ChannelKind
from plimsoll.news.notify_command import COMMAND
from plimsoll.news.webhook import WEBHOOK

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
