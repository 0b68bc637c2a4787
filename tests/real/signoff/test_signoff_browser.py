"""The sign-off in a real browser: drawn, quiet, deaf to what a run directory says, and printed on A4."""

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser

from analysis.report.chromium import chromium
from analysis.signoff.pdf import PrintingError, print_command, print_pdf
from plimsoll.cli import main
from tests.real.report.test_browser import Opened, browser  # noqa: F401 a fixture
from tests.support.paths import DOCS
from tests.support.signing_off import gates, run, signed_off
from tests.unit.comparing.test_compare_command import hostile_sides
from tests.unit.report.test_page import HOSTILE


def test_the_document_is_drawn_and_quiet_and_its_pdf_is_on_a4(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    out = signed_off(tmp_path, "--signer", "A. Bell")
    opened = Opened(browser, out / "signoff.html", viewport={"width": 1200, "height": 900})
    assert opened.complaints == []
    assert len(opened.requests) == 1, "it asks for nothing but itself"
    assert opened.page.locator("#figure-effects .trace").count() > 0
    assert opened.page.locator("#figure-repeats .trace").count() > 0
    assert opened.page.locator("#verdict .verdict").inner_text() == "PASS"
    opened.page.close()
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


def test_a_hostile_document_executes_nothing(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    sides, out = hostile_sides(tmp_path), tmp_path / "signed"
    limits = gates(tmp_path, json.dumps({"gates": [{"scenario": HOSTILE[3], "at_most_ratio": 1.1}]}))
    further = [part for name in HOSTILE for part in ("--signer", name)]
    result = run(*sides, "--gates", limits, "--out", out, "--question", HOSTILE[0], *further)
    assert result.exit_code == 3, result.output
    opened = Opened(browser, out / "signoff.html")
    assert opened.page.evaluate("window.owned === undefined")
    assert opened.page.locator("main img, main iframe, main a:not([href='#limits'])").count() == 0
    assert opened.complaints == []
    assert len(opened.requests) == 1
    opened.page.close()


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
    monkeypatch.setattr("analysis.signoff.pdf.chromium", lambda: str(browser_there))
    with pytest.raises(PrintingError, match=re.escape(says)):
        print_pdf(tmp_path / "page.html", tmp_path / "page.pdf", tmp_path)
    out = signed_off(tmp_path)
    assert not (out / "signoff.pdf").exists(), what
    assert (out / "signoff.html").exists()


def test_the_browser_is_looked_for_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert chromium() is None
    (tmp_path / "google-chrome").write_text("")
    (tmp_path / "google-chrome").chmod(0o755)
    assert chromium() == os.fspath(tmp_path / "google-chrome")


def test_verify_has_a_help_of_its_own_and_its_flags_are_documented() -> None:
    result = CliRunner().invoke(main, ["signoff", "verify", "--help"])
    assert result.exit_code == 0
    assert re.search(r"Example:\n\s+plimsoll signoff verify ", result.stdout)
    text = (DOCS / "signoff.md").read_text(encoding="utf-8")
    for flag in set(re.findall(r"--[a-z-]+", result.stdout)) - {"--help"}:
        assert f"`{flag}" in text
