"""Two readings of counters become the figures of the time between them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Reading = Mapping[str, float]

# Beyond this a float no longer tells one count from the next; no real counter of 64 bits is larger.
_LARGEST = 1 << 64


@dataclass(frozen=True)
class Pair:
    """A reading and the one before it, None at the start. What cannot be given is None, never 0."""

    now: Reading
    before: Reading | None
    elapsed_s: float

    def gauge(self, field: str) -> float | None:
        """Return the present value of `field`."""
        return self.now.get(field)

    def delta(self, field: str) -> float | None:
        """Return by how much `field` grew; None if it fell: it was reset, or it wrapped around."""
        now = self.now.get(field)
        before = None if self.before is None else self.before.get(field)
        if now is None or before is None or now < before:
            return None
        return now - before

    def rate(self, field: str) -> float | None:
        """Return the growth of `field` a second."""
        grown = self.delta(field)
        return None if grown is None or self.elapsed_s <= 0 else grown / self.elapsed_s

    def ratio(self, numerator: float | None, denominator: float | None) -> float | None:
        """Return the quotient of two deltas; None where one is missing or nothing happened."""
        return None if numerator is None or not denominator else numerator / denominator


Formula = Callable[[Pair], float | None]


@dataclass(frozen=True)
class Column:
    """One column of `host.csv`: its name after the observer's, ending in its unit, and how it is made."""

    name: str
    source: str
    formula: Formula


def gauge(name: str, field: str, scale: float = 1.0) -> Column:
    """Return a column that shows the value of `field`, times `scale`."""
    return Column(name, field, lambda pair: _scaled(pair.gauge(field), scale))


def rate(name: str, field: str, scale: float = 1.0) -> Column:
    """Return a column that shows how much `field` grows a second, times `scale`."""
    return Column(name, field, lambda pair: _scaled(pair.rate(field), scale))


def per(name: str, numerator: str, denominator: str, scale: float = 1.0) -> Column:
    """Return a column of how much `numerator` grew for each one that `denominator` grew, times `scale`."""
    return Column(
        name,
        f"{numerator} / {denominator}",
        lambda pair: _scaled(pair.ratio(pair.delta(numerator), pair.delta(denominator)), scale),
    )


def number(text: str) -> float | None:
    """Return a counter's value as a float; None for what no kernel would print as one."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 20:
        return None
    value = int(text)
    return float(value) if value < _LARGEST else None


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale
