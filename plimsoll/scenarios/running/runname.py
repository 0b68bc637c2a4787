"""The name of a run on the site: all that it makes there bears it, and is found without its files. Pure."""

import re
from datetime import datetime

# All names begin so: whoever looks for what runs left looks for this.
PREFIX = "plimsoll-run-"
# Lower case, digits and hyphens alone: a site keeps that in titles, addresses and file names alike.
NAME = re.compile(PREFIX + r"\d{8}t\d{6}z-[0-9a-f]{8}")


def run_name(now: datetime, chance: int) -> str:
    """Return the name of a run that starts `now` (UTC), such as `plimsoll-run-20261123t201500z-0badcafe`.

    `chance` of 32 bits tells apart what several machines, or workers, start in one second.
    """
    return f"{PREFIX}{now:%Y%m%dt%H%M%Sz}-{chance & 0xFFFFFFFF:08x}"


def is_run_name(text: str) -> bool:
    """Return True if `text` is the name of a run."""
    return NAME.fullmatch(text) is not None
