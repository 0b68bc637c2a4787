"""Experiments, nights, comparisons and sign-offs, as `plimsoll serve` shows them."""

import sqlite3
from pathlib import Path, PurePosixPath

import pytest

from plimsoll.common.errors import HistoryError
from plimsoll.lab.experiment.folder import make_folder
from plimsoll.serve.application import Application
from plimsoll.serve.catalogue import item_key
from plimsoll.serve.finished import read_nights
from tests.support.asking import ask
from tests.support.comparable import regress, write_night
from tests.support.rundir import records, write_run
from tests.support.scripted import lab_of

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
    assert "is not a history of Plimsoll" in ask(Application(tmp_path).app(), "/nights").text
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
    page = ask(app, f"/experiments/{item_key(PurePosixPath(place))}")
    assert page.status == 200
    assert "nothing runs: it was stopped or killed before its end" in page.text
    assert "replay: one" in page.text
    before = {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}
    ask(app, f"/experiments/{item_key(PurePosixPath(place))}")
    assert {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")} == before


def test_an_experiment_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "lab.json").write_text("{}")
    (tmp_path / "lab" / "journal.jsonl").write_text("")
    page = ask(Application(tmp_path).app(), f"/experiments/{item_key(PurePosixPath('lab'))}")
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
    key = item_key(PurePosixPath("signed/signoff.html"))
    assert "nvme against sata" in signed
    assert f"/documents/{key}/pdf" in signed
    pdf = ask(app, f"/documents/{key}/pdf")
    assert (pdf.body, pdf.headers["content-disposition"][:10]) == (b"%PDF-1.4", "attachment")
    assert ask(app, f"/documents/{item_key(PurePosixPath('comparison.html'))}/pdf").status == 404
