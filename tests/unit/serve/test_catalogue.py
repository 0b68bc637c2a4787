"""What is found in a results folder, and that nothing else is."""

import json
import os
import shutil
import time
from pathlib import Path
from pathlib import PurePosixPath as Place

import pytest

from plimsoll.analysis.report.making import make_report
from plimsoll.serve.catalogue import (
    Catalogue,
    OutsideError,
    RunItem,
    RunQuery,
    filter_runs,
    filter_values,
    is_inside,
    item_key,
    newest_first,
    open_inside,
    recognise_page,
)
from tests.support.rundir import records, write_run


def _places(catalogue: Catalogue) -> list[str]:
    return sorted(str(run.place) for run in catalogue.contents().runs.values())


def test_runs_are_found_wherever_they_lie(tmp_path: Path) -> None:
    write_run(tmp_path / "one", records(10))
    write_run(tmp_path / "folder" / "two", records(10))
    write_run(tmp_path / "experiment" / "runs" / "three", records(10))
    write_run(tmp_path / "experiment" / "attempts" / "four" / "run", records(10))
    write_run(tmp_path / ".hidden" / "five", records(10))
    (tmp_path / "experiment" / "lab.json").write_text("{}")
    (tmp_path / "experiment" / "journal.jsonl").write_text("")
    (tmp_path / "latest").symlink_to("one")
    catalogue = Catalogue(tmp_path)
    assert _places(catalogue) == [
        "experiment/attempts/four/run",
        "experiment/runs/three",
        "folder/two",
        "one",
    ]
    (experiment,) = catalogue.contents().experiments.values()
    assert len(catalogue.contents().inside(experiment)) == 2


def test_a_run_directory_and_an_experiment_can_be_served_by_themselves(tmp_path: Path) -> None:
    write_run(tmp_path, records(10))
    assert _places(Catalogue(tmp_path)) == ["."]


def test_figures_come_from_what_the_run_wrote_of_itself(tmp_path: Path) -> None:
    summary = {
        "requests": {"sent": 5000, "failures": 2},
        "response_ms": {"p50": 1.5, "p99.9": None, "censored": {"p99.9": 30000.0}},
    }
    write_run(tmp_path / "run", records(10), summary=summary, backend="nvme", repeat=2)
    (run,) = Catalogue(tmp_path).contents().runs.values()
    assert (run.name, run.status, run.requests, run.failures) == ("nvme #2", "complete", 5000, 2)
    assert (run.p50_ms, run.p999_ms, run.p999_censored) == (1.5, 30000.0, True)


@pytest.mark.parametrize(
    ("errors", "is_wrong", "why"),
    [(0, True, "a status of 500"), (4, True, "four time-outs"), (6, False, "over a thousandth timed out")],
)
def test_a_wrong_answer_is_no_time_out(tmp_path: Path, errors: int, is_wrong: bool, why: str) -> None:
    summary = {
        "requests": {"sent": 5000, "ok": 5000 - errors, "errors": errors, "failures": 50},
        "response_ms": {"p50": 1.5, "p99.9": None, "censored": {"p99.9": 30000.0}},
    }
    write_run(tmp_path / "run", records(10), summary=summary)
    (run,) = Catalogue(tmp_path).contents().runs.values()
    assert (run.p999_censored, run.p999_wrong) == (True, is_wrong), why


@pytest.mark.parametrize(
    ("summary", "says"),
    [("[]", "a list"), ('{"requests": 3, "response_ms": [1]}', "of other types"), ("{}", "empty")],
)
def test_a_summary_that_says_nothing_leaves_figures_out(tmp_path: Path, summary: str, says: str) -> None:
    run = write_run(tmp_path / "run", records(10))
    (run / "summary.json").write_text(summary)
    (found,) = Catalogue(tmp_path).contents().runs.values()
    assert (found.requests, found.p999_ms) == (None, None), says


def test_a_damaged_run_is_listed_with_why(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(10))
    (run / "run.json").write_text('{"format": 1, "scenario": 3}')
    (found,) = Catalogue(tmp_path).contents().runs.values()
    assert found.status == "unknown"
    assert "scenario" in (found.damage or "")


def test_a_file_that_leads_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    outside = write_run(tmp_path / "outside", records(10), scenario="secret")
    served = tmp_path / "served"
    run = write_run(served / "run", records(10))
    for name in ("requests.npy", "host.csv"):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(outside / name)
        (found,) = Catalogue(served).contents().runs.values()
        assert (found.scenario, "leads out of the folder" in (found.damage or "")) == ("", True), name
    (run / "run.json").unlink()
    (run / "run.json").symlink_to(outside / "run.json")
    assert not Catalogue(served).contents().runs


