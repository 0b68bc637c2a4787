"""What seals a sign-off: sums that sha256sum reads, on each page of the PDF, of data that do not change."""

import hashlib
import os
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from plimsoll.analysis.signoff import document
from plimsoll.analysis.signoff.page import signoff_page
from plimsoll.analysis.signoff.pdf import UnreadablePdfError, each_page_has, has_on_each_page
from plimsoll.analysis.signoff.seal import FileSum, parse_sums, raw_files, sha256_of, sum_files, sums_text
from plimsoll.common.errors import RunDirectoryError, SettingsError
from tests.support.comparable import pdf_of, runs_of, sign_off_in, signed_off, write_both

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


PAGES: list[tuple[str, bytes, bool]] = [
    ("on both pages", pdf_of(f"1 / 2 {DIGITS}", f"2 / 2 {DIGITS}"), True),
    ("in parts", pdf_of(" ".join(DIGITS)), True),
    ("on the first page alone", pdf_of(DIGITS, "2 / 2"), False),
    ("no page", pdf_of(), False),
]


@pytest.mark.parametrize(("what", "pdf", "has"), PAGES, ids=[row[0] for row in PAGES])
def test_the_sum_has_to_be_on_each_page(what: str, pdf: bytes, has: bool) -> None:
    assert each_page_has(pdf, DIGITS) is has, what


def _bomb() -> bytes:
    packed = zlib.compress(bytes(80 << 20), 1)
    drawn = b"<</Length 20>>stream\nBT /F 9 Tf (-) Tj ET"
    pdf = pdf_of("-")
    assert drawn in pdf
    return pdf.replace(drawn, b"<</Filter/FlateDecode/Length %d>>stream\n" % len(packed) + packed)


HOSTILE: list[tuple[str, bytes]] = [
    ("no PDF", b"%PDF-1.4\n\0\xff"),
    ("pages that contain themselves", pdf_of("-").replace(b"/Kids[4 0 R]", b"/Kids[2 0 R]")),
    ("a page that unpacks to 80 MiB", _bomb()),
]


@pytest.mark.parametrize(("what", "pdf"), HOSTILE, ids=[row[0] for row in HOSTILE])
def test_a_hostile_pdf_bears_nothing(what: str, pdf: bytes) -> None:
    try:
        assert not has_on_each_page(pdf, DIGITS), what
    except UnreadablePdfError as error:
        assert str(error) == "its text cannot be read"


def test_reading_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.analysis.signoff.pdf._READING_S", 0.001)
    with pytest.raises(UnreadablePdfError, match=r"^its text cannot be read within 0\.001 s$"):
        has_on_each_page(pdf_of(DIGITS), DIGITS)


def test_no_pdf_is_kept_that_does_not_bear_the_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def print_other(_: Path, target: Path, __: Path) -> None:
        target.write_bytes(pdf_of(DIGITS))

    monkeypatch.setattr("plimsoll.analysis.signoff.document.print_pdf", print_other)
    write_both(tmp_path / "experiment")
    result = sign_off_in(tmp_path)
    assert "without a PDF: the browser does not print the sum on each page" in result.stderr
    assert not (tmp_path / "signed" / "signoff.pdf").exists()


def test_the_sum_of_the_evidence_is_on_every_page_and_at_the_end_of_the_command(tmp_path: Path) -> None:
    write_both(tmp_path / "experiment")
    result, out = sign_off_in(tmp_path), tmp_path / "signed"
    digits = hashlib.sha256((out / "SHA256SUMS").read_bytes()).hexdigest()
    assert f"on every page: {digits}\n" in result.stdout
    page = (out / "signoff.html").read_text(encoding="utf-8")
    assert f'@page {{ @bottom-left {{ content: "{digits}"; }} }}' in page
    assert f'id="sums-sha256">{digits}<' in page
    listed = (out / "MANIFEST").read_text().splitlines()
    assert [line.split("  ")[1] for line in listed] == [
        "SHA256SUMS",
        "gates.yml",
        "signoff.html",
        "signoff.json",
    ]


def test_it_overwrites_nothing(tmp_path: Path) -> None:
    out = signed_off(tmp_path)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    again = sign_off_in(tmp_path)
    assert again.exit_code == 2
    assert "is there already, and a sign-off is never overwritten" in again.stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_one_that_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "signed"
    printed = signoff_page

    def late(*arguments: object) -> str:
        out.mkdir()
        (out / "theirs").write_text("theirs")
        return printed(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(document, "signoff_page", late)
    write_both(tmp_path / "experiment")
    result = sign_off_in(tmp_path)
    assert result.exit_code == 2
    assert [path.name for path in out.iterdir()] == ["theirs"]
    assert not list(tmp_path.glob(".signed*"))


def test_data_that_change_meanwhile_are_not_signed_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_both(tmp_path / "experiment")
    compared = document.compare_sides

    def meanwhile(*arguments: object) -> object:
        (runs_of(tmp_path / "experiment")[0] / "events.jsonl").write_text("")
        return compared(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(document, "compare_sides", meanwhile)
    result = sign_off_in(tmp_path)
    assert result.exit_code == 2
    assert "changed while it was read" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["experiment", "limits.yml"]


def test_a_link_among_the_raw_data_is_refused(tmp_path: Path) -> None:
    write_both(tmp_path / "experiment")
    (runs_of(tmp_path / "experiment")[0] / "more").symlink_to("/etc")
    result = sign_off_in(tmp_path)
    assert result.exit_code == 2
    assert "is not a plain file, so it has no sum" in result.stderr
