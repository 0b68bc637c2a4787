"""A report on an experiment: what it says of several backends, and what of runs that it cannot read."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.evidence.storage import differing
from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.report.sections.answer import answers_json
from plimsoll.analysis.report.sections.storage import differences_json
from plimsoll.common.errors import RunDirectoryError
from tests.support.comparable import REQUESTS, runs_of, write_both
from tests.support.experiment import DISK, FAST, SLOW, write_experiment, write_one
from tests.support.pages import check_figure, figures_of, text_of, warnings_of, write_hostile_experiment
from tests.support.rundir import change, change_records, load_records, records, write_run

BUNCHED = 300_000


def _by_backend(made: Report) -> dict[str, Any]:
    """The figures that all backends share; each has a heat map of its own."""
    return {key: figure for key, figure in figures_of(made).items() if not key.startswith("heat-")}


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("experiment")
    write_experiment(folder)
    return make_report([folder])


def test_a_folder_stands_for_the_runs_in_it_each_once(experiment: Report) -> None:
    assert [run.directory.path.name[:2] for run in experiment.runs] == [f"0{n}" for n in range(1, 9)]
    assert experiment.path.name == "report.html"
    assert (experiment.path.parent / "latest").is_symlink()
    again = make_report([experiment.path.parent, experiment.runs[0].directory.path], experiment.path)
    assert len(again.runs) == 8


def test_the_page_begins_with_the_answer(experiment: Report) -> None:
    text = text_of(experiment)
    assert "Experiment one-machine: 8 runs" in text
    assert re.search(
        r"While zfs send ran, the slowest request in a thousand took [\d.]+ s on slow-disk", text
    )
    order = [
        "Before, during and after",
        "while zfs send runs",
        "Every repeat, p99.9",
        "What differs",
        "of each run",
    ]
    places = [text.index(says) for says in order]
    assert places == sorted(places)
    assert text.count('rowspan="3"') == 2


def test_emulated_storage_is_called_so_wherever_it_is_named_first(experiment: Report) -> None:
    text = text_of(experiment)
    warnings = warnings_of(experiment)
    assert f"slow-disk is emulated ({DISK})" in warnings
    table = text[text.index("card phases") : text.index("figure-scatter-0")]
    assert f"emulated: {DISK}" in table
    for key, figure in _by_backend(experiment).items():
        names = {trace["name"] for trace in figure["data"]}
        assert names == {"nvme-mirror", "slow-disk (emulated)"}, key


def test_a_backend_has_one_colour_and_one_place_in_the_legend(experiment: Report) -> None:
    for key, figure in _by_backend(experiment).items():
        colours: dict[str, set[str]] = {}
        for trace in figure["data"]:
            colours.setdefault(trace["name"], set()).add((trace.get("line") or {}).get("color") or "")
            colours[trace["name"]].add((trace.get("marker") or {}).get("color") or "")
        assert {name: found - {""} for name, found in colours.items()} == {
            "nvme-mirror": {"var(--run-1)"},
            "slow-disk (emulated)": {"var(--run-2)"},
        }, key
        shown = [trace["name"] for trace in figure["data"] if trace.get("showlegend", True)]
        assert len(shown) == len(set(shown)) == 2, key
    text = text_of(experiment)
    assert 'run-2"></span><b>slow-disk' in text
    assert 'run-2"></span>slow-disk #1' in text


def test_the_scatter_has_every_repeat_a_line_each_and_what_happened_below(experiment: Report) -> None:
    figure = figures_of(experiment)["scatter-0"]
    check_figure(figure)
    slow = [trace for trace in figure["data"] if trace["name"].startswith("slow")]
    markers = [trace for trace in slow if trace["mode"] == "markers"]
    assert sum(len(trace["x"]) for trace in markers) == sum(
        len(repeat.windows) for repeat in experiment.compared[0].backends[1].repeats
    )
    assert any(trace["marker"]["symbol"].endswith("-open") for trace in markers), "widened windows are marked"
    assert all("n = 1," in text for text in markers[0]["hovertext"])
    assert not any("interval" in text for text in markers[0]["hovertext"]), "requests are not independent"
    assert min(x for trace in markers for x in trace["x"]) < 0
    below = {trace.get("yaxis", "y") for trace in slow if trace["mode"] == "lines"}
    assert below == {"y", "y2", "y3", "y4"}
    titles = [figure["layout"][f"yaxis{n}"]["title"]["text"] for n in ("", 2, 3, 4)]
    assert titles == ["response time (ms)", "requests/s", "zfs send (MB/s)", "disk read (ms)"]
    band = figure["layout"]["shapes"][0]
    assert (band["x0"], band["x1"]) == (0, 40)


def test_each_backend_has_a_heat_map_of_all_its_repeats(experiment: Report) -> None:
    figures = figures_of(experiment)
    for place, backend in enumerate(experiment.compared[0].backends):
        figure = figures[f"heat-0-{place}"]
        trace = figure["data"][0]
        counted = sum(sum(row) for row in trace["customdata"])
        assert counted == sum(repeat.run.statistics.requests for repeat in backend.repeats)
        assert trace["x"][0] == pytest.approx(-20.0, abs=0.5)
        assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [0, 40]
    assert f"heat-0-{len(experiment.compared[0].backends)}" not in figures


def test_no_figure_grows_with_the_number_of_runs(tmp_path: Path) -> None:
    write_experiment(tmp_path, 30, per_s=20.0)
    made = make_report([tmp_path])
    assert len(made.runs) == 60
    for figure in figures_of(made).values():
        check_figure(figure)
        assert sum(len(trace["x"]) for trace in figure["data"]) <= 8000
    assert made.path.stat().st_size < 7 << 20


def test_few_requests_are_shown_by_step(tmp_path: Path) -> None:
    paths = write_experiment(tmp_path, 2, per_s=0.5, scenario="save-article")
    for path in paths:
        event = {"event": "measure", "name": "article saved", "value": 250.0, "unit": "ms"}
        lines = "".join(json.dumps({"t_ns": n} | event) + "\n" for n in range(3))
        (path / "events.jsonl").write_text((path / "events.jsonl").read_text() + lines)
    made = make_report([tmp_path])
    figure = figures_of(made)["steps-0"]
    assert figure["layout"]["xaxis"]["ticktext"] == ["article saved", "page"]
    assert "repeats-0" not in figures_of(made)


def test_several_scenarios_have_parts_of_their_own(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", 2)
    write_experiment(tmp_path / "b", 2, scenario="download", per_s=3.0)
    made = make_report([tmp_path / "a", tmp_path / "b"])
    text = text_of(made)
    assert "Before, during and after: replay" in text
    assert "Before, during and after: download" in text
    assert "download, slow-disk #1" in text
    assert {"scatter-0", "scatter-1", "repeats-0", "steps-1"} <= set(figures_of(made))


def test_warnings_on_single_runs_do_not_hide_the_answer(tmp_path: Path) -> None:
    paths = write_experiment(tmp_path, 3)
    for path in paths:
        change(path, status="interrupted", reason="by Ctrl-C")
    change(paths[0], status="failed", reason="disk full")
    text = text_of(make_report([tmp_path]))
    assert "The run failed (disk full)." in text[text.index('id="warnings"') :]
    assert text.count("and 2 more):</b> each was interrupted (by Ctrl-C).") == 1


LATE: list[tuple[str, float, int, str, str]] = [
    ("6 ms beside 50 and 100 change nothing", 2.0, 6_000, "clear", "note"),
    ("10 ms of 70 may be the gap", 1.2, 10_000, "late", "note"),
    ("bunches are another load", 2.0, BUNCHED, "not clear", "bad"),
]


@pytest.mark.parametrize(("why", "ratio", "late_us", "outcome", "level"), LATE, ids=[row[0] for row in LATE])
def test_lateness_that_is_known_is_said_once_and_what_it_may_be_is_not_clear(
    tmp_path: Path, why: str, ratio: float, late_us: int, outcome: str, level: str
) -> None:
    write_both(tmp_path, ratio)
    for path in runs_of(tmp_path, "*"):
        lag_us = np.full(REQUESTS, late_us)
        if late_us == BUNCHED:
            due_us = load_records(path)["due_ns"] // 1000
            lag_us = np.where(due_us % 1_000_000 < late_us, late_us - due_us % 1_000_000, 0)
        change_records(path, lag_us=lag_us, late_us=lag_us)
    made = make_report([tmp_path])
    answer: Any = answers_json(made.compared, made.findings_on_all)[0]
    assert answer["against_first"][0]["outcome"] == outcome, why
    assert (answer["grave_warnings"] > 0) == (level == "bad")
    said = re.findall(r'<li class="(\w+)">(?:<b>)?8 of 8 runs:(?:</b>)? each was (\w+)', text_of(made))
    assert said == [(level, "sent" if level == "note" else "limited")]


def test_one_run_a_backend_is_no_comparison(tmp_path: Path) -> None:
    write_experiment(tmp_path, 1)
    made = make_report([tmp_path])
    assert "ran only once on nvme-mirror and slow-disk" in text_of(made)
    assert {"scatter-0", "tail", "percentiles"} <= set(figures_of(made))


def test_what_was_named_itself_has_to_be_readable(tmp_path: Path) -> None:
    one = write_experiment(tmp_path, 1)[0]
    (one / "run.json").write_text("{")
    with pytest.raises(RunDirectoryError, match="is not JSON"):
        make_report([one, tmp_path])
    (tmp_path / "02-replay" / "run.json").write_text("{")
    with pytest.raises(RunDirectoryError) as refused:
        make_report([tmp_path])
    assert len(str(refused.value).splitlines()) == 2, "all problems at once"
    with pytest.raises(RunDirectoryError, match=r"run\.json is missing"):
        make_report([_empty(tmp_path)])


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def test_one_saturated_run_has_the_table_too(tmp_path: Path) -> None:
    made = make_report([write_one(tmp_path / "run", "sata", 1, **SLOW)])
    text = text_of(made)
    assert "Before, during and after" in text
    assert "sata is emulated" in text
    assert f"on emulated storage: {DISK}" in text
    assert "scatter-0" not in figures_of(made)


def test_runs_without_a_backend_are_not_taken_for_repeats(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / name, records(1500)) for name in ("a", "b")]
    made = make_report(paths)
    assert [len(each.repeats) for each in made.compared[0].backends] == [1, 1]
    assert {"tail", "heat-0"} <= set(figures_of(made))


def test_facts_are_compared_by_place_and_names_change_nothing() -> None:
    facts = [
        {"kernel": "6.1", "disks": [{"device": "sda", "scheduler": "none"}]},
        {
            "kernel": "6.1",
            "disks": [{"device": "sdb", "scheduler": "bfq"}, {"device": "sdc", "scheduler": "bfq"}],
        },
        {"kernel": "6.1", "disks": [{"device": "sdd", "scheduler": "none"}], "cpus": 4},
    ]
    assert differing(facts) == [
        ("disks.1.scheduler", ("none", "bfq", "none")),
        ("disks.2.scheduler", (None, "bfq", None)),
        ("cpus", (None, None, 4)),
    ]
    assert differing(facts, expected=("disks", "cpus")) == []


def _tuned(path: Path, *values: tuple[str, str, str]) -> None:
    storage = json.loads((path / "run.json").read_text())["storage"]
    tuning = [{"key": key, "was": was, "set": wanted} for key, was, wanted in values]
    change(path, storage={**storage, "tuning": tuning})


def test_a_difference_in_tuning_is_shown_as_what_lab_yml_set(tmp_path: Path) -> None:
    for path in write_experiment(tmp_path):
        fast = "nvme" in json.loads((path / "run.json").read_text())["backend"]
        _tuned(
            path,
            ("disks.nvme0n1.nr_requests" if fast else "disks.loop7.nr_requests", "256", "64"),
            ("vm.swappiness", "60", "10" if fast else "90"),
            *([("datasets.tank/a.b.recordsize", "131072", "16384")] if fast else []),
            ("datasets.@web.recordsize", "131072", "65536" if fast else "131072"),
        )
    made = make_report([tmp_path])
    page = text_of(made)
    assert page.index("What differs between the backends") < page.index('class="words"'), "long facts wrap"
    text = re.sub(r"\s*<[^>]*>\s*", " ", page)
    said = " ".join(text[text.index("What differs between the backends") :].split())
    assert "tuning.vm.swappiness 10 90" in said
    assert "tuning.datasets.1.recordsize 16384 –" in said
    assert "tuning.datasets.@web.recordsize 65536 131072" in said, "by its word, whatever comes before"
    assert "set by the lab, as lab.yml has it for that backend" in said
    assert "tuning.disks" not in said, "the same on the disk of either"
    assert "vm.swappiness 10 (was 60)" in said, "among the facts of the run"
    differs = {each["key"]: each["backends"] for each in differences_json(made.storages)}
    assert differs["tuning.vm.swappiness"] == {"nvme-mirror": "10", "slow-disk": "90"}


def test_a_tuning_that_is_not_the_same_in_all_runs_of_a_backend_is_a_finding(tmp_path: Path) -> None:
    _tuned(write_experiment(tmp_path)[0], ("vm.swappiness", "60", "10"))
    assert "not tuned alike in all its runs: nvme-mirror vm.swappiness 10 / as it was." in text_of(
        make_report([tmp_path])
    )


def test_facts_that_are_no_numbers_are_refused_and_named(tmp_path: Path) -> None:
    paths = write_experiment(tmp_path, 2)
    change(paths[0], storage={"facts": {"cpus": float("inf"), "none": None}})
    made = make_report([tmp_path])
    assert len(made.runs) == len(paths) - 1
    assert "storage.facts.cpus: is not a usable number" in made.unreadable[0]
    assert json.dumps(made.as_json(), allow_nan=False)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    write_hostile_experiment(tmp_path)
    made = make_report([tmp_path], tmp_path / "report.html")
    text = text_of(made)
    for attack in ("<script>window", "<img src=x", "<b onmouseover", '<a href="java'):
        assert attack not in text
    raw = json.dumps(figures_of(made))
    assert "<script>" not in raw
    assert "<img" not in raw
    assert "%{customdata}" not in raw


def test_what_holds_for_several_backends_is_said_once(tmp_path: Path) -> None:
    write_experiment(tmp_path, 2, [("a", SLOW), ("b", SLOW), ("c", FAST)])
    text = text_of(make_report([tmp_path]))
    assert text.count("a faster disk that was slowed down") == 1
    assert f"a and b are emulated ({DISK})" in text


def test_fast_storage_is_not_called_emulated(tmp_path: Path) -> None:
    write_experiment(tmp_path, 2, [("a", FAST), ("b", FAST)])
    assert "emulated" not in re.sub(
        r"<style>.*?</style>", "", text_of(make_report([tmp_path])), flags=re.DOTALL
    )