def test_a_run_goes_on_ends_and_is_killed(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(10), status="running", ended_at=None)
    catalogue = Catalogue(tmp_path)
    assert [each.status for each in catalogue.contents().running()] == ["running"]
    old_s = time.time() - 60
    os.utime(run / "requests.npy", (old_s, old_s))
    assert Catalogue(tmp_path).contents().running() == []
    (found,) = Catalogue(tmp_path).contents().runs.values()
    assert found.status == "interrupted"


def test_a_run_that_never_began_to_send_does_not_run_for_ever(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(10), status="running", ended_at=None)
    (run / "requests.npy").unlink()
    assert len(Catalogue(tmp_path).contents().running()) == 1
    old_s = time.time() - 120
    os.utime(run / "run.json", (old_s, old_s))
    assert Catalogue(tmp_path).contents().running() == []


def test_what_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.serve.catalogue._FRESH_S", 0.0)
    run = write_run(tmp_path / "run", records(10), backend="old")
    catalogue = Catalogue(tmp_path)
    assert [each.backend for each in catalogue.contents().runs.values()] == ["old"]
    write_run(run, records(10), backend="newer")
    write_run(tmp_path / "second", records(10), backend="other")
    assert {each.backend for each in catalogue.contents().runs.values()} == {"newer", "other"}


# A name that is no text; what could not be read, and may be readable now, with the same stamps.
_EACH_TIME = sorted(["damaged", "other.html", os.fsdecode(b"\xff")])


def _lab(root: Path) -> Catalogue:
    """A folder of one of each; the catalogue that looked at it, and kept its index."""
    write_run(root / "run", records(10), backend="nvme", started_at="2026-11-20T10:00:00.5Z")
    write_run(root / os.fsdecode(b"\xff"), records(10))
    (root / "damaged").mkdir()
    (root / "damaged" / "run.json").write_text("{")
    policy = '<meta http-equiv="Content-Security-Policy">'
    (root / "compared.html").write_text(f"{policy}<title>PASS: a – Plimsoll</title>")
    (root / "other.html").write_text("<p>")
    (root / "nights.sqlite").write_bytes(b"SQLite format 3\x00")
    catalogue = Catalogue(root, root / ".caches" / "serve" / "index.json")
    catalogue.contents()
    return catalogue


def test_the_next_server_reads_what_changed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _lab(tmp_path).contents()
    index = tmp_path / ".caches" / "serve" / "index.json"
    assert [path.stat().st_mode & 0o777 for path in (index, index.parent)] == [0o600, 0o700]
    read: list[str] = []

    def note(name: str) -> None:
        own = getattr(Catalogue, name)

        def noting(self: Catalogue, place: Place, *more: object) -> object:
            read.append(str(place))
            return own(self, place, *more)

        monkeypatch.setattr(Catalogue, name, noting)

    note("_read")
    note("_document")
    assert Catalogue(tmp_path, index).contents() == found
    assert sorted(read) == _EACH_TIME

    read.clear()
    write_run(tmp_path / "run", records(10), backend="newer", started_at="2026-11-20T10:00:00.5Z")
    write_run(tmp_path / "new", records(10))
    (tmp_path / "other.html").write_text("<p>more")
    (tmp_path / "compared.html").unlink()
    again = Catalogue(tmp_path, index).contents()
    assert sorted(read) == sorted(["new", "run", *_EACH_TIME])
    assert again == Catalogue(tmp_path).contents()


def test_a_link_that_came_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    served = tmp_path / "served"
    index = _lab(served).root / ".caches" / "serve" / "index.json"
    outside = (served / "run" / "requests.npy").rename(tmp_path / "requests.npy")
    (served / "run" / "requests.npy").symlink_to(outside)
    runs = Catalogue(served, index).contents().runs
    assert "leads out of the folder" in (runs[item_key(Place("run"))].damage or "")


def test_an_index_that_is_not_as_it_was_written_is_made_anew(tmp_path: Path) -> None:
    found = _lab(tmp_path / "lab").contents()
    index = tmp_path / "lab" / ".caches" / "serve" / "index.json"
    good = index.read_text()
    assert '"backend":"nvme"' in good

    other = good.replace('"backend":"nvme"', '"backend":"wrong"')
    for says, text, mode in (
        ("empty", "", 0o600),
        ("cut off", other[:-10], 0o600),
        ("of another version", other.replace(" of plimsoll ", " of plimsoll 0"), 0o600),
        ("of another folder", other.replace('/lab"', '/lob"'), 0o600),
        ("of other types", other.replace('"known":{', '"known":{"run":[[3],3],'), 0o600),
        ("without what it is", '{"known":' + other.partition('"known":')[2], 0o600),
        ("no text", "\0", 0o600),
        ("open to others", other, 0o660),
        ("a link", other, None),
        ("a pipe", None, 0o600),
    ):
        index.unlink()
        if text is None:
            os.mkfifo(index)
        else:
            (tmp_path / "there").write_text(text)
            (index.symlink_to if mode is None else index.hardlink_to)(tmp_path / "there")
        index.chmod(mode or 0o600)
        assert Catalogue(tmp_path / "lab", index).contents() == found, says
        assert (index.read_text(), index.is_symlink()) == (good, False), says
        (tmp_path / "there").unlink(missing_ok=True)
    shutil.rmtree(index.parent)
    index.parent.touch()
    assert Catalogue(tmp_path / "lab", index).contents() == found, "it can be written nowhere"


