"""The page: complete in itself, honest about what is doubtful, and nothing in it but text from a run."""

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.report.contents import Report, render_report
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.common.hostile import plotly_text, printable, script_json
from plimsoll.rundir.read import RunDirectory
from tests.support.rundir import records, traffic, write_run

HOSTILE = [
    "<script>window.owned = 1</script>",
    '"><img src=x onerror="window.owned = 1">',
    "</script><script>window.owned = 1</script>",
    "<b onmouseover='window.owned = 1'>b</b>",
    '<a href="javascript:window.owned = 1">a</a>',
    "%{customdata} ${window.owned = 1} {{ 7 * 7 }} {% raw %}",
    "\x1b[31m\x00\u202e\u2028 <!--",
    "&lt;script&gt;",
    "half a character: \ud800",
    "$\\href{javascript:1}{x}$",
    "var(--run-1)",
]


def measured(*paths: Path) -> list[ReportRun]:
    found = []
    for number, path in enumerate(paths):
        run = RunDirectory.open(path)
        found.append(ReportRun.of(measure_in_detail(run), number))
    return found


def _page(runs: list[ReportRun]) -> str:
    return render_report(Report(Path("report.html"), runs))


def hostile_run(path: Path) -> Path:
    table = records(3000)
    table["route"] = table["due_ns"] // 10**6 % len(HOSTILE)
    table["error"] = table["due_ns"] // 10**6 % 7
    text = HOSTILE[0]
    events = [{"t_ns": n * 10**8, "event": name, "phase": "start"} for n, name in enumerate(HOSTILE)]
    events += [
        {"t_ns": 10**9, "event": text, "phase": "start", "saturator": True},
        {"t_ns": 15 * 10**8, "event": text, "bytes": 10**6},
        {"t_ns": 2 * 10**9, "event": text, "phase": "stop"},
    ]
    return write_run(
        path,
        table,
        routes=HOSTILE,
        errors=["none", *HOSTILE],
        events=events,
        summary={"requests": {"sent": 3000, "skipped": dict.fromkeys(HOSTILE, 3)}, "duration_s": 3.0},
        scenario=HOSTILE[1],
        backend=HOSTILE[2],
        repeat=HOSTILE[3],
        status="failed",
        reason=HOSTILE[1],
        generator_limited=True,
        generator_limited_reason=HOSTILE[2],
        target={"url": HOSTILE[4], "connect_to": text, "addresses": HOSTILE},
        command=HOSTILE,
        speed=text,
        logs=[{"path": name, "format": name, "first": name, "last": name} for name in HOSTILE],
        program={"name": text, "version": text},
        host={"hostname": text, "kernel": text, "cpu": HOSTILE[1]},
    )


