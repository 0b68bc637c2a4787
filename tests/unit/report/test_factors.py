"""An experiment with factors: what it ranks, draws and says; a sweep of rates in one sentence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.factors import SweepLevel, goal_sentence, is_rate, number_of, sort_levels
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.statistics.factors import Estimate
from tests.support.experiment import write_experiment, write_factorial
from tests.support.pages import HOSTILE, figures_of, text_of
from tests.support.rundir import change

CROSSED = {"backend": ["nvme", "sata"], "recordsize": ["128K", "16K"]}
RATES = {"backend": ["rotating"], "send-rate": ["50 MB/s", "100 MB/s", "200 MB/s"]}
STALLS_MS = {"50 MB/s": 60, "100 MB/s": 120, "200 MB/s": 900}


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("crossed")
    write_factorial(folder, CROSSED, lambda point: 900.0 if point["backend"] == "sata" else 300.0)
    return make_report([folder])


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("swept")
    write_factorial(folder, RATES, lambda point: STALLS_MS[point["send-rate"]], goal_ms=800)
    return make_report([folder])


def factors(report: Report) -> dict[str, Any]:
    (found,) = json.loads(json.dumps(report.as_json()))["factors"]
    return dict(found)


def test_what_was_tried_is_ranked_and_each_change_alone_is_told(crossed: Report) -> None:
    found = factors(crossed)
    assert (found["percentile"], found["phase"]) == ("p99.9", "during")
    assert found["levels"] == CROSSED
    assert [each["levels"]["backend"] for each in found["ranking"]] == ["nvme", "nvme", "sata", "sata"]
    told = {change["factor"]: change for effect in found["effects"] for change in effect["changes"]}
    assert told["backend"]["outcome"] == "slower"
    assert told["backend"]["ratio"]["lower"] < 3 < told["backend"]["ratio"]["upper"]
    assert told["recordsize"]["outcome"] == "noise"
    assert told["recordsize"]["pairs"] == 8
    text = text_of(crossed)
    assert "sata in place of nvme (backend) makes p99.9" in text
    assert "Within noise: recordsize." in text
    assert text.index("What each factor did") < text.index("Each change alone")
    assert text.index("What was tried, the fastest first") < text.index("Before, during and after")


def test_there_is_a_chart_for_each_factor(crossed: Report, swept: Report) -> None:
    drawn = figures_of(crossed)
    assert drawn["factor-0-0"]["title"] == "p99.9 by backend"
    assert drawn["factor-0-1"]["title"] == "p99.9 by recordsize"
    assert [trace["name"] for trace in drawn["factor-0-1"]["data"]] == ["nvme", "nvme", "sata", "sata"]
    assert drawn["factor-0-1"]["layout"]["xaxis"]["ticktext"] == ["16K", "128K"]
    curve = figures_of(swept)["factor-0-0"]
    assert curve["layout"]["xaxis"]["tickvals"] == [50e6, 100e6, 200e6]
    assert len(curve["data"][0]["x"]) == 12
    means = curve["data"][1]
    assert means["y"] == sorted(means["y"])
    assert all(high > 0 for high in means["error_y"]["array"])
    assert curve["data"][-1]["name"] == "goal: 800 ms"


def test_a_sweep_of_rates_says_up_to_which_the_goal_is_kept(swept: Report) -> None:
    (said,) = factors(swept)["sentences"]
    assert said.startswith("Up to 100 MB/s p99.9 stays under 800 ms (")
    assert "; at 200 MB/s it does not (" in said
    assert "200 MB/s came to 89.9 MB/s." in said or "200 MB/s came to 90 MB/s." in said
    assert said in text_of(swept)


def test_failures_keep_no_goal_and_are_not_ranked(tmp_path: Path) -> None:
    paths = write_factorial(
        tmp_path, RATES, lambda point: STALLS_MS[point["send-rate"]], goal_ms=5000, repeats=2
    )
    for path in paths:
        if "200-mb" in path.name:
            spoil(path)
    found = factors(make_report([tmp_path]))
    assert len(found["failed"]) == 2
    assert [each["levels"]["send-rate"] for each in found["ranking"]] == ["50 MB/s", "100 MB/s"]
    assert "; at 200 MB/s it does not (there it is a failure)" in found["sentences"][0]


def spoil(path: Path) -> None:
    """Let one request in fifty during the send fail."""
    table = np.load(path / "requests.npy", mmap_mode="r+")
    busy = np.flatnonzero((table["due_ns"] > 21 * 10**9) & (table["due_ns"] < 59 * 10**9))[::50]
    table["status"][busy] = 500
    table.flush()


def test_runs_without_factors_have_no_such_part(tmp_path: Path) -> None:
    write_experiment(tmp_path, repeats=1)
    made = make_report([tmp_path])
    assert "factors" not in made.as_json()
    assert "What each factor did" not in text_of(made)


def test_levels_and_factors_are_hostile(tmp_path: Path) -> None:
    paths = write_factorial(tmp_path, RATES, lambda _: 100.0, repeats=1)
    for path in paths:
        facts = json.loads((path / "run.json").read_text())
        text = HOSTILE[0] + HOSTILE[1]
        change(path, factors={**facts["factors"], text: facts["factors"]["send-rate"] + text})
    made = make_report([tmp_path])
    page = made.path.read_text(encoding="utf-8")
    assert HOSTILE[0] not in page
    assert HOSTILE[1] not in page
    assert factors(made)["levels"][text]


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
