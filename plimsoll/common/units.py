"""Numbers as people read them. Absent figures are a dash."""

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


def significant(value: float, digits: int = 3) -> str:
    """Return `value` ≥ 0 to so many significant digits, without exponents: `0.853`, `412`, `1,240`."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = int(f"{rounded:e}".partition("e")[2])
    text = f"{rounded:,.{min(max(digits - 1 - exponent, 0), 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
