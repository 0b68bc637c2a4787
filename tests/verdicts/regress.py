"""How often the nightly look is wrong, and how soon it is right: simulated nights, the rules themselves.

`python -m tests.verdicts.regress` prints the tables of docs/statistics.md, in half an hour.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.compare.decision import Question
from plimsoll.analysis.regress import changes, levels
from plimsoll.analysis.regress.judge import BASELINE_NIGHTS, LAST_NIGHTS, decide_nightly, judge
from plimsoll.analysis.regress.levels import find_changes
from plimsoll.analysis.regress.nights import (
    ROUTE,
    ChangeRow,
    ExperimentHistory,
    FigureRow,
    NightFacts,
    NightKey,
    NightRow,
    NightSeries,
    NightValue,
    RunRow,
    SeriesKey,
)

NIGHTS = 100
SERIES = 8
QUIET_BEFORE = 60
Logs = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """How nights differ from one another: `of(random, nights)` are logarithms."""

    name: str
    of: Callable[[np.random.Generator, int], Logs]


def normal(spread: float) -> Noise:
    return Noise(
        f"log-normal, {100 * spread:g} %", lambda random, nights: random.normal(0, math.log1p(spread), nights)
    )


def alike(neighbours: float, spread: float) -> Noise:
    def of(random: np.random.Generator, nights: int) -> Logs:
        steps = random.normal(0, math.log1p(spread) * math.sqrt(1 - neighbours**2), nights)
        steps[0] = random.normal(0, math.log1p(spread))
        for night in range(1, nights):
            steps[night] += neighbours * steps[night - 1]
        return steps

    return Noise(f"neighbours alike, AR(1) {neighbours:g}, {100 * spread:g} %", of)


def heavy(random: np.random.Generator, nights: int) -> Logs:
    return random.standard_t(3, nights) * math.log1p(0.1) / math.sqrt(3)


def weekly(random: np.random.Generator, nights: int) -> Logs:
    wave = 0.1 * np.sin(np.arange(nights) * 2 * math.pi / 7)
    return random.normal(0, math.log1p(0.1), nights) + wave


def weekends(random: np.random.Generator, nights: int) -> Logs:
    slower = np.where(np.arange(nights) % 7 >= 5, math.log(1.3), 0.0)
    return random.normal(0, math.log1p(0.05), nights) + slower


def drifting(percent: float) -> Noise:
    def of(random: np.random.Generator, nights: int) -> Logs:
        return random.normal(0, math.log1p(0.1), nights) + np.linspace(0, math.log1p(percent / 100), nights)

    return Noise(f"steady drift, {percent:g} % in 100 nights, 10 %", of)


def walking(random: np.random.Generator, nights: int) -> Logs:
    return random.normal(0, math.log1p(0.1), nights) + np.cumsum(random.normal(0, 0.02, nights))


WEEKENDS = Noise("weekends of + 30 %, 5 %", weekends)
PLAIN = [normal(spread) for spread in (0.05, 0.1, 0.2, 0.3)]
NOISES = [
    PLAIN[-1],  # the others are the same nights, with fewer changes of 10 %
    Noise("heavy tails (t, 3), 10 %", heavy),
    Noise("a week of ± 10 %, 10 %", weekly),
    *(alike(neighbours, 0.1) for neighbours in (0.3, 0.5, 0.7)),
    drifting(10),
    drifting(30),
    Noise("a random walk, 2 % a night, 10 %", walking),
]
BY = (6, 15)  # nights: goals of a step, and of a drift
RATIOS = (1.2, 1.3, 1.5, 2.0)


def alarms(logs: Logs, first: int = 1, kinds: int = 0) -> int | None:
    """Return after how many nights the first alarm came, each night looked at anew; None: never.

    It is a series of one of so many `kinds` of requests, or not.
    """
    whole = series(logs, ROUTE if kinds else "p99.9")
    limit = [changes.NEWS_P / kinds] if kinds else []
    for nights in range(max(first, changes.LEAST_BEFORE + changes.LEAST_AFTER), len(logs) + 1):
        if kinds and not _may_have_risen(logs[:nights]):
            continue
        seen = NightSeries(whole.key, whole.unit, whole.nights[:nights])
        for change in find_changes(seen.scaled, seen.weekdays):
            if changes.is_worse(seen, change) and changes.is_sure(change, nights, *limit):
                return nights
    return None


def _may_have_risen(logs: Logs) -> bool:
    """Return whether the last nights are above those before by three standard errors; news take over five."""
    since = np.arange(changes.LEAST_AFTER, min(levels.RECENT, len(logs) - changes.LEAST_BEFORE) + 1)[:, None]
    at = len(logs) - since
    first = np.maximum(at - [5, 10, 20, 40, len(logs)], 0)
    total, squares = (np.concatenate([[0], each.cumsum()]) for each in (logs, logs**2))
    before, after = (total[at] - total[first]) / (at - first), (total[-1] - total[at]) / since
    within = squares[-1] - squares[first] - (at - first) * before**2 - since * after**2
    error = np.sqrt(within / (len(logs) - first - 2) * (1 / (at - first) + 1 / since))
    return bool((after - before > 3 * error).any())


def began(at: int) -> str:
    """Return when night number `at` began, the first on a Monday."""
    return f"{date(2026, 1, 5) + timedelta(at)}T02:00:00Z"


def series(logs: Logs, metric: str = "p99.9") -> NightSeries:
    nights = [
        NightRow(at, NightFacts(NightKey("study", str(at)), began(at), None, ""), baseline=False)
        for at in range(len(logs))
    ]
    key = SeriesKey("study", "replay", "nvme", "whole", metric)
    return NightSeries(
        key, "ms", [NightValue(night, (50 * math.exp(log),)) for night, log in zip(nights, logs, strict=True)]
    )


def false_alarms(noise: Noise, histories: int, seed: int = 1) -> float:
    """Return the share of quiet series with any alarm in 100 nights."""
    random = np.random.default_rng(seed)
    return sum(alarms(noise.of(random, NIGHTS)) is not None for _ in range(histories)) / histories


def delays(
    noise: Noise, rise: float | Logs, histories: int, quiet: int = QUIET_BEFORE, seed: int = 2
) -> list[int]:
    """Return after how many slower nights each regression was found, of those that were.

    They are `rise` times as slow, each night as much or each by its own. It begins on any day of the week.
    """
    random = np.random.default_rng(seed)
    found = []
    for at in range(histories):
        logs = noise.of(random, quiet + at % 7 + levels.RECENT)
        logs[-levels.RECENT :] += np.log(rise)
        night = alarms(logs, first=len(logs) - levels.RECENT + 1)
        if night is not None:
            found.append(night - len(logs) + levels.RECENT)
    return found


def fails(
    noise: Noise, histories: int, ratio: float = 1.0, gates: int = SERIES, after: int = NIGHTS, seed: int = 3
) -> list[int]:
    """Return when one gate of several FAILs against the baseline, where it does in so many nights after."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(histories):
        logs = noise.of(random, NIGHTS)
        logs[BASELINE_NIGHTS:] += math.log(ratio)
        for night in range(BASELINE_NIGHTS + 4, min(NIGHTS, BASELINE_NIGHTS + after) + 1):
            base = logs[:BASELINE_NIGHTS]
            last = logs[max(BASELINE_NIGHTS, night - LAST_NIGHTS) : night]
            beyond = last.mean() - base.mean() - math.log(1.1)
            if beyond < 2 * math.sqrt(base.var() / len(base) + last.var() / len(last)):
                continue  # a FAIL takes over three standard errors
            question = Question("at_most_ratio", 1.1, list(np.exp(base)), list(np.exp(last)))
            blocked = Question("at_most_ratio", 1.1, [], [], blocked=["another"])
            if decide_nightly([question, *[blocked] * (gates - 1)], 0.95)[0].outcome == "FAIL":
                found.append(night - BASELINE_NIGHTS)
                break
    return found


