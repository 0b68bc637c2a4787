"""A merged run is a run: reported with its instances, and judged by as any other."""

import json
from html import unescape
from pathlib import Path

from click.testing import CliRunner

from plimsoll.analysis.evidence.checks import unfit
from plimsoll.analysis.evidence.measure import measure_run
from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.cli import main
from plimsoll.rundir.read import RunDirectory
from tests.support.rundir import records, write_instance, write_instances, write_run

LOAD = {"digest": "d", "settings": {"timeout_s": 30}}


def page_of(run: Path) -> str:
    result = CliRunner().invoke(main, ["report", str(run)])
    assert result.exit_code == 0, result.output
    return unescape((run / "report.html").read_text(encoding="utf-8"))


def test_the_report_shows_each_instance_and_what_the_merge_said(tmp_path: Path) -> None:
    write_instances(tmp_path / "shards")
    clock = {"synchronised": False, "max_error_ms": 16000.0}
    write_instance(
        tmp_path / "shards" / "1", 1, 40, status="running", shard={"clock": clock, "segment": "<b>1</b>"}
    )
    merge_shards([tmp_path / "shards"], tmp_path / "run")
    page = page_of(tmp_path / "run")
    assert "What each process or machine did" in page
    for cell in ("instance 4", "3/4:1", "killed", "not synchronised", "within 1 ms", "10:00:00.000000"):
        assert cell in page, cell
    assert "The clock of instance 2 is not synchronised: how far it is off is unknown." in page
    assert "was killed after 40 of its 100 requests; 60 unsent" in page
    raw = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert ">instance 2 of 4 (<b>" not in raw, "a segment is text from a run directory"


def test_answers_that_are_not_the_logs_are_said_of_all_instances_together(tmp_path: Path) -> None:
    cause = "The target has no such paths: is it the site of this log?"
    statuses = [[404] * 100, [404] * 99 + [304], [200] * 100, [301] * 10 + [404] * 90]
    for index, status in enumerate(statuses):
        table = records(100, status=status)
        table["logged_status"][:2] = 0, 499  # nobody knows, and nobody waited
        path = write_instance(tmp_path / "shards" / str(index), index, table, load=LOAD)
        if index == 1:
            summary = json.loads((path / "summary.json").read_text())
            summary["not_as_logged"] = f"97 of 98 answers are not those of the log: 404 for 200. {cause}"
            (path / "summary.json").write_text(json.dumps(summary))
    done = CliRunner().invoke(main, ["merge", str(tmp_path / "shards"), "--out", str(tmp_path / "run")])
    said = f"293 of 392 answers are not those of the log: 404 for 200 (285), 301 for 200 (8). {cause}"
    assert said in done.output
    assert done.output.count("wrong answer") == 3, "p50, p99 and the slowest"
    page = page_of(tmp_path / "run")
    assert said in page
    assert "≥ 30 s" not in page


def test_a_run_that_was_not_merged_has_no_such_table(tmp_path: Path) -> None:
    assert "What each process or machine did" not in page_of(write_run(tmp_path / "run", records(10)))


def test_a_merged_run_that_is_whole_is_fit_to_be_compared(tmp_path: Path) -> None:
    write_instances(tmp_path / "shards")
    merge_shards([tmp_path / "shards"], tmp_path / "run")
    assert reasons(tmp_path / "run") == []


def test_one_that_lost_an_instance_is_not(tmp_path: Path) -> None:
    shards = write_instances(tmp_path / "shards")
    merge_shards(shards[:3], tmp_path / "run")
    assert [text[:54] for text in reasons(tmp_path / "run")] == [
        "was interrupted (instance 4 of 4 (3/4:1) is missing: i"
    ]


def test_one_whose_instance_sent_late_is_not(tmp_path: Path) -> None:
    write_instances(tmp_path / "shards")
    write_instance(
        tmp_path / "shards" / "2", 2, generator_limited=True, generator_limited_reason="it sent late"
    )
    merge_shards([tmp_path / "shards"], tmp_path / "run")
    assert reasons(tmp_path / "run") == [
        "was limited by the load generator. Instance 3 of 4 (1/2:3/4): it sent late."
    ]


def test_prometheus_is_told_nothing_of_what_nobody_knows(tmp_path: Path) -> None:
    write_instance(tmp_path / "shards" / "0", 0, status="running", shard={"planned": None})
    merge_shards([tmp_path / "shards"], tmp_path / "run")
    out = tmp_path / "metrics.prom"
    result = CliRunner().invoke(
        main, ["export", str(tmp_path / "run"), "--to", "prometheus", "--out", str(out)]
    )
    assert result.exit_code == 1, result.output
    assert "run_ended" not in out.read_text()
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["requests"]["unsent"] is None


def reasons(path: Path) -> list[str]:
    run = RunDirectory.open(path)
    return unfit(measure_run(run))
