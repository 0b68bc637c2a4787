"""k6: which one is used, how it is started, what its end means, and what its two scripts are given."""

import json
import re
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from plimsoll.analysis.evidence.summary import summarise
from plimsoll.analysis.exchange.importing import ImportWriter
from plimsoll.analysis.exchange.k6 import K6Assembler
from plimsoll.analysis.exchange.k6_samples import K6Reader
from plimsoll.common.errors import SettingsError
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.records import Request
from plimsoll.rundir.write import RunWriter
from plimsoll.scenarios import browser, list_scenarios, visitors
from plimsoll.scenarios.browser import NoBrowserError, chromium_program, confining_script, resolver_rules
from plimsoll.scenarios.k6 import build as k6build
from plimsoll.scenarios.k6.build import MODULE, NoK6Error, k6_program, k6_version, pinned_version
from plimsoll.scenarios.k6.run import (
    Job,
    Samples,
    arguments,
    environment,
    k6_hosts,
    k6_status,
    last_error,
    run_status,
    scratch_folder,
)
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.running.settings import ScenarioSettings, validate_options
from plimsoll.scenarios.settings import BrowserSettings, Stage, VisitorsSettings, parse_stages
from plimsoll.scenarios.visitors import check_pages, estimate_visits
from tests.support.programs import ROOT
from tools.script_defaults import script_defaults


def said(_: str) -> None:
    """Nobody listens."""


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_benchmarks_and_the_scenarios_use_one_k6() -> None:
    pins = [path.read_text() for path in (MODULE / "go.mod", ROOT / "benchmarks" / "go" / "go.mod")]
    assert pinned_version(pins[0]) == pinned_version(pins[1])
    assert (MODULE / "go.sum").exists()


def test_a_k6_of_ones_own_is_used(tmp_path: Path) -> None:
    own = script(tmp_path / "k6", 'echo "k6 v1.9.2 (commit/x, go1.25.0, linux/amd64)"')
    assert k6_program(said, {"PLIMSOLL_K6": str(own)}) == (own, "1.9.2")


UNUSABLE = [
    ("an old one", 'echo "k6 v0.57.0 (go1.23.0, linux/amd64)"', "is k6 0.57.0, too old"),
    ("another program", 'echo "GNU tar 1.34.0"', "is not a k6"),
    ("one that fails", "exit 3", "is not a k6"),
]


@pytest.mark.parametrize(("why", "text", "says"), UNUSABLE)
def test_what_is_no_k6_is_refused(tmp_path: Path, why: str, text: str, says: str) -> None:
    own = script(tmp_path / "k6", text)
    with pytest.raises(NoK6Error, match=says):
        k6_program(said, {"PLIMSOLL_K6": str(own)})


