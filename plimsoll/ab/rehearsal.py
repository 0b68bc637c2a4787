"""What an experiment on this machine would find: known slowdowns, planted into runs of one and the same site.

Runs come in blocks of four. In every re-dealing two of each block play the candidate, whose requests are made
slower by what is planted, and the code that judges everything else judges them. The share of re-dealings that
FAIL is how often so much is found. Other numbers of runs are foretold from the spread within blocks. Pure.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from statistics import NormalDist
from typing import Any

import numpy as np

from plimsoll.analysis.compare.by_blocks import outcomes_by_blocks
from plimsoll.analysis.compare.decision import Outcome, Question, decide, overall
from plimsoll.analysis.compare.gates import LIMITS, Gate, Gates, Limit
from plimsoll.analysis.compare.questions import cut_alike, value_of, without_lateness
from plimsoll.analysis.evidence.run import MeasuredRun, RunPhase
from plimsoll.analysis.statistics.percentiles import Sample
from plimsoll.analysis.statistics.permutation import POWER, Values, t_quantile
from plimsoll.analysis.statistics.requests import KeptRequests
from plimsoll.common.units import milliseconds, percent

DEALINGS = 200
MOST_RUNS = 100  # a side, that are foretold
_SEED = 19_130_218
_STEPS = 12  # of the search for what is found in 4 of 5 cases
_FARTHEST = 20.0  # times the limit
_RANGE = 0.9
# Degrees of freedom of a block of four: three where runs lie normally, as far apart in each block. In the
# mean over such worlds and harder ones the promise takes two; the range, which is to hold in each, fewer.
_FREE, _SURELY_FREE = 2, 0.75

_Dealing = list[tuple[int, int]]  # which two of each block play the candidate
Plant = Callable[[KeptRequests, np.random.Generator], KeptRequests]


def slower(times: float) -> Plant:
    """Every answer takes so many times as long."""

    def plant(kept: KeptRequests, _: np.random.Generator) -> KeptRequests:
        return _with_us(kept, kept.response_us * times)

    return plant


def late(by_ms: float, share: float) -> Plant:
    """That share of answers takes so much longer."""

    def plant(kept: KeptRequests, draw: np.random.Generator) -> KeptRequests:
        hit = draw.random(len(kept)) < share
        return _with_us(kept, kept.response_us + 1000.0 * by_ms * hit)

    return plant


def stall(lasts_ms: float) -> Plant:
    """Once in a run nothing is answered for so long; what was due meanwhile waits for its end."""

    def plant(kept: KeptRequests, draw: np.random.Generator) -> KeptRequests:
        begins = draw.random() * max(kept.lasted_ms - lasts_ms, 0.0)
        waits_ms = begins + lasts_ms - kept.due_ms
        waits_ms = np.where((kept.due_ms >= begins) & (waits_ms > 0), waits_ms, 0.0)
        return _with_us(kept, kept.response_us + 1000.0 * waits_ms)

    return plant


PLANTS: dict[str, Plant] = {
    "nothing": slower(1.0),
    "every answer × 1.1": slower(1.1),
    "every answer × 1.2": slower(1.2),
    "every answer × 1.5": slower(1.5),
    "200 ms more in 0.1 % of answers": late(200, 0.001),
    "200 ms more in 1 % of answers": late(200, 0.01),
    "a stall of 2 s in each run": stall(2000),
}


def _with_us(kept: KeptRequests, response_us: Any) -> KeptRequests:
    slowed = np.where(kept.failed, kept.response_us, response_us)
    return replace(kept, response_us=np.minimum(slowed, 2**32 - 2).astype(kept.response_us.dtype))


@dataclass(frozen=True)
class Found:
    """How often each verdict came, by share of the re-dealings, where something was planted."""

    what: str
    shares: dict[Outcome, float]

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints of it."""
        return {"planted": self.what, "shares": self.shares}


