"""Samples become requests: k6's arithmetic, undone."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.exchange.importing import (
    CachedRequest,
    DroppedIterations,
    FailedCheck,
    ImportedItem,
    MeasureValue,
    route_of_url,
)
from plimsoll.analysis.exchange.k6 import K6Assembler
from plimsoll.analysis.exchange.k6_samples import K6Definition, K6Sample, error_kind, route_of_tags
from plimsoll.rundir.records import Request
from tests.support.programs import FIXTURES

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
    ("/2024/05/a-post/", "post"),
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