def test_a_k6_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoK6Error, match="not a k6 that can be run"):
        k6_program(said, {"PLIMSOLL_K6": str(tmp_path / "nothing")})
    assert k6_version(tmp_path / "nothing") is None


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which k6 was never built; its folder for programs."""
    monkeypatch.setattr(k6build, "BINARY", tmp_path / "bin" / "k6")
    return tmp_path / "bin"


def test_without_go_the_remedies_are_named(unbuilt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GO", "/nowhere/go")
    with pytest.raises(NoK6Error, match=r"needs Go 1\.26 or newer: install it .*or set PLIMSOLL_K6"):
        k6_program(said, {})


def go(path: Path, build: str) -> str:
    """A Go compiler that says that it is 1.26, and builds as told; the file to write is $4."""
    return str(script(path, f'if [ "$1" = env ]; then echo "${{GOES:-go1.26.0}}"; exit; fi\n{build}'))


def test_an_old_go_is_refused(unbuilt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GO", go(tmp_path / "go", "exit 1"))
    monkeypatch.setenv("GOES", "go1.19.8")
    with pytest.raises(NoK6Error, match=r"is go1\.19\.8"):
        k6_program(said, {})


def test_a_failed_build_says_its_last_words_and_leaves_nothing_half(
    unbuilt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "GO", go(tmp_path / "go", 'echo half > "$4"; echo "dial tcp: no route to host"; exit 1')
    )
    with pytest.raises(NoK6Error, match="cannot be built: dial tcp: no route to host"):
        k6_program(said, {})
    assert sorted(path.name for path in unbuilt.iterdir()) == [".k6-build.log", ".k6.lock"]


def test_a_build_is_done_once(unbuilt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = pinned_version((MODULE / "go.mod").read_text())
    program = f'#!/bin/sh\\necho "k6 v{version} (go1.26.0)"\\n'
    made = f'printf \'{program}\' > "$4"; chmod 755 "$4"; echo >> "{tmp_path}/builds"'
    monkeypatch.setenv("GO", go(tmp_path / "go", made))
    told: list[str] = []
    for _ in range(2):
        assert k6_program(told.append, {}) == (unbuilt / "k6", version)
    assert (tmp_path / "builds").read_text().count("\n") == 1
    assert len(told) == 2, "when it begins and when it is done"


class ToyScript(ScenarioSettings):
    """Settings of a script that logs in."""

    password: str


JOB = Job(
    k6=Path("/opt/k6"),
    script=Path("/plimsoll/scenarios/visitors.js"),
    settings=ToyScript(target="http://127.0.0.1:8080", password="hunter2"),  # noqa: S106
    k6_variables={"K6_BROWSER_HEADLESS": "true"},
    timeout_s=60,
    remedy="lower --rate",
    ramping=False,
    iterations=lambda elapsed_s, done: 10,
)


def test_settings_and_secrets_go_by_the_environment() -> None:
    line = arguments(JOB, Path("/scratch/samples.json"), Path("/results/run"))
    assert line[:2] == ["/opt/k6", "run"]
    assert line[-1] == "/plimsoll/scenarios/visitors.js"
    assert "--out=json=/scratch/samples.json" in line
    assert "--address=" in line, "two k6 at a time need no port of their own"
    assert not any("hunter2" in argument or "8080" in argument for argument in line)


def test_the_users_own_k6_variables_change_no_run() -> None:
    base = {"PATH": "/bin", "K6_OUT": "cloud", "K6_VUS": "9", "PLIMSOLL_RATE": "99"}
    variables = environment(base, JOB)
    settings = json.loads(variables.pop("PLIMSOLL_SETTINGS"))
    assert (settings["target"], settings["password"]) == ("http://127.0.0.1:8080", "hunter2")
    assert variables == {"PATH": "/bin", "K6_NO_USAGE_REPORT": "true", "K6_BROWSER_HEADLESS": "true"}


ENDINGS = [
    ("all is well", 0, False, "", ("complete", None)),
    ("p99.9 was over its limit", 99, False, "", ("complete", "a threshold was crossed")),
    ("Ctrl-C", 105, True, "test run was aborted", ("interrupted", "interrupted from the keyboard")),
    ("Ctrl-C, twice", -9, True, "", ("interrupted", "interrupted from the keyboard")),
    ("killed by somebody else", -9, False, "", ("interrupted", "k6 was killed by signal 9")),
    (
        "the script gave up",
        108,
        False,
        "test aborted: front page: status 503",
        ("failed", "front page: status 503"),
    ),
    ("no word of why", 107, False, "", ("failed", "k6 ended with exit code 107")),
]


@pytest.mark.parametrize(("why", "code", "interrupted", "log", "means"), ENDINGS)
def test_exit_codes_have_a_meaning(
    why: str, code: int, interrupted: bool, log: str, means: tuple[str, str | None]
) -> None:
    assert k6_status(code, interrupted, log) == means, why


LOGS = [
    ("nothing", "", None),
    (
        "an abort",
        "test aborted: log in: refused at step (file:///x/browser.js:107:51(101))\n",
        "log in: refused",
    ),
    ("an exception", "GoError: no such file\n\tat open (native)\n", "no such file"),
    ("in a promise", "Uncaught (in promise) Error: gone\n", "Error: gone"),
]


@pytest.mark.parametrize(("why", "log", "sentence"), LOGS)
def test_the_log_is_one_sentence(why: str, log: str, sentence: str | None) -> None:
    assert last_error(log) == sentence, why


def samples(run: RunWriter, **changed: int) -> Samples:
    """What an untroubled run took: ten iterations of one request each, but for what is `changed`."""
    assembler, deposit = K6Assembler(), ImportWriter(run)
    assembler.requests = assembler.iterations = deposit.good_requests = 10
    for name, value in changed.items():
        setattr(deposit if hasattr(deposit, name) else assembler, name, value)
    deposit.first_failure = "log in: refused" if deposit.failed_checks else None
    return Samples(K6Reader(iter([])), assembler, deposit)


JUDGED = [
    ("all is well", {}, True, "complete"),
    ("one of ten days failed", {"failed_checks": 1}, True, "complete"),
    ("every day failed", {"failed_checks": 10}, True, "failed"),
    ("ten checks of many failed", {"failed_checks": 10}, False, "complete"),
    ("every request failed", {"good_requests": 0}, False, "failed"),
    ("no request was sent", {"requests": 0}, False, "failed"),
]


@pytest.mark.parametrize(("why", "changed", "days", "status"), JUDGED)
def test_a_run_in_which_nothing_succeeded_has_failed(
    tmp_path: Path, why: str, changed: dict[str, int], days: bool, status: str
) -> None:
    with RunWriter(tmp_path, RunFacts(scenario="visitors"), summarise) as run:
        run.request(Request(due_ns=0, total_us=1, route="page"))
        seen = samples(run, **changed)
        assert run_status(("complete", None), seen, None, days)[0] == status, why
        assert run_status(("complete", None), seen, "the target died", days)[0] == "failed", why
        for died in (None, "the target died"):
            assert run_status(("interrupted", "x"), seen, died, days) == ("interrupted", "x")
        run.finish("complete")


def test_connect_to_leads_the_targets_name_and_port_elsewhere() -> None:
    assert k6_hosts("https://blog.example", "127.0.0.1:8443") == {"blog.example:443": "127.0.0.1:8443"}
    assert k6_hosts("http://blog.example:81", "[::1]:80") == {"blog.example:81": "[::1]:80"}
    with pytest.raises(SettingsError, match=r"nowhere\.invalid cannot be resolved"):
        k6_hosts("http://blog.example", "nowhere.invalid:80")


HOLDS = """
import sys, time
from plimsoll.scenarios.k6.run import scratch_folder
with scratch_folder() as folder:
    (folder / "profile").mkdir()
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_killed_run_leaves_its_folder_to_the_next_one(temporary: Path) -> None:
    command = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        left = Path(process.stdout.readline().strip())
        with scratch_folder() as ours:
            assert left.is_dir(), "it is at work"
            assert ours.is_dir()
        process.send_signal(signal.SIGKILL)
    assert list(temporary.iterdir()) == [left], "nobody was there to remove it"
    with scratch_folder() as ours:
        assert list(temporary.iterdir()) == [ours]
    assert list(temporary.iterdir()) == []