def test_pages_of_ours_are_documents_and_others_are_not(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(2000))
    make_report([run])
    (tmp_path / "other.html").write_text("<title>PASS: a – Plimsoll</title><script>alert(1)</script>")
    os.mkfifo(tmp_path / "pipe.html")
    (tmp_path / "link.html").symlink_to("run/report.html")
    contents = Catalogue(tmp_path).contents()
    assert [str(each.place) for each in contents.documents.values()] == ["run/report.html"]
    assert contents.report_of(next(iter(contents.runs.values()))) is not None


_PAGE = '<meta http-equiv="Content-Security-Policy" content="x"><title>{} – Plimsoll</title>'


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("Sign-off, PASS: a against b", ("sign-off", "a against b", "PASS")),
        ("FAIL: a &lt;b&gt;", ("comparison", "a <b>", "FAIL")),
        ("WORSE: the nights", ("nights", "The nights", "WORSE")),
        ("Replay of access.log", ("report", "Replay of access.log", None)),
    ],
)
def test_a_page_is_known_by_its_title(title: str, wanted: tuple[str, str, str | None]) -> None:
    assert recognise_page(_PAGE.format(title).encode()) == wanted


def test_nothing_outside_the_folder_is_opened(tmp_path: Path) -> None:
    served = tmp_path / "served"
    (served / "inner").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (served / "file").write_text("file")
    (served / "link").symlink_to("../secret")
    (served / "linked").symlink_to("..")
    (served / "inner" / "back").symlink_to("../file")
    os.mkfifo(served / "pipe")
    with open_inside(served, Place("file")) as file:
        assert file.read() == b"file"
    for place in (
        "link",
        "linked/secret",
        "../secret",
        "inner/../../secret",
        str(tmp_path / "secret"),
        "inner",
    ):
        with pytest.raises((OSError, OutsideError)), open_inside(served, Place(place)):
            pass
    for place in ("pipe", "inner/back", "none", "."):
        with pytest.raises((OSError, OutsideError)), open_inside(served, Place(place)):
            pass
    assert not is_inside(served, served / "link")
    assert is_inside(served, served / "inner" / "back")


def _runs(tmp_path: Path) -> list[RunItem]:
    for number, (scenario, backend, p999) in enumerate(
        [("replay", "nvme", 5.0), ("replay", "sata", 50.0), ("download", "nvme", None)]
    ):
        write_run(
            tmp_path / f"{number}-run",
            records(10),
            scenario=scenario,
            backend=backend,
            started_at=f"2026-11-2{number}T10:00:00Z",
            summary={"requests": {"sent": 10}, "response_ms": {"p99.9": p999}},
        )
    return newest_first(list(Catalogue(tmp_path).contents().runs.values()))


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({}, ["2", "1", "0"]),
        ({"q": "NVME replay"}, ["0"]),
        ({"q": "1-run"}, ["1"]),
        ({"q": "nothing"}, []),
        ({"scenario": "replay"}, ["1", "0"]),
        ({"scenario": "replay", "backend": "nvme"}, ["0"]),
        ({"status": "failed"}, []),
        ({"order": "oldest"}, ["0", "1", "2"]),
        ({"order": "slowest"}, ["1", "0", "2"]),
        ({"order": "fastest"}, ["0", "1", "2"]),
        ({"order": "no such", "page": "-1"}, ["2", "1", "0"]),
        ({"page": "99999"}, ["2", "1", "0"]),
        ({"page": "²"}, ["2", "1", "0"]),
    ],
)
def test_runs_are_searched_filtered_and_sorted(
    tmp_path: Path, query: dict[str, str], wanted: list[str]
) -> None:
    listed = filter_runs(_runs(tmp_path), RunQuery.of(query))
    assert [run.place.name[0] for run in listed.runs] == wanted
    assert listed.total == len(wanted)


def test_filters_offer_what_there_is(tmp_path: Path) -> None:
    assert filter_values(_runs(tmp_path))["backend"] == ["nvme", "sata"]


def test_names_that_are_no_text_are_listed(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    write_run(path, records(10))
    (run,) = Catalogue(tmp_path).contents().runs.values()
    assert len(run.key) == 20
    assert json.loads((path / "run.json").read_text())["format"] == 2
