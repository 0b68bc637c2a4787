"""What tests of the lab share: scenarios that answer without being imported for each question."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from plimsoll.lab.experiment import scenarios as asked
from plimsoll.lab.experiment.rig import Rig
from tests.support.programs import ROOT

_ANSWER = """
import json, sys
from plimsoll.scenarios.check import answers
for line in sys.stdin:
    print(json.dumps(answers(json.loads(line))), flush=True)
"""


@pytest.fixture(scope="session")
def scenarios() -> Iterator["subprocess.Popen[str]"]:
    """A process that answers questions, a line each, as `python -m plimsoll.scenarios.check` does."""
    with subprocess.Popen(
        [sys.executable, "-c", _ANSWER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


@pytest.fixture(autouse=True)
def _answered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask that process, which begins with the first question: Locust's import takes two seconds."""
    real = asked._answer

    def answer(*words: str, said: str, within_s: float) -> str:
        if words:
            return real(*words, said=said, within_s=within_s)
        process: subprocess.Popen[str] = request.getfixturevalue("scenarios")
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{said}\n")
        process.stdin.flush()
        return process.stdout.readline()

    monkeypatch.setattr(asked, "_answer", answer)


@pytest.fixture
def untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rigs tune nothing: what tuning looks at is not scripted."""
    monkeypatch.setattr(Rig, "tune", lambda *_, **__: contextlib.nullcontext())
