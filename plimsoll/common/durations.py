"""Durations as people write them: 36h, 10d, 90m."""

import re

_UNITS_S = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s?(s|m|min|h|d)", re.ASCII)
_LONG_H = 72


def parse_duration_s(text: str) -> float:
    """Return the seconds that `90s`, `45m`, `36h` or `10d` stands for. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip())
    if not found or float(found[1]) == 0:
        raise ValueError("must be a duration, such as 45m, 36h or 10d")
    return float(found[1]) * _UNITS_S[found[2]]


def duration_text(duration_s: float) -> str:
    """Return a long duration in words, rounded down: `36 h`, `45 min`, `312 days`."""
    hours = int(duration_s // 3600)
    if hours >= _LONG_H:
        return f"{hours // 24} days"
    return f"{hours} h" if hours else f"{int(duration_s // 60)} min"
