"""What `make audit` makes of what govulncheck and pip-audit tell, and of what they could not ask."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import ROOT
from tools.audit import GO_MODULES, of_go, of_python

TOLD = """=== Symbol Results ===

Vulnerability #1: GO-2026-5970
    Infinite loop on invalid input
  More info: https://pkg.go.dev/vuln/GO-2026-5970
  Module: golang.org/x/text
    Found in: golang.org/x/text@v0.33.0
    Fixed in: golang.org/x/text@v0.39.0

Vulnerability #2: GO-2099-0001
  Module: example.org/a
    Found in: example.org/a@v1.0.0
    Fixed in: N/A

Your code is affected by 2 vulnerabilities from 2 modules.
"""


@pytest.mark.parametrize(
    ("told", "says", "no"),
    [
        ((0, "No vulnerabilities found.", ""), "replay: no known vulnerability", False),
        (
            (3, TOLD, ""),
            "replay: 2 known vulnerabilities\n"
            "  GO-2026-5970, Found in: golang.org/x/text@v0.33.0, Fixed in: golang.org/x/text@v0.39.0\n"
            "  GO-2099-0001, Found in: example.org/a@v1.0.0, Fixed in: N/A",
            True,
        ),
        (
            (1, "", "govulncheck: fetching vulnerabilities: dial tcp: no such host\n"),
            "replay: NOT AUDITED: govulncheck: fetching vulnerabilities: dial tcp: no such host",
            False,
        ),
        ((2, "", "panic\nscan.go:7\n"), "replay: NOT AUDITED: scan.go:7", True),
        ((2, "", ""), "replay: NOT AUDITED: it printed nothing", True),
    ],
    ids=["clean", "two found", "a database that cannot be reached", "a crash", "a crash without a word"],
)
def test_what_govulncheck_tells(told: tuple[int, str, str], says: str, no: bool) -> None:
    audit = of_go("replay", *told)
    assert str(audit) == says
    assert (bool(audit.found) or audit.broke) == no


def test_every_go_module_is_audited() -> None:
    words = ["git", "ls-files", "--", "*go.mod"]
    files = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert {str(Path(file).parent) for file in files} == set(GO_MODULES)


CLEAN = {"name": "rich", "version": "15.0", "vulns": []}
BROKEN = {"name": "jinja2", "version": "2.10", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.10.1"]}]}
UNMENDED = {"name": "idna", "version": "3.0", "vulns": [{"id": "PYSEC-2", "fix_versions": []}]}
UNKNOWN = {"name": "lxml", "skip_reason": "Dependency not found on PyPI and could not be audited"}


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ([CLEAN], "a.lock: no known vulnerability"),
        ([CLEAN, UNKNOWN], "a.lock: no known vulnerability; not audited: lxml"),
        ([UNKNOWN, UNKNOWN], "a.lock: NOT AUDITED: the database has none of its 2 packages"),
        (
            [BROKEN, CLEAN, UNMENDED],
            "a.lock: 2 known vulnerabilities\n"
            "  PYSEC-1, Found in: jinja2@2.10, Fixed in: 2.10.1\n"
            "  PYSEC-2, Found in: idna@3.0, Fixed in: none",
        ),
    ],
    ids=["clean", "one that the database does not know", "a mirror without advisories", "two found"],
)
def test_what_pip_audit_tells(told: list[dict[str, object]], says: str) -> None:
    audit = of_python("a.lock", json.dumps({"dependencies": told, "fixes": []}), "")
    assert str(audit) == says


@pytest.mark.parametrize("out", ["", "No known vulnerabilities found", "[]", "{}"])
def test_what_is_no_answer_of_pip_audit_is_no_yes(out: str) -> None:
    audit = of_python("a.lock", out, "Traceback\nConnectionError: refused\n")
    assert (str(audit), audit.broke) == ("a.lock: NOT AUDITED: ConnectionError: refused", False)
    assert of_python("a.lock", out, "Traceback\nKeyError: 'x'\n").broke
