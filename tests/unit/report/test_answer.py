"""Which backend is faster, by how much, how sure: said first, and only as far as the runs carry it."""

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.report import make_report
from plimsoll.cli import main
from tests.support.experiment import FAST, SLOW, write_experiment, write_scripted_experiment
from tests.support.rundir import change, records, write_run
from tests.unit.report.test_report_failures import EVENTS, load

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
        change(run, started_at=f"{instant}:00:00Z", ended_at=f"{instant}:05:00Z", experiment=None)


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
        lambda folder: write_experiment(folder, 5, [("a", FAST), ("b", FAST)]),
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


def failing(path: Path, backend: str, repeat: int, every: int) -> None:
    table = records(12_000, total_us=20_000 + repeat)
    table["status"][::every] = 503
    write_run(path, table, events=EVENTS, backend=backend, repeat=repeat, load=load(30.0), scenario="replay")


def test_who_fails_is_behind_and_its_figure_a_bound(tmp_path: Path) -> None:
    for repeat in range(1, 5):
        failing(tmp_path / f"a{repeat}", "fails", repeat, 8)
        failing(tmp_path / f"b{repeat}", "holds", repeat, 100_000)
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
