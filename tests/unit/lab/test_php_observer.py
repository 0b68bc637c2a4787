"""The php observer: what PHP-FPM and OPcache say, and what a site that lies does to it."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.lab.observers import WithOwnKeys
from plimsoll.lab.observers.php import COLUMNS, PhpSettings, PhpWatch, parse
from tests.support.scripted import FakeMachine, FakeProcess

# As PHP 8.2's pages print them, behind a TCP socket.
STATUS = {
    "pool": "www",
    "process manager": "static",
    "start time": 1795467512,
    "accepted conn": 100,
    "listen queue": 3,
    "max listen queue": 7,
    "listen queue len": 511,
    "idle processes": 0,
    "active processes": 2,
    "total processes": 2,
    "max children reached": 0,
    "slow requests": 1,
}
OPCACHE = {
    "opcache_enabled": True,
    "memory_usage": {"used_memory": 9169016, "free_memory": 125048712, "wasted_memory": 0},
    "opcache_statistics": {
        "hits": 1000,
        "misses": 10,
        "oom_restarts": 0,
        "hash_restarts": 0,
        "manual_restarts": 1,
        "opcache_hit_rate": 99.0,
    },
}
SOCKET = PhpSettings(fastcgi="/run/php/php8.2-fpm.sock", opcache="/srv/opcache.php")


def said(at_s: float = 1, **more: Any) -> str:
    found: dict[str, Any] = {"at_ns": int(at_s * 1e9), "waited_ms": 2.5, "status": STATUS, "opcache": OPCACHE}
    return json.dumps(found | more)


def sampled(*lines: str, settings: PhpSettings = SOCKET) -> tuple[dict[str, float | None], list[str]]:
    """The figures after all lines, and what was said."""
    heard = list[str]()

    async def run() -> list[float | None]:
        machine = FakeMachine()
        machine.process = FakeProcess(lines)
        watch = PhpWatch(machine, settings)
        await watch.start(heard.append)
        for _ in range(3):
            await asyncio.sleep(0)
        return watch.sample()

    values = asyncio.run(run())
    return {column.name: value for column, value in zip(COLUMNS, values, strict=True)}, heard[:-1]


def test_two_answers_become_rates() -> None:
    later = STATUS | {"accepted conn": 150, "slow requests": 2, "max children reached": 4}
    counted = {"opcache_statistics": OPCACHE["opcache_statistics"] | {"hits": 1400, "oom_restarts": 1}}  # type: ignore[operator]
    figures, heard = sampled(said(1), said(3, status=later, opcache=OPCACHE | counted))
    assert heard == []
    assert (figures["accepted_per_s"], figures["slow_requests_per_s"]) == (25, 0.5)
    assert (figures["opcache_hits_per_s"], figures["opcache_misses_per_s"]) == (200, 0)
    assert (figures["opcache_restarts_per_s"], figures["max_children_reached_per_s"]) == (0.5, 2)
    assert (figures["queue_count"], figures["busy_percent"], figures["status_wait_ms"]) == (3, 100, 2.5)


def test_of_a_unix_socket_the_queue_is_not_known() -> None:
    figures, _ = sampled(said(status=STATUS | {"listen queue": 0, "listen queue len": 0}))
    assert figures["queue_count"] is None
    assert figures["active_count"] == 2


def test_a_status_page_that_waits_is_a_figure_and_the_next_rate_covers_the_gap() -> None:
    waiting = json.dumps({"at_ns": 2_000_000_000, "waited_ms": 1000.0})
    figures, _ = sampled(said(1), waiting)
    assert figures["status_wait_ms"] == 1000
    assert {value for name, value in figures.items() if name != "status_wait_ms"} == {None}
    figures, _ = sampled(said(1), waiting, said(5, status=STATUS | {"accepted conn": 180}))
    assert figures["accepted_per_s"] == 20


def test_a_pool_that_was_started_anew_has_no_rates() -> None:
    figures, _ = sampled(said(1), said(2, status=STATUS | {"accepted conn": 1}))
    assert figures["accepted_per_s"] is None


def test_what_goes_wrong_is_said_once() -> None:
    refused = json.dumps({"at_ns": 1, "waited_ms": 0.1, "error": "/status: [Errno 111] Connection refused"})
    _, heard = sampled(refused, refused)
    assert heard == ["php: /status: [Errno 111] Connection refused"]


LIES = [
    ("no JSON", "<html>"),
    ("no object", "[1]"),
    ("no instant", "{}"),
    ("an instant that is none", '{"at_ns": "now"}'),
    ("an answer that is no object", '{"at_ns": 1, "status": [1], "opcache": 7}'),
    ("figures that are words", '{"at_ns": 1, "status": {"listen queue": "many", "listen queue len": 5}}'),
    ("a truth for a number", '{"at_ns": 1, "status": {"active processes": true}}'),
    ("beyond any count", '{"at_ns": 1, "status": {"active processes": 1e300}}'),
    ("below none", '{"at_ns": 1, "status": {"active processes": -1}}'),
    ("not a number", '{"at_ns": 1, "status": {"active processes": NaN}}'),
]


@pytest.mark.parametrize("line", [row[1] for row in LIES], ids=[row[0] for row in LIES])
def test_a_site_that_lies_is_left_out(line: str) -> None:
    figures, _ = sampled(line)
    assert set(figures.values()) == {None}


@given(st.text())
def test_no_text_crashes_it(text: str) -> None:
    parse(text)
    parse(json.dumps({"at_ns": 1, "status": text, "opcache": {text: text}}))


REFUSED = [
    ("no socket for a path", {}, "php"),
    ("a socket that is none", {"fastcgi": "php"}, "php.fastcgi"),
    ("a file for an address", {"status": "file:///etc/passwd"}, "php.status"),
    ("an address without a host", {"status": "http:///status"}, "php.status"),
    ("a script at a socket that nobody named", {"status": "http://localhost/s", "opcache": "/o.php"}, "php"),
]


@pytest.mark.parametrize(("php", "where"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_cannot_be_asked_is_refused(php: dict[str, str], where: str) -> None:
    with pytest.raises(ValidationError) as caught:
        WithOwnKeys.model_validate({"php": php})
    assert where in [".".join(str(part) for part in error["loc"]) for error in caught.value.errors()]


def test_the_observer_needs_its_settings() -> None:
    with pytest.raises(ValidationError, match="needs a socket"):
        WithOwnKeys.model_validate({"observe": ["php"]})
