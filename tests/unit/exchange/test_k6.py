"""`plimsoll import k6`: real outputs, whole, cut off and broken; their lines, and records made of them."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.exchange.importing import (
    CachedRequest,
    DroppedIterations,
    FailedCheck,
    ImportedItem,
    MeasureValue,
    route_of_url,
)
from plimsoll.analysis.exchange.k6 import K6Assembler, import_k6
from plimsoll.analysis.exchange.k6_samples import (
    BrokenLineError,
    K6Definition,
    K6Sample,
    error_kind,
    from_json,
    from_row,
    instant_ns,
    route_of_tags,
)
from plimsoll.cli import main
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import Request
from tests.support.programs import FIXTURES
from tests.support.rundir import load_records

K6 = FIXTURES / "k6"
FOREIGN, VISITORS, BROWSER = K6 / "foreign.json", K6 / "visitors.json", K6 / "browser.json"


def points(path: Path, metric: str) -> int:
    """How many samples of `metric` k6 wrote."""
    return sum(f'"metric":"{metric}","type":"Point"' in line for line in path.read_text().splitlines())


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["import", "k6", *map(str, args)])


def mortal(path: Path, *, comes_back: bool) -> Path:
    """What k6 writes of a server that answers for five seconds, is killed, and may come back."""
    lines = []
    for i in range(100):
        tags = {"name": "page", "status": "200", "expected_response": "true"}
        if i >= 50 and not (comes_back and i >= 80):
            tags = {"name": "page", "status": "0", "error_code": "1212", "error": "dial: connection refused"}
        for metric, value in (("http_reqs", 1), ("http_req_duration", 1.0), ("http_req_waiting", 0.9)):
            at = f"2026-11-22T10:00:{i // 10:02d}.{i % 10}00001Z"
            data = {"time": at, "value": value if tags["status"] == "200" else 0, "tags": tags}
            lines.append(json.dumps({"metric": metric, "type": "Point", "data": data}))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("comes_back", "status"), [(False, "failed"), (True, "complete")])
def test_a_run_whose_target_died_is_not_complete(tmp_path: Path, comes_back: bool, status: str) -> None:
    run(mortal(tmp_path / "k6.json", comes_back=comes_back), "--out", tmp_path / "results")
    facts = json.loads((tmp_path / "results" / "latest" / "run.json").read_text())
    assert facts["status"] == status, facts["reason"]
    assert (facts["reason"] or "").startswith("the target gave no answer after 5.9 s") == (not comes_back)
    assert facts.get("load") is None, "nobody knows what shaped it"


def test_every_request_of_a_script_is_a_record(tmp_path: Path) -> None:
    imported = import_k6(FOREIGN, tmp_path, target="http://127.0.0.1:9911")
    assert imported.is_whole
    opened = RunDirectory.open(imported.directory)
    records = load_records(opened.path)
    assert len(records) == points(FOREIGN, "http_reqs") == 8
    assert opened.routes == ["page", "shop", "picture"], "never an address, never a query"
    assert [opened.error_name(number) for number in records["error"]] == ["none"] * 3 + [
        "connect_refused"
    ] + ["none"] * 3 + ["connect_refused"]
    assert records["status"].tolist() == [200, 404, 200, 0] * 2, "the order is k6's"
    assert not records["line"].any(), "without the system tag iter, nobody knows which iteration it was"
    assert (np.diff(records["due_ns"]) > 0).all()
    assert records["ttfb_us"][records["status"] > 0].min() > 0
    assert opened.facts.target and opened.facts.target.url == "http://127.0.0.1:9911"
    assert "secret" not in "".join(path.read_text() for path in imported.directory.glob("*.json*"))
    summary = json.loads((imported.directory / "summary.json").read_text())
    assert summary["measures"]["basket"]["max"] == 12.5
    assert "size" not in summary["measures"]
    assert measure_figures(opened).requests == 8
    events = (imported.directory / "events.jsonl").read_text()
    assert events.count('"check_failed"') == 2


def test_csv_says_the_same_as_json(tmp_path: Path) -> None:
    by_json, by_csv = (
        load_records(import_k6(path, tmp_path / path.suffix[1:]).directory)
        for path in (FOREIGN, K6 / "foreign.csv")
    )
    for column in ("status", "line", "client", "route", "error", "flags", "total_us", "ttfb_us"):
        assert by_json[column].tolist() == by_csv[column].tolist(), column
    assert np.abs(by_json["due_ns"] - by_csv["due_ns"]).max() < 1000, "its values have six decimals"


def test_our_own_script_says_more(tmp_path: Path) -> None:
    imported = import_k6(VISITORS, tmp_path)
    opened = RunDirectory.open(imported.directory)
    records = load_records(opened.path)
    assert len(records) == points(VISITORS, "http_reqs")
    assert opened.facts.loop == "open"
    assert (records["flags"] & 8 > 0).sum() == 4, "looking for pages is warm-up"
    assert (records["lag_us"] > 0).sum() <= points(VISITORS, "plimsoll_lag"), (
        "one request a visit may be late"
    )
    assert records["bytes"].min() > 0
    assert set(opened.routes) <= {"discovery", "front page", "page", "image", "css-js", "font", "other file"}


def test_a_browser_has_steps_and_web_vitals(tmp_path: Path) -> None:
    imported = import_k6(BROWSER, tmp_path)
    opened = RunDirectory.open(imported.directory)
    summary = json.loads((imported.directory / "summary.json").read_text())
    cached = summary["requests"]["skipped"].get("from_cache", 0)
    assert opened.requests.count + cached == points(BROWSER, "browser_http_req_duration")
    assert {"front page", "front page: files", "log in"} <= set(opened.routes)
    assert summary["measures"]["lcp: front page"]["unit"] == "ms"
    assert summary["measures"]["cls: front page"]["unit"] == "score"


def test_a_killed_k6_is_an_interrupted_run(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(FOREIGN.read_bytes()[:-100])
    result = run(cut, "--out", tmp_path / "results")
    assert result.exit_code == 1
    opened = RunDirectory.open(tmp_path / "results" / "latest")
    assert opened.status == "interrupted"
    assert opened.facts.reason and "is cut off" in opened.facts.reason


@pytest.mark.parametrize("share", [0.3, 0.99])
def test_gzip_is_read_and_so_is_half_of_it(tmp_path: Path, share: float) -> None:
    packed = gzip.compress(FOREIGN.read_bytes(), mtime=0)
    whole, cut = tmp_path / "whole.json.gz", tmp_path / "cut.json.gz"
    whole.write_bytes(packed)
    cut.write_bytes(packed[: int(len(packed) * share)])
    assert import_k6(whole, tmp_path / "a").requests == 8
    imported = import_k6(cut, tmp_path / "b")
    assert imported.status == "interrupted"
    assert imported.reason and "gzip" in imported.reason


def test_broken_lines_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    lines = FOREIGN.read_text().splitlines(keepends=True)
    lines.insert(3, "{oops\n")
    lines.insert(5, '{"type":"Point"}\n')
    broken = tmp_path / "broken.json"
    broken.write_text("".join(lines))
    result = run(broken, "--out", tmp_path / "results")
    assert result.exit_code == 1
    assert "line 4: is not JSON" in result.output
    assert "line 6: is not a sample of k6" in result.output
    assert RunDirectory.open(tmp_path / "results" / "latest").requests.count == 8


def test_nul_bytes_in_csv_are_no_end(tmp_path: Path) -> None:
    lines = (K6 / "foreign.csv").read_bytes().splitlines(keepends=True)
    lines.insert(2, b"\0\0,1,\xff\n")
    lines.insert(2, b'"' + b"x" * 200_000 + b'"\n')
    broken = tmp_path / "broken.csv"
    broken.write_bytes(b"".join(lines))
    imported = import_k6(broken, tmp_path / "results")
    assert imported.broken_lines >= 1
    assert imported.requests == 8


def test_json_lists_what_was_imported(tmp_path: Path) -> None:
    result = run(FOREIGN, VISITORS, "--out", tmp_path / "results", "--json", "--scenario", "shop")
    assert result.exit_code == 0
    runs = json.loads(result.output)["runs"]
    assert [one["requests"] for one in runs] == [8, points(VISITORS, "http_reqs")]
    assert all(one["directory"].rpartition("Z-")[2].startswith("shop") for one in runs)


def test_times_of_whole_seconds_are_told(tmp_path: Path) -> None:
    rows = (K6 / "foreign.csv").read_text().splitlines()
    coarse = tmp_path / "coarse.csv"
    whole = [row.split(",", 2) for row in rows[1:]]
    coarse.write_text("\n".join([rows[0], *(f"{name},1795228600,{rest}" for name, _, rest in whole)]) + "\n")
    imported = import_k6(coarse, tmp_path / "results")
    assert imported.requests == 8
    assert any("K6_CSV_TIME_FORMAT" in note for note in imported.notes)


# Lines of k6's outputs.


POINT = (
    b'{"metric":"http_reqs","type":"Point","data":{"time":"2026-11-21T02:36:40.058379825Z","value":1,'
    b'"tags":{"group":"::setup","status":"200"},"metadata":{"vu":"3"}}}\n'
)


INSTANTS = [
    ("nanoseconds are kept", "2026-11-21T02:36:40.058379825Z", 1795228600058379825),
    ("Go cuts off zeros at the end", "2026-11-21T02:36:40.05Z", 1795228600050000000),
    ("or the whole fraction", "2026-11-21T02:36:40Z", 1795228600000000000),
    ("a machine's own zone", "2026-11-21T03:36:40.5+01:00", 1795228600500000000),
    ("a zone west of Greenwich", "2026-11-20T22:06:40.000000001-04:30", 1795228600000000001),
    ("CSV: whole seconds", "1795228600", 1795228600000000000),
    ("CSV: milliseconds", "1795228600058", 1795228600058000000),
    ("CSV: microseconds", "1795228600058379", 1795228600058379000),
    ("CSV: nanoseconds", "1795228600058379825", 1795228600058379825),
]


@pytest.mark.parametrize(("why", "text", "ns"), INSTANTS)
def test_instants_are_exact(why: str, text: str, ns: int) -> None:
    assert instant_ns(text) == ns, why


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-11-21T02:36:40", "2026-13-41T02:36:40Z", "0", "12345", "2026-11-21T02:36:40.x"],
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(BrokenLineError):
        instant_ns(text)


def test_a_point_has_its_tags_and_metadata_together() -> None:
    assert from_json(POINT) == K6Sample(
        "http_reqs", 1795228600058379825, 1.0, {"group": "::setup", "status": "200", "vu": "3"}
    )


def test_a_definition_says_what_a_metric_is() -> None:
    line = (
        b'{"type":"Metric","data":{"name":"x","type":"trend","contains":"time","thresholds":[]},"metric":"x"}'
    )
    assert from_json(line) == K6Definition("x", "trend", "time")


BROKEN = [
    ("half a line", POINT[:90], "is not JSON"),
    ("another program's JSON", b'{"Action":"output"}', "is not a sample of k6"),
    ("a list", b"[1,2]", "is not a sample of k6"),
    ("no number", POINT.replace(b'"value":1', b'"value":"fast"'), "has no value"),
    ("not a number", POINT.replace(b'"value":1', b'"value":NaN'), "is not a number"),
    ("a time that is a number", POINT.replace(b'"2026-11-21T02:36:40.058379825Z"', b"7"), "has no time"),
    ("nested without end", b"[" * 100_000, "is not JSON"),
]


@pytest.mark.parametrize(("why", "line", "says"), BROKEN)
def test_a_broken_line_says_why(why: str, line: bytes, says: str) -> None:
    with pytest.raises(BrokenLineError, match=says):
        from_json(line)


def test_a_blank_line_is_nothing() -> None:
    assert from_json(b"\n") is None


def test_a_row_is_read_by_its_header() -> None:
    header = ["metric_name", "timestamp", "metric_value", "status", "extra_tags", "metadata"]
    row = ["http_reqs", "1795228600", "1.000000", "", "step=pay&slot=2", "vu=4&iter=1"]
    found = from_row(row, header)
    assert found == K6Sample(
        "http_reqs", 1795228600000000000, 1.0, {"step": "pay", "slot": "2", "vu": "4", "iter": "1"}
    )
    with pytest.raises(BrokenLineError, match="has 2 columns, the first line 6"):
        from_row(row[:2], header)


# Records: put together from samples.


NS = 1_000_000_000
T0 = 1_795_228_600 * NS
MS = 1_000_000


TIMES_MS = {
    "http_req_duration": 40.0,
    "http_req_blocked": 5.0,
    "http_req_connecting": 2.0,
    "http_req_tls_handshaking": 2.5,
    "http_req_sending": 1.0,
    "http_req_waiting": 30.0,
    "http_req_receiving": 9.0,
    "http_req_failed": 0.0,
}


def http(end_ns: int = T0 + NS, times: dict[str, float] | None = None, **tags: str) -> list[K6Sample]:
    """What k6 writes of one request that ended at `end_ns`."""
    tags = {"status": "200", "method": "GET", "name": "http://site.example/a", "group": ""} | tags
    values = {"http_reqs": 1.0} | TIMES_MS | (times or {})
    return [K6Sample(metric, end_ns, value, tags) for metric, value in values.items()]


def assembled(samples: list[K6Sample], **how: Any) -> list[ImportedItem]:
    assembler = K6Assembler(T0, **how)
    return [*(found for sample in samples for found in assembler.feed(sample)), *assembler.end()]


def only(samples: list[K6Sample], **how: Any) -> Request:
    [found] = assembled(samples, **how)
    assert isinstance(found, Request)
    return found


def test_a_request_started_before_it_waited_for_a_connection() -> None:
    request = only(http())
    assert request.due_ns == NS - 45 * MS, "end − duration − blocked"
    assert request.total_us == 45_000
    assert request.ttfb_us == 36_000, "blocked + sending + waiting"
    assert (request.connect_us, request.tls_us, request.dns_us) == (2000, 2500, 0)
    assert not request.reused
    assert request.status == 200
    assert request.error == "none"


def test_a_request_without_a_new_connection_reused_one() -> None:
    assert only(http(times={"http_req_connecting": 0, "http_req_tls_handshaking": 0})).reused


def test_two_requests_at_the_same_instant_are_two() -> None:
    assert len(assembled(http() + http())) == 2


def test_protocol_and_tls_are_flags() -> None:
    request = only(http(proto="HTTP/2.0", tls_version="tls1.3"))
    assert request.http2
    assert request.tls


NOTHING = dict.fromkeys(TIMES_MS, 0.0)


def test_a_timeout_counts_at_its_timeout() -> None:
    dial = only(
        http(end_ns=T0 + 100 * NS, times=NOTHING, status="0", error_code="1211", error="dial: i/o timeout")
    )
    assert dial.total_us == 30_000_000, "k6 dials for 30 s, and notes no time"
    assert dial.due_ns == 70 * NS
    other = only(http(end_ns=T0 + 100 * NS, times=NOTHING, status="0", error_code="1050"), timeout_s=8)
    assert other.total_us == 8_000_000
    waited = only(http(status="0", error_code="1050"))
    assert waited.total_us == 45_000, "a time that k6 did note"


def test_a_failure_without_a_byte_has_no_first_byte() -> None:
    request = only(http(times=NOTHING, status="0", error_code="1212", error="dial: connection refused"))
    assert (request.error, request.ttfb_us, request.reused) == ("connect_refused", 0, False)


def test_setup_is_warm_up_unless_the_site_is_down() -> None:
    assert only(http(group="::setup")).warmup
    assert only(http(group="::setup", status="404"), strict=True).warmup, "no sitemap is no failure"
    down = only(http(group="::setup", status="503"), strict=True)
    assert (down.warmup, down.error) == (False, "backend_dead")


@pytest.mark.parametrize(
    ("status", "strict", "error"),
    [
        ("404", False, "none"),
        ("404", True, "http_error"),
        ("502", True, "backend_dead"),
        ("302", True, "none"),
    ],
)
def test_a_status_is_an_error_only_to_scripted_scenarios(status: str, strict: bool, error: str) -> None:
    assert only(http(status=status), strict=strict).error == error


def lag(value: float, vu: str = "7", metric: str = "plimsoll_lag") -> K6Sample:
    return K6Sample(metric, T0, value, {"vu": vu})


def test_lag_belongs_to_the_next_request_of_the_same_visitor() -> None:
    first, second, other = assembled([lag(3.5), *http(vu="7"), *http(vu="7"), *http(vu="8")])
    assert isinstance(first, Request) and isinstance(second, Request) and isinstance(other, Request)
    assert (first.lag_us, second.lag_us, other.lag_us) == (3500, 0, 0)
    assert first.due_ns == NS - 45 * MS - round(3.5 * MS), "due is the start less the lag"


def test_a_dropped_iteration_makes_no_later_one_late() -> None:
    dropped = K6Sample("dropped_iterations", T0, 2.0, {})
    found = assembled([dropped, lag(103.0), lag(50.0, metric="plimsoll_interval"), *http(vu="7")])
    assert found[0] == DroppedIterations(2)
    assert isinstance(found[1], Request)
    assert found[1].lag_us == 3000, "two intervals of the 103 ms are those that were dropped"


def test_the_lag_of_a_ramp_counts_from_its_first_visit() -> None:
    found = assembled([lag(20.0), *http(vu="7"), lag(23.0), *http(vu="7")], ramping=True)
    assert [request.lag_us for request in found if isinstance(request, Request)] == [0, 3000]


def size(value: float, slot: str) -> K6Sample:
    return K6Sample("plimsoll_bytes", T0 + NS, value, {"vu": "7", "slot": slot})


def test_sizes_find_their_requests_by_visitor_and_slot() -> None:
    found = assembled([*http(vu="7", slot="1"), *http(vu="7", slot="2"), size(11, "1"), size(22, "2")])
    assert [request.bytes for request in found if isinstance(request, Request)] == [11, 22]


def test_a_request_whose_size_never_came_is_there_all_the_same() -> None:
    assert only(http(vu="7", slot="1")).bytes == 0


def test_times_of_the_script_are_measures() -> None:
    assembler = K6Assembler(T0)
    assembler.define(K6Definition("basket", "trend", "time"))
    assembler.define(K6Definition("size", "trend", "default"))
    assert list(assembler.feed(K6Sample("basket", T0 + 5, 12.5, {"page": "shop", "iter": "0"}))) == [
        MeasureValue("basket: shop", 12.5, "ms", 5, 1)
    ]
    assert list(assembler.feed(K6Sample("size", T0, 1.0, {}))) == [], "nobody knows its unit"
    assert list(assembler.feed(K6Sample("basket2", T0, 1.0, {}))) == [], "nobody said what it is"


def test_a_check_that_failed_is_told() -> None:
    failed = K6Sample("checks", T0, 0.0, {"check": "is there", "step": "pay", "vu": "2", "iter": "4"})
    held = K6Sample("checks", T0, 1.0, {"check": "is there"})
    assert assembled([failed, held]) == [FailedCheck("pay", "is there", "check_failed", 0, 5, 2)]


def test_a_file_that_is_missing_is_told_with_its_address() -> None:
    tags = {
        "check": "file is there",
        "kind": "missing_file",
        "step": "css-js",
        "detail": "/a.css: status 404",
    }
    (failed,) = assembled([K6Sample("checks", T0, 0.0, tags)])
    assert failed == FailedCheck("css-js", "/a.css: status 404", "missing_file", 0, 0, 0)


def browser(duration_ms: float, **tags: str) -> list[K6Sample]:
    tags = {"status": "200", "step": "log in", "resource_type": "Document", "from_cache": "false"} | tags
    values = {
        "browser_http_req_duration": duration_ms,
        "browser_data_received": 900.0,
        "browser_http_req_failed": 0.0,
    }
    return [K6Sample(metric, T0 + NS, value, tags) for metric, value in values.items()]


def test_a_browsers_request_lasts_until_its_head_came() -> None:
    request = only(browser(40.0, proto="h2", url="https://site.example/"))
    assert (request.total_us, request.ttfb_us, request.bytes, request.due_ns) == (
        40_000,
        40_000,
        900,
        NS - 40 * MS,
    )
    assert (request.route, request.http2, request.tls) == ("log in", True, True)
    assert only(browser(40.0, resource_type="Script")).route == "log in: files"


def test_what_never_left_the_browser_is_no_request() -> None:
    assert assembled(browser(40.0, from_cache="true")) == [CachedRequest()]
    assert assembled(browser(0.02, resource_type="Script")) == [CachedRequest()], (
        "from memory, which k6 does not say"
    )
    assert isinstance(assembled(browser(0.02))[0], Request), "a page always leaves it"


def test_the_start_of_an_unknown_run_is_before_the_first_sample() -> None:
    assembler = K6Assembler()
    list(assembler.feed(http()[0]))
    assert assembler.base_ns == T0


ROUTES = [
    ("a step's name first", {"step": "pay", "name": "x", "group": "::g"}, "pay"),
    ("then the name that the script gave", {"name": "picture", "group": "::g"}, "picture"),
    ("then the innermost group", {"name": "http://a.example/x?token=1", "group": "::shop::cart"}, "cart"),
    ("an address only by its kind", {"name": "http://a.example/x/y.png?token=1", "group": ""}, "image"),
    ("a path that is no name", {"name": "/order/4711?key=secret"}, "order"),
    ("nothing at all", {}, "page"),
    ("a name without end", {"step": "x" * 100}, "x" * 47 + "…"),
]


@pytest.mark.parametrize(("why", "tags", "route"), ROUTES)
def test_routes_are_names(why: str, tags: dict[str, str], route: str) -> None:
    assert route_of_tags(tags) == route, why


KINDS = [
    ("/", "page"),
    ("http://a.example", "page"),
    ("http://a.example/?s=whale", "search"),
    ("/wp-login.php?action=logout&_wpnonce=1", "login"),
    ("/blog/wp-admin/post-new.php", "admin"),
    ("/wp-admin/admin-ajax.php", "admin-ajax"),
    ("/wp-admin/load-scripts.php?c=1", "css-js"),
    ("/wp-json/wp/v2/posts/12", "rest"),
    ("/2024/05/a-post/", "article"),
    ("/wp-content/uploads/2024/05/a.JPG", "image"),
    ("/wp-content/themes/x/style.css?ver=1", "css-js"),
    ("/static/download.tar.gz", "download"),
    ("/forum/threads/hello.12/", "thread"),
    ("/about", "page"),
    ("/8f14e45fceea167a5a36dedd4bea2543/x", "other"),
    ("http://[broken", "other"),
]


@pytest.mark.parametrize(("url", "kind"), KINDS)
def test_addresses_have_few_kinds(url: str, kind: str) -> None:
    assert route_of_url(url) == kind


ERRORS = json.loads(
    (FIXTURES / "k6-errors.json").read_text()
)  # replay/k6/output_test.go reads the same table


@pytest.mark.parametrize("row", ERRORS, ids=[row["says"] for row in ERRORS])
def test_error_codes_have_kinds(row: dict[str, Any]) -> None:
    assert error_kind(row["code"], row["text"], row["status"]) == row["kind"]


def stream() -> list[K6Sample]:
    return [
        lag(1.0),
        *http(vu="7", slot="0"),
        size(5, "0"),
        *http(end_ns=T0 + 2 * NS, vu="8"),
        K6Sample("checks", T0, 0.0, {"check": "x"}),
        *browser(3.0),
        K6Sample("dropped_iterations", T0, 1.0, {}),
        K6Sample("browser_web_vital_lcp", T0, 1.0, {"url": "http://a.example/"}),
    ]


@given(st.integers(0, 1 << 32), st.integers(0, 30))
def test_no_order_and_no_cut_breaks_it(seed: int, length: int) -> None:
    samples = stream()
    random.Random(seed).shuffle(samples)
    found = assembled(samples[:length])
    requests = sum(isinstance(one, Request | CachedRequest) for one in found)
    begun = sum(sample.metric in ("http_reqs", "browser_http_req_duration") for sample in samples[:length])
    assert requests == begun, "each request that was begun is there, once"


@given(
    st.lists(
        st.builds(
            K6Sample,
            st.sampled_from(
                [*TIMES_MS, "http_reqs", "plimsoll_lag", "plimsoll_interval", "plimsoll_bytes", "checks"]
            ),
            st.integers(1, 1 << 62),
            st.floats(allow_nan=False, allow_infinity=False, width=32),
            st.dictionaries(
                st.sampled_from(
                    ["vu", "iter", "slot", "status", "error_code", "name", "group", "step", "visit"]
                ),
                st.text(max_size=5),
            ),
        ),
        max_size=30,
    )
)
def test_no_sample_breaks_it(samples: list[K6Sample]) -> None:
    for request in requests_of(assembled(samples)):
        assert request.due_ns >= 0
        assert min(request.total_us, request.ttfb_us, request.lag_us, request.bytes, request.iteration) >= 0


def requests_of(found: list[ImportedItem]) -> Iterator[Request]:
    return (one for one in found if isinstance(one, Request))
