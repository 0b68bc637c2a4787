"""gates.yml: which limits a candidate has to keep. A field's description stands in docs/compare.md."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from plimsoll.analysis.compare.metrics import METRICS, Limit, Metric, metric_of
from plimsoll.common.hostile import printable
from plimsoll.common.validation import Location, read_model

MANUAL = "docs/compare.md"
RATIO = 1.10

Phase = Literal["before", "during", "after", "whole"]


def _known_metric(value: str) -> str:
    metric_of(value)
    return value


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Gate(_Model):
    """One limit, or two, on one figure of every run."""

    scenario: str = Field(
        description="Which scenario's runs, as run.json names it.", min_length=1, max_length=200
    )
    phase: Phase = Field(
        "whole", description="`before`, `during` or `after` the saturator, or the `whole` run."
    )
    metric: Annotated[str, AfterValidator(_known_metric)] = Field(
        "p99.9",
        description="The figure that is limited: one of the metrics below.",
        examples=[name for metric in METRICS for name in metric.names],
    )
    at_most_ratio: float | None = Field(
        None,
        gt=0,
        le=1000,
        allow_inf_nan=False,
        description="Candidate's figure by the baseline's, at most: 1.10 allows 10 % more.",
    )
    at_most_ms: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="Candidate's own figure, at most so many milliseconds."
    )
    at_most_more: float | None = Field(
        None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="For `error share`: candidate's less the baseline's, at most: 0.001 is one in 1,000.",
    )
    at_most_share: float | None = Field(
        None, gt=0, le=1, allow_inf_nan=False, description="For `error share`: candidate's own, at most."
    )
    at_most_share_of_runs: float | None = Field(
        None,
        gt=0,
        lt=1,
        allow_inf_nan=False,
        description="For `stalls over N ms`: of the candidate's runs, at most this share has them.",
    )

    @property
    def kind(self) -> Metric:
        """The metric's entry in the registry."""
        return metric_of(self.metric)

    @property
    def name(self) -> str:
        """Its name (hostile): scenario, phase and metric."""
        return f"{self.scenario} {self.phase}: {self.kind.label(self.metric)}"


LIMITS: tuple[Limit, ...] = (
    "at_most_ratio",
    "at_most_more",
    "at_most_ms",
    "at_most_share",
    "at_most_share_of_runs",
)


class Gates(_Model):
    """The whole file."""

    gates: list[Gate] = Field(min_length=1, description="The limits, one entry each.")
    confidence: float = Field(
        0.95,
        ge=0.8,
        lt=1,
        description="How sure verdicts are, all gates together: at 0.95, at most 5 comparisons in 100 have a "
        "wrong PASS, and as many a wrong FAIL.",
    )
    least_runs: int = Field(
        4, ge=4, le=1000, description="Runs a side below which nothing is decided; not under 4."
    )
    answers: bool = Field(
        True,
        description="`false`: answers that differ between the sides, or from the log, forbid no verdict.",
    )
    interleaved: bool = Field(
        False, description="`true`: decide nothing where the two sides' runs do not alternate in time."
    )


def read_gates(path: Path) -> Gates:
    """Read and check `path`. Raises SettingsError with all problems."""
    return read_model(path, Gates, MANUAL, problems)


def problems(gates: Gates) -> Iterator[tuple[Location, str]]:
    """Yield what is wrong between the keys: where, and what to do. Pure."""
    seen: dict[tuple[str, str, str], int] = {}
    for number, gate in enumerate(gates.gates):
        at: Location = ("gates", number)
        limits = [limit for limit in LIMITS if getattr(gate, limit) is not None]
        fitting = gate.kind.limits
        if not limits:
            yield at, f"has no limit: give {' or '.join(fitting)}"
        for limit in limits:
            if limit not in fitting:
                yield (*at, limit), f"is no limit of {printable(gate.metric)}: give {' or '.join(fitting)}"
        same = (gate.scenario, gate.phase, gate.metric)
        if same in seen:
            yield at, f"is gates.{seen[same]} again: put both limits in one"
        seen.setdefault(same, number)
