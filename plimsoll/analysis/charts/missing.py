"""Annotations of what a figure cannot draw: whose it is, how much there is, what would be enough."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plimsoll.analysis.charts.style import Json, colour_of, in_lines

MISSING = "missing"  # the page's script keeps annotations of this name also on narrow screens
_LETTERS = 34  # of a line
_STEP = 0.1  # of the figure's height, from one annotation to the next


@dataclass(frozen=True)
class Missing:
    """A backend (its name is hostile) without a point in a phase, and why."""

    phase: str
    backend: str
    shade: int
    why: str

    @property
    def says(self) -> str:
        """The whole sentence (hostile)."""
        return f"{self.backend}: {self.why}"


def missing_notes(missing: Sequence[Missing], at: Callable[[str], float], top: float = 0.93) -> list[Json]:
    """Return the annotations, one below another where they belong to one phase; `at` is a phase's x."""
    placed: dict[str, int] = {}
    found: list[Json] = []
    for each in missing:
        row = placed.setdefault(each.phase, 0)
        placed[each.phase] += 1
        found.append(
            {
                "name": MISSING,
                "x": at(each.phase),
                "y": max(round(top - row * _STEP, 4), 0.1),
                "yref": "paper",
                "yanchor": "top",
                "text": in_lines(each.says, _LETTERS),
                "showarrow": False,
                "font": {"size": 12, "color": "var(--text)"},
                "bgcolor": "var(--card)",
                "bordercolor": colour_of(each.shade),
                "borderpad": 3,
                "opacity": 0.9,
            }
        )
    return found


def missing_caption(missing: Sequence[Missing]) -> str:
    """Return the same for the caption (hostile), empty where nothing is missing."""
    if not missing:
        return ""
    return f" Without a point: {'; '.join(f'{each.says} ({each.phase})' for each in missing)}."
