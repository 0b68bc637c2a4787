"""The pages of `plimsoll serve`: what stands in them, and that nothing of a run is anything but text."""

import re
import sqlite3
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import pytest

from plimsoll.analysis.report.making import make_report
from plimsoll.common.errors import HistoryError
from plimsoll.lab.experiment.folder import make_folder
from plimsoll.serve.application import Application
from plimsoll.serve.catalogue import item_key
from plimsoll.serve.finished import read_nights
from tests.support.comparable import regress, write_night
from tests.support.pages import HOSTILE, Answer, ask, elements_in, write_hostile_run
from tests.support.rundir import records, traffic, write_run
from tests.support.scripted import lab_of


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
        for tag, attributes in elements_in(answer.text):
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
    answer = _get(served, f"/?q={quote(text)}&backend={quote(text[:50])}")
    assert answer.status == 200
    assert not {tag for tag, _ in elements_in(answer.text)} & {"img", "iframe"}
    assert "<script>" not in re.sub(r"<script (?:nonce|type)[^>]*>", "", answer.text)


def test_hostile_names_are_text_on_every_page(tmp_path: Path) -> None:
    name = "<img src=x onerror=window.owned=1>"
    write_hostile_run(tmp_path / name)
    write_run(tmp_path / "plain", records(3000), routes=["a"] * len(HOSTILE))
    app = Application(tmp_path).app()
    one, other = _key(name), _key("plain")
    paths = ["/", "/live", f"/runs/{one}", f"/compare?run={one}&run={other}", "/?q=window"]
    for path in paths:
        answer = ask(app, path)
        assert answer.status == 200, path
        found = elements_in(answer.text)
        assert not {tag for tag, _ in found} & {"img", "iframe", "object", "embed", "b"} - {"b"}
        assert not [a for _, a in found if any(key.startswith("on") for key in a)]
        assert not [a for _, a in found if (a.get("href") or "").startswith("javascript:")]
        for character in "\x1b\x00\u202e\u2028":
            assert character not in answer.text


_PAGE = '<meta http-equiv="Content-Security-Policy" content="x"><title>{} – Plimsoll</title>'


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights")
    for number in range(3):
        assert (
            regress(
                folder / "history.sqlite", write_night(folder, number, {"nvme": 50 + number, "sata": 90})
            ).exit_code
            == 0
        )
    return folder


def test_nights_are_shown_as_the_history_has_them(history: Path) -> None:
    before = sorted(path.name for path in history.iterdir())
    (found,) = read_nights(history / "history.sqlite")
    assert found.name == "nightly"
    assert [row.name for row in found.nights.rows] == [
        "nightly-20260103T020000Z",
        "nightly-20260102T020000Z",
        "nightly-20260101T020000Z",
    ]
    assert found.nights.rows[0].cells[1:4] == ["2 of 2", "2", "0"]
    assert found.chart is not None
    assert [trace["name"] for trace in found.chart.data] == ["replay on nvme", "replay on sata"]
    assert all(value is not None for trace in found.chart.data for value in trace["y"])
    assert sorted(path.name for path in history.iterdir()) == before, "nothing is written beside it"


def test_the_page_of_nights_has_a_chart_and_the_runs_are_in_their_list(history: Path) -> None:
    app = Application(history).app()
    page = ask(app, "/nights")
    assert page.status == 200
    for text in ("nightly-20260102T020000Z", 'id="figure-nights-0"', "p99.9, night by night"):
        assert text in page.text
    assert "6 runs" in ask(app, "/?experiment=nightly").text


def test_what_is_no_history_of_ours_is_told(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE night (id)")
    connection.close()
    with pytest.raises(HistoryError, match=r"is not a history of Plimsoll"):
        read_nights(path)
    assert "is not a history of Plimsoll" in _get(tmp_path, "/nights").text
    (tmp_path / "damaged.sqlite").write_bytes(b"SQLite format 3\x00" + b"x" * 4000)
    with pytest.raises(HistoryError, match=r"cannot be read"):
        read_nights(tmp_path / "damaged.sqlite")


def test_an_experiment_has_its_status_and_its_runs(tmp_path: Path) -> None:
    folder = make_folder(lab_of(tmp_path))
    folder.journal.note("begun")
    write_run(folder.path / "runs" / "0001-replay", records(10), backend="one")
    place = str(folder.path.relative_to(tmp_path))
    app = Application(tmp_path).app()
    assert place in ask(app, "/experiments").text
    assert place not in ask(app, "/experiments?q=nothing").text
    page = ask(app, f"/experiments/{_key(place)}")
    assert page.status == 200
    assert "nothing runs: it was stopped or killed before its end" in page.text
    assert "replay: one" in page.text
    before = {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}
    ask(app, f"/experiments/{_key(place)}")
    assert {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")} == before


def test_an_experiment_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "lab.json").write_text("{}")
    (tmp_path / "lab" / "journal.jsonl").write_text("")
    page = _get(tmp_path, f"/experiments/{_key('lab')}")
    assert (page.status, "was not written by this version" in page.text) == (200, True)


def test_comparisons_and_sign_offs_are_listed_with_their_verdicts(tmp_path: Path) -> None:
    (tmp_path / "signed").mkdir()
    (tmp_path / "signed" / "signoff.html").write_text(_PAGE.format("Sign-off, PASS: nvme against sata"))
    (tmp_path / "signed" / "signoff.pdf").write_bytes(b"%PDF-1.4")
    (tmp_path / "comparison.html").write_text(_PAGE.format("FAIL: b against a"))
    (tmp_path / "other.html").write_text(_PAGE.format("INCONCLUSIVE: d against c"))
    app = Application(tmp_path).app()
    comparisons = ask(app, "/comparisons").text
    assert "b against a" in comparisons
    assert "d against c" in comparisons
    assert "nvme against sata" not in comparisons
    assert "d against c" not in ask(app, "/comparisons?verdict=FAIL").text
    signed = ask(app, "/sign-offs").text
    key = _key("signed/signoff.html")
    assert "nvme against sata" in signed
    assert f"/documents/{key}/pdf" in signed
    pdf = ask(app, f"/documents/{key}/pdf")
    assert (pdf.body, pdf.headers["content-disposition"][:10]) == (b"%PDF-1.4", "attachment")
    assert ask(app, f"/documents/{_key('comparison.html')}/pdf").status == 404
