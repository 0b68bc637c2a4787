"""What is wrong with a page whose status is 200 more often than not."""

import pytest

from plimsoll.scenarios.running.client import Reply
from plimsoll.scenarios.xenforo.installer import Start, UpgradeStage, judge_page
from tests.support.xenforo_pages import (
    STAND_IN_PAGES,
    box_page,
    changed,
    complete_page,
    continue_page,
    login_page,
    page,
    redirect,
    reply,
    start_page,
)

GURU = "<html><body><h1>Error 503 Backend fetch failed</h1><p>Guru Meditation:</p></body></html>"
FATAL = page(
    "Upgrading", "<br />\n<b>Fatal error</b>:  Allowed memory size of 67108864 bytes exhausted in x.php"
)
FULL = "SQLSTATE[HY000]: General error: 1114 The table '#sql-alter-1' is full"

CASES: list[tuple[str, UpgradeStage, Reply | str, str | None]] = [
    ("the login form comes first", UpgradeStage.OPEN, login_page(), None),
    ("or the start form, for one who is logged in", UpgradeStage.OPEN, start_page(), None),
    ("or a continue form, of an upgrade that goes on", UpgradeStage.OPEN, continue_page("Posts", 1), None),
    ("the login leads elsewhere", UpgradeStage.LOGIN, redirect("index.php"), None),
    ("and there to the start form", UpgradeStage.LOGIN, start_page(), None),
    ("pages lead on", UpgradeStage.UPGRADE, continue_page("Posts", 7), None),
    ("until the last", UpgradeStage.UPGRADE, complete_page(), None),
    (
        "whose text is found in any case and spacing",
        UpgradeStage.UPGRADE,
        complete_page("THE upgrade\n is  complete."),
        None,
    ),
    ("wrong password, in a box", UpgradeStage.LOGIN, login_page("The password is wrong."), "login_failed"),
    ("wrong password, without a word", UpgradeStage.LOGIN, login_page(), "login_failed"),
    ("the session is over", UpgradeStage.UPGRADE, login_page(), "nonce_expired"),
    (
        "the token is too old",
        UpgradeStage.UPGRADE,
        reply(box_page("The security token did not fit."), 400),
        "nonce_expired",
    ),
    (
        "somebody else is at it",
        UpgradeStage.UPGRADE,
        box_page("The upgrade is locked: wait."),
        "upgrade_locked",
    ),
    (
        "it was done before",
        UpgradeStage.UPGRADE,
        box_page("The forum is already up to date."),
        "wrong_version",
    ),
    (
        "it was done before, says the first page",
        UpgradeStage.LOGIN,
        page("Upgrade", "Already up to date"),
        "wrong_version",
    ),
    ("an error box, status 200", UpgradeStage.UPGRADE, box_page("It cannot go on."), "upgrade_failed"),
    (
        "an error box, status 500",
        UpgradeStage.UPGRADE,
        reply(box_page("It cannot go on."), 500),
        "upgrade_failed",
    ),
    (
        "an error box above a continue form",
        UpgradeStage.UPGRADE,
        continue_page("Posts", 1).replace("<h1>", '<p class="error-box">Query failed</p><h1>'),
        "upgrade_failed",
    ),
    (
        "an empty box says nothing",
        UpgradeStage.UPGRADE,
        continue_page("x", 1) + '<p class="error-box"> </p>',
        None,
    ),
    ("PHP died in the middle of a page", UpgradeStage.UPGRADE, FATAL, "php_fatal"),
    (
        "Varnish answers for a dead backend",
        UpgradeStage.UPGRADE,
        reply(GURU, 503, server="Varnish"),
        "backend_dead",
    ),
    (
        "nginx answers for a dead backend",
        UpgradeStage.UPGRADE,
        reply("<html><center><h1>502 Bad Gateway</h1></center><center>nginx/1.22</center></html>", 502),
        "backend_dead",
    ),
    ("the database's disk is full", UpgradeStage.UPGRADE, reply(box_page(FULL), 500), "out_of_disk"),
    (
        "the database's disk is full, in its other words",
        UpgradeStage.UPGRADE,
        box_page('Error writing file (Errcode: 28 "No space left on device")'),
        "out_of_disk",
    ),
    ("a page that is none of these", UpgradeStage.UPGRADE, page("Hello", "<p>Hello</p>"), "upgrade_failed"),
    (
        "a page that is none of these, at the beginning",
        UpgradeStage.OPEN,
        page("Hello", "<p>Hello</p>"),
        "check_failed",
    ),
    ("no installer there", UpgradeStage.OPEN, reply(page("Not found", ""), 404), "http_error"),
    ("an empty page", UpgradeStage.UPGRADE, reply(""), "upgrade_failed"),
    ("the last page without its text", UpgradeStage.UPGRADE, complete_page("Bye."), "upgrade_failed"),
]


@pytest.mark.parametrize(("why", "stage", "answer", "kind"), CASES, ids=[case[0] for case in CASES])
def test_pages_are_judged(why: str, stage: UpgradeStage, answer: Reply | str, kind: str | None) -> None:
    found = judge_page(STAND_IN_PAGES, reply(answer) if isinstance(answer, str) else answer, stage)
    assert (found.kind if found else None) == kind, why
    assert found is None or found.detail


def test_where_a_start_path_is_set_the_login_may_lead_anywhere() -> None:
    pages = changed(start=Start(form="form.start", path="/forum/install/?upgrade"))
    assert judge_page(pages, reply(page("Welcome", "")), UpgradeStage.LOGIN) is None
    found = judge_page(pages, reply(page("Welcome", "")), UpgradeStage.START)
    assert found is not None
    assert found.kind == "check_failed"
