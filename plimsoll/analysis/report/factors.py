"""What a report shows of an experiment with factors: for each scenario its sentences, charts and tables."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.report.factor_charts import factor_charts
from plimsoll.analysis.report.factor_figures import FactorFigures, factor_figures
from plimsoll.analysis.report.factor_section import FactorSection, factor_section
from plimsoll.analysis.report.phase_figures import ScenarioFigures
from plimsoll.analysis.statistics.factors import Ranked


@dataclass(frozen=True)
class FactorPart:
    """The part of one scenario."""

    section: FactorSection
    charts: list[Chart]


def factor_parts(compared: Sequence[ScenarioFigures]) -> list[FactorPart]:
    """Return the parts, one a scenario whose runs are of an experiment with factors."""
    found = _found(compared)
    return [
        FactorPart(
            factor_section(each, len(compared) == 1),
            factor_charts(each, "" if len(compared) == 1 else f": {each.scenario}"),
        )
        for each in found
    ]


def factors_json(compared: Sequence[ScenarioFigures]) -> list[dict[str, object]]:
    """Return what `--json` prints of the factors, one entry a scenario."""
    return [
        {
            "scenario": each.scenario,
            "percentile": each.percentile,
            "phase": each.phase,
            "goal_ms": each.goal_ms,
            "sentences": each.sentences(),
            "levels": each.levels,
            "effects": [asdict(effect) for effect in each.effects],
            "ranking": [_ranked_json(one) for one in each.ranked],
            "failed": [run.name for run in each.failed],
        }
        for each in _found(compared)
    ]


def _found(compared: Sequence[ScenarioFigures]) -> list[FactorFigures]:
    return [found for each in compared if (found := factor_figures(each))]


def _ranked_json(one: Ranked) -> dict[str, object]:
    return {
        "levels": dict(one.levels),
        "runs": one.runs,
        "ms": asdict(one.figure),
        "against_first": None if one.against is None else asdict(one.against),
        "noise": one.noise,
    }
