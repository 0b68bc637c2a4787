"""What the slowest windows of a run have in common: what the host was then, and otherwise not.

In words it is "at the same time as", never "because" (names are hostile).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from plimsoll.analysis.evidence.host_rows import Depth, HostRow
from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.page.section import Row, Section, Sentence, Table
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import Backend, Floats, Scenario, ScenarioRuns
from plimsoll.analysis.report.sections.host import HostView, rows_of
from plimsoll.analysis.statistics.stalls import (
    FEWEST_SLOW,
    LEAST_SLOW_MS,
    Aligned,
    Coincidence,
    coincidences,
    least_p,
    nice_below,
    slow_limit_ms,
)
from plimsoll.common.units import ABSENT, counted, milliseconds, significant
from plimsoll.rundir.events import spans

_TITLE = "What the slowest windows have in common"
_NOT_THE_CAUSE = (
    "What was there at the same time need not be the cause: docs/stalls.md says what each usually means."
)
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
ALPHA = 0.03  # at most in so many backends whose slow windows have nothing to do with it something stands out
_CLEAR = 0.7  # of superiority; a weaker source explains nothing, even if it is not chance
_FEWEST_NEAR = 0.5  # of the slow windows are near to it
_TIMES_AS_OFTEN = 2.0  # as of the others
_CHANGED = 1.2  # times as much as usual, of what is worse when it is high
_ALIKE = 0.1  # of superiority: between such sources the deeper one is named first
LAG_S = 2  # before a window and after it: clocks differ, and a cause may be counted late
_MOST_EVENTS = 8  # sorts of them
_SATURATORS_OWN = (" bytes", " retry")
_NO_SOURCES = ("warm-up", "interrupt")
_MOST_BESIDE = 2


@dataclass(frozen=True)
class Sign:
    """One source of a backend: what it was in slow windows against its own usual.

    `usual`, `slow` and `slowest` are medians over the quiet and the slow windows and the value in the slowest
    one, in the row's unit. It is near where it is beyond `limit`: so in these shares of the windows.
    """

    row: HostRow
    found: Coincidence
    usual: float
    slow: float
    slowest: float | None
    limit: float
    near_slow: float
    near_quiet: float
    stands_out: bool = False

    @property
    def superiority(self) -> float:
        """The share of pairs of windows in which it is worse in the slow one."""
        return self.found.superiority

    @property
    def is_worth_a_word(self) -> bool:
        """True where it is far from its usual, and in most of the slow windows, were it no chance."""
        return (
            self.superiority >= _CLEAR
            and self.near_slow >= max(_FEWEST_NEAR, _TIMES_AS_OFTEN * self.near_quiet)
            and self._is_much
        )

    @property
    def _is_much(self) -> bool:
        if self.row.bad == "low":
            return self.slow < self.usual * (1 - self.row.quiet)
        if self.row.moves:
            return self.slow > self.usual * (1 + self.row.quiet)
        level = max(self.slow, self.limit)
        return level > self.row.quiet and level >= _CHANGED * self.usual


@dataclass(frozen=True)
class SlowWindows:
    """The slow windows of one backend, of at least `limit_ms` (None: there are none), and all its sources.

    `slow` of `windows` with requests are slow. `signs` are ranked, those that stand out first. `too_few`: so
    few windows cannot be distinguished from chance.
    """

    backend: Backend
    limit_ms: float | None
    slow: int
    windows: int
    signs: list[Sign]
    too_few: bool = False

    @cached_property
    def standing_out(self) -> list[Sign]:
        """The sources that stand out, what is named first first."""
        return [sign for sign in self.signs if sign.stands_out]


@dataclass(frozen=True)
class ScenarioStalls:
    """One scenario (its name is hostile) and the slow windows of its backends."""

    scenario: Scenario
    backends: list[SlowWindows]

    @property
    def sentences(self) -> list[Sentence]:
        """The statement on each backend; a run may name none."""
        found = []
        for each in self.backends:
            text = describe_windows(each)
            if each.backend.is_named or len(self.backends) > 1:
                text = f"{'On' if each.backend.is_named else 'In'} {each.backend.called}, {text}"
                found.append(Sentence(text, each.backend.called, each.backend.colour))
            else:
                found.append(Sentence(text[0].upper() + text[1:]))
        return found

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints of the scenario under `stalls`."""
        return {
            "scenario": self.scenario.name,
            "backends": [_backend_json(*each) for each in zip(self.backends, self.sentences, strict=True)],
        }


