"""Commands of the tools, and what is read from outputs captured from the real ones (in captured/)."""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import (
    tool_goaccess,
    tool_grinder,
    tool_h2load,
    tool_hey,
    tool_k6,
    tool_k6x,
    tool_locust,
    tool_oha,
    tool_replay,
    tool_vegeta,
    tool_wrk,
)
from benchmarks.attack import Flood, NotUnderstoodError, Pace, Throughput
from benchmarks.paths import AGAINST

_CAPTURED = Path(__file__).parent / "captured"
_URL = "http://127.0.0.1:8080/1k.bin"
_FLOOD = Flood(_URL, 6, 64, Path("/s"), Path("/max.log"))
_PACE = Pace(_URL, 500, 10, Path("/s"), Path("/pace.log"), most=20)


def _captured(name: str) -> str:
    return (_CAPTURED / name).read_text()


@pytest.mark.parametrize(
    ("why", "tool", "name", "requests", "seconds", "errors"),
    [
        ("wrk, all well", tool_wrk, "wrk.txt", 169194, 2.0, 0),
        ("wrk counts answers that are errors", tool_wrk, "wrk-404.txt", 76386, 1.1, 76386),
        ("oha cuts off what is in flight at the end: no error", tool_oha, "oha.json", 87237, 2.003, 0),
        ("oha, all not found", tool_oha, "oha-404.json", 20, 0.002, 20),
        ("oha, nobody there", tool_oha, "oha-refused.json", 0, 0.001, 20),
        ("hey, all well", tool_hey, "hey.txt", 30704, 2.0103, 0),
        ("hey, all not found", tool_hey, "hey-404.txt", 20, 0.002, 20),
        ("hey, nobody there", tool_hey, "hey-refused.txt", 20, 0.001, 20),
        ("vegeta, all well", tool_vegeta, "vegeta.json", 29875, 2.003, 0),
        ("k6, all well", tool_k6, "k6.json", 18515, 2.0026, 0),
        ("h2load, HTTP/2", tool_h2load, "h2load.txt", 11020, 2.0, 0),
        ("h2load, HTTP/1.1", tool_h2load, "h2load-h1.txt", 15928, 2.0, 0),
        ("h2load counts answers that are errors", tool_h2load, "h2load-404.txt", 54124, 1.0, 54124),
        ("Locust, all well", tool_locust, "locust.json", 6335, 1.6912, 0),
    ],
)
def test_throughput(
    why: str, tool: ModuleType, name: str, requests: int, seconds: float, errors: int
) -> None:
    read: Throughput = tool.read(_FLOOD, _captured(name))
    assert (read.requests, read.errors) == (requests, errors), why
    assert read.seconds == pytest.approx(seconds, abs=0.002), why


def test_grinder_counts_only_what_came_after_its_warm_up() -> None:
    flood = Flood(_URL, 2, 64, Path("/s"), Path("/max.log"))
    read = tool_grinder.read(flood, _captured("grinder-data.log").splitlines())
    assert (read.requests, read.seconds, read.errors, read.warm_up_requests) == (12, 2, 0, 7)
    assert read.warm_up_seconds == pytest.approx(14.5, abs=0.1)


def test_grinder_counts_a_status_of_400_or_more_as_an_error() -> None:
    header, line = _captured("grinder-data.log").splitlines()[:2]
    bad = line.replace(", 0, 200, 1024, 0, ", ", 0, 404, 1024, 1, ")
    assert tool_grinder.read(_FLOOD, [header, line, bad]).errors == 1


def test_a_capped_vegeta_and_a_capped_k6_hide_the_stall() -> None:
    vegeta = tool_vegeta.read_pace(_PACE, _captured("vegeta-20-workers.json"))
    assert (vegeta.requests, vegeta.errors, vegeta.dropped) == (5000, 0, 0)
    assert vegeta.p99_ms == pytest.approx(1.398, abs=0.001)
    k6 = tool_k6.read_pace(_PACE, _captured("k6-20-vus.json"))
    assert (k6.requests, k6.errors, k6.dropped) == (4770, 0, 231)
    assert k6.p99_ms == pytest.approx(1.140, abs=0.001)


def test_goaccess() -> None:
    counted = tool_goaccess.read(_captured("goaccess-no-panels.json"))
    assert (counted.valid, counted.failed, counted.bytes) == (1_000_000, 0, 23_167_635_850)


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (tool_wrk, "unable to connect to 127.0.0.1:9 Connection refused\n"),
        (tool_hey, "Usage: hey [options...] <url>\n"),
        (tool_h2load, (_CAPTURED / "h2load-refused.txt").read_text()),
        (tool_locust, "[]"),
        (tool_grinder, []),
    ],
)
def test_output_without_figures_is_said_to_be_so(tool: ModuleType, text: str | list[str]) -> None:
    with pytest.raises(NotUnderstoodError):
        tool.read(_FLOOD, text)


