"""What a page says of each run: what makes it doubtful, its limits, and its row in The Grinder's table."""

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.analysis.report.contents import Report, render_report
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.sections.single_runs import pooled
from plimsoll.analysis.statistics.routes import GrinderRow
from plimsoll.rundir.read import RunDirectory
from tests.support.experiment import write_experiment
from tests.support.pages import page_of_runs, text_of, words_of
from tests.support.rundir import records, write_run


def _text(path: Path) -> str:
    text = page_of_runs(path)
    return text[: text.index('<script type="application/json"')]


SENDER = {"beside_server": True, "cores": 1, "threads": 1, "nice": 0}
CLIENTS = {"counted": 2, "largest_share": 0.514, "spread_over": None}
CLOSED, AGAIN, MEMBERS = "since the server had closed the", "had to send", ">members<"
SHARED, BESIDE = "was sent from the server's own machine", "1 thread, nice 0, on the server's machine"


def sent(**counts: int) -> dict[str, Any]:
    return {"requests": {"sent": 2000} | counts}


def members(**counts: int | None) -> dict[str, Any]:
    return sent() | {"members": {"requests": 500} | counts}


# What run.json and summary.json have, and what the page says then.
FACTS: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "it failed",
        {"status": "failed", "reason": "disk full"},
        ["The run failed (disk full). Run it again"],
    ),
    (
        "it was interrupted",
        {"status": "interrupted", "reason": "by Ctrl-C"},
        ["The run was interrupted (by Ctrl-C)."],
    ),
    (
        "the load generator limited it",
        {"generator_limited": True, "generator_limited_reason": "too late"},
        ["The run was limited by the load generator. Too late."],
    ),
    ("its loop was closed", {"loop": "closed", "speed": "max"}, ["A closed loop"]),
    ("no request was sent again", {"summary": sent(retried=0)}, []),
    (
        "one request that was sent again is a fact, and no reason for doubt",
        {"summary": sent(retried=1)},
        [f"1 request (0.05 %), {CLOSED}"],
    ),
    (
        "one in forty: the server closes connections at random",
        {"summary": sent(retried=50)},
        [f"50 requests (2.5 %), {CLOSED}", f"The run {AGAIN} 50 requests (2.5 %) again"],
    ),
    ("all visitors are guests", {"summary": sent()}, []),
    (
        "members, as summary.json counts them",
        {"summary": members(clients=220, accounts=200, sent_to_login=0)},
        [MEMBERS, "220 clients with 200 accounts: 500 of 2,000 requests (25 %)<"],
    ),
    (
        "members who lost their sessions, of a merged run whose instances did not all say how many they had",
        {"summary": members(clients=None, accounts=None, sent_to_login=7)},
        [MEMBERS, "how many is not known: 500 of 2,000 requests (25 %), 7 sent to the login<"],
    ),
    (
        "what was corrected in the log",
        {
            "logs": [{"path": "access.log", "lines": 2000, "valid": 2000, "strays": 2, "set_backs": 1}],
            "log_pauses": {"shortened": 3, "cut_s": 259_200.0},
        },
        [
            "access.log, 2,000 valid lines, 2 stray time stamps, clock set back 1 time",
            "3 shortened, by 72 h in all",
        ],
    ),
    ("visitors of their own", {"clients": CLIENTS}, ["2, the largest with 51.4 % of the requests<"]),
    (
        "proxies, spread",
        {"clients": CLIENTS | {"proxies": 2, "proxies_share": 1, "spread_over": 250}},
        ["2 of proxies, with 100 %, spread over 250 clients<", "They were spread over 250 clients;"],
    ),
    (
        "proxies, kept",
        {"clients": CLIENTS | {"proxies": 1, "proxies_share": 0.5}},
        ["1 of proxies, with 50 %, not spread<", "so that visitors waited for one another"],
    ),
    (
        "the server of the same machine waited",
        {"sender": SENDER | {"ran_ms_per_s": 803.2, "others_wait_ms_per_s": 412.4, "cores_busy": 0.97}},
        [
            SHARED,
            BESIDE,
            "in each second the generator took 803 ms of a core, and other programs waited 412 ms for one; "
            "the cores were busy for 97 % of the time.",
        ],
    ),
    (
        "a server of the same machine that is not seen",
        {"sender": SENDER | {"cores_busy": 0.97}},
        [SHARED, BESIDE, "; the cores were busy for 97 % of the time. Part"],
    ),
    (
        "a machine of both that had time to spare",
        {"sender": SENDER | {"ran_ms_per_s": 803, "others_wait_ms_per_s": 12, "cores_busy": 0.4}},
        [BESIDE],
    ),
    (
        "a machine of both that others kept busy",
        {"sender": SENDER | {"ran_ms_per_s": 3, "others_wait_ms_per_s": 812, "cores_busy": 0.8}},
        [BESIDE],
    ),
    ("another machine", {"sender": SENDER | {"beside_server": False, "cores_busy": 0.99}}, []),
]


