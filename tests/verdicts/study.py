"""How often verdicts are wrong, and what the guards over them cost: tables of docs/statistics.md.

    .venv/bin/python -m tests.verdicts.study            # small, a minute: what CI holds to 5 %
    .venv/bin/python -m tests.verdicts.study --full     # what docs/statistics.md shows

Every experiment goes through the code that `plimsoll compare` uses.
"""

import argparse
import math
from collections.abc import Callable, Iterator

import numpy as np

from plimsoll.analysis.compare.decision import Question, Verdict, decide
from plimsoll.analysis.statistics.stalls import excluded_share
from tests.verdicts.coverage import coverage_table
from tests.verdicts.goals import (
    busy_table,
    goal_table,
    mixed_table,
    planned_runs_table,
    planned_table,
    runs_table,
)
from tests.verdicts.worlds import LIMIT, SHAPES, Figures, Unequal, World, fewer_arrangements, figures

SMALL, FULL = 200, 2000
ALPHA = 0.05
SPREADS = (0.0, 0.1, 0.3)
RATIOS = (1.2, 1.5, 2.0)
REPEATS = (4, 6)

Table = Callable[[int], Iterator[list[str]]]


def most(experiments: int, standard_errors: int = 2) -> float:
    """Return 5 % and so many standard errors."""
    return ALPHA + standard_errors * math.sqrt(ALPHA * (1 - ALPHA) / experiments)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def rare(share: float) -> str:
    return f"{100 * share:.0f} %"


def errors_table(experiments: int) -> Iterator[list[str]]:
    """Wrong verdicts at the limit itself."""
    yield ["requests of a run", "spread of runs", "repeats", "wrong PASS", "wrong FAIL"]
    for name, found in _worlds(experiments):
        at = [found.verdict(n, LIMIT).outcome for n in range(experiments)]
        yield [*name, *(percent(at.count(wrong) / experiments) for wrong in ("PASS", "FAIL"))]


def power_table(experiments: int) -> Iterator[list[str]]:
    """What is found, without the guards and with them."""
    heads = ["PASS at ×0.67", "PASS at ×1.00", *(f"FAIL at ×{ratio:.2f}" for ratio in RATIOS)]
    yield ["requests of a run", "spread of runs", "repeats", *heads]
    for name, found in _worlds(experiments):
        cells = []
        for ratio, outcome in [(0.67, "PASS"), (1.0, "PASS"), *((ratio, "FAIL") for ratio in RATIOS)]:
            verdicts = [found.verdict(n, ratio) for n in range(experiments)]
            p = [(v.p_pass if outcome == "PASS" else v.p_fail) or 0.0 for v in verdicts]
            before = float(np.mean(np.array(p) <= ALPHA))
            cells.append(f"{rare(before)} → {rare(float(np.mean([v.outcome == outcome for v in verdicts])))}")
        yield [*name, *cells]


def _worlds(experiments: int) -> Iterator[tuple[list[str], Figures]]:
    for shape in SHAPES:
        for spread in SPREADS:
            for repeats in REPEATS:
                found = figures(World(shape, spread, repeats), experiments)
                yield [shape, rare(spread), str(repeats)], found


def counts_table(experiments: int) -> Iterator[list[str]]:
    """Wrong verdicts where the candidate has fewer requests."""
    heads = ["wrong PASS before", "wrong FAIL before", "wrong PASS", "wrong FAIL"]
    yield ["requests of a run", "baseline", "candidate", *heads]
    for shape in SHAPES:
        for requests, fewer, shorter in [(10_000, 1000, False), (10_000, 1000, True), (2000, 1999, False)]:
            random = np.random.default_rng(7)
            world = Unequal(shape, requests, fewer, shorter)
            found = np.array([world.outcome(random) for _ in range(experiments)]).reshape(experiments, 4)
            how = "in a tenth of the time" if shorter else "in the same time"
            yield [shape, f"{requests:,}", f"{fewer:,} {how}", *map(percent, found.mean(axis=0))]


def stalls_table(experiments: int) -> Iterator[list[str]]:
    """PASS where the candidate is as fast as the baseline, but for one stall of 1 s in some of its runs."""
    heads = ["PASS before", "PASS", "of these, a run stalled: before", "wrong PASS", "PASS with the gate"]
    yield ["figure", "runs that stall", "repeats", "excluded at 95 %", *heads]
    for metric in ("p99.9", "p99"):
        for share in (0.1, 0.2):
            for repeats in (4, 8, 12, 40):
                world = World("log-normal, σ 1", 0.05, repeats, 4000, share, metric)
                found = figures(world, experiments)
                excluded = excluded_share(repeats, 0.95)
                verdicts = [found.verdict(n) for n in range(experiments)]
                before = np.array([(v.p_pass or 0) <= ALPHA for v in verdicts])
                passed = np.array([v.outcome == "PASS" for v in verdicts])
                seen = found.stalled.any(axis=1)
                wrong = passed & (seen | (share > excluded))
                gated = np.array([found.passes_with_gate(n) for n in range(experiments)])
                cells = [before, passed, before & seen, wrong, gated]
                yield [metric, rare(share), str(repeats), rare(excluded), *(percent(c.mean()) for c in cells)]


