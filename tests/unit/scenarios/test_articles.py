"""Articles are the same for each seed, no larger than asked for, and marked up as WordPress would."""

import re
from collections.abc import Callable

import lxml.html
import pytest

from plimsoll.scenarios.wordpress.content import Article, make_article, revise_article

BLOCK = re.compile(r"<!-- (/?)wp:([a-z-]+)( \{.*?\})? -->")


def test_the_same_seed_writes_the_same_articles() -> None:
    assert make_article(1, 7, 20_000) == make_article(1, 7, 20_000)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (lambda: make_article(2, 7, 20_000), "another seed writes others"),
        (lambda: make_article(1, 8, 20_000), "another number is another article"),
    ],
)
def test_articles_differ(other: Callable[[], Article], says: str) -> None:
    assert make_article(1, 7, 20_000).html() != other().html(), says


@pytest.mark.parametrize("most_bytes", [200, 500, 2_000, 100_000])
def test_no_article_is_larger_than_asked_for(most_bytes: int) -> None:
    sizes = [len(make_article(3, number, most_bytes).blocks().encode()) for number in range(1, 200)]
    assert max(sizes) <= most_bytes


def test_sizes_are_drawn_up_to_the_largest() -> None:
    sizes = [len(make_article(3, number, 100_000).html().encode()) for number in range(1, 200)]
    assert max(sizes) > 70_000
    assert min(sizes) < 1_000
    assert len(set(sizes)) > 190


def test_a_long_article_has_what_articles_have() -> None:
    whole = "".join(make_article(1, number, 100_000).html() for number in range(1, 20))
    for tag in ("<h2>", "<p>", "<ul><li>", "<blockquote>", '<a href="https://', "<strong>", "<em>"):
        assert tag in whole, tag


@pytest.mark.parametrize("number", range(1, 20))
def test_markup_is_well_formed(number: int) -> None:
    one = make_article(5, number, 30_000)
    open_blocks: list[str] = []
    for closing, name, _ in BLOCK.findall(one.blocks()):
        if closing:
            assert open_blocks.pop() == name
        else:
            open_blocks.append(name)
    assert open_blocks == []
    assert "<!--" not in one.html(), "the classic editor knows no blocks"
    parsed = lxml.html.fragment_fromstring(one.html(), create_parent="div")
    assert lxml.html.tostring(parsed, encoding="unicode") == f"<div>{one.html()}</div>"


@pytest.mark.parametrize("most_bytes", [200, 700, 50_000])
def test_a_revision_is_another_text_of_much_the_same_size(most_bytes: int) -> None:
    before = make_article(1, 2, most_bytes)
    for version in range(1, 20):
        after = revise_article(before, 1, 2, version)
        assert after.blocks() != before.blocks()
        assert after.title == before.title
        assert after.mark in after.html()
        assert before.mark not in after.html()
        assert len(after.blocks().encode()) <= most_bytes + 10
        assert len(after.html()) > 0.9 * len(before.html()) - 300
        before = after
