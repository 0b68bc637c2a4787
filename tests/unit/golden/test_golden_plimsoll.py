"""What the commands say that plan an experiment or use a site, and what all say of wrong inputs."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from tests.support.golden import Row, Said, check_golden, run, run_with_locust, settle, transcript
from tests.support.programs import ROOT
from tests.support.stand_ins import LAB, fakes
from tests.unit.golden.wrong_inputs import MAKE, PLIMSOLL, REPLAY, write_wrong_inputs

Told = dict[str, tuple[list[Row], list[Said]]]

LABS = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "examples").rglob("*.yml")
    if "\nbackends:" in path.read_text(encoding="utf-8")
)
CHECK: list[Row] = [
    *(("an example", f"plimsoll check --no-probe {path}") for path in LABS),
    ("an example as JSON", f"plimsoll check --no-probe --json {LABS[0]}"),
]
SCENARIO: list[Row] = [
    ("what there is", "plimsoll scenario list"),
    ("the same as JSON", "plimsoll scenario list --json"),
    ("a download, three times", "plimsoll scenario download --target {site} --iterations 3"),
    ("a site that becomes a clone", "plimsoll clone add {site} --name mine --yes"),
    ("the list of clones", "cat plimsoll.yml"),
    ("the same site again", "plimsoll clone add {site} --name mine --yes"),
]
INIT: list[Row] = [
    (
        "an experiment on the site of make site",
        "plimsoll init --log examples/access.log --site own --disks 'old=/srv/old new=/srv/new' --duration 2h"
        " --limits 10% --no-probe --out own",
    ),
    ("its lab.yml", "cat own/lab.yml"),
    ("its gates.yml", "cat own/gates.yml"),
    (
        "one on clones that exist, as JSON",
        "plimsoll init --log examples/access.log --site 'http://10.0.0.5 http://10.0.0.6'"
        " --disks 'sata nvme' --duration 10h --limits '20% 800ms errors=0.1%' --name clones --no-probe"
        " --out clones --json",
    ),
    ("its lab.yml", "cat clones/lab.yml"),
    ("its gates.yml", "cat clones/gates.yml"),
    (
        "too short a time",
        "plimsoll init --log examples/access.log --site own --disks 'old=/a new=/b' --duration 5m"
        " --limits 10% --no-probe --out short",
    ),
]
SCHEDULE: list[Row] = [
    (
        "what a timer of one's own would take",
        "plimsoll schedule install lab.yml --user --on-calendar '03:00 UTC' --dry-run --state state",
    ),
    (
        "what lines for cron would take",
        "plimsoll schedule install lab.yml --cron --at 22:15 --dry-run --state state",
    ),
    ("nothing is installed", "plimsoll schedule status --state state"),
    (
        "install a timer",
        "plimsoll schedule install lab.yml --user --on-calendar 'Mon..Fri 03:30 UTC' --state state"
        " -- --keep-raw-days 30",
    ),
    (
        "install it again, as JSON",
        "plimsoll schedule install lab.yml --user --on-calendar '03:00 UTC' --state state --json",
    ),
    ("what is installed", "plimsoll schedule status --state state"),
    ("the same as JSON", "plimsoll schedule status quiet --state state --json"),
    ("what it would take to remove it", "plimsoll schedule remove quiet --purge --dry-run --state state"),
    ("remove it", "plimsoll schedule remove quiet --state state"),
    ("remove it again", "plimsoll schedule remove quiet --state state"),
]

PLANNED = """\
name: small
backends:
- name: old
  disk: {kind: emulated, filesystem: ext4, size_bytes: 2G}
  clone: {driver: compose, port: 8091}
  saturator: {kind: fio, rate_bytes_per_s: 50M}
