"""What moved with the slow windows, in words: "at the same time as", never "because" (names are hostile)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.analysis.report.backends import BackendRuns
from plimsoll.analysis.report.stall_windows import LAG_S
from plimsoll.analysis.report.stalls import BackendStalls, Sign
from plimsoll.analysis.statistics.coincidence import LEAST_SLOW_MS
from plimsoll.common.units import counted, milliseconds, significant

_MOST_BESIDE = 2


@dataclass(frozen=True)
class Said:
    """What is said of one backend: `where`, its name (hostile) as a sentence begins with it, or nothing.

    `colour` counts from 1.
    """

    where: str
    colour: int
    text: str

    @property
    def line(self) -> str:
        """The sentence."""
        return f"{self.where}, {self.text}" if self.where else self.text[0].upper() + self.text[1:]


def where(backend: BackendRuns, backends: int) -> str:
    """Return how a sentence on one of so many backends begins; a run may name none."""
    if any(run.directory.facts.backend for run in backend.runs):
        return f"On {backend.called}"
    return f"In {backend.called}" if backends > 1 else ""


def in_words(stalls: BackendStalls) -> str:
    """Return what is said of a backend's slow windows, as the rest of a sentence that began with its name."""
    if stalls.limit_ms is None:
        windows = counted(stalls.windows, "window")
        noticed = f"and over {milliseconds(LEAST_SLOW_MS)}"
        return f"nothing stands out: hardly any of {windows} was much slower than usual {noticed}."
    windows = f"{counted(stalls.slow, 'window')} of {stalls.windows:,}"
    slow = f"{windows} took over {milliseconds(stalls.limit_ms)}"
    if stalls.too_few:
        return f"nothing stands out: {slow}, and so few cannot be told from chance."
    found = stalls.standing_out
    if not found:
        watched = counted(len(stalls.signs), "source")
        return f"nothing stands out: {slow}, and none of {watched} was then far enough from its usual."
    first = found[0]
    share = _percent(first.near_slow)
    text = (
        f"{share} of the windows over {milliseconds(stalls.limit_ms)} lie within {LAG_S} s of {near(first)} "
        f"({_percent(first.near_quiet)} of the others do)"
    )
    beside = "; ".join(_beside(sign) for sign in _unlike(found))
    return f"{text}; {beside}." if beside else f"{text}."


def near(sign: Sign) -> str:
    """Return what a window is near to: `a flush over 30 ms`."""
    if sign.row.on_off:
        return sign.row.near
    if sign.row.near:
        return sign.row.near.replace("{}", with_unit(sign, sign.limit))
    return f"{sign.row.said} {beyond(sign)}"


def beyond(sign: Sign) -> str:
    """Return on which side of its limit a source is bad: `over 3 ms`."""
    return f"{'under' if sign.row.bad == 'low' else 'over'} {with_unit(sign, sign.limit)}"


def with_unit(sign: Sign, value: float) -> str:
    """Return a value of a source with its unit: `3 ms`, `3 s`, `12/s`."""
    if sign.row.unit == "ms" and value >= 999.5:
        return milliseconds(value)
    shown, unit = significant(max(value, 0.0), 2 if value < 100 else 3), sign.row.unit
    return f"{shown}{unit}" if unit.startswith("/") else f"{shown} {unit}".strip()


def _unlike(found: Sequence[Sign]) -> Iterator[Sign]:
    """Yield what else stands out, one of each depth: those of one depth mostly say the same."""
    told = {found[0].row.depth}
    for sign in found[1:]:
        if sign.row.depth not in told and len(told) <= _MOST_BESIDE:
            told.add(sign.row.depth)
            yield sign


def _beside(sign: Sign) -> str:
    if sign.row.on_off:
        return f"{_percent(sign.near_slow)} lie within {LAG_S} s of {near(sign)}"
    moved = "fell" if sign.slow < sign.usual else "rose"
    usual, slow = with_unit(sign, sign.usual), with_unit(sign, sign.slow)
    if usual.endswith(sign.row.unit) and slow.endswith(sign.row.unit):
        usual = usual.removesuffix(sign.row.unit).strip()
    return f"{sign.row.said} {moved} from {usual} to {slow}"


def _percent(share: float) -> str:
    return f"{significant(round(100 * share))} %"
