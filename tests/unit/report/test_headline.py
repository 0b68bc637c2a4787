"""What is said first: which backend is faster, by how much, how sure; and no failure looks fast."""

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.report.sections.headline import sentence
from plimsoll.cli import main
from tests.support.experiment import FAST, SLOW, write_experiment, write_scripted_experiment
from tests.support.pages import figures_of, words_of
from tests.support.rundir import change, records, write_run

Write = Callable[[Path], object]


def bigs_of(made: Report) -> list[str]:
    """Return the large figures of the first answer on the page: name, value and what stands below."""
    page = made.path.read_text(encoding="utf-8")
    card = page[page.index('class="card answer"') :].partition("</section>")[0]
    found = re.findall(r"<dt>(.*?)</dt><dd>(?:<span[^>]*></span>)?(.*?)<small>(.*?)</small>", card)
    return [html.unescape(" | ".join(each)) for each in found]


def three(folder: Path, repeats: int) -> None:
    kinds = [("a", FAST), ("b", FAST | {"stall_ms": 200.0}), ("c", SLOW)]
    write_experiment(folder, repeats, kinds)


def downloads(folder: Path) -> None:
    for run in write_scripted_experiment(folder, ["download"], 4):
        if "rotating" in run.name:
            events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
            slower = [
                one | {"value": one["value"] / 3} if one["event"] == "measure" else one for one in events
            ]
            (run / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in slower))


def one_after_the_other(folder: Path) -> None:
    for number, run in enumerate(sorted(write_experiment(folder, 4), key=lambda run: backend_of(run))):
        instant = f"2026-11-20T{number:02d}"
        change(run, started_at=f"{instant}:00:00Z", ended_at=f"{instant}:01:25Z", experiment=None)


def backend_of(run: Path) -> str:
    return str(json.loads((run / "run.json").read_text())["backend"])


def doubtful(folder: Path) -> None:
    first = write_experiment(folder, 4)[0]
    summary = json.loads((first / "summary.json").read_text())
    (first / "summary.json").write_text(json.dumps(summary | {"generator_limited": True}))
    change(first, status="interrupted", reason="Ctrl-C")


ROWS: list[tuple[str, Write, list[str]]] = [
    (
        "four repeats of an experiment in which one disk is slow",
        lambda folder: write_experiment(folder, 4),
        [
            r"faster \| nvme-mirror \| p99\.9 6[0-9.]+ ms",
            r"slow-disk \(emulated\) takes \| 3\d times \| as long: p99\.9 2\.[0-9]+ s; \d+ to \d+ at 95 %",
            r"how sure \| clear \| if both were equal, .* occur in 1 of 35 experiments; 4 against 4 runs",
        ],
    ),
    (
        "seven repeats are judged in pairs",
        lambda folder: write_experiment(folder, 7),
        [r"faster \| nvme-mirror", "takes", r"clear \| if both .* in 1 of 64 experiments; 7 against 7 runs"],
    ),
    (
        "two disks that are alike",
        lambda folder: write_experiment(folder, 5, [("a", FAST), ("b", FAST | {"stall_ms": 40.4})]),
        [
            r"faster \| no clear winner \| [ab] is ahead: p99\.9",
            r"1\.\d\d times",
            r"how sure \| not sure \| if both were",
        ],
    ),
    (
        "two runs a side cannot tell anything",
        lambda folder: write_experiment(folder, 2),
        [
            r"faster \| not known \| nvme-mirror is ahead",
            "times",
            r"too few runs \| 2 against 2 runs; .* 4 each",
        ],
    ),
    (
        "three backends are three pairs, which ask for more runs",
        lambda folder: three(folder, 4),
        [
            r"faster \| not known \| a is ahead",
            "b takes",
            "c .* takes",
            r"too few runs \| 4 against 4 runs; it takes 5 each",
        ],
    ),
    (
        "and with these it is clear; the nearest is named",
        lambda folder: three(folder, 5),
        [
            r"faster \| a \|",
            "b takes",
            "c .* takes",
            r"how sure: a over b \| clear \| if both were .* 1 of 42",
        ],
    ),
    (
        "a scripted scenario has its own measure",
        lambda folder: write_scripted_experiment(folder, ["save-article"], 4),
        [r"faster \| nvme-mirror \| article saved \d+ ms", r"rotating takes \| [23]\.\d times", "clear"],
    ),
    (
        "of a rate more is better",
        downloads,
        [
            r"faster \| nvme-mirror \| throughput \d+",
            r"nvme-mirror has \| [234](\.\d)? times \| as much as rotating: throughput \d+",
            "clear",
        ],
    ),
    (
        "of runs that did not alternate nothing is sure, however far they lie apart",
        one_after_the_other,
        [r"faster \| not known \| nvme-mirror is ahead", "times", r"not sure \| 4 .* did not alternate"],
    ),
    (
        "nothing is clear where a warning says not to trust the figures",
        doubtful,
        [r"faster \| in doubt \| nvme-mirror is ahead", "times", r"not at all \| \d grave warnings? below"],
    ),
]


