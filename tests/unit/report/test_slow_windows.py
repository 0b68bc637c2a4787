"""When it stalled: a planted cause is named first, and a quiet host says nothing."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.host_rows import SUBJECTS, HostRow
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.report.sections.slow_windows import describe_windows
from plimsoll.cli import main
from tests.support import stalls as hosts
from tests.support.pages import figures_of, text_of
from tests.support.rundir import records, write_run
from tests.support.stalls import World, stalls_of_runs, write_stalled

# A few on each merge; as many as the share that is promised takes, in make test-lab-full.
RUNS = [2, pytest.param(10, marks=pytest.mark.slow)]
Story = Callable[..., World]

CAUSES: list[tuple[str, Story, set[str]]] = [
    ("transaction groups that take seconds", hosts.txg_sync, {"a transaction group's sync"}),
    ("a scrub", hosts.scrub, {"a scrub"}),
    ("a PHP pool of two", hosts.php_pool, {"PHP's queue"}),
    (
        "a page cache that is full",
        hosts.page_cache,
        {"memory pressure", "full memory pressure", "dirty memory"},
    ),
    ("a lock in MariaDB", hosts.row_lock, {"row-lock waits"}),
]


@pytest.mark.parametrize(("what", "story", "right"), CAUSES, ids=[row[0] for row in CAUSES])
@pytest.mark.parametrize("runs", RUNS)
def test_a_planted_cause_is_named_first_in_nine_of_ten_runs(
    tmp_path: Path, what: str, story: Story, right: set[str], runs: int
) -> None:
    first = []
    for seed in range(runs):
        (found,) = stalls_of_runs([write_stalled(tmp_path / str(seed), story(seed))])
        first.append(found.standing_out[0].row.said if found.standing_out else describe_windows(found))
    assert sum(each in right for each in first) >= 0.9 * runs, first


QUIET: list[tuple[str, Story]] = [
    ("a host that stalls at any time", hosts.quiet),
    ("a host that never stalls", hosts.calm),
]


@pytest.mark.parametrize(("what", "story"), QUIET, ids=[row[0] for row in QUIET])
@pytest.mark.parametrize("runs", RUNS)
def test_quiet_runs_say_nothing(tmp_path: Path, what: str, story: Story, runs: int) -> None:
    for seed in range(runs):
        (found,) = stalls_of_runs([write_stalled(tmp_path / str(seed), story(seed))])
        assert describe_windows(found).startswith("nothing stands out"), what


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two repeats on a disk with a lock in its database, and two on one without."""
    folder = tmp_path_factory.mktemp("locked")
    stories = [("rust <b>", hosts.row_lock), ("nvme", hosts.calm)]
    return [
        write_stalled(folder / f"{repeat}-{place}", story(repeat, 300), backend, repeat)
        for repeat in (1, 2)
        for place, (backend, story) in enumerate(stories)
    ]


SENTENCE = (
    r"On rust <b>, \d+ % of the windows over [\d.]+ m?s lie within 2 s of a wait for a row's lock, "
    r"\d+/s or more \(\d+ % of the others do\)"
)


def test_the_command_says_it_in_a_sentence(locked: list[Path]) -> None:
    result = CliRunner().invoke(main, ["report", *map(str, locked)])
    assert result.exit_code == 0
    assert re.search(SENTENCE, result.stdout)
    assert re.search(r"On nvme, nothing stands out: hardly any of \d+ windows was much slower", result.stdout)
    assert "because" not in result.stdout


def test_json_has_every_source_and_what_it_was(locked: list[Path]) -> None:
    result = CliRunner().invoke(main, ["report", "--json", *map(str, locked)])
    (scenario,) = json.loads(result.stdout)["stalls"]
    rust, nvme = scenario["backends"]
    assert re.search(SENTENCE, rust["sentence"])
    first = rust["sources"][0]
    assert first["source"] == "row-lock waits"
    assert first["stands_out"] is True
    assert first["slow"] > first["usual"]
    assert first["share_of_slow"] > 0.5 > first["share_of_others"]
    assert first["p"] <= 0.03
    assert len(rust["sources"]) > 20
    assert nvme["limit_ms"] is None
    assert nvme["sources"] == []


def test_the_page_says_it_at_the_top_and_draws_it_below_the_scatter(
    locked: list[Path], tmp_path: Path
) -> None:
    made = make_report(locked, tmp_path / "report.html")
    text = text_of(made)
    top = text[text.index("<main") : text.index('id="figure-scatter-0"')]
    assert "What the slowest windows have in common" in top
    assert "a wait for a row&#39;s lock" in top
    assert "The slowest windows on rust &lt;b&gt;" in top
    assert "rust <b>" not in text
    assert text.index('id="figure-scatter-0"') < text.index('id="figure-host-stalls-0"')
    figure = figures_of(made)["host-stalls-0"]
    titles = [each["title"]["text"] for key, each in figure["layout"].items() if key.startswith("yaxis")]
    assert titles[0] == "row locks/s"
    assert figure["layout"]["xaxis"]["range"] == figures_of(made)["scatter-0"]["layout"]["xaxis"]["range"]


def test_one_run_has_it_below_its_tail(locked: list[Path], tmp_path: Path) -> None:
    made = make_report(locked[:1], tmp_path / "report.html")
    keys = list(figures_of(made))
    assert keys.index("host-stalls-0") == keys.index("tail") + 1


