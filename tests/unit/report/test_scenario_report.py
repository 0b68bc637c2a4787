"""What the report says of scripted scenarios: measures, failed steps, the control experiment."""

from pathlib import Path

import pytest

from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.analysis.report.comparison_findings import check_controls
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.report import make_report
from plimsoll.rundir.read import RunDirectory
from tests.support.rundir import records, write_run

HOSTILE = "<img src=x onerror=alert(1)>"
EVENTS = [
    {"t_ns": 5, "event": "measure", "name": "image ready", "value": 1500.0, "unit": "ms", "iteration": 1},
    {"t_ns": 6, "event": "measure", "name": "image ready", "value": 2500.0, "unit": "ms", "iteration": 2},
    {"t_ns": 7, "event": "measure", "name": HOSTILE, "value": 1.0, "unit": HOSTILE},
    {"t_ns": 8, "event": "measure", "name": "no figure", "value": "many", "unit": "ms"},
    {"t_ns": 9, "event": "measure", "name": "image ready", "value": 1.0, "unit": "s"},
    {"t_ns": 2_000_000, "event": "error", "step": "save", "kind": "nonce_expired", "detail": HOSTILE},
]


def test_measures_and_failed_steps_are_shown_and_harmless(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(20), events=EVENTS, scenario="upload-images", logs=[])
    make_report([run], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for text in ("image ready (ms)", "2,000", "Steps that failed", "nonce_expired", "By step"):
        assert text in page
    assert HOSTILE not in page
    assert "<td>no figure" not in page
    assert "Values of image ready, no figure in events.jsonl are not usable numbers" in page
    assert "other size</th>" not in page, "there is no log to differ from"


def test_a_killed_run_has_its_measures_from_its_events(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(20), events=EVENTS, status="running")
    made = make_report([run], tmp_path / "report.html").as_json()
    assert made["runs"][0]["measures"]["image ready"]["mean"] == 2000.0  # type: ignore[index]


@pytest.mark.parametrize(
    ("scenarios", "slower_us", "warned", "why"),
    [
        (("download", "download"), 1100, True, "ten percent are more than a few"),
        (("download", "download"), 1030, False, "three percent are not"),
        (("download", "save-article"), 9000, False, "only downloads are the control"),
    ],
)
def test_the_report_says_when_the_control_experiment_differs(
    tmp_path: Path, scenarios: tuple[str, str], slower_us: int, warned: bool, why: str
) -> None:
    times_us = (1000, slower_us)
    runs = []
    for number, (scenario, total_us) in enumerate(zip(scenarios, times_us, strict=True)):
        path = write_run(tmp_path / str(number), records(9, total_us=total_us), scenario=scenario, logs=[])
        opened = RunDirectory.open(path)
        runs.append(ReportRun.of(measure_in_detail(opened), number))
    assert bool(check_controls(runs)) == warned, why
