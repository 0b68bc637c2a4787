"""An installer's pages are read, judged, and walked through to the last."""

import itertools
from collections.abc import Iterable

import pytest

from plimsoll.scenarios.running.client import Reply, StepFailedError
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.settings import STAND_IN
from plimsoll.scenarios.xenforo.installer import (
    OTHER,
    Check,
    Form,
    InstallerWalk,
    PageLimits,
    Pages,
    Start,
    StepNames,
    UpgradeStage,
    UpgradeStopped,
    UpgradeTimes,
    element_text,
    find_form,
    find_text,
    judge_page,
    read_pages,
)

SITE = "http://clone.test/"
INSTALLER = "http://clone.test/forum/install/"
STAND_IN_PAGES = read_pages(STAND_IN)


def reply(body: str, status: int = 200, url: str = INSTALLER, **headers: str) -> Reply:
    return Reply(url, status, headers, body.encode(), 1000)


def hidden(**fields: object) -> str:
    return "".join(f'<input type="hidden" name="{name}" value="{value}">' for name, value in fields.items())


def page(title: str, body: str) -> str:
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>"
    )


def login_page(problem: str = "") -> str:
    box = f'<div class="error-box">{problem}</div>' if problem else ""
    form = (
        f'{hidden(_xfToken="1,a", action="login")}<input name="account"><input name="secret" type="password">'
    )
    return page("Log in", f'{box}<form class="login" method="post" action="index.php">{form}</form>')


def start_page() -> str:
    return page(
        "Upgrade", f'<form class="start" method="post">{hidden(_xfToken="1,b", action="start")}</form>'
    )


def continue_page(title: str, cursor: int, token: str = "1,c") -> str:  # noqa: S107
    fields = hidden(_xfToken=token, action="run", cursor=cursor)
    return page(title, f'<p>{cursor} of 900</p><form class="continue" method="post">{fields}</form>')


def complete_page(text: str = "The upgrade is complete.") -> str:
    return page("Upgrade", f"<p>{text}</p>")


def box_page(text: str) -> str:
    return page("Upgrade", f'<div class="error-box">{text}</div>')


def redirect(to: str) -> Reply:
    return reply("", 303, location=to)


class FakeSite:
    """Answers each request with the next of its replies, and remembers what it was sent."""

    def __init__(self, replies: Iterable[Reply | str]) -> None:
        self._replies = iter([reply(r) if isinstance(r, str) else r for r in replies])
        self.sent: list[tuple[str, Form]] = []
        self.checked: list[str] = []

    def __call__(self, step: str, form: Form, check: Check) -> Reply:
        self.sent.append((step, form))
        answer = next(self._replies)
        if found := check(answer):
            self.checked.append(found.kind)
            raise StepFailedError(step, found.kind, found.detail)
        return answer

    @property
    def steps(self) -> list[str]:
        return [step for step, _ in self.sent]


def changed(**parts: object) -> Pages:
    """The stand-in's pages with some parts replaced."""
    return STAND_IN_PAGES.model_copy(update=parts)


FORMS = [
    (
        "hidden fields in their order, and no others",
        '<form method="post" action="?go"><input type="hidden" name="b" value="2"><input name="seen">'
        '<input type="hidden" name="a" value="1"><button name="save" value="1">Go</button></form>',
        Form("http://clone.test/forum/install/?go", "POST", (("b", "2"), ("a", "1"))),
    ),
    (
        "a field that stands twice is sent twice",
        '<form method="POST" action="/x"><input type="hidden" name="ids[]" value="1">'
        '<input type="hidden" name="ids[]" value="2"></form>',
        Form("http://clone.test/x", "POST", (("ids[]", "1"), ("ids[]", "2"))),
    ),
    (
        "without action the page itself is meant, without method GET, and without value the empty one",
        '<form><input type="HIDDEN" name="a"></form>',
        Form(INSTALLER, "GET", (("a", ""),)),
    ),
    (
        "a base counts for an action, and not for an empty one",
        '<base href="/elsewhere/"><form action="next.php" method="post"></form>',
        Form("http://clone.test/elsewhere/next.php", "POST", ()),
    ),
    (
        "fields that stand outside of the form but belong to it",
        '<form id="f" method="post"><p></p></form><input type="hidden" name="a" value="1" form="f">',
        Form(INSTALLER, "POST", (("a", "1"),)),
    ),
    (
        "disabled and nameless fields are not sent",
        '<form method="post"><input type="hidden" name="a" disabled><input type="hidden" value="x"></form>',
        Form(INSTALLER, "POST", ()),
    ),
    (
        "entities are read",
        '<form method="post" action="?a=1&amp;b=2">'
        '<input type="hidden" name="t" value="1,&quot;x&quot;"></form>',
        Form("http://clone.test/forum/install/?a=1&b=2", "POST", (("t", '1,"x"'),)),
    ),
    ("no form", "<p>form</p>", None),
    ("nothing at all", "", None),
    ("a form that is never shown", "<template><form></form></template>", None),
]


@pytest.mark.parametrize(("why", "html", "form"), FORMS, ids=[case[0] for case in FORMS])
def test_forms(why: str, html: str, form: Form | None) -> None:
    assert find_form(reply(html), "form") == form, why


def test_the_form_is_found_by_what_lies_in_it() -> None:
    html = '<form id="search"></form><form method="post"><button class="go">Go</button></form>'
    found = find_form(reply(html), "button.go")
    assert found == Form(INSTALLER, "POST", ())


def test_further_fields_replace_those_of_their_name_and_the_token_can_be_left_out() -> None:
    form = Form("/x", "POST", (("_xfToken", "1"), ("a", "1")))
    assert form.with_fields({"a": "2", "b": "3"}).fields == (("_xfToken", "1"), ("a", "2"), ("b", "3"))
    assert form.without_token().fields == (("a", "1"),)


def test_text_is_what_a_person_sees() -> None:
    html = (
        "<div class=t> One\n <b>two</b>three <script>four</script><!-- five --></div><div class=t>six</div>"
    )
    assert find_text(reply(html), ".t") == "One two three"
    assert find_text(reply("<p class=e></p><noscript><p class=e>No script</p></noscript>"), ".e") == ""
    assert find_text(reply("<title> A  title </title>"), "title") == "A title"
    assert find_text(reply("<p>text</p>"), "h1") == ""


def test_a_page_nested_very_deep_is_read() -> None:
    deep = reply("<div>" * 3000 + "end")
    assert element_text(deep.page).startswith("")
    assert find_form(deep, "form") is None


GURU = "<html><body><h1>Error 503 Backend fetch failed</h1><p>Guru Meditation:</p></body></html>"
FATAL = page(
    "Upgrading", "<br />\n<b>Fatal error</b>:  Allowed memory size of 67108864 bytes exhausted in x.php"
)
FULL = "SQLSTATE[HY000]: General error: 1114 The table '#sql-alter-1' is full"


JUDGED: list[tuple[str, UpgradeStage, Reply | str, str | None]] = [
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


@pytest.mark.parametrize(("why", "stage", "answer", "kind"), JUDGED, ids=[case[0] for case in JUDGED])
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
