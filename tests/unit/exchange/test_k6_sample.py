"""Lines of k6's outputs, one by one."""

import pytest

from plimsoll.analysis.exchange.k6_samples import (
    BrokenLineError,
    K6Definition,
    K6Sample,
    from_json,
    from_row,
    instant_ns,
)

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
