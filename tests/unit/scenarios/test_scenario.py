"""`plimsoll scenario`, and the lab's side door to it: a scenario is one file and one line, and documented."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import click
import grimp
import pytest
from click.testing import CliRunner, Result

from plimsoll import scenarios as registry
from plimsoll.cli import main
from plimsoll.scenarios import MODULES
from plimsoll.scenarios.check import main as check
from plimsoll.scenarios.check import problems
from plimsoll.scenarios.clean_up import clean_up
from plimsoll.scenarios.clone import add
from plimsoll.scenarios.running.settings import flag
from plimsoll.scenarios.scenario import scenario
from tests.support.programs import DOCS, FIXTURES, ROOT
from tests.support.servers import serve_wsgi


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["scenario", *arguments])


def test_the_list_says_what_each_does_needs_and_changes() -> None:
    result = run("list")
    assert result.exit_code == 0
    for entry in registry.list_scenarios():
        for text in (entry.name, entry.does, entry.needs, entry.changes or "nothing"):
            assert text in result.stdout
    assert [one["name"] for one in json.loads(run("list", "--json").stdout)] == list(registry.MODULES)


@pytest.mark.parametrize("name", registry.MODULES)
def test_every_scenario_has_help_with_an_example_and_an_out_folder(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    for text in (f"plimsoll scenario {name} --target", "--out", "--json", "--progress"):
        assert text in result.stdout


@pytest.mark.parametrize("name", registry.MODULES)
def test_no_option_takes_a_password(name: str) -> None:
    command = scenario.get_command(click.Context(scenario), name)
    assert command
    options = {option for parameter in command.params for option in parameter.opts}
    assert not options & {"--password", "--token", "--secret", "--cookie"}


@pytest.mark.parametrize("name", [one.name for one in registry.list_scenarios() if one.changes])
def test_what_changes_a_site_asks_for_leave(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLIMSOLL_USER", "author")
    monkeypatch.setenv("PLIMSOLL_PASSWORD", "hunter2")
    result = run(name, "--target", "http://127.0.0.1:9")
    assert result.exit_code == 2
    assert "--i-may-change-this-site" in result.stderr
    assert not (tmp_path / "results").exists(), "nothing was begun"


def test_all_problems_are_said_at_once() -> None:
    result = run("save-article", "--target", "10.0.0.5", "--iterations", "0", "--users", "many")
    assert result.exit_code == 2
    for option in ("--target", "--iterations", "--users"):
        assert f"Error: {option}: " in result.stderr


def test_an_option_without_effect_is_a_caution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(
        *("upgrade-xenforo", "--target", "http://127.0.0.1:9"), "--probe-ms", "0", "--probe-pages", "/"
    )
    said = "Caution: --probe-pages: has no effect: there are no visits: give --probe-ms above 0, or leave"
    assert said in result.stderr


def test_a_site_that_nobody_serves_fails_the_run(tmp_path: Path) -> None:
    result = run("download", "--target", "http://127.0.0.1:9", "--out", str(tmp_path), "--iterations", "2")
    assert result.exit_code == 1
    assert "connect_refused 2" in result.stdout
    facts = json.loads((tmp_path / "latest" / "run.json").read_text())
    assert facts["status"] == "failed"


def test_an_unknown_scenario_is_named() -> None:
    result = run("save-artcle", "--target", "http://127.0.0.1:9")
    assert result.exit_code == 2
    assert "save-artcle" in result.stderr


# The side door: settings are checked by a process of its own, JSON in and out.


URL = "http://127.0.0.1:8080"


def asked(text: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "plimsoll.scenarios.check", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.parametrize(
    ("name", "given", "keys", "why"),
    [
        ("download", {"target": URL}, [], "nothing more is needed"),
        ("download", {"target": URL, "duration_s": 40, "path": "/x"}, [], "numbers are numbers"),
        ("visitors", {"target": URL, "duration_s": 40, "rate": 2.5}, [], "visitors have a duration too"),
        ("download", {}, ["target"], "the target is missing"),
        ("download", {"target": "x", "users": 0, "saves": 1}, ["target", "users", "saves"], "all at once"),
        ("browser", {"target": URL, "iterations": 1, "duration_s": 1}, ["duration_s"], "one of the two"),
        ("upgrade-xenforo", {"target": URL, "ssh_key": "k"}, ["ssh"], "one setting needs another"),
        ("upgrade-wordpress", {"target": URL, "duration_s": 5}, ["duration_s"], "is done once, and whole"),
        ("save-artcle", {}, ["scenario"], "there is no such scenario"),
    ],
)
def test_what_is_wrong_is_said_by_key(name: str, given: dict[str, Any], keys: list[str], why: str) -> None:
    found = problems(name, given)
    assert sorted(problem["key"] for problem in found) == sorted(keys), why
    assert all(problem["problem"] and not problem["problem"].startswith("--") for problem in found)


def test_the_answer_is_json(tmp_path: Path) -> None:
    right = asked(json.dumps({"target": URL, "out": str(tmp_path / "results")}), "download")
    assert (right.returncode, json.loads(right.stdout)) == (0, [])
    assert not (tmp_path / "results").exists(), "nothing is begun"
    idle = asked(json.dumps({"target": URL, "stages": "9s:1"}), "visitors")
    assert (idle.returncode, [each["key"] for each in json.loads(idle.stdout)]) == (1, ["stages"])
    wrong = asked("{}", "nonsense")
    assert wrong.returncode == 1
    assert json.loads(wrong.stdout)[0]["key"] == "scenario"


@pytest.mark.parametrize(
    ("text", "arguments"),
    [("{", ["download"]), ("[]", ["download"]), ("{}", []), ('[{"scenario": "download"}]', [])],
)
def test_what_is_no_question_is_refused_without_a_trace(
    text: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["check", *arguments])
    monkeypatch.setattr(sys, "stdin", StringIO(text))
    with pytest.raises(SystemExit) as refused:
        check()
    assert (refused.value.code, capsys.readouterr().out) == (2, "")


def test_many_questions_have_one_answer_which_says_what_each_scenario_changes_and_its_keys() -> None:
    questions = [
        {"scenario": "download", "settings": {"target": URL}, "duration_s": 40},
        {"scenario": "download", "settings": {"users": 0}},
        {"scenario": "save-artcle", "settings": {}},
    ]
    answer = asked(json.dumps(questions))
    assert answer.returncode == 1
    told = json.loads(answer.stdout)
    assert [sorted(one["key"] for one in each) for each in told["problems"]] == [
        [],
        ["target", "users"],
        ["scenario"],
    ]
    described = told["scenarios"]
    assert list(described) == list(MODULES)
    assert described["download"]["changes"] is None
    assert described["save-article"]["changes"]
    assert "duration_s" in described["download"]["keys"]
    assert json.loads(asked("[]").stdout) == {"scenarios": described, "problems": [], "idle": []}


# A scenario is one file and one line: toys work as the others do.


ON_LOCUST = '''"""A scenario for a test: asks for one page."""

from pydantic import Field

from plimsoll.scenarios.running.locustfile import ScenarioUser, locustfile, on_locust
from plimsoll.scenarios.running.settings import IteratedSettings

ABOUT = {"does": "asks for one page", "needs": "a page", "changes": None}


class Settings(IteratedSettings):
    """Settings of the toy."""

    page: str = Field("/", description="The page.")


class Toy(ScenarioUser):
    """Asks for the page."""

    scenario = "toy"
    settings_type = Settings

    def iterate(self, number: int) -> None:
        """Ask once."""
        self.site.get("page", self.settings.page)


run = on_locust(Toy)
locustfile(Toy)
'''


ON_K6 = '''"""A scenario for a test: toy.js on k6."""

from pathlib import Path

from plimsoll.scenarios.k6.build import k6_program
from plimsoll.scenarios.k6.run import Job, Progress, Say, run_k6
from plimsoll.scenarios.running.session import build_facts, run_directory
from plimsoll.scenarios.running.settings import ScenarioSettings

ABOUT = {"does": "asks for a page on k6", "needs": "a page", "changes": "nothing that anybody notices"}


class Settings(ScenarioSettings):
    """Settings of the toy."""

    pages: int = 3


def run(settings: Settings, progress: Progress, say: Say) -> tuple[Path, bool]:
    """Run the script."""
    k6, version = k6_program(say)
    directory = run_directory(settings.out, "toy")
    job = Job(
        k6=k6,
        script=Path(__file__).with_name("toy.js"),
        settings=settings,
        timeout_s=settings.timeout_s,
        remedy="lower the rate",
        ramping=False,
        iterations=lambda elapsed_s, done: settings.pages,
    )
    return directory, run_k6(job, directory, build_facts("toy", settings, k6=version), progress, say)
'''


K6 = """#!/bin/sh
[ "$1" != version ] || { echo 'k6 v1.4.0 (go1.26.1, linux/amd64)'; exit; }
for argument; do case $argument in --out=json=*) pipe=${argument#--out=json=} ;; esac; done
printf '%s' "$PLIMSOLL_SETTINGS" > settings.json
cat "SAMPLES" > "$pipe"
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module that the registry names as the scenario `toy`."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(registry.MODULES, "toy", "toy_scenario")
    monkeypatch.delitem(sys.modules, "toy_scenario", raising=False)
    return tmp_path / "toy_scenario.py"


@pytest.fixture
def site() -> Iterator[str]:
    """A site of one page."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        start("200 OK" if environ["PATH_INFO"] == "/there" else "404 Not Found", [("Content-Length", "0")])
        return []

    with serve_wsgi(answer) as url:
        yield url


def latest(out: Path, name: str) -> Any:
    return json.loads((out / "latest" / name).read_text())


def test_a_scenario_on_locust_is_one_file_and_one_line(toy: Path, site: str, tmp_path: Path) -> None:
    toy.write_text(ON_LOCUST)
    assert (
        "toy\n    does     asks for one page\n    needs    a page\n    changes  nothing" in run("list").stdout
    )
    assert "toy_scenario" not in sys.modules, "the list imports no scenario"
    assert "--page" in run("toy", "--help").stdout
    out = tmp_path / "results"
    done = run("toy", "--target", site, "--out", str(out), "--iterations", "2", "--page", "/there")
    assert done.exit_code == 0, done.output
    assert latest(out, "run.json")["scenario"] == "toy"
    assert latest(out, "summary.json")["requests"]["total"] == 2
    assert run("toy", "--target", site, "--out", str(out), "--iterations", "2").exit_code == 1


def test_a_scenario_on_k6_is_one_file_its_script_and_one_line(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy.write_text(ON_K6)
    k6 = tmp_path / "k6"
    k6.write_text(K6.replace("SAMPLES", str(FIXTURES / "k6" / "visitors.json")))
    k6.chmod(0o755)
    monkeypatch.setenv("PLIMSOLL_K6", str(k6))
    assert "changes  nothing that anybody notices" in run("list").stdout
    out = tmp_path / "results"
    run("toy", "--target", "http://127.0.0.1:9", "--out", str(out), "--pages", "7")
    assert latest(out, "run.json")["scenario"] == "toy"
    assert latest(out, "summary.json")["requests"]["total"] > 0
    settings = latest(out, "settings.json")
    assert (settings["target"], settings["pages"]) == ("http://127.0.0.1:9", 7), "one document for the script"


def test_nothing_imports_a_scenario() -> None:
    graph = grimp.build_graph("plimsoll", cache_dir=None)
    for module in registry.MODULES.values():
        assert not graph.find_modules_that_directly_import(module), "not the frame, and no other scenario"


def test_the_list_does_not_import_locust() -> None:
    listed = "from plimsoll.scenarios import list_scenarios; list_scenarios()"
    code = f"import sys; {listed}; print('locust' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "False\n"


BROKEN = [
    ("no literal", "", LookupError, "has no ABOUT"),
    ("a key is missing", 'ABOUT = {"does": "x", "needs": "y"}', TypeError, "changes"),
]


@pytest.mark.parametrize(("why", "text", "error", "says"), BROKEN)
def test_a_file_that_does_not_say_what_it_does_is_refused(
    toy: Path, why: str, text: str, error: type[Exception], says: str
) -> None:
    toy.write_text(text)
    with pytest.raises(error, match=says):
        registry.find_scenario("toy")


# Documentation.


COMMON = DOCS / "scenarios.md"
TEXT = COMMON.read_text(encoding="utf-8")


def row(name: str) -> str:
    """The row that a scenario has in the table of scenarios."""
    return next((line for line in TEXT.splitlines() if line.startswith("|") and f"`{name}`" in line), "")


def documented(name: str) -> set[str]:
    """The options that a scenario's pages name: the common page, and the one its row links to."""
    pages = re.findall(r"\]\((\w[\w-]*\.md)\)", row(name))
    text = TEXT + "".join((DOCS / page).read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r"--[a-z0-9][a-z0-9-]*", text))


