"""A sweep in one sentence: up to which rate p99.9 stays under the goal, whatever the curve looks like."""

import pytest

from plimsoll.analysis.report.factors import SweepLevel, goal_sentence, is_rate, number_of, sort_levels
from plimsoll.analysis.statistics.factors import Estimate

GOAL_MS = 800.0


def level(
    label: str, ms: float, spread: float | None = 0.1, failed: int = 0, sent: float | None = None
) -> SweepLevel:
    if spread is None:
        return SweepLevel(label, Estimate(ms, None, None), failed, sent)
    return SweepLevel(label, Estimate(ms, ms * (1 - spread), ms * (1 + spread)), failed, sent)


def curve(*ms: float, spread: float | None = 0.1) -> list[SweepLevel]:
    return [level(f"{60 * (at + 1)} MB/s", each, spread) for at, each in enumerate(ms)]


SAID = [
    (
        "a curve that crosses the goal says up to where it keeps it",
        curve(200, 300, 600, 1200),
        "Up to 180 MB/s p99.9 stays under 800 ms (600 ms; 540 ms to 660 ms); at 240 MB/s it does "
        "not (1.2 s; 1.08 s to 1.32 s).",
    ),
    (
        "where all keep it, no rate fails",
        curve(100, 200, 300),
        "At every rate that was tried, up to 180 MB/s, p99.9 stays under 800 ms (300 ms; 270 ms "
        "to 330 ms): no rate fails.",
    ),
    (
        "where none keeps it, the lowest is named",
        curve(900, 1200, 2000),
        "At no rate that was tried, not even the lowest, 60 MB/s, p99.9 is under 800 ms (900 ms; "
        "810 ms to 990 ms).",
    ),
    (
        "an interval over the goal is not decided, and the first that fails is named too",
        curve(300, 780, 1500),
        "Up to 60 MB/s p99.9 stays under 800 ms (300 ms; 270 ms to 330 ms); at 120 MB/s these "
        "runs cannot tell (780 ms; 702 ms to 858 ms); at 180 MB/s it does not (1.5 s; 1.35 s to "
        "1.65 s).",
    ),
    (
        "nothing is decided at the lowest",
        curve(780, 1500),
        "These runs cannot tell whether p99.9 stays under 800 ms at 60 MB/s (780 ms; 702 ms to "
        "858 ms); at 120 MB/s it does not (1.5 s; 1.35 s to 1.65 s).",
    ),
    (
        "a curve that comes down again is said to",
        curve(300, 1500, 400),
        "Up to 60 MB/s p99.9 stays under 800 ms (300 ms; 270 ms to 330 ms); at 120 MB/s it does "
        "not (1.5 s; 1.35 s to 1.65 s); at 180 MB/s it does again (400 ms; 360 ms to 440 ms), so "
        "the rate is not all that counts.",
    ),
    (
        "one run each has no interval",
        curve(300, 1500, spread=None),
        "Up to 60 MB/s p99.9 stays under 800 ms (300 ms, of too few runs for an interval); at "
        "120 MB/s it does not (1.5 s, of too few runs for an interval).",
    ),
    (
        "failures keep no goal",
        [level("10 MB/s", 100), level("no limit", 90, failed=2)],
        "Up to 10 MB/s p99.9 stays under 800 ms (100 ms; 90 ms to 110 ms); at no limit it does "
        "not (there it is a failure).",
    ),
    (
        "a rate that the disk cannot give is named",
        [level("100 MB/s", 100, sent=99e6), level("200 MB/s", 200, sent=120e6)],
        "At every rate that was tried, up to 200 MB/s, p99.9 stays under 800 ms (200 ms; 180 ms "
        "to 220 ms): no rate fails. Less was actually sent: 200 MB/s came to 120 MB/s.",
    ),
]


@pytest.mark.parametrize(("levels", "said"), [row[1:] for row in SAID], ids=[row[0] for row in SAID])
def test_the_sentence(levels: list[SweepLevel], said: str) -> None:
    assert goal_sentence(levels, GOAL_MS, "") == said


def test_the_sentence_names_the_backend() -> None:
    assert goal_sentence(curve(100, 2000), GOAL_MS, "On sata").startswith(
        "On sata: up to 60 MB/s p99.9 stays"
    )


NUMBERS = [
    ("180 MB/s", 180e6),
    ("50 MiB/s", 50 * 2**20),
    ("16K", 16384),
    ("1.5 MB/s", 1.5e6),
    ("512 B/s", 512),
    ("10", 10),
    ("mq-deadline", None),
    ("", None),
    ("no limit", None),
]


@pytest.mark.parametrize(("label", "number"), NUMBERS)
def test_the_number_of_a_level(label: str, number: float | None) -> None:
    assert number_of(label) == number


def test_levels_in_order() -> None:
    assert sort_levels(["no limit", "100 MB/s", "50 MiB/s"]) == ["50 MiB/s", "100 MB/s", "no limit"]
    assert sort_levels(["128K", "16K"]) == ["16K", "128K"]
    assert sort_levels(["none", "bfq"]) is None
    assert is_rate(["50 MB/s", "no limit", "60 MB/s"])
    assert not is_rate(["128K", "16K"])
