"""The table of before, during and after, as rows of ready text."""

from dataclasses import dataclass

from analysis.charts.style import RUN_COLOURS
from analysis.report.phase_figures import BackendFigures, PhaseFigures, ScenarioFigures
from plimsoll.common.units import ABSENT, count, counted, milliseconds, significant

COLUMNS = ["requests", "requests/s", "p50", "p99", "p99.9", "against before", "throughput", "disk reads"]

_MOST_NAMED = 4  # backends in one sentence


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
    """The table of one scenario, whose name is hostile."""

    title: str
    sentence: str
    caption: str
    columns: list[str]
    blocks: list[BackendBlock]


def phase_table(figures: ScenarioFigures, alone: bool) -> PhaseTable:
    """Return the table; `alone` says that the report has no other scenario."""
    saturators = [_spoken(name) for name in figures.scenario.saturators]
    title = "Before, during and after" if saturators else "The backends"
    caption = "Response times of all repeats together, exact order statistics; the warm-up is left out."
    if saturators:
        caption += (
            f" During is while {' and '.join(saturators)} ran. A request counts where it was due. "
            "“Against before” is how many times as long a request took as before, by p99.9 (* by p99, ** by "
            "p50, where there were too few). Throughput is that of the saturator; disk reads are the mean "
            "time of one."
        )
    caption += " How far single runs lie apart is in the figure of the repeats."
    return PhaseTable(
        title=title if alone else f"{title}: {figures.scenario.name}",
        sentence=_sentence(figures),
        caption=caption,
        columns=COLUMNS,
        blocks=[_block(each) for each in figures.backends],
    )


def _sentence(figures: ScenarioFigures) -> str:
    """Return what the table says, in one sentence (hostile); empty where there is too little to say it."""
    while_ = " and ".join(_spoken(saturator) for saturator in figures.scenario.saturators)
    for name, among in (("p99.9", "a thousand"), ("p99", "a hundred")):
        found = [
            (value, f"{milliseconds(value)} on {each.backend.called}{_against(each.ratios[name])}")
            for each in figures.backends
            if "during" in each.phases and (value := each.phases["during"].response_ms[name]) is not None
        ]
        if 0 < len(found) == len(figures.backends) <= _MOST_NAMED:
            parts = [part for _, part in sorted(found, key=lambda pair: -pair[0])]
            return f"While {while_} ran, the slowest request in {among} took {', and '.join(parts)}."
    return ""


def _against(ratio: float | None) -> str:
    return "" if ratio is None else f" ({significant(ratio, 2)} times as long as before)"


def _spoken(saturator: str) -> str:
    return saturator.replace("-", " ")


def _block(each: BackendFigures) -> BackendBlock:
    return BackendBlock(
        name=each.backend.name,
        colour=each.backend.shade % RUN_COLOURS + 1,
        emulated=each.backend.emulated,
        runs=counted(len(each.repeats), "run"),
        rows=[PhaseRow(name, _cells(each, name, figures)) for name, figures in each.phases.items()],
    )


def _cells(each: BackendFigures, phase: str, figures: PhaseFigures) -> list[str]:
    send = each.send_bytes_per_s if phase == "during" else None
    return [
        count(figures.requests),
        ABSENT if figures.per_s is None else significant(figures.per_s),
        *(milliseconds(value) for value in figures.response_ms.values()),
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
        if (b := before[name]) and (n := now[name]) is not None:
            return f"{significant(n / b, 2)} ×{star}"
    return ABSENT
