"""The jobs of examples/ci, run by their own commands: what they post, how they end, which runs are good."""

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from tests.support.comparable import separated
from tests.support.programs import ROOT, need

CI = ROOT / "examples" / "ci"
GITHUB = yaml.safe_load((CI / "github.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((CI / "gitlab.yml").read_text(encoding="utf-8"))
# In the place of bin/replay: the next of the runs that a test has prepared.
REPLAY = """#!/bin/sh
while [ "$1" != --out ]; do shift; done
next=$(ls "$PREPARED" | head -n 1)
[ -n "$next" ] || { echo 'replay: the target does not answer <b>' && exit 1; }
mkdir -p "$2" && mv "$PREPARED/$next" "$2/" && echo "p99.9 of $next"
"""


@dataclass
class Project:
    """A clone in which a job runs, and the runs that its replays will have."""

    folder: Path
    prepared: Path

    def prepare(self, runs: Path) -> None:
        shutil.rmtree(self.prepared)
        shutil.copytree(runs, self.prepared)

    def run(self, shell: list[str], text: str, environment: dict[str, str]) -> int:
        kept = {"PATH": f"{self.folder / 'stubs'}:{os.environ['PATH']}", "PREPARED": str(self.prepared)}
        kept["PLIMSOLL_REPLAY"] = str(self.folder / "bin" / "replay")
        return subprocess.run(
            [*shell, text], cwd=self.folder, env=kept | environment, check=False, timeout=300
        ).returncode

    def good(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "results" / "good").glob("*"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "clone"
    for name, text in (("bin/replay", REPLAY), ("stubs/make", '#!/bin/sh\n[ "$*" = setup ]\n')):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / "examples").symlink_to(ROOT / "examples")
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    return Project(folder, prepared)


def github(project: Project) -> tuple[int, str]:
    """Run the workflow's steps as GitHub does; return the job's exit code, and what it posts."""
    job = GITHUB["jobs"]["replay"]
    output, summary = project.folder / "output", project.folder / "step-summary.md"
    environment = job["env"] | {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    code = 0
    for step in job["steps"]:
        if "run" in step and (code == 0 or "always()" in step.get("if", "")):
            code = project.run(["bash", "-e", "-o", "pipefail", "-c"], step["run"], environment) or code
    return code, summary.read_text(encoding="utf-8")


def gitlab(project: Project, **variables: str) -> tuple[int, str]:
    """Run the job's scripts as GitLab does; return the exit code, and its Markdown."""
    job = GITLAB["replay"]
    code = project.run(["sh", "-e", "-c"], "\n".join(job["script"]), job["variables"])
    project.run(["sh", "-e", "-c"], "\n".join(job["after_script"]), job["variables"] | variables)
    return code, (project.folder / "summary.md").read_text(encoding="utf-8")


def test_a_job_of_github_from_the_first_good_runs_on(project: Project, tmp_path: Path) -> None:
    good, worse = separated(tmp_path / "worse", 1.5)
    _, alike = separated(tmp_path / "alike", 1.0)
    project.prepare(good)
    code, posted = github(project)
    assert (code, len(project.good())) == (0, 4)
    assert posted.startswith("## Replay: the first good runs\n\n    p99.9 of ")

    project.prepare(worse)
    (project.folder / "step-summary.md").unlink()
    code, posted = github(project)
    assert code == 1
    assert posted.startswith("## Replay: worse than the last good runs\n\n    FAIL: ")
    assert not (tmp_path / "prepared" / "0").exists(), "all four were replayed"
    former = (project.folder / "results" / "good" / "0" / "run.json").read_bytes()

    project.prepare(alike)
    (project.folder / "step-summary.md").unlink()
    code, posted = github(project)
    assert code == 0, posted
    assert posted.startswith("## Replay: as good as the last good runs\n\n    PASS: ")
    assert (project.folder / "results" / "good" / "0" / "run.json").read_bytes() != former
    assert (project.folder / "output").read_text().splitlines() == ["code=0", "code=1", "code=0"]


class _Api(BaseHTTPRequestHandler):
    seen: list[tuple[str, str | None, dict[str, list[str]]]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.seen.append((self.path, self.headers["PRIVATE-TOKEN"], parse_qs(body)))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def api() -> Iterator[tuple[str, list[Any]]]:
    class Api(_Api):
        seen = []  # noqa: RUF012 one a test

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", Api.seen
    server.shutdown()
    server.server_close()


def test_a_job_of_gitlab_posts_to_the_merge_request(
    project: Project, tmp_path: Path, api: tuple[str, list[Any]]
) -> None:
    need("curl")
    url, seen = api
    good, worse = separated(tmp_path, 1.5)
    project.prepare(good)
    assert gitlab(project)[0] == 0
    assert seen == [], "without a token nothing is posted"
    project.prepare(worse)
    token = {"REPLAY_TOKEN": "t"}
    code, text = gitlab(
        project, **token, CI_MERGE_REQUEST_IID="7", CI_PROJECT_ID="3", CI_API_V4_URL=f"{url}/api/v4"
    )
    assert code == 1
    assert seen == [("/api/v4/projects/3/merge_requests/7/notes", "t", {"body": [text]})]
    assert text.startswith("## Replay: worse than the last good runs\n\n    FAIL: ")
    assert len(project.good()) == 4


def test_too_few_runs_are_too_early_to_tell(project: Project, tmp_path: Path) -> None:
    good, few = separated(tmp_path, 1.0)
    shutil.copytree(good, project.folder / "results" / "good")
    project.prepare(few)
    environment = GITLAB["replay"]["variables"] | {"RUNS": "3"}
    assert project.run(["sh", "-c"], "examples/ci/compare-with-last-good", environment) == 3
    assert (project.folder / "summary.md").read_text().startswith("## Replay: too early to tell\n")
    assert GITLAB["replay"]["allow_failure"]["exit_codes"] == [3]


def test_a_replay_that_fails_is_told_and_nothing_is_compared(project: Project, tmp_path: Path) -> None:
    code, posted = github(project)
    assert code == 1
    assert posted == "## Replay: it failed\n\n    replay: the target does not answer <b>\n"
    assert project.good() == []


def test_without_a_log_it_says_so(project: Project) -> None:
    assert project.run(["sh", "-c"], "examples/ci/compare-with-last-good", {}) == 2


def test_actions_are_pinned_by_their_commit() -> None:
    used = [
        line for path in sorted(CI.glob("*.yml")) for line in path.read_text().splitlines() if "uses:" in line
    ]
    assert len(used) > 3
    for line in used:
        assert re.search(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_the_image_does_not_run_as_root() -> None:
    users = re.findall(r"^USER (\S+)", (ROOT / "tools/packages/Dockerfile").read_text(), re.MULTILINE)
    assert users, "without one it is root"
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])