def test_scenarios_in_which_nothing_stands_out_are_folded_together(tmp_path: Path) -> None:
    runs = []
    for scenario, story in (
        ("replay", hosts.calm),
        ("visitors", hosts.row_lock),
        ("download", hosts.calm),
    ):
        run = write_stalled(tmp_path / scenario, story(1))
        facts = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(facts | {"scenario": scenario}))
        runs.append(run)
    made = make_report(runs)
    text = text_of(made)
    folded = text[text.index('<details id="quiet-stalls">') :]
    assert "nothing stands out in 2 of 3 scenarios" in folded
    before = text[: text.index('<details id="quiet-stalls">')]
    assert "have in common: visitors" in before
    assert "have in common: replay" not in before
    assert [line.partition(":")[0] for line in made.lines() if "On rust, " in line] == [
        "replay",
        "visitors",
        "download",
    ]


def test_a_run_without_observers_says_nothing_of_stalls(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(1500))
    made = make_report([run])
    assert made.as_json()["stalls"] == []
    assert "slowest windows have" not in text_of(made)


def test_too_few_windows_cannot_be_told_from_chance(tmp_path: Path) -> None:
    run = write_stalled(tmp_path / "run", hosts.row_lock(3, 600))
    lines = (run / "host.csv").read_text().splitlines(keepends=True)
    (run / "host.csv").write_text("".join(lines[:2]))
    (found,) = stalls_of_runs([run])
    assert "nothing stands out" in describe_windows(found), "the observers died in the first second"


def test_an_event_that_comes_with_the_stalls_is_a_source(tmp_path: Path) -> None:
    """A name is hostile, and stands in quotes."""
    world = hosts.calm(1)
    stalls = world.episodes(50, 4, 10)
    world.held_ms = world.held_ms + 1500 * stalls
    run = write_stalled(tmp_path / "run", world)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], stalls, [0]])))
    events = [
        {"t_ns": int(edge) * 10**9, "event": "backup <i>{}", "phase": "stop" if place % 2 else "start"}
        for place, edge in enumerate(edges)
    ]
    (run / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (found,) = stalls_of_runs([run])
    assert re.search(
        r"lie within 2 s of “backup <i>\{\}” \(\d+ % of the others do\)", describe_windows(found)
    )
    assert "backup <i>" not in text_of(make_report([run]))


def test_what_is_there_all_the_time_does_not_stand_out(tmp_path: Path) -> None:
    world = hosts.quiet(4)
    world.columns["memory.dirty_bytes"] = np.full(world.seconds, 3e9)
    (found,) = stalls_of_runs([write_stalled(tmp_path / "run", world)])
    assert not found.standing_out


def test_a_small_page_cache_that_is_full_is_named_by_its_limit(tmp_path: Path) -> None:
    """Of 16 MiB that may be dirty, the row in GiB is quiet."""
    world = hosts.calm(2)
    stalls = world.episodes(50, 4, 10)
    world.held_ms = world.held_ms + 1500 * stalls
    full = 0.1 + 0.7 * stalls
    world.columns["memory.dirty_limit_percent"] = 100 * full
    world.columns["memory.dirty_bytes"] = full * (16 << 20)
    world.columns["memory.writeback_bytes"] = np.zeros(world.seconds)
    (found,) = stalls_of_runs([write_stalled(tmp_path / "run", world)])
    assert found.standing_out[0].row.said == "dirty memory, of its limit"
    assert "dirty memory over 80 % of its limit" in describe_windows(found)


def _every_row() -> list[HostRow]:
    return [row for subject in SUBJECTS for row in subject.rows]


@pytest.mark.parametrize("row", _every_row(), ids=lambda row: row.said)
def test_a_row_is_bad_on_the_side_that_its_alarm_says(row: HostRow) -> None:
    assert (row.bad == "low") == (row.alarm == "falls")


def test_docs_can_say_of_every_sign_what_it_usually_means_and_where_to_look() -> None:
    assert [row.said for row in _every_row() if row.bad and not (row.means and row.look_at)] == []


def test_no_two_rows_are_called_alike() -> None:
    said = [row.said for row in _every_row()]
    assert len(said) == len(set(said))


def test_a_scrub_that_is_the_saturator_is_no_source(tmp_path: Path) -> None:
    run = write_stalled(tmp_path / "run", hosts.scrub(1))
    (other,) = stalls_of_runs([run])
    assert "a scrub" in {sign.row.said for sign in other.signs}
    started, stopped = (
        {"t_ns": at, "event": "scrub", "phase": phase} for at, phase in ((1, "start"), (2, "stop"))
    )
    (run / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in (started, stopped)))
    (own,) = stalls_of_runs([run])
    assert "a scrub" not in {sign.row.said for sign in own.signs}


def test_a_long_sync_is_said_in_seconds(tmp_path: Path) -> None:
    (found,) = stalls_of_runs([write_stalled(tmp_path / "run", hosts.txg_sync(1))])
    said = describe_windows(found)
    assert re.search(r"within 2 s of a transaction group that took over [\d.]+ s to sync \(", said), said
    assert re.search(r"ARC (hits fell|misses rose) from", said), said
