"""The sign-off on paper, by a real browser: on A4, whole, with the sum on each page; or without a browser."""

import hashlib
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser

from plimsoll.analysis.signoff.pdf import PrintingError, print_command, print_pdf
from plimsoll.cli import main
from plimsoll.common.programs import find_chromium
from tests.support.chromium import Opened
from tests.support.comparable import BACKENDS, runs_of, sign_off, signed_off, write_both, write_gates
from tests.support.programs import DOCS, need
from tests.support.rundir import change


def test_it_fits_a4_and_its_pdf_is_on_a4(browser: Browser, tmp_path: Path) -> None:
    out = signed_off(tmp_path, "--signer", "A. Bell")
    opened = Opened(
        browser, out / "signoff.html", viewport={"width": 740, "height": 1000}
    )  # as it is printed
    opened.page.emulate_media(media="print")
    opened.page.set_viewport_size({"width": 680, "height": 960})  # what A4 has between its margins
    wide = "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).length"
    assert opened.page.evaluate(wide) == 0, "every table fits the paper"
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.page.close()
    pdf = (out / "signoff.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-")
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert boxes
    assert {(round(float(width)), round(float(height))) for width, height in boxes} == {(595, 842)}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


PAPER: list[tuple[str, float, tuple[str, ...], Callable[[Path], object]]] = [
    ("a PASS with two lines to sign on", 1.0, (), lambda _: None),
    ("a FAIL with three", 1.5, ("A. Bell", "C. Draper", "E. Fox"), lambda _: None),
    ("one with many who sign", 1.0, tuple("abcdefgh"), lambda _: None),
    ("one that is spoilt", 1.0, ("A. Bell", "C. Draper", "E. Fox"), lambda e: _spoil(e)),
]


def _spoil(experiment: Path) -> None:
    first, second = runs_of(experiment)[:2]
    change(first, status="interrupted")
    change(second, host={"hostname": "another"}, program={"name": "replay", "version": "0.9"})


@pytest.mark.parametrize(("what", "ratio", "signers", "spoil"), PAPER, ids=[row[0] for row in PAPER])
def test_on_paper_all_that_a_decision_takes_is_on_the_first_page_and_the_sum_on_every_page(
    tmp_path: Path, what: str, ratio: float, signers: tuple[str, ...], spoil: Callable[[Path], object]
) -> None:
    asked = "gates:\n" + "".join(
        f"  - {{scenario: replay, phase: {phase}, metric: {metric}, at_most_ratio: 1.1}}\n"
        for phase in ("before", "during", "whole")
        for metric in ("p50", "p90", "mean")
    )
    write_both(tmp_path / "e", ratio, 6)
    spoil(tmp_path / "e")
    out = tmp_path / "signed"
    by = [part for name in signers for part in ("--signer", name)]
    question = (
        "May the shop move to the new disks before Christmas, given that the old ones are five years old?"
    )
    sign_off(
        tmp_path / "e",
        *BACKENDS,
        "--gates",
        write_gates(tmp_path, asked),
        "--out",
        out,
        "--question",
        question,
        *by,
    )
    pages = _pages(out / "signoff.pdf")
    digits = hashlib.sha256((out / "SHA256SUMS").read_bytes()).hexdigest()
    assert [page.count(digits) > 0 for page in pages] == [True] * len(pages), what
    assert "What was compared" in pages[0]
    assert "does not claim" in pages[0]
    assert "Signed" in pages[0]
    assert pages[1].lstrip().startswith("The details"), what