@pytest.mark.parametrize("name", registry.MODULES)
def test_every_option_is_documented(name: str) -> None:
    fields = registry.find_scenario(name).settings().model_fields
    missing = {flag(field) for field in fields} - documented(name)
    assert not missing, f"describe them in {COMMON.name}, or on the page that its table links for {name}"


def test_every_option_of_the_clean_up_is_documented() -> None:
    options = {option for one in clean_up.params for option in one.opts if option.startswith("--")}
    assert options - documented("download") == set()


@pytest.mark.parametrize("name", registry.MODULES)
def test_every_scenario_has_its_place(name: str) -> None:
    assert row(name), f"{COMMON.name} lists {name}"


def test_no_option_is_documented_that_is_none() -> None:
    known = {flag(field) for one in registry.list_scenarios() for field in one.settings().model_fields}
    commands = [*scenario.commands.values(), clean_up, add]
    known |= {option for one in commands for p in one.params for option in p.opts}
    known |= {"--json", "--progress", "--no-progress"}
    known |= {"--prepare"}  # of python -m plimsoll.scenarios.check
    # Locust's own
    known |= {
        "--master",
        "--expect-workers",
        "--headless",
        "--spawn-rate",
        "--host",
        "--worker",
        "--master-host",
    }
    assert documented("download") - known == set()


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_lead_somewhere(link: str) -> None:
    assert link.startswith("https://") or (DOCS / link).exists()
