"""A scenario is one file and one line: toys, registered for a test, work as the others do."""

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import grimp
import pytest
from click.testing import CliRunner, Result

from plimsoll import scenarios as registry
from plimsoll.cli import main
from tests.support.programs import FIXTURES, ROOT

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

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/there" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["scenario", *arguments])


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
