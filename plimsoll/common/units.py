"""Numbers, sizes and durations as people read and write them. Absent figures are a dash."""

import math
import re
from collections.abc import Sequence

ABSENT = "–"
WRONG_ANSWER = "wrong answer"  # in place of a time that no good answer took


def milliseconds(value_ms: float | None) -> str:
    """Return a time in the unit that suits it, three digits: `0.85 ms`, `412 ms`, `1.24 s`, `2 min 5 s`."""
    if value_ms is None:
        return ABSENT
    if value_ms < 999.5:
        return f"{significant(value_ms)} ms"
    if value_ms < 119_500:
        return f"{significant(value_ms / 1000)} s"
    return seconds(value_ms / 1000)


def plain_ms(value_ms: float | None) -> str:
    """Return a time in milliseconds without its unit, for columns that say it: `1,240.5`."""
    if value_ms is None:
        return ABSENT
    return f"{value_ms:,.1f}" if value_ms >= 100 else f"{value_ms:,.2f}"


def at_least(shown: str) -> str:
    """Return a figure of which only a lower bound is known: `≥ 30 s`."""
    return f"≥ {shown}"


def seconds(value_s: float) -> str:
    """Return a duration: `0.4 s`, `48 s`, `2 min 5 s`, `3 h 20 min`."""
    if value_s < 9.95:
        return f"{significant(value_s)} s"
    whole = round(value_s)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    minutes = round(value_s / 60)
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


def hours_minutes(value_s: float) -> str:
    """Return whole hours and minutes as The Grinder's users write them: `1:05`."""
    minutes = int(value_s // 60)
    return f"{minutes // 60}:{minutes % 60:02d}"


def count(value: int | None) -> str:
    """Return a count with commas between thousands."""
    return ABSENT if value is None else f"{value:,}"


def counted(value: int, one: str, many: str | None = None) -> str:
    """Return a count and its noun: `1 request`, `2,000 requests`."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def listed(words: Sequence[str], most: int = 4) -> str:
    """Return `words` as a list, `a, b and c`, whose end is counted where there are more than `most`."""
    shown = (
        list(words[:most]) if len(words) <= most else [*words[: most - 1], f"{len(words) - most + 1} more"]
    )
    return " and ".join([", ".join(shown[:-1]), *shown[-1:]] if len(shown) > 1 else shown)


def decimal(value: float | None, places: int = 1) -> str:
    """Return a number with so many decimals and commas between thousands."""
    return ABSENT if value is None else f"{value:,.{places}f}"


def share(part: int, whole: int) -> str:
    """Return `part` of `whole` in percent: `0.13 %`, never 0 % of something, nor 100 % of less than all."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.01:
        return "under 0.01 %"
    if 99.99 < percent < 100:
        return "over 99.99 %"
    return f"{significant(percent, 4 if 99.9 < percent < 100 else 3)} %"


def percent(share: float, digits: int = 3) -> str:
    """Return a share in percent: `8.13 %`."""
    return f"{significant(100 * share, digits)} %"


def significant(value: float, digits: int = 3) -> str:
    """Return `value` ≥ 0 to so many significant digits, without exponents: `0.853`, `412`, `1,240`."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = int(f"{rounded:e}".partition("e")[2])
    text = f"{rounded:,.{min(max(digits - 1 - exponent, 0), 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


LARGEST_BYTES = 1 << 50  # sizes beyond 1 PiB are slips of the pen
_SIZE_UNITS = ("", "K", "M", "G", "T")  # powers of 1024
_SIZE = re.compile(r"(\d{1,15})\s?(?:([KMGT])(?:i?B)?|B)?", re.IGNORECASE | re.ASCII)


def parse_size(text: str) -> int:
    """Return the bytes that `16K`, `1 MiB` or `131072` stands for. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise ValueError("must be a size, such as 16K, 1M or 131072")
    return int(found[1]) << 10 * _SIZE_UNITS.index((found[2] or "").upper())


def size_text(size_bytes: int) -> str:
    """Return a size in the largest unit that leaves it whole: `2 GiB`, `16 KiB`, `1000 B`."""
    for power in range(len(_SIZE_UNITS) - 1, 0, -1):
        if size_bytes and size_bytes % (1 << 10 * power) == 0:
            return f"{size_bytes >> 10 * power} {_SIZE_UNITS[power]}iB"
    return f"{size_bytes} B"


_UNITS_S = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s?(s|m|min|h|d)", re.ASCII)
_LONG_H = 72


def parse_duration_s(text: str) -> float:
    """Return the seconds that `90s`, `45m`, `36h` or `10d` stands for. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip())
    if not found or float(found[1]) == 0:
        raise ValueError("must be a duration, such as 45m, 36h or 10d")
    return float(found[1]) * _UNITS_S[found[2]]


_GO_UNITS_MS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1, "us": 0.001, "µs": 0.001, "ns": 1e-6}
_GO_TIME = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)", re.ASCII)


def parse_go_duration_ms(text: str) -> float:
    """Return a time as Go writes them, 1m30s or 800ms, in whole microseconds."""
    total_ms = sum(float(number) * _GO_UNITS_MS[unit] for number, unit in _GO_TIME.findall(text))
    return math.floor(round(total_ms * 1000, 6)) / 1000


def duration_text(duration_s: float) -> str:
    """Return a long duration in words, rounded down: `36 h`, `45 min`, `312 days`."""
    hours = int(duration_s // 3600)
    if hours >= _LONG_H:
        return f"{hours // 24} days"
    return f"{hours} h" if hours else f"{int(duration_s // 60)} min"
