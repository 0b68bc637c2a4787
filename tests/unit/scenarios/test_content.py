"""Articles and photographs: the same for each seed, no larger than asked for, made once."""

import io
import re
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import lxml.html
import pytest
from PIL import Image

from plimsoll.common.errors import OutputError
from plimsoll.scenarios.wordpress import content
from plimsoll.scenarios.wordpress.content import (
    Article,
    default_folder,
    is_whole_jpeg,
    make_article,
    make_missing,
    photograph,
    photograph_path,
    revise_article,
    shape,
    small_photograph,
)

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


# Photographs, large and small.


def jpeg(seed: int, number: int) -> bytes:
    file = io.BytesIO()
    photograph(seed, number).save(file, "JPEG", quality=88)
    return file.getvalue()


def test_all_have_twelve_megapixels_and_more_than_one_shape() -> None:
    shapes = [shape(1, number) for number in range(1, 101)]
    assert min(width * height for width, height in shapes) >= 12_000_000
    assert max(width * height for width, height in shapes) <= 24_000_000
    assert len(set(shapes)) > 6
    assert any(height > width for width, height in shapes), "some stand upright"


def test_a_photograph_is_the_same_each_time_and_as_large_as_a_camera_s() -> None:
    one = jpeg(1, 5)
    assert one == jpeg(1, 5)
    assert 1_000_000 < len(one) < 8_000_000
    with Image.open(io.BytesIO(one)) as picture:
        assert picture.size == shape(1, 5)
        assert picture.mode == "RGB"


def test_photographs_differ_by_number_and_seed() -> None:
    small = [photograph(seed, number).resize((30, 30)).tobytes() for seed, number in ((1, 1), (1, 2), (2, 1))]
    assert len(set(small)) == 3


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[int]]:
    """Makers that write small files in this process; what each was asked for."""
    asked: list[list[int]] = []

    class Maker:
        returncode = 0

        def poll(self) -> int:
            return 0

        def wait(self) -> int:
            return 0

        def communicate(self) -> tuple[str, str]:
            return "", ""

    def start(folder: Path, seed: int, numbers: list[int]) -> Maker:
        asked.append(numbers)
        for number in numbers:
            path = photograph_path(folder, seed, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"\xff\xd8" + bytes(200_000) + b"\xff\xd9")
        return Maker()

    monkeypatch.setattr(content, "_start", start)
    return asked


def test_only_what_is_missing_is_made(quick: list[list[int]], tmp_path: Path) -> None:
    said: list[str] = []
    make_missing(tmp_path, 1, 5, said.append)
    assert sorted(chain.from_iterable(quick)) == [1, 2, 3, 4, 5]
    assert "5 photographs" in said[0]
    quick.clear()
    photograph_path(tmp_path, 1, 3).write_bytes(b"\xff\xd8 cut off")
    make_missing(tmp_path, 1, 6, said.append)
    assert sorted(chain.from_iterable(quick)) == [3, 6], "one that is no whole JPEG is made again"
    quick.clear()
    make_missing(tmp_path, 1, 6, said.append)
    assert quick == []
    assert len(said) == 2, "nothing is said when nothing is made"


def test_makers_are_programs_and_name_a_full_or_forbidden_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, no folder")
    with pytest.raises(OutputError, match="--cache"):
        make_missing(tmp_path / "taken", 1, 1, lambda text: None)


def test_a_photograph_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def save(self, file: BinaryIO, *_: object, **__: object) -> None:
            file.write(b"\xff\xd8 half")
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(content, "photograph", lambda seed, number: Broken())
    with pytest.raises(OSError, match="No space left"):
        content.make_photograph(tmp_path, 1, 1)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("data", "whole", "says"),
    [
        (b"\xff\xd8" + bytes(200_000) + b"\xff\xd9", True, "from its first mark to its last"),
        (b"\xff\xd8" + bytes(200_000), False, "cut off"),
        (b"\xff\xd8\xff\xd9", False, "too small for a photograph"),
        (b"", False, "empty"),
        (b"GIF89a" + bytes(200_000) + b"\xff\xd9", False, "no JPEG"),
    ],
)
def test_whole_files_are_known(tmp_path: Path, data: bytes, whole: bool, says: str) -> None:
    path = tmp_path / "one.jpg"
    path.write_bytes(data)
    assert is_whole_jpeg(path) is whole, says
    assert not is_whole_jpeg(tmp_path / "missing.jpg")


@pytest.mark.parametrize(
    ("environment", "folder", "says"),
    [
        ({"XDG_CACHE_HOME": "/somewhere"}, "/somewhere/plimsoll/images", "as the user says"),
        ({"XDG_CACHE_HOME": "relative"}, None, "a relative one does not count, says the specification"),
        ({}, None, "in the user's own cache"),
    ],
)
def test_the_cache_is_where_caches_are(environment: dict[str, str], folder: str | None, says: str) -> None:
    expected = Path(folder) if folder else Path.home() / ".cache" / "plimsoll" / "images"
    assert default_folder(environment) == expected, says


def test_the_photograph_is_the_same_for_each_seed() -> None:
    of = partial(small_photograph, width=160, height=107)
    assert of(1) == of(1)
    assert of(1) != of(2)
    assert of(1, 1) != of(1, 2), "an article's own"
    assert of(1).startswith(b"\xff\xd8\xff")