@pytest.mark.parametrize(("what", "facts", "says"), FACTS, ids=[row[0] for row in FACTS])
def test_a_page_says_what_its_run_knows_of_itself_and_no_more(
    tmp_path: Path, what: str, facts: dict[str, Any], says: list[str]
) -> None:
    text = html.unescape(_text(write_run(tmp_path / "run", records(2000), **facts)))
    assert [each for each in says if each not in text] == [], what
    for words in (CLOSED, AGAIN, MEMBERS, SHARED, BESIDE):
        assert (words in text) is any(words in each for each in says), what


def test_counts_that_make_a_run_doubtful_are_said(tmp_path: Path) -> None:
    table = records(2000)
    table["error"][:5], table["flags"][5:10], table["flags"][10:14] = 4, 16, 8
    table["status"][100:130], table["bytes"][200:230] = 302, 1
    table["logged_bytes"][200:230] = 9000
    table["status"][300:304] = 500
    table["flags"][400:420], table["lag_us"][400:420] = 16 | 128, 7_000_000
    requests = {"sent": 1999, "skipped": {"cap_reached": 7}, "unsent": 3}
    text = _text(write_run(tmp_path / "run", table, summary={"requests": requests}))
    for says in (
        "9 requests of 1,996 failed (0.451 %): 5 timeout, 4 wrong answers. "
        "Since run.json does not say at which time-out, they count as slower than every answer.",
        "5 requests (0.251 %) waited for a free connection",
        "20 requests (1 %) waited for a connection of their own client, as in a browser that has all its "
        "connections in use, for up to 7 s. The wait is part of the response time",
        "4 requests of the warm-up were left out.",
        "1.5 % of the answers of the target are not what the log has",
        "1.5 % of the answers of the target have another size than the log has.",
        "7 requests of the log were not sent: 7 cap reached.",
        "3 requests would have been due after the run ended.",
        "2 log lines did not parse",
        "is truncated: 1,999 requests were sent, and requests.npy holds 2,000",
        "1,996 requests are enough for a p99.9, but not for its upper bound",
    ):
        assert says in text
    assert "replay: 1.5 %" not in text, "the run's own name stands before it"
    endless = _text(
        write_run(tmp_path / "endless", table, summary={"requests": {"unsent": None, "total": None}})
    )
    assert "The run ended with an unknown number of requests unsent." in endless


def test_a_replay_whose_answers_are_not_the_logs_says_why(tmp_path: Path) -> None:
    table = records(2000)
    table["status"] = 404
    why = "2,000 of 2,000 answers are not those of the log: 404 for 200. The target has no such paths <b>."
    text = _text(write_run(tmp_path / "run", table, summary={"not_as_logged": why}))
    assert text.count(html.escape(why)) == 1
    assert "of the answers of the target are not what the log has" not in text, "it is said already"


def test_a_small_run_says_that_it_is_too_small(tmp_path: Path) -> None:
    text = _text(write_run(tmp_path / "run", records(999)))
    assert "Only 999 requests: a p99.9 needs 1,000." in text
    assert "The slowest request in a hundred (p99) over time" in text


def test_a_killed_run_is_judged_from_its_records(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(5000, lag_us=30_000), status="running")
    opened = RunDirectory.open(run, now_s=(run / "requests.npy").stat().st_mtime + 60)
    text = render_report(Report(Path("report.html"), [ReportRun.of(measure_in_detail(opened), 0)]))
    assert "The run was killed." in text
    assert '<span class="badge interrupted">' in text
    assert '<span class="badge limited">' not in text
    assert "The run was sent late: its p99.9 is between" in text


@pytest.mark.parametrize(
    ("limits", "is_said"), [(None, True), (["p99=500ms"], True), (["p99.9=1m1s"], False)]
)
def test_lateness_is_said_where_it_is_much_of_a_limit(
    tmp_path: Path, limits: list[str] | None, is_said: bool
) -> None:
    text = _text(write_run(tmp_path / "run", records(2000, lag_us=30_000), limits=limits))
    assert text.count("was sent late: its p99.9 is between") == is_said