def nightly(logs: Logs, first: int, accepted: frozenset[int] = frozenset()) -> Iterator[str]:
    """Yield the state of the series on each night from `first` on, as a history goes that is judged nightly.

    What was reported is accepted after the nights `accepted`.
    """
    nights = [
        NightRow(at, NightFacts(NightKey("study", str(at)), began(at), None, ""), baseline=False)
        for at in range(len(logs))
    ]
    runs = [
        RunRow(at, at, "replay", "nvme", "1", (), "", "", str(at), began(at), 0, True, False)
        for at in range(len(logs))
    ]
    figures = [FigureRow(at, "whole", "p99.9", 50 * math.exp(log), "ms") for at, log in enumerate(logs)]
    noted: dict[tuple[str, int], ChangeRow] = {}
    for count in range(first + 1, len(logs) + 1):
        past = ExperimentHistory(
            "study", nights[:count], runs[:count], figures[:count], [], list(noted.values()), decisions=()
        )
        judgement, changes = judge(past, {})
        noted |= {(change.kind, change.night): change for change in changes}
        if count - 1 in accepted:
            noted = {
                key: row if row.recovered is not None else replace(row, accepted=True)
                for key, row in noted.items()
            }
        yield judgement.series[0].state


@dataclass(frozen=True)
class Episode:
    """What a history reported of a step that was mended and came back: after how many nights; None: never.

    `false_mends` counts the recoveries that were reported while the step lasted.
    """

    reported: int | None
    mended: int | None
    reported_again: int | None
    false_mends: int


