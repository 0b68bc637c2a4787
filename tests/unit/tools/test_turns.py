"""Builds of images take turns: whoever comes second waits until the first has ended, or died."""

import subprocess
from pathlib import Path

import pytest

from tests.support.programs import ROOT

SCRIPT = """
set -eu
say() { echo "$*" >&2; }
. "$1/site/turns.sh"
take_turn
echo "$2 begins" >>"$3"
[ "$2" != first ] || { echo ready; read -r _; }
echo "$2 ends" >>"$3"
end_turn
"""


def build(name: str, log: Path) -> "subprocess.Popen[str]":
    words = ["sh", "-c", SCRIPT, "sh", str(ROOT), name, str(log)]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize("killed", [False, True], ids=["it ends", "it is killed"])
def test_the_second_waits_for_the_first(tmp_path: Path, killed: bool) -> None:
    log = tmp_path / "log"
    with build("first", log) as first:
        assert first.stdout is not None
        assert first.stdin is not None
        assert first.stdout.readline() == "ready\n"
        with build("second", log) as second:
            assert second.stderr is not None
            assert "another build of images is running; waiting" in second.stderr.readline()
            assert log.read_text() == "first begins\n", "the second has not begun"
            if killed:
                first.kill()
            else:
                first.stdin.write("\n")
                first.stdin.flush()
            assert second.wait(timeout=60) == 0
    ended = "" if killed else "first ends\n"
    assert log.read_text() == f"first begins\n{ended}second begins\nsecond ends\n"
