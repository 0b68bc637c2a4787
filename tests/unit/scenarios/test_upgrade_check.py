"""The pages before and after a core upgrade: what is offered, the database, and the state after a failure."""

import pytest

from plimsoll.scenarios.running.client import Reply, StepFailure, find_failure
from plimsoll.scenarios.wordpress.upgrade import (
    Offer,
    choose_offer,
    describe_state,
    find_database_failure,
    find_front_failure,
    find_offer_failure,
    same_version,
    shown_version,
    version_fits,
)
from tests.unit.scenarios.test_upgrade_page import OFFER, reply


def form(
    version: str, act: str = "do-core-upgrade", button: str = '<input type="submit" name="upgrade">'
) -> str:
    return (
        f'<li><p>About {version}.</p><form action="?action={act}" name="upgrade">'
        f'<input type="hidden" name="version" value="{version}">{button}</form></li>'
    )


def admin(body: str, version: str = "6-1-9") -> str:
    return f'<html><body class="wp-admin branch-6-1 version-{version} admin-color-fresh">{body}</body></html>'


def test_the_offer_of_a_real_page() -> None:
    chosen = choose_offer(reply(OFFER), "6.1", "6.8")
    assert isinstance(chosen, Offer)
    assert chosen.version == "6.8.7"
    assert chosen.address == "http://clone.test/wp-admin/update-core.php?action=do-core-upgrade"
    assert [name for name, _ in chosen.fields] == [
        "_wpnonce",
        "_wp_http_referer",
        "version",
        "locale",
        "upgrade",
    ]
    assert shown_version(reply(OFFER)) == "6.1.9"
    assert find_offer_failure(reply(OFFER), None, None) is None


OFFERS: list[tuple[str, str, str | None, str | None, str]] = [
    ("the first that is newer", admin(form("6.1.9") + form("6.2.7") + form("6.8.7")), None, None, "6.2.7"),
    ("the one that is asked for", admin(form("6.2.7") + form("6.8.7")), None, "6.8", "6.8.7"),
    ("6.10 is above 6.9", admin(form("6.10"), "6-9"), None, None, "6.10"),
    ("a page without a version is believed", form("6.8.7"), None, None, "6.8.7"),
    ("an upgraded site", admin(form("6.8.7", "do-core-reinstall"), "6-8-7"), None, None, "wrong_version"),
    ("a site that reaches nobody", admin(""), None, None, "wrong_version"),
    ("another clone than was meant", admin(form("6.8.7")), "6.0", None, "wrong_version"),
    ("6.1 is not 6.10", admin(form("6.12"), "6-10"), "6.1", None, "wrong_version"),
    ("a version that is not offered", admin(form("6.8.7")), None, "6.7", "wrong_version"),
    ("PHP is too old: no button", admin(form("6.8.7", button="")), None, None, "check_failed"),
    ("a version that is unseen is not the one expected", form("6.8.7"), "6.1", None, "wrong_version"),
]


@pytest.mark.parametrize(("what", "page", "old", "new", "found"), OFFERS, ids=[row[0] for row in OFFERS])
def test_offers(what: str, page: str, old: str | None, new: str | None, found: str) -> None:
    chosen = choose_offer(reply(page), old, new)
    assert (chosen.kind if isinstance(chosen, StepFailure) else chosen.version) == found, what
    assert find_offer_failure(reply(page), old, new) == (chosen if isinstance(chosen, StepFailure) else None)


def test_a_clone_whose_database_is_behind_is_not_upgraded() -> None:
    chosen = choose_offer(reply("<html></html>", path="wp-admin/upgrade.php?_wp_http_referer=x"), None, None)
    assert isinstance(chosen, StepFailure)
    assert chosen.kind == "wrong_version"


def test_a_login_that_does_not_last_is_named() -> None:
    found = find_offer_failure(reply("", 302, location="http://clone.test/wp-login.php?reauth=1"), None, None)
    assert found is not None
    assert found.kind == "login_failed"
    assert "disk full?" in found.detail


VERSIONS = [
    ("6.1.9", "6.1", True, False),
    ("6.1.9", "6", True, False),
    ("6.1", "6.1.9", False, False),
    ("6.10", "6.1", False, False),
    ("6.8", "6.8", True, True),
    ("6.8", "6.8.0", False, True),
    ("6.9-RC1", "6.9", True, True),
]


@pytest.mark.parametrize(("version", "other", "fitting", "equal"), VERSIONS)
def test_versions(version: str, other: str, fitting: bool, equal: bool) -> None:
    assert version_fits(version, other) is fitting
    assert same_version(version, other) is equal


STEP = '<p class="step"><a class="button" href="{}">Go on</a></p>'
CURRENT, DUE = STEP.format("http://clone.test/"), STEP.format("upgrade.php?step=1&amp;backto=")
DATABASES: list[tuple[str, str, bool, str | None]] = [
    ("nothing to do", CURRENT, False, None),
    ("something to do is no trouble before it is done", DUE, False, None),
    ("nothing left", CURRENT, True, None),
    ("still the old one", DUE, True, "upgrade_failed"),
    ("MySQL is too old: no button", "<p>You cannot update because …</p>", False, "check_failed"),
    ("an empty page", "", False, "check_failed"),
]


@pytest.mark.parametrize(("what", "page", "pressed", "kind"), DATABASES, ids=[row[0] for row in DATABASES])
def test_the_database_page(what: str, page: str, pressed: bool, kind: str | None) -> None:
    found = find_database_failure(reply(page, path="wp-admin/upgrade.php"), pressed=pressed)
    assert (found.kind if found else None) == kind, what


MAINTENANCE = (
    "<!DOCTYPE html><html><body>Briefly unavailable for scheduled maintenance. Check back.</body></html>"
)
STATES = [
    ("it runs", reply(admin("")), "now the site answers as WordPress 6.1.9"),
    ("the login is lost", reply("", 302, location="/wp-login.php"), "now the site asks to log in again"),
    (
        "half",
        reply("", 302, location="/wp-admin/upgrade.php"),
        "now its files are new and its database is not",
    ),
    ("maintenance", reply(MAINTENANCE, 503), "delete the file .maintenance"),
    (
        "maintenance in any language",
        reply("<html>…</html>", 503, retry_after="600"),
        "delete the file .maintenance",
    ),
    ("broken", reply("<b>Fatal error</b>: no function x()"), "now the site has another problem: "),
    ("something else", reply("<p>Hello</p>"), "now it says: Hello"),
]


@pytest.mark.parametrize(("what", "page", "words"), STATES, ids=[row[0] for row in STATES])
def test_the_state_after_a_failure_is_said(what: str, page: Reply, words: str) -> None:
    assert words in describe_state(page), what


def test_maintenance_is_no_dead_backend() -> None:
    found = find_failure(reply(MAINTENANCE, 503, retry_after="600", x_varnish="5"))
    assert found is not None
    assert found.kind == "upgrade_locked"


def test_the_front_page_must_be_a_page() -> None:
    assert find_front_failure(reply("<html><body>Hello</body></html>", path="")) is None
    assert find_front_failure(reply("", path="")) == StepFailure(
        "check_failed", "the front page is not a page: status 200"
    )
