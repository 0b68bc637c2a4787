"""An account at work: one login at a time over all processes; answers of WordPress are understood."""

import signal
import subprocess
import sys

import gevent
import pytest

from plimsoll.scenarios.wordpress import account
from plimsoll.scenarios.wordpress.account import (
    expect_logged_in,
    find_rest_root,
    is_logged_out,
    is_object,
    login_turn,
    missing_sizes,
    rest_address,
)
from tests.support.programs import ROOT
from tests.support.scenario import reply

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


@pytest.mark.parametrize(
    ("location", "out", "says"),
    [
        ("http://site/wp-login.php?redirect_to=x&reauth=1", True, "to the login form"),
        ("/wp-admin/post.php?post=1&action=edit&message=6", False, "to an article"),
        ("", False, "nowhere"),
    ],
)
def test_a_lost_login_is_known(location: str, out: bool, says: str) -> None:
    one = reply("", 302, location=location)
    assert is_logged_out(one) is out, says
    found = expect_logged_in()(one)
    assert (found.kind if found else None) == ("login_failed" if out else None), says


WIDE = {"width": 2560, "height": 1707, "sizes": {"thumbnail": {}, "medium": {}, "large": {}}}


@pytest.mark.parametrize(
    ("attachment", "missing", "says"),
    [
        ({"media_details": WIDE, "missing_image_sizes": []}, [], "all are there"),
        (
            {"media_details": WIDE, "missing_image_sizes": ["2048x2048"]},
            ["2048x2048"],
            "the site says what is not",
        ),
        ({"media_details": WIDE}, ["medium_large"], "before 5.3 the usual ones are expected"),
        (
            {"media_details": {"width": 200, "height": 100, "sizes": {"thumbnail": {}}}},
            [],
            "none is made larger",
        ),
        ({"media_details": {}}, ["all"], "not even measured yet"),
        ({}, ["all"], "nothing is said"),
    ],
)
def test_missing_sizes_are_known(attachment: dict[str, object], missing: list[str], says: str) -> None:
    assert missing_sizes(attachment) == missing, says


@pytest.mark.parametrize(
    ("body", "fine", "says"),
    [
        ('{"id": 1}', True, "an object"),
        ("[]", False, "a list"),
        ('<b>Notice</b>: x {"id": 1}', False, "noise before it"),
        ("", False, "nothing"),
    ],
)
def test_replies_of_rest_are_objects(body: str, fine: bool, says: str) -> None:
    assert (is_object(reply(body)) is None) is fine, says


@pytest.mark.parametrize(
    ("root", "address", "says"),
    [
        ("http://site/wp-json/", "http://site/wp-json/wp/v2/posts?force=true", "pretty permalinks"),
        ("http://site/?rest_route=/", "http://site/?rest_route=/wp/v2/posts&force=true", "plain ones"),
    ],
)
def test_addresses_of_rest_fit_the_permalinks(root: str, address: str, says: str) -> None:
    named = root.replace("/", "\\/")
    assert find_rest_root(reply(f'wp.apiFetch.createRootURLMiddleware( "{named}" )')) == root, says
    assert rest_address(root, "wp/v2/posts", {"force": "true"}) == address, says


def test_a_page_without_the_root_leads_to_what_always_answers() -> None:
    assert find_rest_root(reply("")) == "index.php?rest_route=/"
