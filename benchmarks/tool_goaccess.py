"""goaccess: C. Parses and counts on one core (since 1.8 on several, if told to)."""

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.attack import NotUnderstoodError

_PANELS = (
    *("VISITORS", "REQUESTS", "REQUESTS_STATIC", "NOT_FOUND", "HOSTS", "OS", "BROWSERS", "VISIT_TIMES"),
    *("VIRTUAL_HOSTS", "REFERRERS", "REFERRING_SITES", "KEYPHRASES", "STATUS_CODES", "REMOTE_USER"),
    *("CACHE_STATUS", "GEO_LOCATION", "MIME_TYPE", "TLS_TYPE"),
)


@dataclass(frozen=True)
class Counted:
    valid: int
    failed: int
    bytes: int


def command(log: Path) -> list[str]:
    """As people run it: all of its panels."""
    return [
        "goaccess",
        str(log),
        "--log-format=COMBINED",
        "--no-global-config",
        "--no-progress",
        "-o",
        "json",
    ]


def count_only_command(log: Path) -> list[str]:
    """Its fastest honest arrangement for the same work: every line parsed and counted, no panel kept."""
    return [*command(log), *(f"--ignore-panel={panel}" for panel in _PANELS)]


def read(out: str) -> Counted:
    try:
        general = json.loads(out)["general"]
        return Counted(general["valid_requests"], general["failed_requests"], general["bandwidth"])
    except (ValueError, KeyError) as error:
        raise NotUnderstoodError(f"goaccess's JSON could not be read: {error}") from error
