"""Verdicts on run directories: what is decided, and above all what is not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.analysis.compare.comparison import compare
from plimsoll.analysis.compare.gates import Gate
from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.common.errors import PlimsollError
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import (
    REQUESTS,
    judged,
    reasons,
    runs_of,
    separated,
    write_both,
    write_comparable,
)
from tests.support.experiment import FAST, SLOW, write_experiment
from tests.support.rundir import change, records, write_run


def test_the_default_gates_ask_for_the_tail_and_for_errors(tmp_path: Path) -> None:
    found = judged(write_both(tmp_path))
    assert [each.gate.name for each in found.judged] == [
        "replay during: p99.9",
        "replay whole: p99.9",
        "replay whole: error share",
        "replay whole: answers",
    ]
    assert found.verdict == "PASS"
    assert found.exit_code == 0
    assert found.warnings == []
    assert [len(each.question.candidate) for each in found.judged] == [4, 4, 4, 4]


@pytest.mark.parametrize(
    ("ratio", "verdict", "code"), [(0.7, "PASS", 0), (1.05, "PASS", 0), (1.3, "FAIL", 1)]
)
def test_a_slower_candidate_fails(tmp_path: Path, ratio: float, verdict: str, code: int) -> None:
    found = judged(write_both(tmp_path, ratio))
    assert (found.verdict, found.exit_code) == (verdict, code)
    estimate = found.judged[0].verdict.estimate
    assert estimate == pytest.approx(ratio, rel=0.01)


def test_the_other_way_round_is_the_inverse(tmp_path: Path) -> None:
    write_both(tmp_path, 1.3)
    there, back = compare([tmp_path], "sata", "nvme"), compare([tmp_path], "nvme", "sata")
    one, other = there.judged[0].verdict, back.judged[0].verdict
    assert (there.verdict, back.verdict) == ("FAIL", "PASS")
    assert other.estimate == pytest.approx(1 / (one.estimate or 0))
    assert other.lower == pytest.approx(1 / (one.upper or 0))


def test_the_figures_are_those_of_the_report(tmp_path: Path) -> None:
    paths = write_experiment(tmp_path, 4, [("nvme", FAST), ("sata", SLOW)])
    found = compare([tmp_path], "sata", "nvme")
    runs = {path: measure_in_detail(RunDirectory.open(path)) for path in paths}
    ours = [run for side in (found.baseline, found.candidate) for run in side.runs]
    assert len(ours) == 8
    for run in ours:
        detailed = runs[run.directory.path]
        whole, theirs = run.phases["whole"], detailed.statistics
        assert whole == detailed.phases["whole"]
        assert whole.lag_ms == detailed.phases["whole"].lag_ms
        assert run.service_p50_ms == detailed.service_p50_ms
        assert whole.response_ms.ms == theirs.samples["response"].figures_ms()
        assert whole.lag_ms["p99.9"] == theirs.samples["lag"].figures_ms()["p99.9"]
        assert (whole.requests, whole.failures) == (theirs.requests, theirs.total.errors)
        assert theirs.phases
        for phase in ("before", "during", "after"):
            assert run.phases[phase].requests == len(theirs.phases.all_of(phase))
        assert whole.steps["page"].median == theirs.routes["1 page"].response_ms["p50"]
    assert found.verdict == "PASS"


SELECTED: list[tuple[str, Callable[[Path], list[Path]], tuple[str | None, str | None]]] = [
    ("two backends of an experiment", lambda p: [write_both(p)], ("sata", "nvme")),
    ("of its folder of runs", lambda p: [write_both(p) / "runs"], ("sata", "nvme")),
    (
        "one backend of each of two",
        lambda p: [write_both(p / "a"), write_both(p / "b", first=8)],
        ("nvme",) * 2,
    ),
    ("two folders", lambda p: list(separated(p)), (None, None)),
]


@pytest.mark.parametrize(("what", "make", "names"), SELECTED, ids=[row[0] for row in SELECTED])
def test_sides(
    tmp_path: Path,
    what: str,
    make: Callable[[Path], list[Path]],
    names: tuple[str | None, str | None],
) -> None:
    found = compare(make(tmp_path), *names)
    assert found.verdict == "PASS", what
    assert len(found.baseline.runs) == len(found.candidate.runs) == 4
    assert found.baseline.name != found.candidate.name


def test_single_runs_can_be_compared_and_decide_nothing(tmp_path: Path) -> None:
    write_both(tmp_path, 3.0)
    found = compare([runs_of(tmp_path, "sata")[0], runs_of(tmp_path)[0]])
    assert found.exit_code == 3
    assert "sata has 1 run of replay, and a verdict takes 4: 3 more." in reasons(found)


REFUSED: list[tuple[str, Callable[[Path], list[Path]], tuple[str | None, str | None], str]] = [
    ("there is no such folder", lambda p: [p / "x", p], (None, None), "does not exist"),
    ("it is empty", lambda p: [p, p], (None, None), "is not a run directory and contains none"),
    ("a file", lambda p: [_file(p), p], (None, None), "is a file"),
    (
        "one side",
        lambda p: [write_both(p)],
        (None, None),
        "say which backends: --baseline nvme --candidate sata",
    ),
    ("only one name", lambda p: [write_both(p)], ("sata", None), "is one side"),
    ("several backends", lambda p: [write_both(p), p], (None, None), "say which is the baseline"),
    (
        "no such backend",
        lambda p: [write_both(p)],
        ("sata", "xfs"),
        "no run of the backend xfs; it has nvme, sata",
    ),
    ("the same twice", lambda p: [write_both(p)], ("sata", "sata"), "is on both sides"),
    ("a run that is damaged, by name", lambda p: [_damaged(p), p], (None, None), "is not JSON"),
]


@pytest.mark.parametrize(("what", "make", "names", "says"), REFUSED, ids=[row[0] for row in REFUSED])
def test_sides_that_cannot_be(
    tmp_path: Path,
    what: str,
    make: Callable[[Path], list[Path]],
    names: tuple[str | None, str | None],
    says: str,
) -> None:
    with pytest.raises(PlimsollError) as refused:
        compare(make(tmp_path), *names)
    assert says in str(refused.value), what


def _file(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file"


def _damaged(folder: Path) -> Path:
    path = runs_of(write_both(folder))[0]
    (path / "run.json").write_text("{")
    return path


def _truncate(path: Path, to: int) -> None:
    data = (path / "requests.npy").read_bytes()
    (path / "requests.npy").write_bytes(data[:to])


def _events(path: Path, *lines: str) -> None:
    with (path / "events.jsonl").open("a") as file:
        file.write("".join(line + "\n" for line in lines))


def _late(path: Path) -> None:
    table = records(REQUESTS, lag_us=9000)
    write_run(
        path, table, summary={"requests": {"sent": REQUESTS}}, **json.loads((path / "run.json").read_text())
    )


def _impossible(path: Path) -> None:
    table = records(REQUESTS)
    table["due_ns"][3] = -1
    (path / "requests.npy").write_bytes((path / "requests.npy").read_bytes()[:512] + table.tobytes())


UNFIT: list[tuple[str, Callable[[Path], object], str]] = [
    (
        "interrupted",
        lambda p: change(p, status="interrupted", reason="Ctrl-C"),
        "was interrupted (Ctrl-C). Run it",
    ),
    ("failed", lambda p: change(p, status="failed", reason="disk full."), "failed (disk full). Run it again"),
    ("killed", lambda p: change(p, status="running"), "has not ended yet"),
    (
        "generator-limited",
        lambda p: change(p, generator_limited=True, generator_limited_reason="Use less."),
        "limited by the load generator. Use less",
    ),
    (
        "the generator was late, and nobody said so",
        _late,
        "its own lag is 9 ms of 10 ms at p99, 9 ms of 10 ms at p99.9. Use a lower speed",
    ),
    ("no summary", lambda p: (p / "summary.json").unlink(), "summary.json is missing"),
    ("half of the records are gone", lambda p: _truncate(p, 512 + 68 * 700), "1,500 requests were sent, and"),
    ("all of them are", lambda p: _truncate(p, 512), "holds no request"),
    ("the header is", lambda p: _truncate(p, 20), "holds no request"),
    (
        "the last record is cut off",
        lambda p: _truncate(p, 512 + 68 * REQUESTS - 5),
        "1,500 requests were sent",
    ),
    ("the file of records is missing", lambda p: (p / "requests.npy").unlink(), "requests.npy is missing"),
    (
        "run.json is cut off",
        lambda p: (p / "run.json").write_text('{"format": 1,'),
        "is not JSON; it was cut off",
    ),
    ("run.json is missing", lambda p: (p / "run.json").unlink(), "run.json is missing"),
    ("another format", lambda p: change(p, format=2), "is of format 2"),
    ("a time that is no figure", lambda p: change(p, warmup_s=float("nan")), "warmup_s"),
    ("an impossible instant", _impossible, "impossible instant"),
    (
        "the saturator gave up",
        lambda p: _events(
            p, '{"t_ns": 900000000, "event": "zfs-send", "phase": "stop", "error": "no space"}'
        ),
        "had idle disks from then on when zfs-send gave up (no space)",
    ),
    (
        "the saturator was not stopped",
        lambda p: change(p, phases={"during_s": 1.0}),
        "has no end of zfs-send, though its phase had one",
    ),
    ("another seed", lambda p: change(p, seed=2), "not of one load: seed (1 / 2)"),
    ("another speed", lambda p: change(p, speed="2"), "not of one load: speed (1 / 2)"),
    (
        "another log",
        lambda p: change(p, logs=[{"path": "other.log", "lines": 6000}]),
        "logs.1.log (access.log / other.log)",
    ),
    ("other phases", lambda p: change(p, phases={"before_s": 3.0}), "phases.before_s (– / 3.0)"),
    ("a closed loop", lambda p: change(p, loop="closed"), "loop (open / closed)"),
    (
        "other settings",
        lambda p: change(p, scenario_settings={"users": 3, "target": "http://b"}),
        "not of one load: settings.users (– / 3) differ",
    ),
    ("it has no saturator", lambda p: (p / "events.jsonl").write_text(""), "saturator (zfs-send / none)"),
    ("another scenario", lambda p: change(p, scenario="visitors"), "3 runs of replay, and a verdict takes 4"),
    ("one is missing", lambda p: shutil.rmtree(p), "3 runs of replay, and a verdict takes 4"),
    ("all is warm-up", lambda p: _warm(p), "every request belongs to the warm-up"),
]


def _warm(path: Path) -> None:
    data = (path / "requests.npy").read_bytes()[:512] + records(REQUESTS, flags=8).tobytes()
    (path / "requests.npy").write_bytes(data)


@pytest.mark.parametrize("ratio", [1.0, 5.0], ids=["would pass", "would fail"])
@pytest.mark.parametrize(("what", "spoil", "says"), UNFIT, ids=[row[0] for row in UNFIT])
def test_nothing_is_decided_on_unfit_runs(
    tmp_path: Path, what: str, spoil: Callable[[Path], object], says: str, ratio: float
) -> None:
    write_both(tmp_path, ratio)
    spoil(runs_of(tmp_path)[2])
    found = judged(tmp_path)
    assert found.exit_code == 3, what
    assert says in reasons(found)
    assert {each.verdict.outcome for each in found.judged} == {"INCONCLUSIVE"}
    assert json.dumps(found.as_json(), allow_nan=False)


def test_a_run_of_another_backend_may_be_as_it_likes(tmp_path: Path) -> None:
    write_both(tmp_path)
    path = write_comparable(tmp_path / "runs" / "0099", "xfs", 1, 99, 50.0)
    (path / "requests.npy").write_bytes(b"")
    assert judged(tmp_path).verdict == "PASS"


def test_unequal_numbers_in_one_experiment_decide_nothing(tmp_path: Path) -> None:
    write_both(tmp_path, 5.0, 6, experiment={"name": "move"})
    shutil.rmtree(runs_of(tmp_path)[1])
    found = judged(tmp_path)
    assert found.verdict == "INCONCLUSIVE"
    assert "6 runs of replay on sata and 5 on nvme; what is missing may be what went wrong" in reasons(found)


def test_a_scenario_that_one_side_lacks_is_never_passed(tmp_path: Path) -> None:
    write_both(tmp_path)
    write_both(tmp_path, scenario="visitors", first=50)
    for path in runs_of(tmp_path):
        if "visitors" in path.name:
            shutil.rmtree(path)
    found = judged(tmp_path)
    assert found.verdict == "INCONCLUSIVE"
    assert "visitors did not run on nvme (it ran replay)" in reasons(found)
    missing = judged(tmp_path, "gates:\n- {scenario: uploads, at_most_ratio: 2}\n")
    assert "uploads did not run on sata (it ran replay, visitors)" in reasons(missing)


METRICS: list[tuple[str, int, list[tuple[str, float]], list[str]]] = [
    ("a thousand", 1500, [], ["during p99.9", "whole p99.9"]),
    ("a thousand in the whole run alone", 1100, [], ["during p99", "whole p99.9"]),
    ("a hundred", 400, [], ["during p99", "whole p99"]),
    ("measures", 50, [("publish", 900.0), ("save", 20.0)], ["whole measure publish"]),
    ("steps", 50, [], ["whole measure page"]),
]


@pytest.mark.parametrize(("what", "count", "measures", "metrics"), METRICS, ids=[row[0] for row in METRICS])
def test_what_is_asked_of_short_runs(
    tmp_path: Path, what: str, count: int, measures: list[tuple[str, float]], metrics: list[str]
) -> None:
    write_both(tmp_path, count=count, measures=measures)
    found = judged(tmp_path)
    asked = [f"{each.gate.phase} {each.gate.metric}" for each in found.judged]
    assert [
        each
        for each in asked
        if "error" not in each and "answers" not in each and "during measure" not in each
    ] == metrics
    assert all(each.verdict.outcome == "PASS" for each in found.judged)


FIGURES: list[tuple[str, str, str]] = [
    (
        "p99.9 of few",
        "phase: before, metric: p99.9, at_most_ratio: 2",
        "has 200 requests before the saturator, and p99.9",
    ),
    (
        "an unknown measure",
        "metric: measure publish, at_most_ratio: 2",
        "has no publish in the whole run (it has: save",
    ),
    (
        "a measure with NaN",
        "metric: measure save, at_most_ratio: 2",
        "the measure save has values that are not numbers",
    ),
    ("a figure of 0", "metric: measure none, at_most_ratio: 2", "is 0, which has no ratio"),
    ("after nothing", "phase: after, metric: p50, at_most_ratio: 2", "has 0 requests after the saturator"),
    ("no request, no errors", "phase: after, metric: error share, at_most_more: 0.1", "has no request after"),
]


@pytest.mark.parametrize(("what", "gate", "says"), FIGURES, ids=[row[0] for row in FIGURES])
def test_figures_that_are_not_there(tmp_path: Path, what: str, gate: str, says: str) -> None:
    write_both(tmp_path, measures=[("save", 1.0), ("none", 0.0)])
    _events(
        runs_of(tmp_path)[0], '{"t_ns": 5, "event": "measure", "name": "save", "value": NaN, "unit": "ms"}'
    )
    found = judged(tmp_path, f"gates:\n- {{scenario: replay, {gate}}}\n")
    assert found.verdict == "INCONCLUSIVE", what
    assert says in reasons(found)


@pytest.mark.parametrize(("value", "verdict"), [(0.0, "PASS"), (29_000.0, "PASS"), (31_000.0, "FAIL")])
def test_an_outage_that_there_was_not_keeps_a_limit_in_ms(tmp_path: Path, value: float, verdict: str) -> None:
    write_both(tmp_path, repeats=6, measures=[("outage: members", value)])
    gate = '{scenario: replay, metric: "measure outage: members", at_most_ms: 30000}'
    assert judged(tmp_path, f"gates:\n- {gate}\n").verdict == verdict
    both = gate.replace("}", ", at_most_ratio: 2}")
    assert judged(tmp_path, f"gates:\n- {both}\n").verdict == (verdict if value else "INCONCLUSIVE")


def test_errors_fail_however_fast_they_come(tmp_path: Path) -> None:
    write_both(tmp_path)
    for number, path in enumerate(runs_of(tmp_path)):
        data = records(REQUESTS, total_us=500)
        data["status"][: 60 + number] = 500
        data["logged_status"] = 0
        (path / "requests.npy").write_bytes((path / "requests.npy").read_bytes()[:512] + data.tobytes())
    found = judged(tmp_path)
    assert [each.verdict.outcome for each in found.judged] == ["FAIL", "FAIL", "FAIL", "FAIL"]
    assert found.exit_code == 1


def test_absolute_limits(tmp_path: Path) -> None:
    write_both(tmp_path, repeats=6)
    gates = "gates:\n- {scenario: replay, at_most_ms: %s, at_most_ratio: 1.1}\n"
    assert [judged(tmp_path, gates % ms).verdict for ms in (60, 40)] == ["PASS", "FAIL"]
    found = judged(tmp_path, gates % 50)
    assert found.verdict == "INCONCLUSIVE"
    assert [each.verdict.outcome for each in found.judged] == ["PASS", "INCONCLUSIVE", "PASS"]


def test_a_gate_says_what_it_looks_at() -> None:
    assert (
        Gate(scenario="save", metric="measure publish", at_most_ratio=2).name == "save whole: p50 of publish"
    )