def episode(logs: Logs, worse: range, again: range, accepts: bool = False) -> Episode:
    """Judge `logs` night by night, which are slower in the nights `worse` and `again`."""
    accepted = frozenset({worse.stop - 1} if accepts else ())
    states = dict(enumerate(nightly(logs, worse.start, accepted), worse.start))

    def first(state: str, start: int, stop: int) -> int | None:
        return next((at - start + 1 for at in range(start, stop) if states[at] == state), None)

    return Episode(
        first("news", worse.start, worse.stop),
        first("recovered", worse.stop, again.start),
        first("news", again.start, again.stop),
        sum(states[at] == "recovered" for at in worse),
    )


def episodes(
    noise: Noise, ratio: float, lasts: int, gap: int, histories: int, accepts: bool = False, seed: int = 6
) -> list[Episode]:
    """Return so many histories of a step that lasts some nights, is mended for some, and comes back."""
    random = np.random.default_rng(seed)
    worse = range(QUIET_BEFORE, QUIET_BEFORE + lasts)
    again = range(worse.stop + gap, worse.stop + gap + levels.RECENT)
    found = []
    for _ in range(histories):
        logs = noise.of(random, again.stop)
        for nights in (worse, again):
            logs[nights.start : nights.stop] += math.log(ratio)
        found.append(episode(logs, worse, again, accepts))
    return found


def otava_alone(histories: int) -> Iterator[list[str]]:
    yield ["nights", "Otava's p 0.001 alone", "any of 8 series"]
    for noise in (normal(0.2), alike(0.5, 0.1)):
        with without_our_test():
            share = false_alarms(noise, histories)
        yield [noise.name, *(f"{100 * each:.0f} %" for each in (share, any_of(share)))]


@contextmanager
def without_our_test() -> Iterator[None]:
    """As if Otava's own test, at the limit that it comes with, were enough."""
    ours = changes.is_sure.__defaults__, levels.OTAVA_P
    changes.is_sure.__defaults__, levels.OTAVA_P = (1.0,), 0.001
    try:
        yield
    finally:
        changes.is_sure.__defaults__, levels.OTAVA_P = ours


def any_of(share: float, count: int = SERIES) -> float:
    return 1 - (1 - share) ** count


def quiet(histories: int) -> Iterator[list[str]]:
    yield ["nights", "one series", "any of 8 series", "one gate FAILs", "any of 8 gates"]
    for noise in NOISES:
        count = histories if noise in PLAIN else histories // 10
        one, gate = false_alarms(noise, count), len(fails(noise, count)) / count
        yield [noise.name, *(f"{100 * share:.1f} %" for share in (one, any_of(one), gate, any_of(gate)))]