def stall_gate_table(experiments: int) -> Iterator[list[str]]:
    """The gate `stalls over 500 ms`, at most in 10 % of runs, at the share of runs that stall."""
    yield ["runs of the candidate", "runs that stall", "PASS", "FAIL"]
    random = np.random.default_rng(7)
    for runs in (29, 30, 60):
        for share in (0.0, 0.02, 0.1, 0.2, 0.4):
            outcomes = []
            for _ in range(experiments):
                values = (random.random(runs) < share).astype(float).tolist()
                question = Question("at_most_share_of_runs", 0.1, [], values)
                outcomes.append(decide([question], 0.95, 1)[0].outcome)
            rates = [percent(outcomes.count(outcome) / experiments) for outcome in ("PASS", "FAIL")]
            yield [str(runs), rare(share), *rates]


def looks_table(experiments: int) -> Iterator[list[str]]:
    """Wrong verdicts at the limit if one decides anew with more runs each time, until there is a verdict."""
    heads = ["wrong PASS before", "wrong FAIL before", "wrong PASS", "wrong FAIL"]
    yield ["requests of a run", "repeats at each look", *heads]
    for shape in ("log-normal, σ 1", "Pareto, index 1.2"):
        found = figures(World(shape, 0.1, 12, 2000), experiments)
        for looks in ((4,), (4, 8), (4, 6, 8), (4, 8, 12)):
            wrong = np.zeros(4)
            for n in range(experiments):
                for first, spending in ((0, False), (2, True)):
                    for number, runs in enumerate(looks, 1):
                        outcome = found.verdict(n, LIMIT, number if spending else None, runs).outcome
                        if outcome != "INCONCLUSIVE":
                            wrong[first + (outcome == "FAIL")] += 1
                            break
            yield [shape, ", ".join(map(str, looks)), *map(percent, wrong / experiments)]


def forecast_table(experiments: int) -> Iterator[list[str]]:
    """How many of those that were advised "about N more runs" are decided by them.

    The true ratio is anywhere from × 0.6 to × 2, as likely here as there.
    """
    yield ["runs at the first look", "spread of runs", "got a number", "median of it", "decided with it"]
    random = np.random.default_rng(7)
    for first in (4, 6, 8):
        for spread in (0.05, 0.15, 0.3):
            given, decided, numbers = 0, 0, []
            asked = 0
            while asked < experiments:
                logs = random.normal(0, spread, (2, 200))
                logs[1] += random.uniform(math.log(0.6), math.log(2.0))
                base, cand = np.exp(logs).tolist()
                early = _look(base[:first], cand[:first], 1)
                if early.outcome != "INCONCLUSIVE":
                    continue
                asked += 1
                if early.more_runs is None:
                    continue
                given += 1
                numbers.append(early.more_runs)
                runs = first + early.more_runs
                late = _look(base[:runs], cand[:runs], 2)
                decided += late.outcome != "INCONCLUSIVE"
            number = f"{np.median(numbers):.0f}"
            yield [str(first), rare(spread), rare(given / asked), number, percent(decided / max(given, 1))]


def _look(baseline: list[float], candidate: list[float], number: int) -> Verdict:
    return decide([Question("at_most_ratio", LIMIT, baseline, candidate, is_paired=True)], 0.95, number)[0]


def found_table(experiments: int) -> Iterator[list[str]]:
    """What the page says that so many runs find, and how often they do, if it is there."""
    yield ["requests of a run", "spread of runs", "repeats", "FAIL from (median)", "FAIL there"]
    for name, found in _worlds(experiments):
        said = [found.verdict(n, LIMIT).fails_from or math.nan for n in range(min(experiments, 200))]
        ratio = float(np.median(said))
        fails = np.mean([found.verdict(n, ratio).outcome == "FAIL" for n in range(experiments)])
        yield [*name, f"×{ratio:.2f}", percent(float(fails))]


TABLES: dict[str, Table] = {
    "guarded errors": errors_table,
    "unequal counts": counts_table,
    "rare stalls": stalls_table,
    "stall gate": stall_gate_table,
    "looks": looks_table,
    "forecast looks": forecast_table,
    "guarded power": power_table,
    "found": found_table,
    "coverage": coverage_table,
    "mixed gates": mixed_table,
    "goals": goal_table,
    "many runs": runs_table,
    "plans": planned_table,
    "long plans": planned_runs_table,
    "busy machine": busy_table,
}


def markdown(rows: Iterator[list[str]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield f"| {' | '.join(row)} |"
        if not number:
            yield f"|{' --- |' * len(row)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="as many experiments as the document's tables")
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help="only these")
    options = parser.parse_args()
    with fewer_arrangements():
        for name in options.tables or TABLES:
            print(f"<!-- {name} -->")
            print("\n".join(markdown(TABLES[name](FULL if options.full else SMALL))), end="\n\n", flush=True)