def test_what_only_looks_like_such_a_folder_stays(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (temporary / "plimsoll-k6-link").symlink_to(elsewhere)
    (temporary / "plimsoll-k6-file").touch()
    with scratch_folder():
        pass
    assert sorted(path.name for path in temporary.iterdir()) == [
        "elsewhere",
        "plimsoll-k6-file",
        "plimsoll-k6-link",
    ]


# Settings of the scenarios on k6, and of their scripts.


TARGET = "http://127.0.0.1:8080"


STAGES = [
    ("seconds without a unit", "30:10", [Stage(30, 10)]),
    ("minutes and hours", "2m:50, 1h:0", [Stage(120, 50), Stage(3600, 0)]),
    ("parts", "0.5m:2.5", [Stage(30, 2.5)]),
]


def test_the_registry_knows_which_scenarios_run_on_k6() -> None:
    assert {one.name for one in list_scenarios() if one.runs_on_k6} == {"visitors", "browser"}


@pytest.mark.parametrize(("why", "text", "stages"), STAGES)
def test_stages_are_lines(why: str, text: str, stages: list[Stage]) -> None:
    assert parse_stages(text) == stages, why


@pytest.mark.parametrize("text", ["", "30s", "30s:", "x:1", "30s:1,,", "30s:-1", "30d:1", "30s:0", "0s:5"])
def test_what_is_no_stage_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="--stages"):
        validate_options(VisitorsSettings, {"target": TARGET, "stages": text or " "})


