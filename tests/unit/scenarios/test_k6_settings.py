"""The settings of the scenarios on k6, and those of their scripts."""

import json
import re
import stat
from functools import partial
from pathlib import Path

import pytest

from plimsoll.common.errors import SettingsError
from plimsoll.scenarios import browser, list_scenarios, visitors
from plimsoll.scenarios.browser import NoBrowserError, chromium_program, confining_script, resolver_rules
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.running.settings import validate_options
from plimsoll.scenarios.visitors import Stage, check_pages, estimate_visits, parse_stages
from plimsoll.scenarios.wordpress.content import small_photograph
from tools.script_defaults import script_defaults

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
        validate_options(visitors.Settings, {"target": TARGET, "stages": text or " "})


def settings(**given: object) -> visitors.Settings:
    return validate_options(visitors.Settings, {"target": TARGET} | given)


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
    asked = validate_options(browser.Settings, {"target": TARGET, "users": 2})
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
    asked = validate_options(browser.Settings, {"target": TARGET, **given})
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


def test_the_photograph_is_the_same_for_each_seed() -> None:
    of = partial(small_photograph, width=160, height=107)
    assert of(1) == of(1)
    assert of(1) != of(2)
    assert of(1, 1) != of(1, 2), "an article's own"
    assert of(1).startswith(b"\xff\xd8\xff")
