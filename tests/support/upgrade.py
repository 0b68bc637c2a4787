"""`plimsoll scenario upgrade-xenforo` as a user runs it, on a forum of the test's own."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.scenarios.xenforo.installer import STAND_IN
from tests.support.forum import PASSWORD, Forum
from tests.support.waiting import wait_for

POSTS = 2500


class UpgradeCommand:
    """`plimsoll scenario upgrade-xenforo` in a folder of its own."""

    def __init__(
        self, folder: Path, url: str, *options: str, password: str = PASSWORD, texts: str = ""
    ) -> None:
        installer = folder / "installer.yml"
        text = STAND_IN.read_text().replace("/forum/install/", "/install/")
        installer.write_text(texts or text)
        self.results = folder / "results"
        self.command = [
            sys.executable, "-m", "plimsoll", "scenario", "upgrade-xenforo", "--target", url,
            "--installer", str(installer), "--out", str(self.results), "--i-may-change-this-site", *options,
        ]  # fmt: skip
        self.environment = {
            **os.environ,
            "PLIMSOLL_USER": "admin",
            "PLIMSOLL_PASSWORD": password,
            "HOME": str(folder),
            "SSH_AUTH_SOCK": "",
        }

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command, env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )

    @contextlib.contextmanager
    def started(self) -> Iterator["subprocess.Popen[str]"]:
        with subprocess.Popen(
            self.command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def file(self, name: str) -> Any:
        return json.loads((self.results / "latest" / name).read_text())

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.results / "latest" / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def records(self) -> Any:
        return np.load(self.results / "latest" / "requests.npy")

    def everything(self) -> str:
        return "".join(
            p.read_text(errors="replace") for p in (self.results / "latest").iterdir() if p.is_file()
        )


def reported(scenario: UpgradeCommand) -> None:
    """`plimsoll report` reads it."""
    report = subprocess.run(
        [sys.executable, "-m", "plimsoll", "report", str(scenario.results / "latest")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.returncode == 0, report.stderr


def failed(scenario: UpgradeCommand, step: str, kind: str, said: str) -> None:
    """Runs it: it fails at `step`, and `run.json`, the record and the event say why."""
    done = scenario.run()
    assert done.returncode == 1, done.stdout + done.stderr
    run = scenario.file("run.json")
    assert (run["status"], said in run["reason"]) == ("failed", True), run["reason"]
    error = scenario.events("error")[-1]
    assert (error["step"], error["kind"]) == (step, kind)
    assert said in error["detail"]
    assert PASSWORD not in scenario.everything() + done.stdout + done.stderr


STANDS = "SELECT 1 FROM post WHERE post_id = 1200 FOR UPDATE"


@contextlib.contextmanager
def standing(forum: Forum, scenario: UpgradeCommand) -> Iterator["subprocess.Popen[str]"]:
    """The scenario in the middle of a page, in the batch that wants post 1200."""
    forum.upgrade_until("post-reactions")
    with forum.database.blocking(STANDS), scenario.started() as process:
        wait_for("it stands at post 1200", lambda: forum.database.busy_with("UPDATE post p"))
        yield process
