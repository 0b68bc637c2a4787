"""From values to verdicts: what has to hold whatever the values are, what is claimed, and what is found."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.compare.decision import Outcome, Question, decide, overall
from tests.support.comparable import compare_json, gated, write_both

RUNS = st.lists(st.floats(0.5, 2000), min_size=4, max_size=6)
SLOWER = st.lists(st.floats(1.0, 30.0), min_size=6, max_size=6)
RANK: dict[Outcome, int] = {"PASS": 0, "INCONCLUSIVE": 1, "FAIL": 2}


@st.composite
def questions(draw: st.DrawFn) -> list[Question]:
    """One to three gates; half of the sides lie well apart, so that verdicts of all kinds come up."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        baseline = draw(RUNS)
        factor = draw(st.sampled_from([0.02, 0.5, 1.0, 2.0, 80.0]))
        near = st.floats(95 * factor, 105 * factor)
        some = draw(st.one_of(RUNS, st.lists(near, min_size=4, max_size=6)))
        baseline = draw(st.one_of(st.just(baseline), st.just([100.0, 101, 99, 102, 98][: len(baseline)])))
        is_paired = draw(st.booleans())
        if is_paired:
            n = min(len(baseline), len(some))
            baseline, some = baseline[:n], some[:n]
        limit = draw(st.sampled_from([0.9, 1.0, 1.1, 1.5]))
        found.append(Question("at_most_ratio", limit, baseline, some, is_paired))
    return found


def outcomes(asked: Sequence[Question], confidence: float = 0.95) -> list[Outcome]:
    return [verdict.outcome for verdict in decide(asked, confidence)]


@given(questions(), SLOWER, st.integers(0, 2))
def test_a_slower_candidate_never_has_a_better_verdict(
    asked: list[Question], times: list[float], which: int
) -> None:
    before = outcomes(asked)
    at = which % len(asked)
    slow = [value * factor for value, factor in zip(asked[at].candidate, times, strict=False)]
    after = outcomes([*asked[:at], replace(asked[at], candidate=slow), *asked[at + 1 :]])
    assert RANK[after[at]] >= RANK[before[at]]
    if overall(before) == "FAIL" and before[at] == "FAIL":
        assert overall(after) == "FAIL"
    assert not (overall(before) != "PASS" and overall(after) == "PASS")


@given(questions())
def test_swapped_sides_mirror_the_effect(asked: list[Question]) -> None:
    turned = [
        Question("at_most_ratio", 1 / each.at_most, each.candidate, each.baseline, each.is_paired)
        for each in asked
    ]
    mirror = {"PASS": "FAIL", "FAIL": "PASS", "INCONCLUSIVE": "INCONCLUSIVE"}
    for one, other in zip(decide(asked, 0.95), decide(turned, 0.95), strict=True):
        if len(asked) == 1:  # of several, a FAIL has to show more than a PASS
            assert other.outcome == mirror[one.outcome]
        assert other.p_fail == pytest.approx(one.p_pass)
        assert other.p_pass == pytest.approx(one.p_fail)
        assert one.estimate is not None
        assert other.estimate == pytest.approx(1 / one.estimate)
        assert (one.lower is None) == (other.upper is None)
        if one.lower is not None and other.upper is not None:
            assert other.upper == pytest.approx(1 / one.lower)


@given(questions(), st.floats(0.001, 1000))
def test_a_unit_changes_nothing(asked: list[Question], factor: float) -> None:
    scaled = [
        replace(
            each,
            baseline=[value * factor for value in each.baseline],
            candidate=[value * factor for value in each.candidate],
        )
        for each in asked
    ]
    for one, other in zip(decide(asked, 0.95), decide(scaled, 0.95), strict=True):
        assert other.outcome == one.outcome
        assert other.p_pass == one.p_pass
        assert other.estimate == pytest.approx(one.estimate)


@given(questions())
def test_the_order_of_runs_that_are_no_pairs_changes_nothing(asked: list[Question]) -> None:
    free = [replace(each, is_paired=False) for each in asked]
    turned = [replace(each, candidate=each.candidate[::-1], baseline=each.baseline[::-1]) for each in free]
    assert outcomes(turned) == outcomes(free)