@dataclass(frozen=True)
class Rehearsal:
    """Blocks of four runs of one site, and the gates of the experiment that is rehearsed.

    `values` are figures, one such array for each of `asked`, a gate and one of its limits. Its shape is
    (1, blocks, 4); (2, blocks, 4) where the generator was late: as measured, and without its lateness.
    `run_s` is how long a run takes. `looks` as in a plan. `dealings` are how many re-dealings are judged.
    """

    gates: Gates
    asked: tuple[tuple[Gate, Limit], ...]
    values: tuple[Values, ...]
    run_s: float
    looks: str = "blocks"
    found: tuple[Found, ...] = ()
    dealings: int = DEALINGS

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return len(self.values[0][0])

    @property
    def runs(self) -> int:
        """How many runs a side the experiment has."""
        return 2 * self.blocks

    @property
    def ratio(self) -> int | None:
        """The place of the gate whose ratio is foretold: the first that has one."""
        return next((at for at, (_, limit) in enumerate(self.asked) if limit == "at_most_ratio"), None)

    @property
    def metric(self) -> str | None:
        """The figure of that gate."""
        return None if self.ratio is None else self.asked[self.ratio][0].metric

    @property
    def allowed(self) -> float:
        """Its ratio."""
        ratio = None if self.ratio is None else self.asked[self.ratio][0].at_most_ratio
        return ratio or 1.0

    @property
    def lateness(self) -> float:
        """How many times as long its figure may have become by the load generator's lateness alone."""
        values = self.values[self.ratio or 0]
        return math.exp(float(np.mean(np.log(values[0] / values[-1]))))

    @property
    def error(self) -> float:
        """How often an experiment may be wrong."""
        return 1 - self.gates.confidence

    @property
    def limits(self) -> list[str]:
        """The limits in words: `p99.9 × 1.1`."""
        return [_limit_text(gate, limit) for gate, limit in self.asked]

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        between = self.finds_range()
        return {
            "runs": self.runs,
            "run_s": self.run_s,
            "looks": self.looks,
            "limits": self.limits,
            "metric": self.metric,
            "lateness": None if self.metric is None else self.lateness,
            "finds_from": self.finds_from,
            "finds_range": between and list(between),
            "foretold": {str(runs): self.foretold(runs) for runs in range(4, MOST_RUNS + 1, 4)},
            "planted": [each.as_json() for each in self.found],
            "dealings": self.dealings,
        }

    @cached_property
    def finds_from(self) -> float | None:
        """How much slower a candidate is that FAILs in 4 of 5 cases; None beyond what was tried."""
        at = self.ratio
        if at is None:
            return None
        nearest = self._nearest
        low, high = nearest, nearest + math.log(_FARTHEST)
        # What fails somewhere fails farther off, too: of those that are known by now, none is judged again.
        known, unknown = 0, list(_deal(self.blocks, self.dealings))
        enough = POWER * len(unknown)
        if len(self._failing(at, high, unknown)) < enough:
            return None
        for _ in range(_STEPS):
            middle = (low + high) / 2
            failing = self._failing(at, middle, unknown)
            if known + len(failing) >= enough:
                high, unknown = middle, failing
            else:
                low, known = middle, known + len(failing)
                unknown = [each for each in unknown if each not in failing]
        return math.exp(nearest + _predictive(self.blocks) * (high - nearest))

    def finds_range(self) -> tuple[float, float] | None:
        """Between what that truly lies, as far as so few runs tell: at 90 %, also if blocks differ."""
        if self.finds_from is None:
            return None
        nearest, free = self._nearest, _SURELY_FREE * self.blocks
        away = (math.log(self.finds_from) - nearest) / _predictive(self.blocks)
        tail = (1 - _RANGE) / 2
        least, most = (math.sqrt(free / _chi_square_quantile(share, free)) for share in (1 - tail, tail))
        return math.exp(nearest + least * away), math.exp(nearest + most * away)

    def foretell(self, ratio: float) -> int | None:
        """Return how many runs a side find what is so much slower in 4 of 5 cases; None over `MOST_RUNS`."""
        return next(
            (
                runs
                for runs in range(4, MOST_RUNS + 1, 2)
                if (found := self.foretold(runs)) and found <= ratio
            ),
            None,
        )

    def foretold(self, runs: int) -> float | None:
        """Return what so many runs a side find, by the spread of these; None of fewer than 4."""
        if self.ratio is None or self.finds_from is None or runs < 4:
            return None
        nearest, error = self._nearest, self.error
        scale = (math.log(self.finds_from) - nearest) / _far(self.runs, error)
        return math.exp(nearest + scale * _far(runs, error))

    @property
    def _nearest(self) -> float:
        """The logarithm of what would be found if runs were alike."""
        return math.log(self.allowed * self.lateness)

    def _failing(self, at: int, shift: float, dealings: Sequence[_Dealing]) -> list[_Dealing]:
        """Return the re-dealings that FAIL where gate `at` is slower by that logarithm."""
        planted = list(self.values)
        planted[at] = self.values[at] * math.exp(shift)
        return [each for each in dealings if self._verdict(planted, each) == "FAIL"]

    def judge(self, planted: Sequence[Values]) -> dict[Outcome, float]:
        """Return how often each verdict comes where a candidate's run has its value of `planted`."""
        outcomes = [self._verdict(planted, chosen) for chosen in _deal(self.blocks, self.dealings)]
        kinds: tuple[Outcome, ...] = ("FAIL", "PASS", "INCONCLUSIVE")
        return {each: outcomes.count(each) / len(outcomes) for each in kinds}

    def _verdict(self, planted: Sequence[Values], chosen: _Dealing) -> Outcome:
        rest = [[at for at in range(4) if at not in pair] for pair in chosen]
        rows = np.arange(self.blocks)[:, None]
        questions = []
        for (gate, limit), values, slowed in zip(self.asked, self.values, planted, strict=True):
            sides = values[:, rows, rest], slowed[:, rows, [list(pair) for pair in chosen]]
            measured, in_time = ([side[end].ravel().tolist() for side in sides] for end in (0, -1))
            questions.append(
                Question(
                    limit,
                    getattr(gate, limit),
                    measured[0],
                    measured[1],
                    runs_of=gate.scenario,
                    prompt=None if measured == in_time else (in_time[0], in_time[1]),
                    in_blocks=True,
                    bad_runs=self.gates.bad_runs,
                )
            )
        confidence = self.gates.confidence
        if self.looks == "blocks":
            return overall(outcomes_by_blocks(questions, confidence, self.blocks))
        return overall([each.outcome for each in decide(questions, confidence, is_last=True)])