class _Elements(HTMLParser):
    """Collects elements with their attributes, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def test_the_page_loads_nothing(busy_run: Path) -> None:
    elements = _Elements(_page(measured(busy_run))).elements
    links = [
        value for _, attributes in elements for key, value in attributes.items() if key in ("src", "href")
    ]
    assert links == ["data:,"]
    policy = next(a["content"] for tag, a in elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert policy.count("'sha256-") == 3
    assert "unsafe-eval" not in policy
    script_policy = next(part for part in policy.split(";") if "script-src" in part)
    assert "unsafe-inline" not in script_policy


def test_plotly_is_there_once_and_the_page_is_no_larger_than_it_must_be(busy_run: Path) -> None:
    text = _page(measured(busy_run, busy_run))
    assert text.count("plotly.js v") == 1
    assert len(text) < 6_500_000


def test_a_hostile_run_adds_no_element(tmp_path: Path) -> None:
    plain = write_run(tmp_path / "plain", records(3000), routes=["a"] * len(HOSTILE))
    allowed = {tag for tag, _ in _Elements(_page(measured(plain))).elements} | {"b"}
    for runs in (measured(hostile_run(tmp_path / "x")), measured(hostile_run(tmp_path / "x"), plain)):
        elements = _Elements(_page(runs)).elements
        assert {tag for tag, _ in elements} <= allowed
        assert len([tag for tag, _ in elements if tag == "script"]) == 4
        assert not [a for _, a in elements if any(name.startswith("on") for name in a)]


def test_plotly_is_given_no_element_of_a_hostile_run(tmp_path: Path) -> None:
    plain = write_run(tmp_path / "plain", records(3000), routes=["a"] * len(HOSTILE))
    for runs in (measured(hostile_run(tmp_path / "x")), measured(hostile_run(tmp_path / "x"), plain)):
        for figure in _figures(_page(runs)).values():
            given = json.dumps([figure["data"], figure["layout"]])
            assert not re.search("<(/?script|img|a |b )", given)


def test_no_unprintable_character_reaches_the_page(tmp_path: Path) -> None:
    text = _page(measured(hostile_run(tmp_path / "x")))
    for character in "\x1b\x00\u202e\u2028":
        assert character not in text


@pytest.mark.parametrize("text", HOSTILE)
def test_plotly_is_given_nothing_to_interpret(text: str) -> None:
    safe = plotly_text(text)
    assert not re.search(r"[<>$]|%\{|&(?!(amp|lt|gt|#36|#123);)", safe)


def test_what_is_printable_stays() -> None:
    assert printable("Ünïcode – 漢字 €") == "Ünïcode – 漢字 €"
    assert printable("x" * 1000, 10) == "x" * 9 + "…"
    assert printable("a\tb\x9b\U000e0001") == r"a\x09b\x9b\U000e0001"


def test_json_in_a_script_ends_no_script() -> None:
    text = script_json(HOSTILE)
    assert json.loads(text) == HOSTILE
    assert "<" not in text
    with pytest.raises(ValueError, match="JSON"):
        script_json(float("nan"))


def _coloured(value: Any) -> Any:
    """What the page's script does: a name of a colour becomes one."""
    if isinstance(value, str):
        return "#123456" if value.startswith("var(--") else value
    if isinstance(value, list):
        return [_coloured(item) for item in value]
    return {k: _coloured(v) for k, v in value.items()} if isinstance(value, dict) else value


def _figures(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text)
    assert found
    return dict(json.loads(found[1]))


@pytest.mark.parametrize("count", [1, 3, 50, 100, 999, 3000])
def test_every_figure_is_one_that_plotly_knows(tmp_path: Path, count: int) -> None:
    one = write_run(tmp_path / "one", traffic(30, 120)[:count])
    two = write_run(tmp_path / "two", records(count), loop="closed", speed="max")
    for runs in (measured(one), measured(two), measured(one, two)):
        figures = _figures(_page(runs))
        for figure in figures.values():
            go.Figure(_coloured(figure))  # raises for a property or value that plotly does not know
        assert {"tail", "percentiles", "heat-0", "throughput"} <= set(figures)
        assert ("lag" in figures) is (runs[0].directory.facts.loop == "open")  # a closed loop has no lag


def test_no_figure_grows_with_the_run(tmp_path: Path) -> None:
    text = _page(measured(write_run(tmp_path / "run", traffic(3000, 30))))
    for figure in _figures(text).values():
        assert max(len(trace["x"]) for trace in figure["data"]) <= 1000


def test_figures_keep_their_places() -> None:
    assert Chart("k", "t", "c", [], {}).as_json() == {"title": "t", "data": [], "layout": {}}


def _text(path: Path) -> str:
    text = _page(measured(path))
    return text[: text.index('<script type="application/json"')]


CAUTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("failed", {"status": "failed", "reason": "disk full"}, "The run failed (disk full). Run it again"),
    (
        "interrupted",
        {"status": "interrupted", "reason": "by Ctrl-C"},
        "The run was interrupted (by Ctrl-C).",
    ),
    (
        "limited",
        {"generator_limited": True, "generator_limited_reason": "too late"},
        "The run was limited by the load generator. Too late.",
    ),
    ("closed", {"loop": "closed", "speed": "max"}, "A closed loop"),
]


@pytest.mark.parametrize(("what", "facts", "says"), CAUTIONS, ids=[row[0] for row in CAUTIONS])
def test_what_makes_a_run_doubtful_is_said(
    tmp_path: Path, what: str, facts: dict[str, Any], says: str
) -> None:
    assert says in _text(write_run(tmp_path / "run", records(4000), **facts))


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