CLEAR = [10.0, 10.2, 9.9, 10.1]
VERDICTS: list[tuple[str, Question, Outcome, str]] = [
    ("the same is kept", Question("at_most_ratio", 1.1, CLEAR, [10.05, 9.95, 10.15, 10.0]), "PASS", "faster"),
    ("twice as slow", Question("at_most_ratio", 1.1, CLEAR, [20.0, 21, 22, 20]), "FAIL", "2.1 times as slow"),
    ("8 % slower is", Question("at_most_ratio", 1.02, CLEAR, [10.8, 11, 10.9, 10.9]), "FAIL", "8.5 % slower"),
    (
        "it has to be faster",
        Question("at_most_ratio", 0.5, CLEAR, [1.0, 1.1, 1.2, 1.1]),
        "PASS",
        "times as fast",
    ),
    (
        "the runs lie too far apart",
        Question("at_most_ratio", 1.1, [10.0, 20, 5, 12], [9.0, 25, 7, 10]),
        "INCONCLUSIVE",
        "the runs lie too far apart",
    ),
    ("no errors at all", Question("at_most_more", 0.001, [0.0] * 4, [0.0] * 4), "PASS", ""),
    ("no errors of its own", Question("at_most_share", 0.001, CLEAR, [0.0] * 4), "PASS", ""),
    (
        "errors in three runs of eight",
        Question("at_most_more", 0.001, [0.0] * 8, [0.0] * 5 + [0.01, 0.02, 0.01]),
        "FAIL",
        "3 of 8 runs break it: with 95 % confidence, over 11 % of all do.",
    ),
    (
        "errors in two runs of eight",
        Question("at_most_more", 0.001, [0.0] * 8, [0.0] * 6 + [0.01, 0.02]),
        "INCONCLUSIVE",
        "2 of 8 runs break it, which does not show that more than 10 % of all do.",
    ),
    (
        "in three of eight, hardly any",
        Question("at_most_more", 0.001, [0.0] * 8, [0.0] * 5 + [0.0011] * 3),
        "INCONCLUSIVE",
        "3 of 8 runs break it",
    ),
    (
        "three runs in ten may break it",
        Question("at_most_more", 0.001, [0.0] * 8, [0.0] * 5 + [0.01, 0.02, 0.01], bad_runs=0.3),
        "INCONCLUSIVE",
        "more than 30 % of all do",
    ),
    ("errors", Question("at_most_more", 0.001, [0.0] * 4, [0.01, 0.02, 0.01, 0.03]), "FAIL", ""),
    ("well below its own limit", Question("at_most_ms", 50, [], [10.0, 11, 12, 10, 11]), "PASS", ""),
    ("above its own limit", Question("at_most_ms", 5, CLEAR, [10.0, 11, 12, 10, 11]), "FAIL", ""),
    (
        "four runs alone decide nothing",
        Question("at_most_ms", 50, [], CLEAR),
        "INCONCLUSIVE",
        "4 runs cannot decide: it takes 5 or more",
    ),
    (
        "what is blocked says why",
        Question("at_most_ratio", 1.1, CLEAR, CLEAR, blocked=["It was killed.", "Twice."]),
        "INCONCLUSIVE",
        "It was killed. Twice.",
    ),
]


@pytest.mark.parametrize(("what", "question", "outcome", "says"), VERDICTS, ids=[row[0] for row in VERDICTS])
def test_verdicts(what: str, question: Question, outcome: Outcome, says: str) -> None:
    (verdict,) = decide([question], 0.95)
    assert verdict.outcome == outcome, what
    assert says in verdict.says


def test_so_many_gates_of_other_runs_are_told_how_many_runs_a_fail_takes() -> None:
    gate = Question("at_most_ratio", 1.1, CLEAR, [value * 5 for value in CLEAR])
    assert outcomes([gate] * 3) == ["FAIL"] * 3, "1 in 70 is under 0.05 / 3"
    verdicts = decide([gate] * 4, 0.95)
    assert {verdict.outcome for verdict in verdicts} == {"INCONCLUSIVE"}
    says = (
        "4 runs a side cannot show that one of 4 sets of limits is broken: it takes 5 or more, or fewer sets."
    )
    assert says in verdicts[0].says
    assert {verdict.more_runs for verdict in verdicts} == {1}
    assert outcomes([replace(gate, runs_of="replay")] * 4) == ["FAIL"] * 4, (
        "gates of the same runs are one set"
    )


def test_each_gate_has_to_show_no_more_for_a_pass_than_it_would_alone() -> None:
    kept = Question("at_most_ratio", 1.1, CLEAR, [value * 0.5 for value in CLEAR])
    assert outcomes([kept] * 20) == ["PASS"] * 20


def test_a_blocked_gate_counts_among_those_of_its_runs() -> None:
    gate = Question("at_most_ratio", 1.1, CLEAR, [value * 5 for value in CLEAR], runs_of="replay")
    blocked = replace(gate, blocked=["No."])
    others = [replace(blocked, runs_of=f"other {n}") for n in range(3)]
    assert outcomes([gate, *[blocked] * 3])[0] == "FAIL"
    assert outcomes([gate, *others])[0] == "INCONCLUSIVE"