def _pages(pdf: Path) -> list[str]:
    """Return the words on every page."""
    command = [need("pdftotext"), "-layout", str(pdf), "-"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return said.split("\f")[:-1]


# The labels of each axis that cover one another.
OVERLAPS = """() => {
    const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
    const box = (label) => label.getBoundingClientRect();
    const axes = document.querySelectorAll(".plot .xaxislayer-above, .plot .yaxislayer-above");
    return [...axes].flatMap((axis) => {
        const labels = [...axis.querySelectorAll("text")];
        return labels.flatMap((one, at) => labels.slice(at + 1)
            .filter((other) => !apart(box(one), box(other)))
            .map((other) => `${one.textContent} / ${other.textContent}`));
    });
}"""


def test_on_paper_figures_have_no_toolbar_nor_labels_that_overlap(browser: Browser, tmp_path: Path) -> None:
    names = ("replay", "save-article", "upgrade-wordpress")
    asked = "gates:\n"
    for place, scenario in enumerate(names):
        write_both(tmp_path / "e", 1 + place / 20, first=100 * place, scenario=scenario)
        for metric in ("p99.9", "p99", "p50", "mean"):
            asked += f"  - {{scenario: {scenario}, phase: during, metric: {metric}, at_most_ratio: 1.05}}\n"
    out = tmp_path / "signed"
    sign_off(tmp_path / "e", *BACKENDS, "--gates", write_gates(tmp_path, asked), "--out", out)
    opened = Opened(browser, out / "signoff.html", viewport={"width": 1300, "height": 900})
    page = opened.page
    width = "document.querySelector('#figure-effects .main-svg').clientWidth"
    assert page.evaluate(width) > 1000
    assert page.locator(".modebar").count() == 2
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    opened.until(f"{width} === 640")
    opened.until("document.querySelector('#figure-repeats .main-svg').clientWidth === 640")
    assert page.locator(".modebar:visible").count() == 0
    assert page.locator(".plot .ytick text").count() > 10
    assert page.evaluate(OVERLAPS) == []
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    opened.until(f"{width} > 1000")
    assert page.evaluate(OVERLAPS) == []
    assert opened.complaints == []
    page.close()


def test_chromium_keeps_its_sandbox_unless_it_is_root_s() -> None:
    paths = Path("/p"), Path("/t"), Path("/u")
    plain, root = (print_command("chromium", *paths, as_root) for as_root in (False, True))
    assert "--no-sandbox" not in plain
    assert [word for word in root if word not in plain] == ["--no-sandbox"]
    assert "--host-resolver-rules=MAP * ~NOTFOUND" in plain
    assert plain[-1] == "file:///p"


BROKEN = [
    ("fails", "#!/bin/sh\necho '\033[31mno display' >&2; exit 7\n", "exit code 7: \\x1b[31mno display"),
    ("prints nothing", "#!/bin/sh\nexit 0\n", "exit code 0: it says nothing"),
    ("cannot be run", "", "cannot be run"),
]


@pytest.mark.parametrize(("what", "program", "says"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_browser_that_fails_costs_the_pdf_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, program: str, says: str
) -> None:
    browser_there = tmp_path / "chromium"
    browser_there.write_text(program)
    browser_there.chmod(0o755)
    monkeypatch.setattr("plimsoll.analysis.signoff.pdf.find_chromium", lambda: str(browser_there))
    with pytest.raises(PrintingError, match=re.escape(says)):
        print_pdf(tmp_path / "page.html", tmp_path / "page.pdf", tmp_path)
    out = signed_off(tmp_path)
    assert not (out / "signoff.pdf").exists(), what
    assert (out / "signoff.html").exists()


def test_the_browser_is_looked_for_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_chromium() is None
    (tmp_path / "google-chrome").write_text("")
    (tmp_path / "google-chrome").chmod(0o755)
    assert find_chromium() == os.fspath(tmp_path / "google-chrome")


def test_verify_has_a_help_of_its_own_and_its_flags_are_documented() -> None:
    result = CliRunner().invoke(main, ["signoff", "verify", "--help"])
    assert result.exit_code == 0
    assert re.search(r"Examples:\n\s+plimsoll signoff verify ", result.stdout)
    text = (DOCS / "signoff.md").read_text(encoding="utf-8")
    for flag in set(re.findall(r"--[a-z-]+", result.stdout)) - {"--help"}:
        assert f"`{flag}" in text
