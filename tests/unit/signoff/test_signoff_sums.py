"""The list of sums: what sha256sum makes of it, and what is no such list."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from plimsoll.analysis.signoff.seal import FileSum, parse_sums, raw_files, sha256_of, sum_files, sums_text
from plimsoll.common.errors import RunDirectoryError, SettingsError

DIGITS = "0123456789abcdef" * 4
NAMES = [
    ("plain", "run.json"),
    ("above", "../runs/1/requests.npy"),
    ("blanks", " two  blanks "),
    ("a line break", "a\nb"),
    ("a carriage return", "a\rb"),
    ("a backslash", "a\\nb"),
    ("both", "\\\n\\"),
    ("not in Unicode", os.fsdecode(b"\xff\xfe")),
    ("a control character", "\x1b[31m"),
]


@pytest.mark.parametrize(("what", "name"), NAMES, ids=[row[0] for row in NAMES])
def test_names_come_back(what: str, name: str) -> None:
    assert parse_sums(sums_text([FileSum(name, DIGITS)]), "list") == [FileSum(name, DIGITS)], what


def test_the_sum_of_three_letters_is_the_standard_s(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_of(tmp_path / "abc") == wanted


def test_sha256sum_reads_it(tmp_path: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("no sha256sum on the path")
    names = [name.replace("/", "_") for _, name in NAMES if "\r" not in name]  # older ones do not escape \r
    for name in names:
        (tmp_path / name).write_text(name, errors="surrogateescape")
    listed = sums_text(FileSum(name, sha256_of(tmp_path / name)) for name in names)
    (tmp_path / "SHA256SUMS").write_bytes(listed)
    command = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


WRONG = [
    ("nothing", b""),
    ("cut off", f"{DIGITS}  a".encode()),
    ("too short a sum", f"{DIGITS[:-1]}  a\n".encode()),
    ("no name", f"{DIGITS}  \n".encode()),
    ("an empty line", f"{DIGITS}  a\n\n".encode()),
    ("another program's", f"SHA256 (a) = {DIGITS}\n".encode()),
    ("a name with a NUL", f"{DIGITS}  a\0b\n".encode()),
]


@pytest.mark.parametrize(("what", "data"), WRONG, ids=[row[0] for row in WRONG])
def test_what_is_no_list(what: str, data: bytes) -> None:
    with pytest.raises(SettingsError, match=r"^list:\d: "):
        parse_sums(data, "list")


def test_raw_data_are_all_files_but_hidden_ones_and_reports(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for name in ("run.json", "report.html", ".report.html.x", "sub/deep.log", ".hidden/a", "sub/.b"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(name)
    calls: list[tuple[int, int]] = []
    files = raw_files([run, run])
    sums = sum_files(files, tmp_path / "elsewhere" / "signed", lambda *call: calls.append(call))
    assert [each.name for each in sums] == ["../../run/run.json", "../../run/sub/deep.log"]
    assert calls[-1] == (20, 20)


def test_a_file_that_goes_away_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    files = raw_files([tmp_path])
    (tmp_path / "run.json").unlink()
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        sum_files(files, tmp_path, lambda *_: None)
