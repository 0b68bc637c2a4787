"""A file is replaced whole or stays as it was, and nothing is left beside it."""

from pathlib import Path

import pytest

from plimsoll.common.errors import OutputError
from plimsoll.common.files import open_replacement, replace_json, replace_text


def test_a_file_that_exists_is_replaced_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with open_replacement(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="halfway"), open_replacement(path, sync=True) as file:
        file.write(b"half")
        raise ValueError("halfway")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_only_a_new_file_is_written_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "journal.json"
    with open_replacement(path, mode=0o600, only_new=True) as file:
        file.write(b"first")
    with pytest.raises(FileExistsError), open_replacement(path, only_new=True) as file:
        file.write(b"second")
    assert path.read_text() == "first"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_are_those_that_were_asked_for_whatever_the_umask(tmp_path: Path) -> None:
    replace_text(tmp_path / "page.html", "page", mode=0o644)
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o644


def test_a_folder_that_is_missing_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written: No such file or directory; choose another"):
        replace_json(tmp_path / "nowhere" / "run.json", {})
