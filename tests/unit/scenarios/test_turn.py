"""One login of an account at a time, over all processes; a killed one keeps nobody waiting."""

import signal
import subprocess
import sys

import gevent
import pytest

from plimsoll.scenarios.wordpress import account
from plimsoll.scenarios.wordpress.account import login_turn
from tests.support.programs import ROOT

HOLDS = """
import time
from plimsoll.scenarios.wordpress.account import login_turn
with login_turn("http://clone.test", "author"):
    print("mine", flush=True)
    time.sleep(600)
"""


def test_two_users_of_one_process_take_turns() -> None:
    said = []

    def user(name: str) -> None:
        with login_turn("http://clone.test", "editor"):
            said.append(f"{name} begins")
            gevent.sleep(0.1)
            said.append(f"{name} ends")

    gevent.joinall([gevent.spawn(user, "one"), gevent.spawn(user, "two")], raise_error=True)
    assert said in (
        ["one begins", "one ends", "two begins", "two ends"],
        ["two begins", "two ends", "one begins", "one ends"],
    )


def test_another_process_is_waited_for_until_it_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "_MOST_S", float("inf"))  # so that only its end can end the wait
    with subprocess.Popen([sys.executable, "-c", HOLDS], cwd=ROOT, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"mine\n"
        with login_turn("http://clone.test", "somebody else"):
            pass
        with login_turn("http://other.test", "author"):
            pass
        with pytest.raises(gevent.Timeout), gevent.Timeout(0.3), login_turn("http://clone.test", "author"):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait()
        with gevent.Timeout(120), login_turn("http://clone.test", "author"):
            pass
