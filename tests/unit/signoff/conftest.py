"""No sign-off of these tests prints its PDF: tests/real/page does."""

import pytest


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.analysis.signoff.pdf.find_chromium", lambda: None)
