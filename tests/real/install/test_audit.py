"""`make audit` with vulnerabilities planted in databases of our own, which the real programs find."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.programs import ROOT
from tools import audit

pytestmark = pytest.mark.slow

GOVULNCHECK = {"tools/govulncheck": audit.GO_MODULES["tools/govulncheck"]}
ID, MODIFIED = "GO-2099-0001", "2099-01-01T00:00:00Z"


@pytest.fixture
def advisories(tmp_path: Path) -> Path:
    """Return a database of Go's with one entry: a function of kong that bin/replay calls."""
    entry = {
        "schema_version": "1.3.1",
        "id": ID,
        "modified": MODIFIED,
        "published": MODIFIED,
        "details": "planted",
        "database_specific": {"url": "https://vuln.example/"},
        "affected": [
            {
                "package": {"name": "github.com/alecthomas/kong", "ecosystem": "Go"},
                "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "99.0.0"}]}],
                "ecosystem_specific": {
                    "imports": [{"path": "github.com/alecthomas/kong", "symbols": ["New"]}]
                },
            }
        ],
    }
    modules = [
        {
            "path": "github.com/alecthomas/kong",
            "vulns": [{"id": ID, "modified": MODIFIED, "fixed": "99.0.0"}],
        }
    ]
    for name, content in (
        ("index/db", {"modified": MODIFIED}),
        ("index/modules", modules),
        (f"ID/{ID}", entry),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


class Service(BaseHTTPRequestHandler):
    """Answers as OSV does: jinja2 has a hole in every version, nothing else has one."""

    def do_POST(self) -> None:
        """Answer a query."""
        package = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["package"]
        ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.0"}]}]
        hole = {
            "id": "PYSEC-2099-1",
            "details": "planted",
            "affected": [{"package": package, "ranges": ranges}],
        }
        body = json.dumps({"vulns": [hole]} if package["name"] == "jinja2" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[str]:
    """Return the address of the service."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/query"
    server.shutdown()
    server.server_close()


def test_planted_vulnerabilities_are_found(
    advisories: Path, service: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(audit, "GO_MODULES", {"replay": ["./..."], **GOVULNCHECK})
    monkeypatch.setattr(audit, "LOCKS", ("requirements.lock", "tools/packages/pip.lock"))
    monkeypatch.setenv("GO_ADVISORIES", advisories.as_uri())
    monkeypatch.setenv("OSV_URL", service)
    monkeypatch.delenv("GO", raising=False)
    assert audit.main() == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "replay: 1 known vulnerability"
    assert said[1].startswith(f"  {ID}, Found in: github.com/alecthomas/kong@v1.")
    assert said[2:4] == [
        "tools/govulncheck: no known vulnerability",
        "requirements.lock: 1 known vulnerability",
    ]
    assert said[4].startswith("  PYSEC-2099-1, Found in: jinja2@3.")
    assert said[5:] == ["tools/packages/pip.lock: no known vulnerability"]


def test_databases_that_do_not_answer_are_no_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(audit, "GO_MODULES", GOVULNCHECK)
    monkeypatch.setattr(audit, "LOCKS", ("tools/packages/pip.lock",))
    environment = {"HTTPS_PROXY": "http://127.0.0.1:9", "OSV_URL": "http://127.0.0.1:9/v1/query"}
    found = list(audit.audits("go", {**os.environ, **environment}))
    assert [("NOT AUDITED" in str(one), one.broke) for one in found] == [(True, False), (True, False)]