@pytest.mark.parametrize(
    ("what", "retried", "fact", "doubt"),
    [
        ("none were sent again", 0, "", ""),
        ("one is a fact, and no reason for doubt", 1, "1 request (0.05 %), since the server had closed", ""),
        (
            "one in forty: the server closes connections at random",
            50,
            "50 requests (2.5 %), since the server had closed",
            "The run had to send 50 requests (2.5 %) again",
        ),
    ],
)
def test_requests_that_were_sent_again_are_said(
    tmp_path: Path, what: str, retried: int, fact: str, doubt: str
) -> None:
    summary = {"requests": {"sent": 2000, "retried": retried}}
    text = _text(write_run(tmp_path / "run", records(2000), summary=summary))
    for words, says in (("since the server had closed the", fact), ("had to send", doubt)):
        assert (words in text) is bool(says), what
        assert says in text, what


@pytest.mark.parametrize(
    ("what", "members", "fact"),
    [
        ("all are guests", None, ""),
        (
            "as summary.json counts them",
            {"clients": 220, "accounts": 200, "requests": 500, "sent_to_login": 0},
            "220 clients with 200 accounts: 500 of 2,000 requests (25 %)<",
        ),
        (
            "who lost their sessions, of a merged run whose instances did not all say how many they had",
            {"clients": None, "accounts": None, "requests": 500, "sent_to_login": 7},
            "how many is not known: 500 of 2,000 requests (25 %), 7 sent to the login<",
        ),
    ],
)
def test_members_are_said(tmp_path: Path, what: str, members: dict[str, int] | None, fact: str) -> None:
    summary = {"requests": {"sent": 2000}} | ({"members": members} if members else {})
    text = _page(measured(write_run(tmp_path / "run", records(2000), summary=summary)))
    assert (">members<" in text) is bool(fact), what
    assert fact in text, what


def test_what_was_corrected_in_the_log_is_said(tmp_path: Path) -> None:
    log = {"path": "access.log", "lines": 2000, "valid": 2000, "strays": 2, "set_backs": 1}
    pauses = {"shortened": 3, "cut_s": 259_200.0}
    text = _text(write_run(tmp_path / "run", records(2000), logs=[log], log_pauses=pauses))
    assert "access.log, 2,000 valid lines, 2 stray time stamps, clock set back 1 time" in text
    assert "3 shortened, by 72 h in all" in text


@pytest.mark.parametrize(
    ("what", "clients", "said"),
    [
        ("visitors of their own", {}, ["2, the largest with 51.4 % of the requests<"]),
        (
            "proxies, spread",
            {"proxies": 2, "proxies_share": 1, "spread_over": 250},
            ["2 of proxies, with 100 %, spread over 250 clients<", "They were spread over 250 clients;"],
        ),
        (
            "proxies, kept",
            {"proxies": 1, "proxies_share": 0.5},
            ["1 of proxies, with 50 %, not spread<", "so that visitors waited for one another"],
        ),
    ],
)
def test_clients_of_the_log_are_said(
    tmp_path: Path, what: str, clients: dict[str, float], said: list[str]
) -> None:
    facts = {"counted": 2, "largest_share": 0.514, "spread_over": None} | clients
    text = _page(measured(write_run(tmp_path / "run", records(2000), clients=facts)))
    assert all(one in text for one in said), what


def test_a_small_run_says_that_it_is_too_small(tmp_path: Path) -> None:
    text = _text(write_run(tmp_path / "run", records(999)))
    assert "Only 999 requests: a p99.9 needs 1,000." in text
    assert "The slowest request in a hundred (p99) over time" in text


def test_a_killed_run_is_judged_from_its_records(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(5000, lag_us=30_000), status="running")
    opened = RunDirectory.open(run, now_s=(run / "requests.npy").stat().st_mtime + 60)
    text = _page([ReportRun.of(measure_in_detail(opened), 0)])
    assert "The run was killed." in text
    assert '<span class="badge interrupted">' in text
    assert '<span class="badge limited">' in text
