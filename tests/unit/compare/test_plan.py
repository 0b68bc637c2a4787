"""A stated plan by the real command: it spends its error once, and what was stated first counts."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from plimsoll.analysis.compare.by_blocks import decide_by_blocks
from plimsoll.analysis.compare.decision import PLAN_OVER, Outcome, Question
from plimsoll.analysis.compare.gates import Limit
from plimsoll.analysis.compare.looks import LOOKS_FILE, Plan
from plimsoll.analysis.compare.plan import find_stated
from plimsoll.cli import main
from plimsoll.rundir.facts import ExperimentRun
from tests.support.comparable import BACKENDS, finding_names, gated, write_blocks, write_gates
from tests.support.rundir import change

GATES = gated("metric: p99.9, at_most_ratio: 1.1", keys="answers: false\n")
RUNS = 24  # 12 a side


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[float, Path]:
    """Experiments by how many times as long the candidate takes; at × 1.1 it is as slow as it may be."""
    folder = tmp_path_factory.mktemp("bases")
    return {ratio: write_blocks(folder / f"{ratio}", RUNS, ratio, 1.3, RUNS) for ratio in (0.7, 1.1, 1.5)}


def ask(base: Path, runs: int, words: Sequence[str], **stated: str) -> Result:
    """Compare the first so many runs a side; `stated` is what the experiment itself states."""
    part = base / f"first-{runs}"
    if not part.exists():
        for run in sorted((base / "runs").iterdir())[: 2 * runs]:
            shutil.copytree(run, part / run.name)
            if stated:
                facts = json.loads((run / "run.json").read_text())
                change(part / run.name, experiment=facts["experiment"] | stated)
    gates = write_gates(base, GATES)
    return CliRunner().invoke(main, ["compare", str(part), *BACKENDS, "--gates", str(gates), *words])


def plan(runs: int, looks: str = "end") -> list[str]:
    return ["--planned", str(runs), "--looks", looks]


class Case(NamedTuple):
    """Looks at so many runs a side, the last of which is judged; its verdict, and what it says."""

    what: str
    ratio: float
    looks: Sequence[tuple[int, Sequence[str]]]
    verdict: str
    says: str = ""
    findings: str = ""
    judged: int | None = None  # runs a side
    plan: dict[str, Any] | None = None
    stated: Mapping[str, str] = MappingProxyType({})


ABOUT_LOOKS = {"other-plan", "plan-extended", "another-look", "block-unfinished"}
END, BLOCKS = plan(8), plan(8, "blocks")
CASES = [
    Case(
        "before its end a plan decides nothing",
        1.5,
        [(4, END)],
        "INCONCLUSIVE",
        "The plan looks once, at its end: 4 of 8 runs a side are there.",
        plan={"done": 4, "spent": 0.0, "decides_from": 8},
    ),
    Case("that was no look", 1.5, [(4, END), (8, END)], "FAIL", plan={"done": 8, "spent": 0.05}),
    Case("its end is its default look", 0.7, [(8, ["--planned", "8"])], "PASS", plan={"looks": "end"}),
    Case(
        "later runs are not taken in",
        1.5,
        [(12, END)],
        "FAIL",
        judged=8,
    ),
    Case(
        "block by block, half of a plan of 8 can decide",
        1.5,
        [(4, BLOCKS)],
        "FAIL",
        plan={"done": 4, "spent": 0.031, "decides_from": 4},
    ),
    Case("and can pass", 0.7, [(4, BLOCKS)], "PASS", plan={"planned": 8, "looks": "blocks"}),
    Case(
        "of a plan of 12, four a side cannot",
        1.5,
        [(4, plan(12, "blocks"))],
        "INCONCLUSIVE",
        "The plan can decide it from 6 runs a side on.",
        plan={"decides_from": 6},
    ),
    Case(
        "runs after the last whole block wait",
        1.5,
        [(5, BLOCKS)],
        "FAIL",
        findings="block-unfinished",
        judged=4,
        plan={"done": 4},
    ),
    Case(
        "what is decided stays decided, and a look is not another one",
        1.5,
        [(4, BLOCKS), (6, BLOCKS), (8, BLOCKS)],
        "FAIL",
        "It was decided by the first 4 runs a side.",
    ),
    Case(
        "undecided in between, it goes on",
        1.1,
        [(4, BLOCKS), (6, BLOCKS)],
        "INCONCLUSIVE",
        "it looks again after the next block.",
    ),
    Case(
        "undecided at its end, it has spent its error",
        1.1,
        [(8, BLOCKS)],
        "INCONCLUSIVE",
        PLAN_OVER,
        plan={"spent": 0.05},
    ),
    Case(
        "a plan after a look without one is none",
        0.7,
        [(4, []), (8, END)],
        "PASS",
        "without a plan, so the plan of 8 runs a side with one look at its end is not taken: they are judged",
        "other-plan another-look",
    ),
    Case(
        "of two plans the first counts",
        1.5,
        [(4, BLOCKS), (8, END)],
        "FAIL",
        "by the plan of 8 runs a side with a look after each block",
        "other-plan",
        plan={"looks": "blocks", "done": 8},
    ),
    Case(
        "a plan stays, also where it is not stated again",
        1.1,
        [(8, END), (12, [])],
        "INCONCLUSIVE",
        PLAN_OVER,
        judged=8,
    ),
    Case(
        "a plan that is extended after its end counts new runs only",
        0.7,
        [(8, END), (12, plan(12))],
        "PASS",
        "8 runs of nvme, and those of sata that they were held against, wait out",
        "plan-extended",
        judged=4,
        plan={"planned": 4, "done": 4},
    ),
    Case(
        "before its end it cannot be extended",
        0.7,
        [(4, BLOCKS), (8, plan(12, "blocks"))],
        "PASS",
        findings="other-plan",
        plan={"planned": 8},
    ),
    Case(
        "the experiment's own plan",
        1.5,
        [(8, [])],
        "INCONCLUSIVE",
        "The plan looks once, at its end: 8 of 12 runs a side are there.",
        stated={"looks": "end"},
    ),
    Case(
        "and block by block",
        1.5,
        [(6, [])],
        "FAIL",
        plan={"planned": 12, "looks": "blocks", "decides_from": 6},
        stated={"looks": "blocks"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_plans(bases: dict[float, Path], tmp_path: Path, case: Case) -> None:
    base = shutil.copytree(bases[case.ratio], tmp_path / "base")
    for runs, words in case.looks:
        result = ask(base, runs, [*words, "--json"], **case.stated)
        assert result.exit_code in (0, 1, 3), result.output
    found = json.loads(result.stdout)
    (gate,) = found["gates"]
    assert gate["verdict"] == case.verdict, gate["says"]
    assert case.says in " ".join([gate["says"], *(each["text"] for each in found["findings"])])
    assert set(case.findings.split()) == finding_names(found) & ABOUT_LOOKS
    if case.judged:
        assert len(gate["candidate"]["runs"]) == len(gate["baseline"]["runs"]) == case.judged
    if case.plan:
        assert {key: found["plan"][key] for key in case.plan} == pytest.approx(case.plan, abs=1e-4)


def test_the_plan_is_told(bases: dict[float, Path], tmp_path: Path) -> None:
    base = shutil.copytree(bases[1.5], tmp_path / "base")
    page = tmp_path / "page.html"
    told = " ".join(ask(base, 12, [*BLOCKS, "--html", str(page)]).output.split())
    for sentence in (
        "The plan as it was first stated: 8 runs a side with a look after each block. It may end early, from "
        "4 runs a side on, and takes more runs at the end than one look would.",
        "8 of 8 runs a side are there, and 5 of the 5 % by which it may err are spent. 4 runs a side came "
        "after its end and do not count.",
    ):
        assert sentence in told
        assert sentence in page.read_text()


def test_a_look_before_the_end_is_not_remembered(bases: dict[float, Path], tmp_path: Path) -> None:
    base = shutil.copytree(bases[1.5], tmp_path / "base")
    ask(base, 4, END)
    assert not (base / "first-4" / LOOKS_FILE).exists()
    ask(base, 4, BLOCKS)
    (look,) = json.loads((base / "first-4" / LOOKS_FILE).read_text())["looks"]
    assert look["plan"] == {"runs": 8, "looks": "blocks", "done": 4}


def opened(
    backends: Sequence[str], scenarios: Sequence[Sequence[str]], there: Sequence[str], blocks: int
) -> Any:
    """Return the side of an experiment of 12 repeats of which the runs of some backends are there.

    What of `scenarios` runs together is one run by its number.
    """
    places = [
        (block, each, names)
        for block in range(blocks)
        for each in (*backends, *backends)
        for names in scenarios
    ]
    runs = [
        SimpleNamespace(
            scenario=name,
            backend=backend,
            experiment=ExperimentRun(
                name="e", run=at + 1, of=12 * len(backends) * len(scenarios), block=block + 1, looks="blocks"
            ),
        )
        for at, (block, backend, names) in enumerate(places)
        if backend in there
        for name in names
    ]
    side = SimpleNamespace(runs=[SimpleNamespace(facts=each) for each in runs], beside=dict(enumerate(runs)))
    return side, side


@pytest.mark.parametrize("scenarios", [[["replay"]], [["replay"], ["download"]], [["rush/a", "rush/b"]]])
@pytest.mark.parametrize("there", ["abc", "bc"])
@pytest.mark.parametrize("blocks", [1, 3])
def test_the_plan_of_an_experiment_is_its_repeats(
    scenarios: list[list[str]], there: str, blocks: int
) -> None:
    assert find_stated(opened("abc", scenarios, there, blocks), None) == Plan(12, "blocks")


REFUSED = [
    (["--looks", "end"], {}, "--looks: belongs to --planned N"),
    (plan(3), {}, "--planned 3: a verdict takes 4 runs a side or more"),
    (plan(7, "blocks"), {}, "a block has two runs a side, so --looks blocks takes an even number: 8"),
    (plan(8), {"looks": "end"}, "the experiment states its plan itself, 12 runs a side with one look"),
    (plan(12, "blocks"), {"looks": "end"}, "the experiment states its plan itself, 12 runs a side"),
]


@pytest.mark.parametrize(("words", "stated", "says"), REFUSED)
def test_plans_that_cannot_be(
    bases: dict[float, Path], tmp_path: Path, words: list[str], stated: dict[str, str], says: str
) -> None:
    base = shutil.copytree(bases[1.5], tmp_path / "base")
    result = ask(base, 4, words, **stated)
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())


def test_blocks_are_looked_at_only_where_they_were_drawn(bases: dict[float, Path], tmp_path: Path) -> None:
    base = shutil.copytree(bases[1.5], tmp_path / "base")
    for run in (base / "runs").iterdir():
        change(run, experiment=None)
    result = ask(base, 4, BLOCKS)
    assert result.exit_code == 2
    assert "did not come in a block whose order was drawn" in result.output
    assert "take --looks end" in result.output
    assert ask(base, 8, END).exit_code == 1


EVEN = [50.0, 51.0, 49.0, 50.0]
SIX = EVEN + EVEN[:2]


def in_blocks(limit: Limit, at_most: float, candidate: list[float], **more: Any) -> Question:
    baseline = [0.0] * len(candidate) if limit == "at_most_more" else (EVEN * 3)[: len(candidate)]
    return Question(limit, at_most, baseline, candidate, in_blocks=True, runs_of="replay", **more)


KINDS: list[tuple[str, list[Question], list[Outcome], str]] = [
    ("no failures in any run so far", [in_blocks("at_most_more", 0.001, [0.0] * 4)], ["PASS"], ""),
    (
        "failures in two runs of four",
        [in_blocks("at_most_more", 0.001, [0.1, 0.2, 0.0, 0.0])],
        ["FAIL"],
        "2 of 2 runs break it: with 98 % confidence, over 13 % of all do.",
    ),
    ("a limit of its own", [in_blocks("at_most_ms", 80, SIX)], ["PASS"], ""),
    (
        "which takes more runs",
        [in_blocks("at_most_ms", 80, EVEN)],
        ["INCONCLUSIVE"],
        "The plan can decide it from 6 runs a side on.",
    ),
    ("stalls in every run", [in_blocks("at_most_share_of_runs", 0.1, [1.0] * 4)], ["FAIL"], ""),
    (
        "of three limits one is broken, and one may not be judged",
        [
            in_blocks("at_most_ratio", 1.1, [2 * each for each in SIX]),
            in_blocks("at_most_ratio", 1.1, [each / 2 for each in SIX]),
            in_blocks("at_most_ratio", 1.1, SIX, blocked=["No."]),
        ],
        ["FAIL", "PASS", "INCONCLUSIVE"],
        "2 times as slow as the baseline.",
    ),
    (
        "a doubt prevents a PASS",
        [in_blocks("at_most_ratio", 1.1, [each / 2 for each in EVEN], doubts=["A run stalled."])],
        ["INCONCLUSIVE"],
        "A run stalled.",
    ),
    (
        "what the generator's lateness may have made",
        [
            in_blocks(
                "at_most_ratio", 1.1, [2 * each for each in EVEN], prompt=(EVEN, [each / 2 for each in EVEN])
            )
        ],
        ["INCONCLUSIVE"],
        "The load generator was late",
    ),
]


@pytest.mark.parametrize(("what", "questions", "outcomes", "says"), KINDS, ids=[row[0] for row in KINDS])
def test_every_kind_of_limit_block_by_block(
    what: str, questions: list[Question], outcomes: list[Outcome], says: str
) -> None:
    found = decide_by_blocks(questions, 0.95, blocks=4)
    assert [each.outcome for each in found] == outcomes, what
    assert says in found[0].says
    for verdict in found:
        assert bool(verdict.claim) == (verdict.outcome == "PASS")
