"""What a kind of finding means."""

from typing import NamedTuple

from plimsoll.common.errors import Severity


class Rule(NamedTuple):
    """What a kind of finding means. `BAD` disqualifies: nothing is decided by the runs that it concerns."""

    name: str
    level: Severity
    meaning: str
    remedy: str
