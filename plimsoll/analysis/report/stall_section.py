"""The slow windows in the report: what they have in common, in words, in tables, and over time."""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.report.backends import ScenarioRuns
from plimsoll.analysis.report.host_rows import HostRow
from plimsoll.analysis.report.host_section import HostView
from plimsoll.analysis.report.stall_windows import LAG_S
from plimsoll.analysis.report.stall_words import Said, beyond, in_words, near, where, with_unit
from plimsoll.analysis.report.stalls import BackendStalls, Sign
from plimsoll.common.units import ABSENT, milliseconds, significant

_MOST_ROWS_DRAWN = 6
_MOST_ROWS_TOLD = 12
_COLUMNS = [
    "source",
    "usual",
    "in slow windows",
    "in the slowest",
    "limit",
    "of slow",
    "of others",
    "chance",
]


@dataclass(frozen=True)
class ScenarioStalls:
    """One scenario (its name is hostile) and the slow windows of its backends."""

    scenario: ScenarioRuns
    backends: list[BackendStalls]

    @property
    def said(self) -> list[Said]:
        """What is said of each backend."""
        return [
            Said(
                where(each.backend, len(self.backends)),
                each.backend.colour,
                in_words(each),
            )
            for each in self.backends
        ]

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints of the scenario under `stalls`."""
        return {
            "scenario": self.scenario.name,
            "backends": [_backend_json(*each) for each in zip(self.backends, self.said, strict=True)],
        }


@dataclass(frozen=True)
class StallSection:
    """What stands at the top of the page: the sentences, and a table a backend that has slow windows.

    `folded` with those of other scenarios, since nothing stands out.
    """

    title: str
    said: list[Said]
    tables: list[Table]
    folded: bool


def stall_section(stalls: ScenarioStalls, scenarios: int) -> StallSection:
    """Return the section of a scenario, one of so many."""
    of = "" if scenarios == 1 else f": {stalls.scenario.name}"
    tables = [_table(each) for each in stalls.backends if each.limit_ms is not None and each.signs]
    folded = scenarios > 1 and not any(each.standing_out for each in stalls.backends)
    return StallSection(f"What the slowest windows have in common{of}", stalls.said, tables, folded)


def moved_chart(stalls: ScenarioStalls, view: HostView, scenarios: int) -> Chart | None:
    """Return the rows that stand out on any backend, over the time axis of the scatter; None without any."""
    found: dict[HostRow, None] = {}
    for each in stalls.backends:
        found |= {sign.row: None for sign in each.standing_out}
    rows = [row for row in found if any(row in host.rows for host in view.hosts)][:_MOST_ROWS_DRAWN]
    if not rows:
        return None
    of = "" if scenarios == 1 else f": {stalls.scenario.name}"
    return view.chart(
        f"host-stalls-{stalls.scenario.number}",
        f"What moved at the same time as the slow windows{of}",
        "What stood out on any backend, first what was farthest from its usual. All else that was observed "
        "of the host follows below.",
        rows,
        mixed=True,
    )


def _table(stalls: BackendStalls) -> Table:
    signs = stalls.signs[: max(_MOST_ROWS_TOLD, len(stalls.standing_out))]
    caption = (
        f"{stalls.slow:,} of {stalls.windows:,} windows on {stalls.backend.called} took over "
        f"{milliseconds(stalls.limit_ms)}. Each source is taken at its worst within {LAG_S} s of a window; "
        "usual is its median in the other windows. Of slow, of others: how many of the windows lie beyond "
        "the limit. Chance: how often slow windows at other times would let any source stand out as far. "
        "Those in bold stand out."
    )
    if len(signs) < len(stalls.signs):
        caption += f" Shown are {len(signs)} of {len(stalls.signs)} sources."
    return Table(
        f"The slowest windows on {stalls.backend.called}", caption, _COLUMNS, [_row(s) for s in signs]
    )


def _row(sign: Sign) -> Row:
    usual, slow, slowest = (
        ABSENT if value is None else with_unit(sign, value) for value in (sign.usual, sign.slow, sign.slowest)
    )
    limit = beyond(sign)
    shares = [f"{significant(round(100 * share))} %" for share in (sign.near_slow, sign.near_quiet)]
    if sign.row.on_off:
        usual = slow = slowest = limit = ABSENT
    chance = f"{significant(100 * sign.found.p, 2)} %"
    look = "stands-out" if sign.stands_out else ""
    return Row(sign.row.said, [usual, slow, slowest, limit, *shares, chance], look)


def _backend_json(stalls: BackendStalls, said: Said) -> dict[str, object]:
    return {
        "backend": stalls.backend.name,
        "sentence": said.line,
        "limit_ms": stalls.limit_ms,
        "slow": stalls.slow,
        "windows": stalls.windows,
        "sources": [
            {
                "source": sign.row.said,
                "unit": sign.row.unit,
                "stands_out": sign.stands_out,
                "near": near(sign),
                "usual": sign.usual,
                "slow": sign.slow,
                "slowest": sign.slowest,
                "limit": sign.limit,
                "share_of_slow": sign.near_slow,
                "share_of_others": sign.near_quiet,
                "superiority": sign.superiority,
                "p": sign.found.p,
            }
            for sign in stalls.signs
        ],
    }


def lines_of(stalls: Sequence[ScenarioStalls]) -> list[str]:
    """Return what the command prints (hostile)."""
    several = len(stalls) > 1
    return [
        f"{each.scenario.name}: {said.line}" if several else said.line
        for each in stalls
        for said in each.said
    ]
