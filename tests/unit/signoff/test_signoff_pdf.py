"""What is read back of a PDF: whether each page bears the sum, whoever made it."""

import zlib
from pathlib import Path

import pytest

from plimsoll.analysis.signoff.pdf import UnreadablePdfError, each_page_has, has_on_each_page
from tests.support.comparable import BACKENDS, pdf_of, sign_off, write_both, write_gates

SUM = "0123456789abcdef" * 4
PAGES: list[tuple[str, bytes, bool]] = [
    ("on both pages", pdf_of(f"1 / 2 {SUM}", f"2 / 2 {SUM}"), True),
    ("in parts", pdf_of(" ".join(SUM)), True),
    ("on the first page alone", pdf_of(SUM, "2 / 2"), False),
    ("no page", pdf_of(), False),
]


@pytest.mark.parametrize(("what", "pdf", "has"), PAGES, ids=[row[0] for row in PAGES])
def test_the_sum_has_to_be_on_each_page(what: str, pdf: bytes, has: bool) -> None:
    assert each_page_has(pdf, SUM) is has, what


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
        assert not has_on_each_page(pdf, SUM), what
    except UnreadablePdfError as error:
        assert str(error) == "its text cannot be read"


def test_reading_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.analysis.signoff.pdf._READING_S", 0.001)
    with pytest.raises(UnreadablePdfError, match=r"^its text cannot be read within 0\.001 s$"):
        has_on_each_page(pdf_of(SUM), SUM)


def test_no_pdf_is_kept_that_does_not_bear_the_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def print_other(_: Path, target: Path, __: Path) -> None:
        target.write_bytes(pdf_of(SUM))

    monkeypatch.setattr("plimsoll.analysis.signoff.signoff.print_pdf", print_other)
    experiment, out = write_both(tmp_path / "e"), tmp_path / "signed"
    result = sign_off(experiment, *BACKENDS, "--gates", write_gates(tmp_path), "--out", out)
    assert "without a PDF: the browser does not print the sum on each page" in result.stderr
    assert not (out / "signoff.pdf").exists()
