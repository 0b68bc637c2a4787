"""How sure and how soon verdicts are, beside the best that any test could do: tables of docs/statistics.md.

Runs lie log-normally around their side's level, 10 % apart; the limit is × 1.10. Three gates have the
correlation 0.5 between them. The oracle knows that runs are normal and how gates correlate: t tests, all of
which reject for a PASS; for a FAIL the greatest of them against its known distribution (Dunnett, JASA 50,
1955; any of several equal gates, so that stepping down adds nothing).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.compare.by_blocks import decide_by_blocks
from plimsoll.analysis.compare.decision import Outcome, Question, decide, overall
from plimsoll.analysis.statistics.permutation import PermutationTest, t_quantile
from plimsoll.analysis.statistics.sequential import BlockEvidence
from tests.verdicts.worlds import LIMIT

ALPHA = 0.05
SPREAD = 0.1
CORRELATION = 0.5
_BLOCK_SPREAD = 0.15  # how far blocks lie apart, where the machine drifts
_BUSY_SPREAD = 0.3  # of p99.9 on a machine that does other things
_ORACLE = 200_000  # experiments for a critical value
_CASES: tuple[tuple[float, Outcome], ...] = ((1.0, "PASS"), (1.2, "FAIL"), (1.5, "FAIL"))

Logs = NDArray[np.float64]  # of runs' values: (experiments, gates, sides, runs)


@dataclass(frozen=True)
class Design:
    """Experiments of so many runs a side and gates; `dealt` is how their runs are ordered.

    With `looks` they come in blocks, and are a plan of so many runs that is looked at after each.
    """

    runs: int
    gates: int = 1
    dealt: str = "free"

    def draw(self, experiments: int, ratios: Sequence[float], seed: int = 7) -> Logs:
        """Return what the runs show where each gate's true ratio is as given."""
        random = np.random.default_rng(seed)
        shape = (experiments, self.gates, 2, self.runs)
        own, common = (
            random.standard_normal(shape),
            random.standard_normal((experiments, 1, 2, self.runs)),
        )
        share = CORRELATION if self.gates > 1 else 0.0
        logs = SPREAD * (math.sqrt(share) * common + math.sqrt(1 - share) * own)
        if self.dealt != "free":
            drift = random.normal(0, _BLOCK_SPREAD, (experiments, 1, 1, self.runs // 2))
            logs += np.repeat(drift, 2, axis=3)
        logs[:, :, 1] += np.log(np.asarray(ratios))[None, :, None]
        return logs

    def outcomes(self, logs: Logs, look: int | None = None) -> list[Outcome]:
        """Return what `compare` makes of each experiment."""
        return [overall(self.gate_outcomes(each, look)) for each in logs]

    def gate_outcomes(self, logs: NDArray[np.float64], look: int | None) -> list[Outcome]:
        """Return the outcome of each gate of one experiment."""
        asked = [
            Question(
                "at_most_ratio",
                LIMIT,
                np.exp(gate[0]).tolist(),
                np.exp(gate[1]).tolist(),
                runs_of="replay",
                in_blocks=self.dealt != "free",
            )
            for gate in logs
        ]
        with (  # forecasts take most of the time, and decide nothing
            patch.object(PermutationTest, "runs_to_decide", return_value=None),
            patch.object(PermutationTest, "found_from", return_value=None),
            patch.object(BlockEvidence, "lower", return_value=None),
            patch.object(BlockEvidence, "upper", return_value=None),
        ):
            if self.dealt == "looks":
                return [verdict.outcome for verdict in decide_by_blocks(asked, 1 - ALPHA, self.runs // 2)]
            return [verdict.outcome for verdict in decide(asked, 1 - ALPHA, look)]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _share(outcomes: Sequence[Outcome], wanted: Outcome) -> float:
    return outcomes.count(wanted) / len(outcomes)


def mixed_table(experiments: int) -> Iterator[list[str]]:
    """Wrong FAIL of a gate at its limit, beside others that keep theirs or are broken."""
    yield ["runs a side", "order", "ratios of the gates", "a gate that is kept FAILs"]
    for runs, dealt in ((4, "free"), (4, "blocks"), (8, "free"), (8, "blocks"), (8, "looks")):
        for ratios in ((LIMIT, 1.0, 0.6), (LIMIT, LIMIT, 1.0), (LIMIT, 2.0, 1.0), (LIMIT, 2.0, 2.0)):
            design = Design(runs, 3, dealt)
            kept = [at for at, ratio in enumerate(ratios) if ratio <= LIMIT]
            wrong = 0
            for logs in design.draw(experiments, ratios):
                found = design.gate_outcomes(logs, None)
                wrong += any(found[at] == "FAIL" for at in kept)
            yield [
                str(runs),
                dealt,
                ", ".join(f"× {each:.2f}" for each in ratios),
                percent(wrong / experiments),
            ]


def goal_table(experiments: int) -> Iterator[list[str]]:
    """What 8 runs a side find, with the error of one look and with that of the first of any number."""
    yield ["gates", "order", "level", "PASS at ×1.00", "FAIL at ×1.20", "FAIL at ×1.50", "optimum"]
    for gates in (1, 3):
        for dealt in ("free", "blocks"):
            for level, look in (("5 %", None), ("4.3 %: the first look", 1)):
                design = Design(8, gates, dealt)
                alpha = ALPHA if look is None else ALPHA * 6 / 7
                cells, best = list[str](), list[str]()
                for ratio, wanted in _CASES:
                    cells.append(percent(_power(design, experiments, ratio, wanted, look)))
                    best.append(f"{100 * oracle(8, gates, ratio, wanted, alpha):.0f}")
                yield [str(gates), dealt, level, *cells, f"{', '.join(best)} %"]


def runs_table(experiments: int) -> Iterator[list[str]]:
    """How often 16 and 20 runs a side find it, one gate, with the error of one look."""
    yield ["runs a side", "PASS at ×1.00", "FAIL at ×1.20", "optimum"]
    for runs in (16, 20):
        found = [percent(_power(Design(runs), experiments, *case, None)) for case in _CASES[:2]]
        best = [f"{100 * oracle(runs, 1, *case, ALPHA):.0f}" for case in _CASES[:2]]
        yield [str(runs), *found, f"{', '.join(best)} %"]


def _power(design: Design, experiments: int, ratio: float, wanted: Outcome, look: int | None) -> float:
    return _share(design.outcomes(design.draw(experiments, [ratio] * design.gates), look), wanted)


def planned_table(experiments: int) -> Iterator[list[str]]:
    """Wrong verdicts and power of plans: blocks that are looked at once, at the end, and after each.

    A PASS is wrong where one gate is at its limit, however well the others keep theirs; a FAIL likeliest
    where all are.
    """
    heads = ["wrong PASS", "wrong FAIL", "PASS at ×1.00", "FAIL at ×1.20", "FAIL at ×1.50"]
    yield ["gates", "runs a side", "looks", *heads]
    for gates in (1, 3):
        for runs in (8, 12):
            for looks, dealt in (("end", "blocks"), ("blocks", "looks")):
                design = Design(runs, gates, dealt)
                one, every = [LIMIT, *[0.6] * (gates - 1)], [LIMIT] * gates
                passed, failed = (
                    design.outcomes(design.draw(experiments, ratios)) for ratios in (one, every)
                )
                wrong = _share(passed, "PASS"), _share(failed, "FAIL")
                found = [_power(design, experiments, *case, None) for case in _CASES]
                yield [str(gates), str(runs), looks, *map(percent, [*wrong, *found])]


def planned_runs_table(experiments: int) -> Iterator[list[str]]:
    """How often a plan that is looked at block by block finds it by its end, one gate."""
    yield ["runs a side", "PASS at ×1.00", "FAIL at ×1.20"]
    for runs in (22, 24):
        design = Design(runs, dealt="looks")
        yield [str(runs), *(percent(_power(design, experiments, *case, None)) for case in _CASES[:2])]


def busy_table(experiments: int) -> Iterator[list[str]]:
    """The busy machine: p99.9 of 10.6 against 215 ms, runs 30 % apart, 4 runs a side, at the first look."""
    yield ["gates", "order", "FAIL"]
    for gates in (1, 3):
        for dealt in ("free", "blocks"):
            design = Design(4, gates, dealt)
            logs = design.draw(experiments, [215 / 10.6, *[1.0] * (gates - 1)])
            logs[:, 0] += np.random.default_rng(1).normal(
                0, math.sqrt(_BUSY_SPREAD**2 - SPREAD**2), logs[:, 0].shape
            )
            yield [str(gates), dealt, percent(_share(design.outcomes(logs, 1), "FAIL"))]


def oracle(runs: int, gates: int, ratio: float, wanted: Outcome, alpha: float) -> float:
    """Return how often the best test finds it that knows the shape of runs and how gates correlate."""
    away = abs(math.log(ratio / LIMIT))
    t = _oracle_t(runs, gates, away, seed=1)
    if wanted == "PASS":
        return float((t.min(axis=1) >= t_quantile(1 - alpha, 2 * runs - 2)).mean())
    null = _oracle_t(runs, gates, 0.0, seed=2).max(axis=1)
    return float((t.max(axis=1) >= np.quantile(null, 1 - alpha)).mean())


def _oracle_t(runs: int, gates: int, away: float, seed: int) -> NDArray[np.float64]:
    """Return t of every gate in many experiments that lie `away` from the limit."""
    random = np.random.default_rng(seed)
    free = 2 * runs - 2
    share = CORRELATION if gates > 1 else 0.0
    root = np.linalg.cholesky(np.full((gates, gates), share) + (1 - share) * np.eye(gates))
    z = random.standard_normal((_ORACLE, gates)) @ root.T
    squares = np.zeros((_ORACLE, gates))
    for _ in range(free):
        squares += (random.standard_normal((_ORACLE, gates)) @ root.T) ** 2
    return (z + away / (SPREAD * math.sqrt(2 / runs))) / np.sqrt(squares / free)