def settings(**given: object) -> VisitorsSettings:
    return validate_options(VisitorsSettings, {"target": TARGET} | given)


EXPECTED = [
    ("a rate for so long", {"rate": 5, "duration_s": 60}, 0.0, 0, 300),
    (
        "the area under a ramp",
        {"model": "ramping-arrival-rate", "stages": "10s:10,10s:10,10s:0"},
        0.0,
        0,
        200,
    ),
    (
        "its own ramp: up, hold, down",
        {"model": "ramping-arrival-rate", "rate": 8, "duration_s": 40},
        0.0,
        0,
        240,
    ),
    ("visitors who wait: as it went so far", {"model": "ramping-vus", "duration_s": 100}, 25.0, 50, 200),
]


@pytest.mark.parametrize(("why", "given", "elapsed_s", "done", "visits"), EXPECTED)
def test_the_progress_bar_knows_its_end(
    why: str, given: dict[str, object], elapsed_s: float, done: int, visits: int
) -> None:
    assert estimate_visits(settings(**given), elapsed_s, done) == visits, why


def test_the_script_takes_the_settings_whole() -> None:
    asked = settings(rate=2.5, no_files=True, pages="pages.txt", connect_to="127.0.0.1:81")
    document = json.loads(visitors.script_settings(asked).model_dump_json())
    assert document | {"pages": None, "hosts": None} == json.loads(
        asked.model_copy(update={"pages": None}).model_dump_json()
    ) | {"hosts": None, "access": {"headers": {}, "cookies": {}, "cert": "", "key": ""}}
    assert document["pages"] == str(Path("pages.txt").resolve()), "k6 runs in another folder"
    assert document["hosts"] == {"127.0.0.1:8080": "127.0.0.1:81"}


def test_the_dashboard_is_k6s_own() -> None:
    variables = visitors.dashboard_variables("[::1]:5665")
    assert (variables["K6_WEB_DASHBOARD_HOST"], variables["K6_WEB_DASHBOARD_PORT"]) == ("::1", "5665")
    assert visitors.dashboard_variables(None) == {}


@pytest.mark.parametrize("path", script_defaults(), ids=lambda path: path.name)
def test_the_defaults_of_a_script_are_those_of_its_model(path: Path) -> None:
    assert path.read_text() == script_defaults()[path], "write them: make docs"
    assert f"open('./k6/defaults/{path.name}')" in (path.parents[2] / f"{path.stem}.js").read_text()


@pytest.mark.parametrize("path", script_defaults(), ids=lambda path: path.name)
def test_a_script_reads_no_setting_that_its_model_lacks(path: Path) -> None:
    script = (path.parents[2] / f"{path.stem}.js").read_text()
    read = set(re.findall(r"(?<!/)\bsettings\.(\w+)", script))
    for names in re.findall(r"const \{ (.*) \} = settings;", script):
        read |= set(names.split(", "))
    assert len(read) > 5
    assert not read - set(json.loads(path.read_text()))


PAGES = [
    ("paths, addresses, comments", f"# mine\n/\n/about\n\n{TARGET}/x?y=1\n", None),
    ("another host", "/\nhttp://elsewhere.example/\n", ":2: is neither"),
    ("another host without a scheme", "//elsewhere.example/\n", ":1: is neither"),
    ("another port", "http://127.0.0.1:81/\n", ":1: is neither"),
    ("a bare word", "about\n", ":1: is neither"),
    ("a path with a space in it", "/a b\n", ":1: is neither"),
    ("somebody's name before the host", "http://me@127.0.0.1/\n", ":1: is neither"),
    ("a port that is none", "http://127.0.0.1:99999/\n", ":1: is neither"),
    ("half an address", "http://[::1/\n", ":1: is neither"),
    ("as many as there may be", "/\n" * 10_000, None),
    ("one more", "/\n" * 10_001, "lists 10,001 pages: shorten it to 10,000"),
    ("nothing", "# none\n", "lists no page"),
]