def test_a_gate_without_a_bad_run_takes_none_of_the_error() -> None:
    gate = Question("at_most_ratio", 1.1, CLEAR, [value * 5 for value in CLEAR])
    clean = Question("at_most_more", 0.001, [0.0] * 4, [0.0] * 4)
    assert outcomes([gate, *[clean] * 5]) == ["FAIL", *["PASS"] * 5]


def test_a_gate_beside_one_that_moved_does_not_hide_it() -> None:
    """Two sides of four runs in blocks have 36 arrangements: the moved gate has to lead in all others."""
    random = np.random.default_rng(5)
    still = [np.exp(random.normal(0, 0.1, (2, 4))).tolist() for _ in range(2)]
    moved = [np.exp(random.normal(0, 0.1, 4)).tolist(), np.exp(random.normal(3, 0.1, 4)).tolist()]
    asked = [
        Question("at_most_ratio", 1.1, baseline, candidate, runs_of="replay", in_blocks=True)
        for baseline, candidate in (moved, *still)
    ]
    found = decide(asked, 0.95, 1)
    assert [each.outcome for each in found] == ["FAIL", "INCONCLUSIVE", "INCONCLUSIVE"]
    assert found[0].p_fail_adjusted == pytest.approx(1 / 36)
    assert found[0].test == "blocks"


def test_pairs_are_used_as_soon_as_two_arrangements_can_decide() -> None:
    x = [10.0, 20, 30, 40, 50, 60]
    y = [value * 1.01 for value in x]
    paired = Question("at_most_ratio", 1.1, x, y, is_paired=True)
    assert [decide([replace(paired, baseline=x[:n], candidate=y[:n])], 0.95)[0].test for n in (4, 5, 6)] == [
        "unpaired",
        "unpaired",
        "paired",
    ]
    (verdict,) = decide([paired], 0.95)
    assert verdict.outcome == "PASS", "what drifts from repeat to repeat is no spread between the sides"
    assert outcomes([replace(paired, is_paired=False)]) == ["INCONCLUSIVE"]
    assert {v.test for v in decide([paired] * 4, 0.95)} == {"unpaired"}, "2 in 64 are not under 0.05 / 4"


def test_how_many_more_runs_would_decide() -> None:
    random = np.random.default_rng(3)
    base, cand = (np.exp(random.normal(0, 0.2, 6)).tolist() for _ in range(2))
    (verdict,) = decide([Question("at_most_ratio", 1.3, base, cand)], 0.95)
    assert verdict.outcome == "INCONCLUSIVE"
    assert verdict.more_runs is not None
    assert f"About {verdict.more_runs} more run" in verdict.says
    (near,) = decide([Question("at_most_ratio", (verdict.estimate or 0) * 1.0001, base, cand)], 0.95)
    assert near.more_runs is None
    assert "cannot be said" in near.says


@pytest.mark.parametrize(
    ("outcomes", "whole"),
    [
        (["PASS", "PASS"], "PASS"),
        (["PASS", "INCONCLUSIVE"], "INCONCLUSIVE"),
        (["FAIL", "INCONCLUSIVE", "PASS"], "FAIL"),
        ([], "INCONCLUSIVE"),
    ],
)
def test_the_verdict_on_all(outcomes: list[Outcome], whole: Outcome) -> None:
    assert overall(outcomes) == whole


def test_a_pass_says_what_it_does_not_exclude(tmp_path: Path) -> None:
    found = compare_json(write_both(tmp_path, repeats=5))
    passed = [gate for gate in found["gates"] if gate["verdict"] == "PASS" and gate["metric"] != "answers"]
    assert passed
    for gate in passed:
        assert gate["excluded_share"] == pytest.approx(1 - 0.05 ** (1 / 5))
        assert "excludes, at 95 %, only stalls that come in more than 45 % of runs" in gate["claim"]


@pytest.mark.parametrize(
    ("repeats", "says"), [(3, "3 decide nothing, but 4 runs a side"), (5, "5 runs a side")]
)
def test_the_power_is_that_of_these_runs(tmp_path: Path, repeats: int, says: str) -> None:
    quiet = write_both(tmp_path / "quiet", repeats=repeats)
    noisy = write_both(
        tmp_path / "noisy",
        repeats=repeats,
        spread=lambda side, repeat: math.exp(0.8 * ((repeat * 7 + side * 3) % 5 - 2)),
    )
    gates = gated("metric: p99.9, at_most_ratio: 1.1", keys="answers: false\n")
    one, other = (compare_json(folder, gates)["gates"][0] for folder in (quiet, noisy))
    for gate in (one, other):
        assert says in gate["power"]
        assert "(FAIL), or ×" in gate["power"]
        assert (gate["fails_from"] is None) == (repeats == 3)
    if repeats == 5:
        assert 1.1 < one["fails_from"] < 1.3
        assert other["fails_from"] > 3
        assert other["passes_to"] == pytest.approx(1.1**2 / other["fails_from"])