- {name: new, clone: {driver: static, target: "http://127.0.0.1:1"}}
scenarios: [{scenario: replay, options: {log: examples/access.log}}]
repeats: 1
"""
JOURNAL = [
    {"at": "2026-11-26T12:00:00.000000Z", "what": "begun"},
    {"at": "2026-11-26T12:00:01.000000Z", "what": "making", "backend": "old"},
    {"at": "2026-11-26T12:01:01.000000Z", "what": "made", "backend": "old"},
    {
        "at": "2026-11-26T12:01:02.000000Z",
        "what": "run begun",
        "run": "0001-replay--old--1",
        "backend": "old",
    },
    {
        "at": "2026-11-26T12:03:02.000000Z",
        "what": "run finished",
        "run": "0001-replay--old--1",
        "backend": "old",
    },
    {"at": "2026-11-26T12:03:03.000000Z", "what": "set aside", "backend": "new", "why": "it does not answer"},
]
PLAN: list[Row] = [
    ("every command that would change something", "plimsoll check --plan small.yml"),
    ("the same as JSON", "plimsoll check --plan small.yml --json"),
    ("how far an experiment came that was killed", "plimsoll status small.yml"),
    ("the same as JSON", "plimsoll status results/small-20261126T120000Z --json"),
    ("the last experiment", "plimsoll status"),
]


class _Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b"<title>Harbour</title><a href=/news>News</a>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Serve a site, and return its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def taken() -> Iterator[int]:
    """Return a port at which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Go to a folder that has an experiment, and in `wrong` what is wrong."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("place")
        settle(folder, patch)
        (folder / "lab.yml").write_text(LAB)
        (folder / "wrong").mkdir()
        (folder / "wrong" / "examples").symlink_to(ROOT / "examples")
        write_wrong_inputs(folder / "wrong")
        yield folder


@pytest.fixture(scope="module")
def told(place: Path, site: str, taken: int) -> Told:
    """Return the rows of each file, and what was said: all by one process, as Locust takes long to import."""
    fake = " ".join(f"{name}={value}" for name, value in fakes(place / "fakes").items())
    parts = {
        "lab-check": CHECK,
        "scenario": [(why, line.format(site=site)) for why, line in SCENARIO],
        "init": INIT,
        "schedule": [(why, f"{fake} {line}") for why, line in SCHEDULE],
        "errors": [(why, line.format(taken=taken)) for why, line in [("", "cd wrong"), *PLIMSOLL]],
    }
    said = iter(run_with_locust([row for rows in parts.values() for row in rows]))
    found = {name: (rows, [next(said) for _ in rows]) for name, rows in parts.items()}
    found["schedule"] = (SCHEDULE, found["schedule"][1])
    return found


@pytest.mark.parametrize("name", ["lab-check", "scenario", "init", "schedule"])
def test_commands(told: Told, site: str, name: str) -> None:
    another_each_time = {
        rf"{site.removeprefix('http://')}\b": "site.example",
        r"\b[A-Z][a-z]{2} 20\d\d-\d\d-\d\d": "Thu 2026-11-26",
        r"20\d\d-\d\d-\d\dT[\d:.]+": "2026-11-26T12:00:00",
        r"^(download|throughput) .*": r"\1 …",
    }
    check_golden(f"{name}.txt", transcript(*told[name], another_each_time))


def test_errors(told: Told, place: Path, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place / "wrong")
    others = [(why, line.format(taken=taken)) for why, line in REPLAY + MAKE]
    rows, said = told["errors"]
    another_each_time = {
        rf":{taken}\b": ":PORT",
        r"Makefile:\d+": "Makefile:N",
        r"^.* no cron daemon runs here: .*\n": "",
    }
    check_golden("errors.txt", transcript(others + rows[1:], run(others) + said[1:], another_each_time))


def test_plan(place: Path) -> None:
    (place / "small.yml").write_text(PLANNED)
    begun = place / "results" / "small-20261126T120000Z"
    (begun / "runs" / "0001-replay--old--1").mkdir(parents=True)
    (begun / "runs" / "0001-replay--old--1" / "run.json").touch()
    (begun / "lab.json").write_text(json.dumps(yaml.safe_load(PLANNED)))
    (begun / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in JOURNAL))
    check_golden("lab-plan.txt", transcript(PLAN, run(PLAN)))
