"""The upgrade over a site that is made up: what is sent, in which order, and when it ends."""

import itertools

import pytest

from plimsoll.scenarios.running.client import StepFailedError
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.xenforo.installer import (
    OTHER,
    Form,
    InstallerWalk,
    PageLimits,
    Pages,
    Start,
    StepNames,
    UpgradeStopped,
    UpgradeTimes,
)
from tests.support.xenforo_pages import (
    INSTALLER,
    SITE,
    STAND_IN_PAGES,
    FakeSite,
    box_page,
    changed,
    complete_page,
    continue_page,
    login_page,
    page,
    redirect,
    start_page,
)

ACCOUNT = Credentials("admin", "secret & more")
LOCKED = box_page("The upgrade is locked: wait.")


def walk(site: FakeSite, pages: Pages = STAND_IN_PAGES) -> UpgradeTimes:
    seconds = itertools.count(0.0, 0.5)
    return InstallerWalk(pages, SITE, site, pause=lambda _: None, clock_s=lambda: next(seconds)).upgrade(
        ACCOUNT
    )


def test_a_whole_upgrade() -> None:
    site = FakeSite(
        [
            login_page(),
            redirect("index.php"),
            start_page(),
            continue_page("Altering posts", 0),
            continue_page("Rebuilding (1 of 3)", 0),
            continue_page("Rebuilding (2 of 3)", 500),
            complete_page(),
        ]
    )
    times = walk(site)
    assert site.steps == [
        "open installer",
        "log in",
        "log in",
        "start",
        "continue: Altering posts",
        "continue: Rebuilding (# of #)",
        "continue: Rebuilding (# of #)",
    ]
    assert times.pages == 3
    assert list(times.phases_s) == ["Altering posts", "Rebuilding (# of #)"]
    assert sum(times.phases_s.values()) <= times.total_s
    forms = [form for _, form in site.sent]
    assert forms[0] == Form(INSTALLER, "GET", ())
    assert dict(forms[1].fields) == {
        "_xfToken": "1,a",
        "action": "login",
        "account": "admin",
        "secret": "secret & more",
    }
    assert forms[2] == Form(INSTALLER + "index.php", "GET", ())
    assert dict(forms[3].fields) == {"_xfToken": "1,b", "action": "start"}
    assert dict(forms[6].fields) == {"_xfToken": "1,c", "action": "run", "cursor": "500"}


def test_one_who_is_logged_in_already_is_not_logged_in_again() -> None:
    site = FakeSite([start_page(), continue_page("Posts", 0), complete_page()])
    walk(site)
    assert site.steps == ["open installer", "start", "continue: Posts"]


def test_an_upgrade_that_was_interrupted_may_go_on_at_once() -> None:
    site = FakeSite([login_page(), continue_page("Posts", 400), complete_page()])
    walk(site)
    assert site.steps == ["open installer", "log in", "continue: Posts"]


def test_an_upgrade_without_anything_to_do_is_complete_after_its_start() -> None:
    assert walk(FakeSite([start_page(), complete_page()])).pages == 0


def test_further_fields_and_a_start_path_of_the_settings() -> None:
    pages = changed(
        login=STAND_IN_PAGES.login.model_copy(update={"fields": {"remember": "1"}}),
        start=Start(form="form.start", path="/forum/install/?upgrade/", fields={"agree": "yes"}),
    )
    site = FakeSite([login_page(), page("Welcome", ""), start_page(), complete_page()])
    walk(site, pages)
    assert site.steps == ["open installer", "log in", "open upgrade", "start"]
    assert dict(site.sent[1][1].fields)["remember"] == "1"
    assert site.sent[2][1].address == INSTALLER + "?upgrade/"
    assert dict(site.sent[3][1].fields)["agree"] == "yes"


def test_a_lock_is_waited_for_and_the_wait_is_no_part_of_the_upgrade() -> None:
    site = FakeSite([start_page(), LOCKED, LOCKED, continue_page("Posts", 0), complete_page()])
    times = walk(site)
    assert site.steps == ["open installer", "start", "start", "start", "continue: Posts"]
    assert site.checked == []
    assert times.lock_wait_s > 0
    without = walk(FakeSite([start_page(), continue_page("Posts", 0), complete_page()]))
    assert times.total_s <= without.total_s + 0.5
    assert without.lock_wait_s == 0


FAILURES = [
    (
        "a lock that stays",
        [start_page(), *[LOCKED] * 5],
        changed(limits=PageLimits(lock_wait_s=1)),
        "start",
        "upgrade_locked",
    ),
    ("wrong password", [login_page(), login_page("wrong")], STAND_IN_PAGES, "log in", "login_failed"),
    (
        "the same page three times",
        [start_page(), *[continue_page("Posts", 1)] * 5],
        STAND_IN_PAGES,
        "continue: Posts",
        "upgrade_failed",
    ),
    (
        "the same page but for its token",
        [start_page(), *[continue_page("Posts", 1, f"{i},x") for i in range(5)]],
        STAND_IN_PAGES,
        "continue: Posts",
        "upgrade_failed",
    ),
    (
        "no end in sight",
        [start_page(), *[continue_page("Posts", i) for i in range(9)]],
        changed(limits=PageLimits(pages=4)),
        "continue: Posts",
        "upgrade_failed",
    ),
    (
        "no text of completion",
        [start_page(), continue_page("Posts", 1), complete_page("Bye")],
        STAND_IN_PAGES,
        "continue: Posts",
        "upgrade_failed",
    ),
    ("it leads round and round", [redirect("a")] * 9, STAND_IN_PAGES, "open installer", "check_failed"),
    (
        "an error in the middle",
        [start_page(), continue_page("Posts", 1), box_page("No.")],
        STAND_IN_PAGES,
        "continue: Posts",
        "upgrade_failed",
    ),
]


@pytest.mark.parametrize(("why", "replies", "pages", "step", "kind"), FAILURES, ids=[c[0] for c in FAILURES])
def test_failures(why: str, replies: list[str], pages: Pages, step: str, kind: str) -> None:
    with pytest.raises(StepFailedError) as caught:
        walk(FakeSite(replies), pages)
    assert (caught.value.step, caught.value.kind) == (step, kind), why


def test_a_page_that_says_something_new_does_advance_though_its_form_is_the_same() -> None:
    replies = [continue_page("Posts", 0).replace("0 of", f"{i} of") for i in range(9)]
    assert walk(FakeSite([start_page(), *replies, complete_page()])).pages == 9


def test_stopped_between_two_pages() -> None:
    site = FakeSite([start_page(), continue_page("Posts", 0), continue_page("Posts", 1)])
    with pytest.raises(UpgradeStopped):
        InstallerWalk(STAND_IN_PAGES, SITE, site, stopped=lambda: len(site.sent) == 3).upgrade(ACCOUNT)
    assert site.steps == ["open installer", "start", "continue: Posts"]


def test_names_of_steps_are_few_and_harmless() -> None:
    names = StepNames()
    assert names.name("Rebuilding… 12,345 (7.5%)") == "Rebuilding… # (#)"
    assert names.name("") == "untitled"
    assert names.name("a\x1b[31m\u202e") == "a\\x1b[#m\\u202e"
    assert len(names.name("x" * 500)) <= 60
    many = {names.name("step " + "abcdefgh"[i % 8] * (1 + i // 8)) for i in range(400)}
    assert OTHER in many
    assert len(many) <= 49