def slow_window_sections(stalls: Sequence[ScenarioStalls], scenarios: int) -> list[Section]:
    """Return a section a scenario, of so many; those where nothing stands out are folded into one."""
    sections = [_section(one) for one in stalls]
    quiet = [
        section
        for one, section in zip(stalls, sections, strict=True)
        if scenarios > 1 and not any(each.standing_out for each in one.backends)
    ]
    if not quiet:
        return sections
    nothing = f"nothing stands out in {len(quiet)} of {len(stalls)} scenarios"
    folded = Section(f"{_TITLE}: {nothing}", sections=quiet, layout="fold", key="quiet-stalls")
    return [*(section for section in sections if section not in quiet), folded]


def _section(stalls: ScenarioStalls) -> Section:
    """Return the sentences, and folded a table a backend that has slow windows."""
    tables = [_table(each) for each in stalls.backends if each.limit_ms is not None and each.signs]
    what = Section("What each source was then", tables=tables, layout="fold", look="further")
    return Section(
        _TITLE + stalls.scenario.title_end,
        stalls.sentences,
        caption=_NOT_THE_CAUSE,
        sections=[what] if tables else [],
        look="stalls",
    )


def moved_chart(stalls: ScenarioStalls, view: HostView) -> Chart | None:
    """Return the rows that stand out on any backend, over the time axis of the scatter; None without any."""
    found: dict[HostRow, None] = {}
    for each in stalls.backends:
        found |= {sign.row: None for sign in each.standing_out}
    rows = [row for row in found if any(row in host.rows for host in view.hosts)][:_MOST_ROWS_DRAWN]
    if not rows:
        return None
    return view.chart(
        f"host-stalls-{stalls.scenario.number}",
        f"What moved at the same time as the slow windows{stalls.scenario.title_end}",
        "What stood out on any backend, first what was farthest from its usual. All else that was observed "
        "of the host follows below.",
        rows,
        mixed=True,
    )


def _table(stalls: SlowWindows) -> Table:
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