def test_commands_say_how_many_connections_and_how_long() -> None:
    assert tool_wrk.command(_FLOOD) == ["wrk", "-t1", "-c64", "-d6s", _URL]
    assert tool_hey.command(_FLOOD)[1:] == ["-z", "6s", "-c", "64", _URL]
    assert tool_oha.command(_FLOOD)[1:5] == ["-z", "6s", "-c", "64"]
    vegeta = tool_vegeta.command(_FLOOD)
    assert {"-rate=0", "-workers=64", "-max-workers=64", "-connections=64", "-duration=6s"} <= set(vegeta)
    assert tool_vegeta.files(_FLOOD) == {"targets.txt": f"GET {_URL}\n"}
    script = tool_k6.files(_FLOOD)["script.js"]
    assert '"vus": 64' in script
    assert '"duration": "6s"' in script
    locust = tool_locust.command(_FLOOD)
    assert locust[locust.index("-u") + 1] == "64"
    assert locust[locust.index("--host") + 1] == "http://127.0.0.1:8080"
    assert 'get("/1k.bin")' in tool_locust.files(_FLOOD)["visitor.py"]
    properties = tool_grinder.files(_FLOOD)["grinder.properties"]
    assert "grinder.threads=64\n" in properties
    assert "grinder.duration=21000\n" in properties  # with its warm-up
    replay = tool_replay.command(_FLOOD)
    assert replay[1:6] == ["run", "--format", "COMBINED", "--target", "http://127.0.0.1:8080"]
    assert replay[6:10] == ["--speed", "max", "--connections", "64"]
    assert replay[-1] == "/max.log"


def test_all_speak_the_same_http_over_tls() -> None:
    https = replace(_FLOOD, url="https://127.0.0.1:8443/1k.bin")
    http2 = replace(https, http2=True)
    assert "--insecure" in tool_replay.command(https)
    assert "--insecure" not in tool_replay.command(_FLOOD)
    assert "--insecure" in tool_oha.command(https)
    assert "--http2" not in tool_oha.command(https)
    assert "--http2" in tool_oha.command(http2)
    assert tool_h2load.command(https)[1:] == ["--h1", "-t1", "-c64", "-m1", "-D6", https.url]
    assert "--h1" not in tool_h2load.command(http2)


def test_the_other_bin_replay_gets_the_same_words_but_those_that_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = tool_replay.command(_FLOOD)
    assert tool_replay.by("replay", ours) == ours
    monkeypatch.setattr(tool_replay, "has", lambda *_: True)
    assert tool_replay.by("against", ours) == [str(AGAINST), *ours[1:]]
    monkeypatch.setattr(tool_replay, "has", lambda *_: False)
    words = " ".join(ours[1:]).replace(" --clients log", "")
    assert " ".join(tool_replay.by("against", ours)) == f"{AGAINST} {words}"


def test_the_cap_reaches_all_three() -> None:
    assert {"-workers=20", "-max-workers=20"} <= set(tool_vegeta.pace_command(_PACE))
    assert '"maxVUs": 20' in tool_k6.files(_PACE)["script.js"]
    replay = tool_replay.pace_command(_PACE)
    assert replay[replay.index("--max-connections") + 1] == "20"
    assert replay[replay.index("--rate") + 1] == "500"


def test_goaccess_counts_alone_when_every_panel_is_ignored() -> None:
    command = tool_goaccess.count_only_command(Path("/a.log"))
    assert command[:2] == ["goaccess", "/a.log"]
    assert sum(word.startswith("--ignore-panel=") for word in command) == 18


def test_the_module_gets_what_bin_replay_gets() -> None:
    flood, pace = (tool_k6x.files(job)["script.js"] for job in (_FLOOD, _PACE))
    assert '"speed": "max", "connections": 64' in flood
    assert '"target": "http://127.0.0.1:8080"' in flood
    assert '"rate": 500' in pace
    assert "instances: 1 " in pace
    several = tool_k6x.files(_PACE, instances=4, startAt="minute")["script.js"]
    assert "instances: 4 " in several
    assert '"startAt": "minute"' in several
    assert '"logs": "/pace.log"' in pace
    values = {
        "http_reqs": {"count": 60, "rate": 10},
        "http_req_failed": {"passes": 3},
        "plimsoll_lag": {"p(99.9)": 0.25},
    }
    said = json.dumps({"metrics": {name: {"values": each} for name, each in values.items()}})
    assert tool_k6x.read(_FLOOD, said) == Throughput(60, 6, 3)
    assert tool_k6x.lag_p999_ms(said) == 0.25
    with pytest.raises(NotUnderstoodError):
        tool_k6x.read(_FLOOD, "panic")