@pytest.mark.parametrize(("write", "says"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_page_says_first(tmp_path: Path, write: Write, says: list[str]) -> None:
    write(tmp_path)
    found = bigs_of(make_report([tmp_path]))
    for big, pattern in zip(found, says, strict=True):
        assert re.search(pattern, big), found


def test_only_the_answer_whose_runs_are_in_doubt_is_in_doubt(tmp_path: Path) -> None:
    """One run of the replay was late: that says nothing of what an article took to save."""
    doubtful(tmp_path)
    write_scripted_experiment(tmp_path, ["save-article"], 4)
    found = CliRunner().invoke(main, ["report", "--json", str(tmp_path)])
    doubts = {each["scenario"]: each["grave_warnings"] for each in json.loads(found.stdout)["answers"]}
    assert doubts["replay"] > 0
    assert doubts["save-article"] == 0
    assert (
        "save-article: Faster: nvme-mirror (clear"
        in CliRunner().invoke(main, ["report", str(tmp_path)]).stdout
    )


def write_failing(path: Path, backend: str, repeat: int, every: int) -> None:
    table = records(12_000, total_us=20_000 + repeat)
    table["status"][::every] = 503
    write_run(path, table, events=EVENTS, backend=backend, repeat=repeat, load=load(30.0), scenario="replay")


def test_who_fails_is_behind_and_its_figure_a_bound(tmp_path: Path) -> None:
    for repeat in range(1, 5):
        write_failing(tmp_path / f"a{repeat}", "fails", repeat, 8)
        write_failing(tmp_path / f"b{repeat}", "holds", repeat, 100_000)
    text = CliRunner().invoke(main, ["report", str(tmp_path)]).stdout
    (line,) = (line for line in text.splitlines() if line.startswith("Faster: "))
    assert "in a typical run, 20 ms on holds and ≥ 30 s on fails (≥ 1,500 times" in line
    assert "It is a failure's in 4 of 4 runs on fails, and so at least that." in line


def test_one_backend_asks_no_question(tmp_path: Path) -> None:
    write_experiment(tmp_path, 4, [("only", FAST)])
    assert 'class="card answer"' not in make_report([tmp_path]).path.read_text(encoding="utf-8")


def test_names_and_sentences_are_hostile(tmp_path: Path) -> None:
    write_experiment(tmp_path, 4, [("<img src=x onerror=alert(1)>", FAST), ("b\x1b[2J", SLOW)])
    made = make_report([tmp_path])
    page = made.path.read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    assert "\x1b" not in "".join(made.lines())


def test_json_has_the_same(tmp_path: Path) -> None:
    write_experiment(tmp_path, 4)
    (answer,) = json.loads(CliRunner().invoke(main, ["report", "--json", str(tmp_path)]).stdout)["answers"]
    assert (answer["scenario"], answer["of"], answer["phase"]) == ("replay", "p99.9", "during")
    assert [each["backend"] for each in answer["backends"]] == ["nvme-mirror", "slow-disk"]
    (lead,) = answer["against_first"]
    assert (lead["outcome"], lead["p"]) == ("clear", pytest.approx(1 / 35))
    assert lead["lower"] < lead["ratio"] < lead["upper"]


EVENTS = [
    {"t_ns": 3_000_000_000, "event": "zfs-send", "phase": "start"},
    {"t_ns": 9_000_000_000, "event": "zfs-send", "phase": "stop"},
]


def load(timeout_s: float | None) -> dict[str, Any]:
    settings = {} if timeout_s is None else {"timeout_s": timeout_s}
    return {"digest": "d", "settings": settings}


def failing(
    count: int = 12_000, every: int = 8, from_: int = 4000, error: int = 0, **columns: Any
) -> np.ndarray:
    """A server that refuses one request in `every` from some instant on, in 0.1 ms.

    With an `error` it does not even answer.
    """
    table = records(count, total_us=20_000, **columns)
    bad = (np.arange(count) >= from_) & (np.arange(count) % every == 0)
    table["status"][bad], table["total_us"][bad], table["error"][bad] = 0 if error else 503, 100, error
    return table


SENTENCES = [
    (
        "wrong answers",
        failing(),
        30.0,
        "8.33 % of requests failed: p99.9 is a wrong answer, and counts as 30 s.",
    ),
    ("of an older run", failing(), None, "8.33 % of requests failed: p99.9 is a wrong answer."),
    ("no answer", failing(error=1), 30.0, "8.33 % of requests failed: p99.9 is at least 30 s."),
    (
        "none, of an older run",
        failing(error=1),
        None,
        "8.33 % of requests failed: p99.9 is one of them, and how",
    ),
    ("few fail", failing(every=11_000), 30.0, "under 0.01 % of requests failed. The slowest request in a"),
    (
        "too few requests",
        failing(400, 8, 0),
        30.0,
        "12.5 % of requests failed: the slowest is a wrong answer, and counts as 30 s.",
    ),
    ("none fails", records(2000), 30.0, "The slowest request in a thousand took 1 ms or more."),
]


@pytest.mark.parametrize(("what", "table", "timeout_s", "says"), SENTENCES, ids=[row[0] for row in SENTENCES])
def test_the_headline_says_it_plainly(
    tmp_path: Path, what: str, table: np.ndarray, timeout_s: float | None, says: str
) -> None:
    made = make_report([write_run(tmp_path / "run", table, load=load(timeout_s))])
    assert sentence(made.runs[0]).startswith(says), what
    assert says in words_of(made)


def test_headline_tables_charts_and_json_agree(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", failing(), load=load(30))
    done = CliRunner().invoke(main, ["report", str(run)])
    assert "1,000 failed, p50 20 ms, p99 wrong answer, p99.9 wrong answer, max wrong answer" in done.stdout
    made = make_report([run])
    text = words_of(made)
    cells = re.findall(r"<td[^>]*>wrong answer</td>", made.path.read_text(encoding="utf-8"))
    assert len(cells) == 16, "two times from p95 on, the route and the total from p99 on"
    assert "≥ 30" not in text
    assert "1,000 requests of 12,000 failed (8.33 %): 1,000 wrong answers. They count as 30 s" in text
    figures = figures_of(made)
    points = next(trace for trace in figures["tail"]["data"] if trace["name"] == "p99.9")
    assert set(points["y"]) == {20.0, 30_000.0}
    assert [s == "triangle-up" for s in points["marker"]["symbol"]] == [y == 30_000 for y in points["y"]]
    assert any("p99.9 <b>wrong answer</b>" in hover for hover in points["hovertext"])
    assert any("the slowest: wrong answer" in hover for hover in figures["tail"]["data"][0]["hovertext"])
    assert "1,000 wrong answers (8.33 %) came: each stands at its time-out." in text
    curve = next(trace for trace in figures["percentiles"]["data"] if trace["name"] == "response")
    assert max(curve["y"]) == 30_000
    assert min(y for y in figures["heat-0"]["data"][0]["y"]) > 10, "no refusal is drawn as fast"
    said = json.loads(CliRunner().invoke(main, ["report", "--json", str(run)]).stdout)["runs"][0]
    assert said["response_ms"]["p99.9"] is None
    assert said["response_ms"]["censored"]["p99.9"] == 30_000
    assert said["total"]["response_ms"]["censored"]["p99"] == 30_000
    assert said["requests"]["failures"] == said["total"]["failures"] == 1000


def test_what_has_no_time_out_is_drawn_nowhere(tmp_path: Path) -> None:
    made = make_report([write_run(tmp_path / "run", failing(), load=None)])
    text, figures = words_of(made), figures_of(made)
    assert "slower than every answer, and not drawn, since their time-out is not known" in text
    drawn = [y for key in ("tail", "percentiles") for trace in figures[key]["data"] for y in trace["y"] if y]
    assert set(drawn) == {20.0}
    assert not any(trace["name"] == "average line" for trace in figures["tail"]["data"])


def test_a_run_of_nothing_but_failures_has_a_report(tmp_path: Path) -> None:
    for number, timeout_s in enumerate((None, 30.0)):
        table = records(3000, error=1, status=0, ttfb_us=0)
        made = make_report([write_run(tmp_path / f"{number}", table, load=load(timeout_s), events=EVENTS)])
        assert "100 % of requests failed" in words_of(made)


def test_a_backend_that_dies_is_not_the_fast_one(tmp_path: Path) -> None:
    """A server that was killed: 36 ms on one, and 1.49 ms on two, which was the dead one."""
    dead = records(12_000, total_us=20_000)
    dead["error"][4000:], dead["total_us"][4000:] = 1, 100
    tables = {"one": records(12_000, total_us=36_000), "two": dead}
    for name, table in tables.items():
        for repeat in (1, 2):
            facts: dict[str, Any] = {"backend": name, "repeat": repeat, "load": load(30)}
            write_run(tmp_path / "runs" / f"{name}{repeat}", table, events=EVENTS, **facts)
    made = make_report([tmp_path / "runs"])
    text = words_of(made)
    assert (
        "While zfs send ran, the slowest request in a thousand failed on two (at least 30 s), "
        "and took 36 ms on one"
    ) in text
    (compared,) = made.compared
    two = next(each for each in compared.backends if each.backend.name == "two")
    assert two.phases["during"].response_ms.censored["p99.9"] == 30_000
    assert two.ratios == {"p50": None, "p99": None, "p99.9": None}
    said = made.as_json()["phases"][0]["backends"][1]  # type: ignore[index]
    assert said["phases"]["during"]["response_ms"] == {
        "p50": None,
        "p99": None,
        "p99.9": None,
        "censored": {"p50": 30_000, "p99": 30_000, "p99.9": 30_000},
    }
    figures = figures_of(made)
    for key in ("scatter-0", "repeats-0"):
        of_two = [t for t in figures[key]["data"] if t["name"] == "two" and t["mode"] == "markers"]
        assert max(y for trace in of_two for y in trace["y"]) == 30_000, key
    assert "An arrow is a failure, at its time-out" in text
    assert "A triangle is a failure, at its time-out" in text


def test_repeats_whose_time_out_is_not_known_make_no_median_faster(tmp_path: Path) -> None:
    for repeat in (1, 2, 3):
        table = records(3000, total_us=36_000)
        if repeat > 1:
            table["error"][1000:] = 1
        write_run(tmp_path / f"r{repeat}", table, backend="two", repeat=repeat)
    made = make_report([tmp_path])
    bars = [t for t in figures_of(made)["repeats-0"]["data"] if t["mode"] == "lines"]
    assert [y for trace in bars for y in trace["y"] if y] == []
    assert "2 figures are failures of unknown time-out: above all others, and not drawn." in words_of(made)
