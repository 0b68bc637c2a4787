"""The first page of a sign-off: in words that everybody knows, and no longer than a page."""

from pathlib import Path

import pytest

from plimsoll.analysis.compare.comparison import Comparison
from plimsoll.analysis.signoff.first_page import FirstPage, clip, first_page, limit_in_words
from tests.support.comparable import gated, judged, runs_of, write_both
from tests.support.rundir import change

EVIDENCE = "48 files"


def compared(folder: Path, *gates: str, ratio: float = 1.5, repeats: int = 4) -> Comparison:
    write_both(folder / "e", ratio, repeats, measures=(("image ready", 812.0),))
    return judged(folder / "e", gated(*gates))


def page(found: Comparison, *signers: str) -> FirstPage:
    return first_page(found, signers, EVIDENCE)


WORDS = [
    (
        "p99.9 is one request of a thousand",
        "phase: during, at_most_ratio: 1.1",
        "replay, while zfs-send kept the disks busy",
        "At most 10 % longer than on sata.",
        "Of 1,000 requests, one took longer than 50 ms on sata and 75.2 ms on nvme. 50 % slower than the "
        "baseline.",
    ),
    (
        "p99 one of a hundred",
        "metric: p99, at_most_ms: 5",
        "replay",
        "At most 5 ms.",
        "Of 100 requests, one took longer than 1 ms on sata and 1 ms on nvme.",
    ),
    (
        "p50 half of them",
        "metric: p50, phase: before, at_most_ratio: 3",
        "replay, before zfs-send kept the disks busy",
        "At most 3 times as long as on sata.",
        "Half of the requests took longer than 1 ms on sata and 1 ms on nvme. As before.",
    ),
    (
        "the mean is an average",
        "metric: mean, at_most_ratio: 1",
        "replay",
        "No longer than on sata.",
        "On average a request took 1.49 ms on sata and 1.74 ms on nvme. 17 % slower than the baseline.",
    ),
    (
        "errors are requests that failed",
        "metric: error share, at_most_more: 0.001",
        "replay",
        "At most 0.1 % of the requests more than on sata.",
        "Requests that failed: 0 % on sata and 0 % on nvme.",
    ),
    (
        "or so many of all",
        "metric: error share, at_most_share: 0.02",
        "replay",
        "At most 2 % of the requests.",
        "Requests that failed: 0 % on sata and 0 % on nvme.",
    ),
    (
        "a measure is what is typical",
        "metric: measure image ready, at_most_ratio: 1.25",
        "replay",
        "At most 25 % longer than on sata.",
        "“image ready”, typically: 812 ms on sata and 812 ms on nvme. As before.",
    ),
]


@pytest.mark.parametrize(("what", "gate", "when", "allowed", "says"), WORDS, ids=[row[0] for row in WORDS])
def test_a_limit_in_words(tmp_path: Path, what: str, gate: str, when: str, allowed: str, says: str) -> None:
    found = compared(tmp_path, gate)
    words = limit_in_words(found.judged[0], found)
    assert (words.when, words.allowed) == (when, allowed), what
    shown = words.found if found.judged[0].verdict.outcome != "INCONCLUSIVE" else words.found[: len(says)]
    assert shown.rstrip(". ") == says.rstrip(". "), what


HEADLINES = [
    ("kept", 1.0, 6, "nvme keeps all 2 limits that were set."),
    ("broken", 1.5, 6, "nvme breaks 1 of 2 limits."),
    (
        "near the limit",
        1.1,
        6,
        "Neither yes nor no: whether nvme keeps 1 of 2 limits cannot be decided from these runs.",
    ),
]


@pytest.mark.parametrize(("what", "ratio", "repeats", "says"), HEADLINES, ids=[row[0] for row in HEADLINES])
def test_the_headline(tmp_path: Path, what: str, ratio: float, repeats: int, says: str) -> None:
    assert page(compared(tmp_path, "at_most_ratio: 1.1", ratio=ratio, repeats=repeats)).headline == says, what


def test_the_facts_say_what_was_compared_by_which_load_in_how_many_runs_when(tmp_path: Path) -> None:
    facts = dict(page(compared(tmp_path, "at_most_ratio: 1.1")).facts)
    assert facts == {
        "Compared": "nvme, the candidate, with sata, the baseline.",
        "Load": "replay of access.log, as fast as in the log, zfs-send keeping the disks busy.",
        "Runs": "8 runs, 4 on sata and 4 on nvme, taking turns; "
        "all on 21 November 2026 (04:00 to 04:14 UTC).",
        "Requests": "12,000 measured; none failed.",
        "Evidence": EVIDENCE,
    }


def test_runs_of_several_days_say_how_many(tmp_path: Path) -> None:
    write_both(tmp_path / "e")
    for number, run in enumerate(sorted((tmp_path / "e" / "runs").iterdir())):
        times = {
            key: f"2026-11-2{1 + number // 4}T04:{number:02d}:{at}Z"
            for key, at in (("started_at", "00"), ("ended_at", "30"))
        }
        change(run, **times)
    runs = dict(page(judged(tmp_path / "e", gated("at_most_ratio: 1.1"))).facts)["Runs"]
    assert runs.endswith("on 2 days from 21 November 2026 to 22 November 2026.")


def test_a_pass_says_what_it_does_not_claim(tmp_path: Path) -> None:
    claims = page(compared(tmp_path, "at_most_ratio: 1.1", ratio=1.0, repeats=5)).not_claimed
    assert claims[0] == (
        "That nothing goes wrong rarely: 5 runs without a fault rule out, with 95 % certainty, only what "
        "would happen in more than 45 % of runs."
    )
    assert claims[-1] == "Anything that nobody asked: only 2 limits were checked."


def test_the_worst_limits_come_first_and_the_page_has_room_for_few(tmp_path: Path) -> None:
    kept = [
        f"metric: {metric}, phase: {phase}, at_most_ratio: 2"
        for metric in ("p50", "p90", "p95", "mean")
        for phase in ("during", "whole")
    ]
    found = compared(tmp_path, *kept, "phase: during, at_most_ratio: 1.1", repeats=6)
    first = page(found, "a", "b", "c")
    assert [each.word for each in first.limits] == ["broken", "kept", "kept", "kept", "kept"]
    assert first.further_limits == "5 further limits: 5 kept. All stand under “The gates”, in the details."
    assert len(page(found).limits) == 6


def test_findings_stand_once_the_gravest_first_and_each_limit_points_there(tmp_path: Path) -> None:
    write_both(tmp_path / "e", repeats=5)
    change(runs_of(tmp_path / "e")[0], status="interrupted")
    first = page(judged(tmp_path / "e", gated("at_most_ratio: 1.1", "metric: p99, at_most_ratio: 1.1")))
    assert first.doubts[0].startswith("0002-replay--nvme--1 was interrupted.")
    assert [each.found.rpartition(". ")[2] for each in first.limits] == [
        "See “Read this before you sign”."
    ] * len(first.limits)
    assert first.not_claimed[0] == "That nvme is good, or that it is bad: these runs cannot tell."


def test_a_long_text_ends_between_words() -> None:
    assert clip("one two\n three", 20) == "one two three"
    assert clip("one two three four five", 13) == "one two …"