def rehearse_blocks(
    blocks: Sequence[Sequence[MeasuredRun]],
    gates: Gates,
    run_s: float,
    looks: str = "blocks",
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Rehearsal:
    """Return the rehearsal of blocks of four runs, which hold their requests. Raises NoFigureError.

    `progress` is called with the number of plants that are judged, and that of all.
    """
    asked = tuple(
        (gate, limit) for gate in gates.gates for limit in LIMITS if getattr(gate, limit) is not None
    )
    runs = list(chain.from_iterable(blocks))
    ends = [runs, without_lateness(runs)]
    cut = [[(end, cut_alike(end, gate, limit)[0]) for end in ends] for gate, limit in asked]

    def figures(plant: Plant) -> tuple[Values, ...]:
        found = []
        for (gate, limit), both in zip(asked, cut, strict=True):
            values = []
            for end, phases in both:
                draw = np.random.default_rng(_SEED)
                planted = [_plant(phases.get(id(run), run.phases[gate.phase]), plant, draw) for run in end]
                pairs = zip(end, planted, strict=True)
                values.append([value_of(run, gate, phase, limit) for run, phase in pairs])
            kept = values[:1] if values[0] == values[1] else values
            found.append(np.reshape(kept, (len(kept), -1, 4)))
        return tuple(found)

    total = len(PLANTS) + 1
    rehearsal = Rehearsal(gates, asked, figures(lambda kept, _: kept), run_s, looks)
    found = []
    for name, plant in PLANTS.items():
        found.append(Found(name, rehearsal.judge(figures(plant))))
        progress(len(found), total)
    rehearsal = replace(rehearsal, found=tuple(found))
    rehearsal.finds_from  # noqa: B018 what takes long is computed while progress is shown
    progress(total, total)
    return rehearsal


def _plant(phase: RunPhase, plant: Plant, draw: np.random.Generator) -> RunPhase:
    if phase.kept is None:
        return phase
    kept = plant(phase.kept, draw)
    return replace(phase, response_ms=Sample.of_times(kept.times).figures(), kept=kept)


def _deal(blocks: int, dealings: int) -> Iterator[_Dealing]:
    """Yield which two of each block play the candidate, drawn so many times."""
    pairs = list(combinations(range(4), 2))
    draw = random.Random(_SEED)  # noqa: S311 no secret
    for _ in range(dealings):
        yield [draw.choice(pairs) for _ in range(blocks)]


def _limit_text(gate: Gate, limit: Limit) -> str:
    value = getattr(gate, limit)
    if limit == "at_most_ratio":
        return f"{gate.metric} × {value:g}"
    return f"{gate.metric} {milliseconds(value) if limit == 'at_most_ms' else f'+{percent(value)}'}"


def _far(runs: int, error: float) -> float:
    """Return how far from its limit what so many runs a side find in 4 of 5 cases is, in spreads of runs.

    By the normal approximation of the noncentral t distribution (Johnson and Welch, Biometrika 31, 1940), at
    the level that the re-dealings of so many blocks reach.
    """
    blocks = runs // 2
    reached = max(math.floor(error * 6**blocks), 1) / 6**blocks if blocks < MOST_RUNS // 10 else error
    free = 3 * blocks - 1
    t = t_quantile(1 - reached, free)
    z = NormalDist().inv_cdf(POWER)
    return (t * (1 - 1 / (4 * free)) + z * math.sqrt(1 + t * t / (2 * free))) * math.sqrt(2 / runs)


def _predictive(blocks: int) -> float:
    """Return by how much farther it is than these runs show, since their spread is one of many.

    With it the chance of 4 in 5 is that over all rehearsals, by the normal approximation of the spread's
    distribution.
    """
    free = _FREE * blocks
    t, z = t_quantile(0.95, free), NormalDist().inv_cdf(POWER)
    far = known = t + z
    for _ in range(_STEPS):
        far = (t + z * math.sqrt(1 + far * far / (2 * free))) / (1 - 1 / (4 * free))
    return far / known


def _chi_square_quantile(share: float, free: float) -> float:
    """Return the quantile of χ², by Wilson and Hilferty's approximation (PNAS 17, 1931)."""
    part = 2 / (9 * free)
    return free * float(1 - part + NormalDist().inv_cdf(share) * math.sqrt(part)) ** 3
