"""Verdicts on run directories: what is decided, and above all what is not, at which look."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.analysis.compare.comparison import compare
from plimsoll.analysis.compare.looks import LOOKS_FILE, DecisionLook, KnownLooks
from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.cli import main
from plimsoll.common.errors import PlimsollError
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import (
    BACKENDS,
    REQUESTS,
    compare_json,
    finding_names,
    gated,
    judged,
    reasons,
    runs_of,
    separated,
    write_both,
    write_comparable,
    write_gates,
)
from tests.support.experiment import FAST, SLOW, add_events, write_experiment
from tests.support.rundir import RECORD_BYTES, change, change_records


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
    tmp_path: Path, what: str, make: Callable[[Path], list[Path]], names: tuple[str | None, str | None]
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
    ("a folder that does not exist", lambda p: [p / "x", p], (None, None), "does not exist"),
    ("it is empty", lambda p: [p, p], (None, None), "is not a run directory and contains none"),
    ("a file", lambda p: [_written(p / "file", ""), p], (None, None), "is a file"),
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
    (
        "a run that is damaged, by name",
        lambda p: [_written(runs_of(write_both(p))[0] / "run.json", "{").parent, p],
        (None, None),
        "is not JSON",
    ),
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


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


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
    ("no summary", lambda p: (p / "summary.json").unlink(), "summary.json is missing"),
    (
        "half of the records are gone",
        lambda p: os.truncate(p / "requests.npy", 512 + RECORD_BYTES * 700),
        "1,500 requests were sent, and",
    ),
    ("all of them are", lambda p: os.truncate(p / "requests.npy", 512), "holds no request"),
    ("the header is", lambda p: os.truncate(p / "requests.npy", 20), "holds no request"),
    (
        "the last record is cut off",
        lambda p: os.truncate(p / "requests.npy", 512 + RECORD_BYTES * REQUESTS - 5),
        "1,500 requests were sent",
    ),
    ("the file of records is missing", lambda p: (p / "requests.npy").unlink(), "requests.npy is missing"),
    (
        "run.json is cut off",
        lambda p: (p / "run.json").write_text('{"format": 1,'),
        "is not JSON; it was cut off",
    ),
    ("run.json is missing", lambda p: (p / "run.json").unlink(), "run.json is missing"),
    ("another format", lambda p: change(p, format=3), "is of format 3"),
    ("a time that is no figure", lambda p: change(p, warmup_s=float("nan")), "warmup_s"),
    ("an impossible instant", lambda p: change_records(p, slice(3, 4), due_ns=-1), "impossible instant"),
    (
        "the saturator gave up",
        lambda p: add_events(
            p, {"t_ns": 900_000_000, "event": "zfs-send", "phase": "stop", "error": "no space"}
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
    ("all is warm-up", lambda p: change_records(p, flags=8), "every request belongs to the warm-up"),
]


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, "PASS"), (5.0, "FAIL")])
@pytest.mark.parametrize(("what", "spoil", "says"), UNFIT, ids=[row[0] for row in UNFIT])
def test_nothing_is_decided_on_unfit_runs(
    tmp_path: Path, what: str, spoil: Callable[[Path], object], says: str, ratio: float, verdict: str
) -> None:
    write_both(tmp_path, ratio)
    assert judged(tmp_path).verdict == verdict, "without the fault"
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


def test_errors_fail_however_fast_they_come(tmp_path: Path) -> None:
    write_both(tmp_path)
    for number, path in enumerate(runs_of(tmp_path)):
        change_records(path, total_us=500, logged_status=0)
        change_records(path, slice(60 + number), status=500)
    found = judged(tmp_path)
    assert [each.verdict.outcome for each in found.judged] == ["FAIL", "FAIL", "FAIL", "FAIL"]
    assert found.exit_code == 1


def test_two_sides_that_fail_alike_are_not_compared_by_how_fast_they_did(tmp_path: Path) -> None:
    write_both(tmp_path, ratio=0.5, errors=10, timeout_s=30.0)
    gates = write_gates(tmp_path, gated("metric: p99.9, at_most_ratio: 1.1"))
    done = CliRunner().invoke(main, ["compare", str(tmp_path), *BACKENDS, "--gates", str(gates)])
    assert done.exit_code == 3, done.output
    text = " ".join(done.output.split())
    assert "its p99.9 is one of them: all that is known is that it is at least 30 s" in text
    assert "the figure is a failure's: it is at least the time-out, and has no ratio" in text


def test_a_candidate_that_alone_fails_so_often_is_worse(tmp_path: Path) -> None:
    write_both(tmp_path, timeout_s=30.0)
    for path in runs_of(tmp_path):
        change_records(path, slice(10), error=5)
    assert compare_json(tmp_path, gated("metric: p99.9, at_most_ratio: 100"))["exit"] == 1


def test_further_looks_are_remembered_and_spend_what_is_left(tmp_path: Path) -> None:
    write_both(tmp_path, 1.08, 4)
    assert compare_json(tmp_path)["look"] == 1
    assert compare_json(tmp_path)["look"] == 1, "the same runs are the same look"
    write_both(tmp_path, 1.08, 6)
    found = compare_json(tmp_path)
    assert found["look"] == 2
    assert "another-look" in finding_names(found)
    write_both(tmp_path, 1.08, 8)
    assert compare_json(tmp_path)["look"] == 3
    assert len(json.loads((tmp_path / LOOKS_FILE).read_text())["looks"]) == 3


def test_a_second_look_has_to_be_surer(tmp_path: Path) -> None:
    """The runs are the same; that they were decided on before, when they were fewer, is all that differs."""
    for folder, looked in ((tmp_path / "once", False), (tmp_path / "twice", True)):
        for repeats in (4, 5):
            write_both(
                folder, 1.35, repeats, spread=lambda side, repeat: 1 + 0.1 * ((repeat * 7 + side * 3) % 5)
            )
            if looked and repeats == 4:
                compare_json(folder)
    gates = gated("metric: p99.9, at_most_ratio: 1.1", keys="answers: false\n")
    once, twice = (compare_json(tmp_path / each, gates)["gates"][0] for each in ("once", "twice"))
    assert once["p_fail"] == twice["p_fail"]
    assert 0.0061 < once["p_fail"] <= 0.0429
    assert (once["verdict"], twice["verdict"]) == ("FAIL", "INCONCLUSIVE")


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    write_both(tmp_path)
    (tmp_path / f".{LOOKS_FILE}.{os.getpid()}.new").mkdir()  # in the way of what is written
    found = compare_json(tmp_path)
    assert found["verdict"] == "PASS"
    assert any("This look was not remembered" in warning for warning in found["warnings"])


def test_a_damaged_memory_of_looks_is_no_first_look(tmp_path: Path) -> None:
    write_both(tmp_path)
    (tmp_path / LOOKS_FILE).write_text("{")
    result = CliRunner().invoke(main, ["compare", str(tmp_path), *BACKENDS])
    assert result.exit_code == 2
    assert "it is unknown how often these runs were decided on" in result.stderr


def _look(baseline: str, candidate: str) -> DecisionLook:
    return DecisionLook(frozenset(baseline.split()), frozenset(candidate.split()))


LOOKS: list[tuple[str, list[DecisionLook], DecisionLook, int]] = [
    ("the first", [], _look("a b", "x y"), 1),
    ("the same again", [_look("a b", "x y")], _look("a b", "x y"), 1),
    ("with more runs", [_look("a b", "x y")], _look("a b c", "x y z"), 2),
    ("without one that did not please", [_look("a b", "x y")], _look("a b", "x"), 2),
    ("another experiment", [_look("a b", "x y")], _look("c d", "v w"), 1),
    ("another candidate", [_look("a b", "x y")], _look("a b", "v w"), 1),
    ("the first again, after the second", [_look("a", "x"), _look("a b", "x y")], _look("a", "x"), 1),
]


@pytest.mark.parametrize(("what", "before", "look", "number"), LOOKS, ids=[row[0] for row in LOOKS])
def test_the_number_of_a_look(what: str, before: list[DecisionLook], look: DecisionLook, number: int) -> None:
    assert KnownLooks(look, tuple(before)).number == number, what