@pytest.mark.parametrize(
    ("why", "outcome", "shown", "hidden"),
    [
        ("over it", "exceeded", "Limit p99=1s exceeded: it is 2 s <b>.", "<b>"),
        ("nobody knows", "not judged", "Limit p99=1s not judged: it is 2 s <b>.", "exceeded"),
        ("kept", "kept", "p99=1s kept", "Limit p99=1s"),
    ],
)
def test_limits_are_in_the_report(tmp_path: Path, why: str, outcome: str, shown: str, hidden: str) -> None:
    verdict = {"limit": "p99=1s", "outcome": outcome, "says": "it is 2 s <b>"}
    write_run(tmp_path / "run", records(2000), summary={"limits": [verdict]}, limits=["p99=1s"])
    made = make_report([tmp_path / "run"])
    page = made.path.read_text(encoding="utf-8")
    assert shown in words_of(made), why
    assert f"p99=1s {outcome}" in words_of(made), "among the facts"
    assert hidden not in (page if hidden == "<b>" else words_of(made)), why


def test_limits_of_a_killed_run_are_not_judged(tmp_path: Path) -> None:
    write_run(tmp_path / "run", records(2000), limits=["p99=1s"], status="running")
    (tmp_path / "run" / "summary.json").unlink(missing_ok=True)
    assert "p99=1s not judged" in words_of(make_report([tmp_path / "run"]))


def _row(times_ms: list[float], elapsed_s: float) -> tuple[GrinderRow, float]:
    n = len(times_ms)
    mean, deviation = (float(np.mean(times_ms)), float(np.std(times_ms))) if n else (None, None)
    row = GrinderRow(n, 1, mean, deviation, n / elapsed_s, 1000.0, mean / 2 if mean else None)
    return row, elapsed_s


POOLED = [
    ("two runs are as one of all their requests", [[1.0, 2.0, 9.0], [5.0, 30.0]]),
    ("one is itself", [[1.0, 2.0]]),
    ("a run in which all failed adds its errors and its time", [[4.0, 6.0], []]),
]


@pytest.mark.parametrize(("what", "runs"), POOLED, ids=[row[0] for row in POOLED])
def test_runs_together(what: str, runs: list[list[float]]) -> None:
    found = pooled([_row(times, 10.0) for times in runs])
    every = [ms for times in runs for ms in times]
    assert found.tests == len(every)
    assert found.errors == len(runs)
    assert found.mtt_ms == pytest.approx(np.mean(every)), what
    assert found.ttsd_ms == pytest.approx(np.std(every))
    assert found.mttfb_ms == pytest.approx(np.mean(every) / 2)
    assert found.tps == pytest.approx(len(every) / (10 * len(runs)))
    assert found.rbps == pytest.approx(1000)


def test_nothing_is_absent_and_no_zero() -> None:
    found = pooled([_row([], 10.0)])
    assert (found.mtt_ms, found.ttsd_ms, found.mttfb_ms) == (None, None, None)


def test_several_runs_have_one_row_a_backend(tmp_path: Path) -> None:
    write_experiment(tmp_path, 2)
    text = text_of(make_report([tmp_path]))
    start = text.index("The Grinder&#39;s table, by backend")
    table = text[start : text.index("</table>", start)]
    rows = re.findall(r"<tr class=\"\"><td>(.*?)</td><td>(.*?)</td>.*<td>(.*?)</td></tr>", table)
    assert [(name, runs) for name, runs, _ in rows] == [("nvme-mirror", "2"), ("slow-disk (emulated)", "2")]
    assert ">TT (s)<" in table
    assert all(160 <= float(took) < 170 for *_, took in rows), "both of 80 s together"


@pytest.mark.parametrize(("seconds", "heading", "cell"), [(12, "TT (s)", "12.0"), (3700, "TT (h:m)", "1:01")])
def test_tt_has_the_unit_that_suits_it(tmp_path: Path, seconds: int, heading: str, cell: str) -> None:
    table = records(100)
    table["due_ns"] = np.linspace(0, seconds * 1e9, 100).astype("i8")
    text = text_of(make_report([write_run(tmp_path / "run", table)]))
    assert f">{heading}<" in text
    assert f"<td>{cell}</td></tr>" in text
    assert "by backend" not in text, "one run has its own table"
