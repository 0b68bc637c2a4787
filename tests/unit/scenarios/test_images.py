"""Photographs are large, different each, the same for each seed; the store makes those that are missing."""

import io
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import pytest
from PIL import Image

from plimsoll.common.errors import OutputError
from plimsoll.scenarios.wordpress import content
from plimsoll.scenarios.wordpress.content import (
    default_folder,
    is_whole_jpeg,
    make_missing,
    photograph,
    photograph_path,
    shape,
)


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
