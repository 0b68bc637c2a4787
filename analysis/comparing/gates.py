"""gates.yml: which limits a candidate has to keep. A field's description stands in docs/compare.md."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from analysis.hostile import printable
from analysis.yamlfile import Location, read_model

MANUAL = "docs/compare.md"
PERCENTILE_METRICS = ("p99.9", "p99", "p95", "p90", "p50")
TIME_METRICS = (*PERCENTILE_METRICS, "mean")
ERROR_SHARE = "error share"
MEASURE = "measure "
RATIO = 1.10
MORE_ERRORS = 0.001

Phase = Literal["before", "during", "after", "whole"]


def _metric(value: str) -> str:
    if value in TIME_METRICS or value == ERROR_SHARE or re.fullmatch(r"measure \S.{0,198}", value):
        return value
    raise ValueError(f"must be one of {', '.join(TIME_METRICS)}, {ERROR_SHARE}, measure NAME")


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
    metric: Annotated[str, AfterValidator(_metric)] = Field(
        "p99.9",
        description="`p99.9`, `p99`, `p95`, `p90`, `p50` or `mean` of the response time; `error share`; or "
        "`measure NAME`, the median of a measure or step.",
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

    @property
    def name(self) -> str:
        """What it is called (hostile): scenario, phase and metric."""
        metric = (
            f"p50 of {self.metric.removeprefix(MEASURE)}" if self.metric.startswith(MEASURE) else self.metric
        )
        return f"{self.scenario} {self.phase}: {metric}"


Limit = Literal["at_most_ratio", "at_most_more", "at_most_ms", "at_most_share"]
LIMITS: tuple[Limit, ...] = ("at_most_ratio", "at_most_more", "at_most_ms", "at_most_share")
_OF_TIMES = ("at_most_ratio", "at_most_ms")
_OF_ERRORS = ("at_most_more", "at_most_share")


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
        given = [limit for limit in LIMITS if getattr(gate, limit) is not None]
        fitting = _OF_ERRORS if gate.metric == ERROR_SHARE else _OF_TIMES
        if not given:
            yield at, f"has no limit: give {' or '.join(fitting)}"
        for limit in given:
            if limit not in fitting:
                yield (*at, limit), f"is no limit of {printable(gate.metric)}: give {' or '.join(fitting)}"
        same = (gate.scenario, gate.phase, gate.metric)
        if same in seen:
            yield at, f"is gates.{seen[same]} again: put both limits in one"
        seen.setdefault(same, number)