@pytest.mark.parametrize(("why", "text", "says"), PAGES)
def test_a_file_of_pages_stays_on_the_target(tmp_path: Path, why: str, text: str, says: str | None) -> None:
    path = tmp_path / "pages.txt"
    path.write_text(text)
    if says is None:
        check_pages(path, TARGET)
        return
    with pytest.raises(SettingsError, match=says):
        check_pages(path, TARGET)


def test_a_file_of_pages_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        check_pages(tmp_path / "nothing", TARGET)


ACCOUNT = Credentials("author", "hunter2")
NAME = "plimsoll-run-20261123t201500z-0badcafe"


def test_a_browsers_password_is_only_in_its_environment(tmp_path: Path) -> None:
    asked = validate_options(BrowserSettings, {"target": TARGET, "users": 2})
    script = browser.script_settings(asked, ACCOUNT, tmp_path / "i.jpg", tmp_path / "run", NAME)
    assert json.loads(script.model_dump_json())["password"] == ACCOUNT.password
    assert "hunter2" not in str(asked.recorded_settings())
    assert "hunter2" not in repr(ACCOUNT)
    assert "hunter2" not in repr(script)


def test_only_roots_browser_has_no_sandbox(tmp_path: Path) -> None:
    flags = browser.k6_variables(tmp_path / "b", root=True)["K6_BROWSER_ARGS"].split(",")
    assert "no-sandbox" in flags
    flags = browser.k6_variables(tmp_path / "b", root=False)["K6_BROWSER_ARGS"].split(",")
    assert "no-sandbox" not in flags
    assert {"disable-quic", "disable-background-networking", "no-proxy-server"} <= set(flags)


@pytest.mark.parametrize(
    ("given", "iterations", "duration_s", "why"),
    [
        ({}, 1, None, "one day unless asked for more"),
        ({"iterations": 3}, 3, None, "so many days"),
        ({"duration_s": 40}, None, 40.0, "as many days as begin in time"),
    ],
)
def test_a_browser_lives_a_number_of_days_or_for_a_time(
    tmp_path: Path, given: dict[str, object], iterations: int | None, duration_s: float | None, why: str
) -> None:
    asked = validate_options(BrowserSettings, {"target": TARGET, **given})
    script = browser.script_settings(asked, ACCOUNT, tmp_path / "i.jpg", tmp_path / "run", NAME)
    assert (script.iterations, script.duration_s) == (iterations, duration_s), why
    assert browser.estimate_days(asked, 20.0, 2) == (4 if duration_s else iterations), why


def test_no_name_but_the_targets_leads_anywhere() -> None:
    assert resolver_rules("http://blog.example:8080", None) == "MAP * ~NOTFOUND , EXCLUDE blog.example"
    rules = resolver_rules("https://blog.example", "127.0.0.1:8443")
    assert rules == "MAP blog.example:443 127.0.0.1:8443 , MAP * ~NOTFOUND", "the first that fits holds"


def test_the_browser_is_started_with_its_rules_whatever_its_name() -> None:
    text = confining_script("/opt/my browser/chrome", "MAP * ~NOTFOUND , EXCLUDE a.example")
    assert text.splitlines()[1] == (
        "exec '/opt/my browser/chrome' \"$@\" '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE a.example'"
    )


def test_a_browser_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoBrowserError, match=r"--chromium: .* is not a program"):
        chromium_program(tmp_path / "chrome")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoBrowserError, match="Chromium is not installed"):
        chromium_program(None)
    own = tmp_path / "chromium"
    own.touch(mode=0o755)
    assert own.stat().st_mode & stat.S_IXUSR
    assert chromium_program(None) == str(own)
