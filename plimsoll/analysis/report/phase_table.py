"""The table of before, during and after, as rows of ready text."""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.analysis.report.few import FEW
from plimsoll.analysis.report.measure_medians import measure_sentence
from plimsoll.analysis.report.phase_figures import SHOWN, BackendFigures, PhaseFigures, ScenarioFigures
from plimsoll.analysis.report.together import company_of
from plimsoll.analysis.statistics.figures import TimeFigures
from plimsoll.common.units import ABSENT, count, counted, milliseconds, significant

COLUMNS = ["requests", "requests/s", "p50", "p99", "p99.9", "against before", "throughput", "disk reads"]

FAILURES_COUNT = (
    "A failure counts at its time-out, so a figure that lands on one is a lower bound (≥), a wrong answer, "
    "or a dash where the time-out is not known."
)
_MOST_NAMED = 4  # backends in one sentence
AMONG = {
    "p99.9": "the slowest request in a thousand",
    "p99": "the slowest request in a hundred",
    "p50": "half of the requests",
}


@dataclass(frozen=True)
class PhaseRow:
    """One phase of one backend: its name and its cells."""

    phase: str
    cells: list[str]


@dataclass(frozen=True)
class BackendBlock:
    """The rows of one backend. Its name and what it imitates are hostile; `colour` counts from 1."""

    name: str
    colour: int
    emulated: str | None
    runs: str
    rows: list[PhaseRow]


@dataclass(frozen=True)
class PhaseTable:
    """The table of one scenario, whose name is hostile. Of many backends, `further` are folded away."""

    title: str
    sentence: str
    caption: str
    columns: list[str]
    blocks: list[BackendBlock]
    further: list[BackendBlock]


def phase_table(figures: ScenarioFigures, alone: bool) -> PhaseTable:
    """Return the table; `alone` says that the report has no other scenario."""
    saturators = [spoken(name) for name in figures.scenario.saturators]
    title = "Before, during and after" if saturators else "The backends"
    caption = "Response times of all repeats together, exact order statistics; the warm-up is left out."
    if saturators:
        caption += (
            f" During is while {' and '.join(saturators)} ran. A request counts where it was due. "
            "“Against before” is how many times as long a request took as before, by p99.9 (* by p99, ** by "
            "p50, where there were too few). Throughput is that of the saturator; disk reads are the mean "
            "time of one."
        )
    if any(phase.response_ms.censored for each in figures.backends for phase in each.phases.values()):
        caption += f" {FAILURES_COUNT} Where that is what a percentile lands on, there is no ratio."
    if company := company_of(figures.scenario.runs):
        caption += f" {company}"
    caption += " How far single runs lie apart is in the figure of the repeats."
    return PhaseTable(
        title=title if alone else f"{title}: {figures.scenario.name}",
        sentence=" ".join(
            filter(
                None,
                (_few_sentence(figures), phase_sentence(figures.few), measure_sentence(figures.few.scenario)),
            )
        ),
        caption=caption,
        columns=COLUMNS,
        blocks=[_block(each) for each in figures.few.backends],
        further=[
            _block(each) for each in figures.backends if each.backend not in figures.few.scenario.backends
        ],
    )


def _few_sentence(figures: ScenarioFigures) -> str:
    """Return which backends of many are shown (hostile); empty where all are."""
    if not figures.scenario.crowded:
        return ""
    names = [backend.called for backend in figures.scenario.few.backends]
    which = f"{names[0]} (the base)"
    if len(names) == FEW:
        which += f", {names[1]} and {names[2]} (the fastest by their whole runs), "
        which += f"{names[4]} and {names[3]} (the slowest)"
    else:
        which = ", ".join(names)
    return (
        f"Of {len(figures.backends)} variants, figures show {len(names)}: {which}. The others can be chosen "
        "below the scatter and the curves, stand in the figures of the factors if they vary any, and in all "
        "tables, where they are folded away."
    )


def phase_sentence(figures: ScenarioFigures) -> str:
    """Return what the table says, in one sentence (hostile); empty where there is too little to say it."""
    if not figures.saturated:
        return ""
    while_ = " and ".join(spoken(saturator) for saturator in figures.scenario.saturators)
    for name, among in AMONG.items():
        if name == "p50" and measure_sentence(figures.scenario):
            return ""  # a median over unlike steps moves with their mixture; the measure has its sentence
        found = [
            (each, times)
            for each in figures.backends
            if "during" in each.phases
            and ((times := each.phases["during"].response_ms)[name] is not None or name in times.censored)
        ]
        if 0 < len(found) == len(figures.backends) <= _MOST_NAMED:
            return f"While {while_} ran, {among} {_outcomes(found, name)}."
    return ""


def _outcomes(found: Sequence[tuple[BackendFigures, TimeFigures]], name: str) -> str:
    """Return where it failed, and how long it took where it did not, the slowest first."""
    failed = [
        f"on {each.backend.called}" + ("" if (ms := times.censored[name]) is None else f" {_no_sooner(ms)}")
        for each, times in found
        if name in times.censored
    ]
    took = [
        (value, f"{milliseconds(value)} on {each.backend.called}{_against(each.ratios[name])}")
        for each, times in found
        if (value := times[name]) is not None
    ]
    parts = [part for _, part in sorted(took, key=lambda pair: -pair[0])]
    said = [f"failed {', and '.join(failed)}"] if failed else []
    return ", and ".join([*said, f"took {', and '.join(parts)}"] if parts else said)


def _no_sooner(bound_ms: float) -> str:
    return f"(at least {milliseconds(bound_ms)})"


def _against(ratio: float | None) -> str:
    return "" if ratio is None else f" ({significant(ratio, 2)} times as long as before)"


def spoken(saturator: str) -> str:
    """Return a kind of saturator as people say it: `zfs send`."""
    return saturator.replace("-", " ")


def _block(each: BackendFigures) -> BackendBlock:
    return BackendBlock(
        name=each.backend.name,
        colour=each.backend.colour,
        emulated=each.backend.emulated,
        runs=counted(len(each.repeats), "run"),
        rows=[PhaseRow(name, _cells(each, name, figures)) for name, figures in each.phases.items()],
    )


def _cells(each: BackendFigures, phase: str, figures: PhaseFigures) -> list[str]:
    send = each.send_bytes_per_s if phase == "during" else None
    return [
        count(figures.requests),
        ABSENT if figures.per_s is None else significant(figures.per_s),
        *(figures.response_ms.shown(name) for name in SHOWN),
        _ratio(each, phase),
        ABSENT if send is None else f"{significant(send / 1e6)} MB/s",
        milliseconds(each.disk_read_latency_ms[phase]),
    ]


def _ratio(each: BackendFigures, phase: str) -> str:
    """Return how many times as long, by the highest percentile that both phases have."""
    if phase not in ("during", "after") or "before" not in each.phases:
        return ABSENT
    before, now = each.phases["before"].response_ms, each.phases[phase].response_ms
    for name, star in (("p99.9", ""), ("p99", " *"), ("p50", " **")):
        if name in before.censored or name in now.censored:
            return ABSENT  # a lower percentile would hide the failures that this one is of
        if (b := before[name]) and (n := now[name]) is not None:
            return f"{significant(n / b, 2)} ×{star}"
    return ABSENT
