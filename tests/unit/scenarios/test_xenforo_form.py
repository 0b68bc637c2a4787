"""Forms as they are read out of pages that others wrote."""

import pytest

from plimsoll.scenarios.xenforo.installer import Form, element_text, find_form, find_text
from tests.support.xenforo_pages import INSTALLER, reply

CASES = [
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


@pytest.mark.parametrize(("why", "html", "form"), CASES, ids=[case[0] for case in CASES])
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