def _backend_json(stalls: SlowWindows, said: Sentence) -> dict[str, object]:
    return {
        "backend": stalls.backend.name,
        "sentence": said.text,
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


def slow_window_lines(stalls: Sequence[ScenarioStalls]) -> list[str]:
    """Return what the command prints (hostile)."""
    several = len(stalls) > 1
    return [
        f"{each.scenario.name}: {said.text}" if several else said.text
        for each in stalls
        for said in each.sentences
    ]


def find_slow_windows(scenario: ScenarioRuns) -> list[SlowWindows]:
    """Return the stalls of every backend that a figure shows, of those whose hosts were observed."""
    found = (
        stalls_in(backend, [cut_windows(run) for run in backend.runs]) for backend in scenario.few.backends
    )
    return [each for each in found if each]


@dataclass(frozen=True)
class RunWindows:
    """One run in windows of `width_s` whole seconds, from its start on.

    `slowest_ms` is the slowest response of each, NaN where none was due in it; a source is the worst that it
    was within two seconds of the window, NaN if unknown. All arrays have shape (windows,).
    """

    width_s: int
    slowest_ms: Floats
    sources: dict[HostRow, Floats]


def stalls_in(backend: Backend, runs: Sequence[RunWindows]) -> SlowWindows | None:
    """Return the stalls of a backend's runs; None where no source of their hosts is known. Pure."""
    if not any(row.column for run in runs for row in run.sources):
        return None
    every = np.concatenate([run.slowest_ms[~np.isnan(run.slowest_ms)] for run in runs])
    limit_ms = slow_limit_ms(every)
    slow = 0 if limit_ms is None else int((every >= limit_ms).sum())
    if limit_ms is None or slow < FEWEST_SLOW:
        return SlowWindows(backend, None, 0, len(every), [])
    aligned = [_aligned(run, limit_ms) for run in runs]
    found = coincidences(aligned)
    signs = [_sign(row, each, runs, aligned) for row, each in found.items()]
    return SlowWindows(backend, limit_ms, slow, len(every), _ranked(_judged(signs)), least_p(aligned) > ALPHA)


def _aligned(run: RunWindows, limit_ms: float) -> Aligned[HostRow]:
    known = ~np.isnan(run.slowest_ms)
    slow = known & (np.where(known, run.slowest_ms, 0.0) >= limit_ms)
    worse: Mapping[HostRow, Floats] = {row: badness(row, values) for row, values in run.sources.items()}
    return Aligned(slow, known & ~slow, worse)


def _sign(
    row: HostRow, found: Coincidence, runs: Sequence[RunWindows], aligned: Sequence[Aligned[HostRow]]
) -> Sign:
    having = [(run, each) for run, each in zip(runs, aligned, strict=True) if row in each.sources]
    slow = np.concatenate([_known(run.sources[row][each.slow]) for run, each in having])
    quiet = np.concatenate([_known(run.sources[row][each.quiet]) for run, each in having])
    limit = _limit(row, slow, quiet)
    near_slow, near_quiet = (
        float((badness(row, each) >= badness(row, np.array(limit))).mean()) if len(each) else 0.0
        for each in (slow, quiet)
    )
    return Sign(
        row=row,
        found=found,
        usual=float(np.median(quiet)) if len(quiet) else 0.0,
        slow=float(np.median(slow)) if len(slow) else 0.0,
        slowest=_slowest(row, having),
        limit=limit,
        near_slow=near_slow,
        near_quiet=near_quiet,
    )


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _slowest(row: HostRow, having: Sequence[tuple[RunWindows, Aligned[HostRow]]]) -> float | None:
    """Return what a source was in the slowest window of all, or None."""
    run = max((run for run, _ in having), key=lambda run: float(np.nanmax(run.slowest_ms, initial=0.0)))
    value = float(run.sources[row][int(np.nanargmax(run.slowest_ms))])
    return None if np.isnan(value) else value


def _limit(row: HostRow, slow: Floats, quiet: Floats) -> float:
    """Return the figure, one that people can read, that best tells slow windows from quiet ones."""
    every = np.concatenate([slow, quiet])
    if row.on_off or not len(slow) or not len(quiet) or not (every > 0).any():
        return 1.0
    quantiles = np.quantile(every[every > 0], np.linspace(0, 1, 41))
    limits = sorted({nice_below(value) for value in quantiles.tolist()})
    worse_slow, worse_quiet = badness(row, slow), badness(row, quiet)

    def separation(limit: float) -> float:
        at = badness(row, np.array(limit))
        return float((worse_slow >= at).mean() - (worse_quiet >= at).mean())

    return max(limits, key=separation)


def _judged(signs: Sequence[Sign]) -> list[Sign]:
    """Return the signs, and which stand out.

    Something has to be more than chance does to any source at all. Then whatever is about as far from its
    usual stands beside it, where chance would hardly do that to it alone: a scan that is on or off has ties,
    and less of a statistic than the disk that it keeps busy.
    """
    firm = [sign for sign in signs if sign.is_worth_a_word and sign.found.p <= ALPHA]
    if not firm:
        return list(signs)
    least = max(sign.superiority for sign in firm) - _ALIKE
    return [
        replace(sign, stands_out=True)
        if sign in firm or (sign.is_worth_a_word and sign.found.own_p <= ALPHA and sign.superiority >= least)
        else sign
        for sign in signs
    ]


def _ranked(signs: Sequence[Sign]) -> list[Sign]:
    """Return the signs, the farthest from its usual first; of those about as far, the deepest first.

    Of one depth they stay in the order in which they came, that of the registry. What does not stand out
    comes last.
    """
    left = [sign for sign in signs if sign.stands_out]
    ranked: list[Sign] = []
    while left:
        least = max(sign.superiority for sign in left) - _ALIKE
        ranked += sorted(
            (sign for sign in left if sign.superiority >= least), key=lambda sign: sign.row.depth
        )
        left = [sign for sign in left if sign.superiority < least]
    rest = [sign for sign in signs if not sign.stands_out]
    return [*ranked, *sorted(rest, key=lambda sign: -sign.superiority)]


def cut_windows(run: ReportRun) -> RunWindows:
    """Return the windows of a run, of a second each where it is no longer than a quarter of an hour."""
    timeline = run.statistics.timeline
    each = max(round(1 / timeline.width_s), 1)
    count = -(-timeline.used // each)
    slowest_us = np.zeros(count * each)
    slowest_us[: timeline.used] = timeline.slowest_us[: timeline.used]
    due = np.zeros(count * each)
    due[: timeline.used] = timeline.due[: timeline.used]
    slowest_ms = np.where(
        due.reshape(count, each).any(axis=1), slowest_us.reshape(count, each).max(axis=1) / 1000, np.nan
    )
    width_s = max(round(timeline.width_s * each), 1)
    zero_s = run.zero_ns / 1e9
    busy = run.saturation.name if run.saturation else None
    sources = {
        row: badness(row, _worst(badness(row, value), t_s + zero_s, width_s, count))
        for row, t_s, value, _ in rows_of(run)
        if row.bad and row.saturator != busy
    }
    return RunWindows(width_s, slowest_ms, sources | _events(run, width_s, count))


def badness(row: HostRow, values: Floats) -> Floats:
    """Return values that are higher where they are worse; of those, the values again."""
    return -values if row.bad == "low" else values


def _worst(value: Floats, t_s: Floats, width_s: int, count: int) -> Floats:
    """Return the highest of the samples within two seconds of each window."""
    seconds = np.full(count * width_s + 2 * LAG_S, -np.inf)
    slot = np.floor(np.clip(t_s, -1e9, 1e9)).astype(np.int64) + LAG_S
    there = (slot >= 0) & (slot < len(seconds)) & ~np.isnan(value)
    np.maximum.at(seconds, slot[there], value[there])
    near = np.lib.stride_tricks.sliding_window_view(seconds, width_s + 2 * LAG_S)[::width_s].max(axis=1)
    return np.where(np.isneginf(near), np.nan, near)


def _events(run: ReportRun, width_s: int, count: int) -> dict[HostRow, Floats]:
    """Return what else was going on: 1 where an event of that name (hostile) was within two seconds."""
    found: dict[HostRow, Floats] = {}
    middles_s = (np.arange(count) + 0.5) * width_s
    busy = run.saturation.name if run.saturation else ""
    own = {busy, *(busy + end for end in _SATURATORS_OWN), *_NO_SOURCES}
    for span in spans(run.directory.events, run.elapsed_s):
        said = f"“{span.name}”"
        row = HostRow(span.name, said, "", "", 0.5, depth=Depth.WORK, near=said, on_off=True)
        if span.name in own or (row not in found and len(found) == _MOST_EVENTS):
            continue
        reach_s = width_s / 2 + LAG_S
        within = (middles_s >= span.start_s - reach_s) & (middles_s < span.stop_s + reach_s)
        found[row] = np.maximum(found.get(row, np.zeros(count)), within)
    return found


def describe_windows(stalls: SlowWindows) -> str:
    """Describe a backend's slow windows, as the rest of a sentence that began with its name."""
    if stalls.limit_ms is None:
        windows = counted(stalls.windows, "window")
        noticed = f"and over {milliseconds(LEAST_SLOW_MS)}"
        return f"nothing stands out: hardly any of {windows} was much slower than usual {noticed}."
    windows = f"{counted(stalls.slow, 'window')} of {stalls.windows:,}"
    slow = f"{windows} took over {milliseconds(stalls.limit_ms)}"
    if stalls.too_few:
        return f"nothing stands out: {slow}, and so few cannot be distinguished from chance."
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
    depths = {found[0].row.depth}
    for sign in found[1:]:
        if sign.row.depth not in depths and len(depths) <= _MOST_BESIDE:
            depths.add(sign.row.depth)
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
