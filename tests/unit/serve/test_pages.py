"""The pages of `plimsoll serve`: what stands in them, and that nothing of a run is anything but text."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from plimsoll.analysis.report import make_report
from plimsoll.serve.application import Application
from plimsoll.serve.catalogue import item_key
from tests.support.asking import Answer, ask
from tests.support.rundir import records, traffic, write_run
from tests.unit.report.test_page import HOSTILE, hostile_run


class _Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture
def served(tmp_path: Path) -> Path:
    for number, backend in enumerate(["sata", "nvme"]):
        write_run(
            tmp_path / f"run-{number}",
            traffic(60, 60, seed=number),
            backend=backend,
            started_at=f"2026-11-2{number}T10:00:00Z",
            load={"digest": str(number), "settings": {"timeout_s": 30.0, "rate": number}},
            summary={"requests": {"sent": 3000}, "duration_s": 60.0},
        )
    return tmp_path


def _get(root: Path, path: str) -> Answer:
    return ask(Application(root).app(), path)


def _key(place: str) -> str:
    from pathlib import PurePosixPath

    return item_key(PurePosixPath(place))


def test_every_place_has_a_page_with_a_strict_policy(served: Path) -> None:
    nonces = set()
    for path in ("/", "/live", "/experiments", "/nights", "/comparisons", "/sign-offs", "/reports", "/none"):
        answer = _get(served, path)
        assert answer.status == (404 if path == "/none" else 200)
        policy = dict(
            part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert re.fullmatch(r"'nonce-[\w-]{20,}'", policy["script-src"])
        nonces.add(policy["script-src"])
        for tag, attributes in _Elements(answer.text).found:
            if tag == "script" and attributes.get("type") != "application/json":
                assert f"'nonce-{attributes['nonce']}'" == policy["script-src"]
                assert (attributes["src"] or "").startswith("/static/")
            assert not any(name.startswith("on") for name in attributes)
        assert "http://" not in re.sub(r"http://(127\.0\.0\.1|www\.w3\.org)", "", answer.text)
    assert len(nonces) == 8, "no nonce is used twice"


def test_a_run_is_shown_as_its_report_shows_it(served: Path) -> None:
    answer = _get(served, f"/runs/{_key('run-0')}")
    assert answer.status == 200
    for text in ("replay: sata", "p99.9", "By kind of request", "Lag of the generator", "What was run"):
        assert text in answer.text
    assert sorted(path.name for path in (served / "run-0").iterdir()) == [
        "errors.json",
        "events.jsonl",
        "requests.npy",
        "routes.json",
        "run.json",
        "summary.json",
    ], "nothing is written"


def test_two_runs_are_compared_the_older_one_first(served: Path) -> None:
    one, other = _key("run-0"), _key("run-1")
    answer = _get(served, f"/compare?run={other}&run={one}")
    assert answer.status == 200
    columns = re.findall(r'<th scope="col">([^<]*)</th>', answer.text)
    assert columns[:4] == ["", "sata #1", "nvme #1", "second ÷ first"] or columns[1:3] == ["sata", "nvme"]
    assert "A verdict takes four runs" in answer.text
    assert "Their loads differ: rate." in answer.text


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 400), ("?run=a", 400), ("?run=a&run=b", 404), ("?run=a&run=b&run=c", 400), ("?run=a&run=a", 400)],
)
def test_it_takes_two_runs_to_compare(served: Path, query: str, status: int) -> None:
    assert _get(served, f"/compare{query}").status == status


def test_a_report_of_the_folder_is_sandboxed_and_one_that_is_missing_is_made_in_memory(served: Path) -> None:
    make_report([served / "run-0"])
    written = _get(served, f"/runs/{_key('run-0')}/report")
    assert written.body == (served / "run-0" / "report.html").read_bytes()
    made = _get(served, f"/runs/{_key('run-1')}/report")
    assert "nvme" in made.text
    assert not (served / "run-1" / "report.html").exists()
    listed = _get(served, "/reports")
    assert f"/documents/{_key('run-0/report.html')}" in listed.text
    document = _get(served, f"/documents/{_key('run-0/report.html')}")
    for answer in (written, made, document):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("sandbox allow-scripts")
        assert "allow-same-origin" not in policy
        assert "connect-src" not in policy, "default-src 'none' holds"
        assert "default-src 'none'" in policy


@pytest.mark.parametrize(
    "path",
    [
        "/documents/../../etc/passwd",
        "/documents/%2e%2e%2f",
        "/runs/..",
        "/runs/../../../etc/passwd",
        "/static/../application.py",
        "/static/page.html",
        "/documents/" + "0" * 20,
        "/runs/" + "0" * 20 + "/report",
        "/live?run=" + "0" * 20,
        "//etc/passwd",
    ],
)
def test_nothing_else_is_served(served: Path, path: str) -> None:
    answer = _get(served, path)
    assert answer.status == 404
    assert "root:" not in answer.text


def test_a_report_that_is_a_link_is_not_served(
    served: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "report.html"
    make_report([served / "run-0"], outside)
    (served / "run-0" / "report.html").symlink_to(outside)
    assert _get(served, f"/documents/{_key('run-0/report.html')}").status == 404
    assert str(outside) not in _get(served, "/reports").text


def test_a_run_that_cannot_be_read_says_why(served: Path) -> None:
    (served / "run-0" / "requests.npy").write_bytes(b"x" * 2000)
    answer = _get(served, f"/runs/{_key('run-0')}")
    assert "is not a NumPy file" in answer.text
    assert _get(served, f"/runs/{_key('run-0')}/report").status == 409
    assert _get(served, f"/compare?run={_key('run-0')}&run={_key('run-1')}").status == 409


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    assert "waits for the first" in _get(tmp_path, "/").text
    assert "plimsoll regress" in _get(tmp_path, "/nights").text


@pytest.mark.parametrize("text", ["<script>", '"><img src=x>', "%", "a" * 5000, "\u202e"])
def test_what_is_searched_for_is_text(served: Path, text: str) -> None:
    from urllib.parse import quote

    answer = _get(served, f"/?q={quote(text)}&backend={quote(text[:50])}")
    assert answer.status == 200
    assert not {tag for tag, _ in _Elements(answer.text).found} & {"img", "iframe"}
    assert "<script>" not in re.sub(r"<script (?:nonce|type)[^>]*>", "", answer.text)


def test_hostile_names_are_text_on_every_page(tmp_path: Path) -> None:
    name = "<img src=x onerror=window.owned=1>"
    hostile_run(tmp_path / name)
    write_run(tmp_path / "plain", records(3000), routes=["a"] * len(HOSTILE))
    app = Application(tmp_path).app()
    one, other = _key(name), _key("plain")
    paths = ["/", "/live", f"/runs/{one}", f"/compare?run={one}&run={other}", "/?q=window"]
    for path in paths:
        answer = ask(app, path)
        assert answer.status == 200, path
        found = _Elements(answer.text).found
        assert not {tag for tag, _ in found} & {"img", "iframe", "object", "embed", "b"} - {"b"}
        assert not [a for _, a in found if any(key.startswith("on") for key in a)]
        assert not [a for _, a in found if (a.get("href") or "").startswith("javascript:")]
        for character in "\x1b\x00\u202e\u2028":
            assert character not in answer.text