def quiet_kinds(histories: int) -> Iterator[list[str]]:
    yield ["nights", f"any of {SERIES} kinds of requests"]
    for noise in NOISES[:5]:
        random = np.random.default_rng(7)
        false = 0
        for _ in range(histories):
            common, *own = (noise.of(random, NIGHTS) * math.sqrt(0.5) for _ in range(SERIES + 1))
            false += any(alarms(common + each, kinds=SERIES) for each in own)
        yield [noise.name, f"{false} of {histories}"]


def power(histories: int) -> Iterator[list[str]]:
    yield ["nights", *(f"× {ratio:.2f}" for ratio in RATIOS)]
    for noise in [*PLAIN, alike(0.5, 0.1)]:
        cells = []
        for ratio in RATIOS:
            found = delays(noise, ratio, histories)
            after = f", {np.median(found):.0f} nights" if found else ""
            cells.append(f"{100 * len(found) / histories:.0f} %{after}")
        yield [noise.name, *cells]


def soon(histories: int) -> Iterator[list[str]]:
    rises = {
        f"× 1.20, by night {BY[0]}": (np.full(levels.RECENT, 1.2), BY[0]),
        f"1 % a night, by night {BY[1]}": (1.01 ** np.arange(1, levels.RECENT + 1), BY[1]),
    }
    yield ["nights", "quiet before", *rises, f"any alarm in {NIGHTS} quiet nights"]
    for noise in (normal(0.05), WEEKENDS, normal(0.1)):
        false = f"{100 * false_alarms(noise, histories):.1f} %"
        for quiet in (levels.WEEKDAYS_FROM, QUIET_BEFORE):
            cells = []
            for rise, by in rises.values():
                found = delays(noise, rise, histories, quiet)
                cells.append(f"{100 * sum(night <= by for night in found) / histories:.0f} %")
            yield [noise.name, str(quiet), *cells, false]


def against_baseline(histories: int) -> Iterator[list[str]]:
    yield ["nights", *(f"× {ratio:.2f}" for ratio in RATIOS)]
    for noise in PLAIN:
        cells = []
        for ratio in RATIOS:
            found = fails(noise, histories, ratio, after=levels.RECENT)
            after = f", {np.median(found):.0f} nights" if found else ""
            cells.append(f"{100 * len(found) / histories:.0f} %{after}")
        yield [noise.name, *cells]


def fixed(histories: int) -> Iterator[list[str]]:
    yield ["nights, step", "found", "recovery found", "return found", "wrongly recovered"]
    for noise in (normal(0.1), normal(0.2), alike(0.5, 0.1)):
        for ratio in (1.2, 1.5):
            every = episodes(noise, ratio, lasts=30, gap=15, histories=histories)
            reported = [one for one in every if one.reported is not None]
            cells = [f"{100 * len(reported) / histories:.0f} %"]
            for nights in ([one.mended for one in reported], [one.reported_again for one in reported]):
                seen = [night for night in nights if night is not None]
                after = f", {np.median(seen):.0f} nights" if seen else ""
                cells.append(f"{100 * len(seen) / len(reported):.0f} %{after}" if reported else "–")
            wrong = sum(one.false_mends > 0 for one in reported)
            cells.append(f"{100 * wrong / len(reported):.0f} %" if reported else "–")
            yield [f"{noise.name}, × {ratio:.2f}", *cells]


TABLES: dict[str, tuple[Callable[[int], Iterator[list[str]]], int]] = {
    "otava": (otava_alone, 60),
    "quiet": (quiet, 600),
    "kinds": (quiet_kinds, 60),
    "power": (power, 100),
    "soon": (soon, 60),
    "baseline": (against_baseline, 40),
    "fixed": (fixed, 10),
}


def main(names: Sequence[str]) -> None:
    for name in names or TABLES:
        table, histories = TABLES[name]
        print(f"<!-- {name} nights -->")
        for number, row in enumerate(table(histories)):
            print(f"| {' | '.join(row)} |", flush=True)
            if not number:
                print(f"| {' | '.join(['---'] * len(row))} |")
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
