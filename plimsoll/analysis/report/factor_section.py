"""What the factors did, as rows of ready text: the sentences, the ranking, and each change alone."""

from dataclasses import dataclass

from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.report.factor_figures import BACKEND, FactorFigures
from plimsoll.analysis.statistics.factors import Change, Estimate, FactorEffect, Ranked
from plimsoll.common.units import ABSENT, counted, milliseconds, significant

_MOST_RANKED = 24
_MOST_SAID = 4
_OUTCOMES = {"slower": "slower", "faster": "faster", "noise": "within noise", "too few": "too few runs"}


@dataclass(frozen=True)
class FactorSection:
    """The section of one scenario; its name and all levels are hostile."""

    title: str
    sentences: list[str]
    ranking: Table
    changes: Table | None


def factor_section(figures: FactorFigures, alone: bool) -> FactorSection:
    """Return the section; `alone` says that the report has no other scenario."""
    of = "" if alone else f": {figures.scenario}"
    return FactorSection(
        title=f"What each factor did{of}",
        sentences=[*figures.sentences(), *_said(figures), *_failures(figures)],
        ranking=_ranking(figures, of),
        changes=_changes(figures, of),
    )


def when(figures: FactorFigures) -> str:
    """Return what the figures are of."""
    phase = "while the saturator ran" if figures.phase == "during" else "of the whole run"
    return f"{figures.percentile} {phase}"


def _varied(figures: FactorFigures) -> list[str]:
    return [factor for factor, labels in figures.levels.items() if len(labels) > 1]


def _said(figures: FactorFigures) -> list[str]:
    """Return what each factor did, in a sentence each, and which did nothing that these runs show."""
    found, noise, few = [], [], []
    for effect in figures.effects:
        told = [change for change in effect.changes if change.outcome in ("slower", "faster")]
        if told:
            most = max(told, key=lambda change: abs(change.ratio.value - 1 / change.ratio.value))
            found.append(
                f"{most.to} in place of {most.of} ({effect.factor}) makes {figures.percentile} "
                f"{_times(most.ratio)}."
            )
        elif any(change.outcome == "noise" for change in effect.changes):
            noise.append(effect.factor)
        else:
            few.append(effect.factor)
    text = found[:_MOST_SAID]
    if noise:
        text.append(f"Within noise: {', '.join(noise)}.")
    if few:
        text.append(f"Too few runs to tell what these do: {', '.join(few)}. Raise repeats.")
    return text


def _failures(figures: FactorFigures) -> list[str]:
    if not figures.failed:
        return []
    worst = counted(len(figures.failed), "run")
    return [
        f"In {worst} {figures.percentile} is a failure, whose time nobody knows: left out of the ranking and "
        "of the changes, and counted as over the goal."
    ]


def _times(ratio: Estimate) -> str:
    """Return a ratio in words: `1.8 times as long (1.5 to 2.1)`."""
    return f"{significant(ratio.value)} times as long{_interval(ratio)}"


def _interval(estimate: Estimate) -> str:
    if estimate.lower is None or estimate.upper is None:
        return ""
    return f" ({significant(estimate.lower)} to {significant(estimate.upper)})"


def _ms(estimate: Estimate) -> str:
    if estimate.lower is None or estimate.upper is None:
        return ABSENT
    return f"{milliseconds(estimate.lower)} to {milliseconds(estimate.upper)}"


def _ranking(figures: FactorFigures, of: str) -> Table:
    factors = [factor for factor in figures.levels if factor in _varied(figures)]
    shown = figures.ranked[:_MOST_RANKED]
    caption = (
        f"Geometric mean of {when(figures)} over the runs, with its 95 % interval by what runs of one "
        "combination spread, all combinations together. The interval of the ratio to the first is wide "
        "enough for all pairs at once, since chance chose the first too; where it holds 1, these runs do not "
        "tell the two apart."
    )
    if len(figures.ranked) > len(shown):
        caption += f" The first {len(shown)} of {len(figures.ranked)}; `plimsoll report --json` has all."
    rows = [_ranked(place, each, factors) for place, each in enumerate(shown, 1)]
    columns = ["", *factors, "runs", figures.percentile, "95 % interval", "against the first", ""]
    return Table(f"What was tried, the fastest first{of}", caption, columns, rows)


def _ranked(place: int, each: Ranked, factors: list[str]) -> Row:
    against = each.against
    ratio = ABSENT if against is None else f"{significant(against.value)} ×{_interval(against)}"
    told = "" if against is None else "too few runs" if against.lower is None else ""
    return Row(
        str(place),
        [
            *(each.levels.get(factor, ABSENT) for factor in factors),
            str(each.runs),
            milliseconds(each.figure.value),
            _ms(each.figure),
            ratio,
            told or ("within noise" if each.noise else "slower" if against else "fastest"),
        ],
    )


def _changes(figures: FactorFigures, of: str) -> Table | None:
    rows = [_change(effect, change) for effect in figures.effects for change in effect.changes]
    if not rows:
        return None
    caption = (
        f"How many times as long {when(figures)} is if only this changes: the mean over pairs of runs of "
        "one repeat that differ in nothing else, with its 95 % interval by permutation. Under 1 is faster. "
        "Whether a factor does anything is held against chance for all factors together; a change within "
        "noise may be nothing at all."
    )
    if BACKEND in figures.levels and len(figures.backends) > 1:
        caption += " The backend counts as a factor."
    columns = ["factor", "level", "in place of", "ratio", "95 % interval", "pairs", "p of the factor", ""]
    return Table(f"Each change alone{of}", caption, columns, rows)


def _change(effect: FactorEffect, change: Change) -> Row:
    p = f"{effect.p:.3f}" if effect.p >= 0.001 else "< 0.001"
    return Row(
        effect.factor,
        [
            change.to,
            change.of,
            significant(change.ratio.value),
            _interval(change.ratio).strip(" ()") or ABSENT,
            str(change.pairs),
            p,
            _OUTCOMES[change.outcome],
        ],
    )
