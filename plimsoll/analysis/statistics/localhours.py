"""Hours and days as clocks on a wall have them, also where these change. Pure."""

from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from plimsoll.analysis.statistics.served import Integers
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable

HOUR_S, DAY_HOURS, WEEK_HOURS = 3600, 24, 168
_DAYS_A_WEEK = 7
_THURSDAY = 3  # 1970-01-01
UTC = "UTC"


def time_zone(name: str) -> ZoneInfo:
    """Return the zone `name`. Raises SettingsError with the remedy."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise SettingsError(
            f"{printable(name, 80)} is no time zone that this machine knows: give a name such as "
            "Europe/Berlin (Debian has them in the package tzdata)"
        ) from None


def local_hours(hours: Integers, zone: ZoneInfo) -> Integers:
    """Return the hours, since 1970 in UTC, as clocks of `zone` count them when each begins.

    An hour that clocks repeat is there twice; where a zone is half an hour off, its hours begin at the half.
    """
    known, place = np.unique(hours, return_inverse=True)
    shifted = np.array([each + _offset(int(each), zone) for each in known], dtype=np.int64)
    return shifted[place] if len(known) else hours


def weekday(day: int) -> int:
    """Return the day of the week, Monday 0, of a day since 1970-01-01."""
    return (day + _THURSDAY) % _DAYS_A_WEEK


@lru_cache(maxsize=1 << 16)
def _offset(hour: int, zone: ZoneInfo) -> int:
    ahead = datetime.fromtimestamp(hour * HOUR_S, zone).utcoffset()
    return 0 if ahead is None else int(ahead.total_seconds() // HOUR_S)
