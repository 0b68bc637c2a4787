"""Run directories below a path are found by one rule, and new ones made."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from plimsoll.common.errors import OutputError
from plimsoll.rundir.find import directory_name, find_runs, is_run, new_directory, point_latest, runs_folder

FOUND = [
    ("a folder of runs, by name", ["b/run.json", "a/run.json"], ["a", "b"]),
    ("what is hidden is left out", [".removed/run.json", "a/run.json"], ["a"]),
    ("runs lie one level deep", ["a/b/run.json"], []),
    ("a file is no run", ["a/run.json", "run"], ["a"]),
    ("a run stands for itself, whatever it holds", ["run.json", "shards/run.json"], []),
    ("without run.json it is damaged", ["a/requests.npy", "b/run.json"], ["b"]),
]


def _fill(folder: Path, files: list[str]) -> Path:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


@pytest.mark.parametrize(("why", "files", "names"), FOUND)
def test_the_runs_in_a_folder(tmp_path: Path, why: str, files: list[str], names: list[str]) -> None:
    assert [run.name for run in find_runs(_fill(tmp_path, files))] == names, why


def test_a_link_leads_to_a_run_that_is_there_already(tmp_path: Path) -> None:
    _fill(tmp_path, ["a/run.json"])
    (tmp_path / "latest").symlink_to("a")
    assert [run.name for run in find_runs(tmp_path)] == ["a"]
    assert is_run(tmp_path / "latest")


def test_damaged_runs_are_found_where_they_are_asked_for(tmp_path: Path) -> None:
    _fill(tmp_path, ["a/requests.npy", "b/run.json", "c/events.jsonl"])
    assert [run.name for run in find_runs(tmp_path, damaged=True)] == ["a", "b"]


def test_an_experiment_keeps_its_runs_in_a_folder(tmp_path: Path) -> None:
    experiment = _fill(tmp_path / "experiment", ["runs/a/run.json", "attempts/b/run.json"])
    assert runs_folder(experiment) == experiment / "runs"
    assert runs_folder(experiment / "runs") == experiment / "runs"
    assert runs_folder(experiment / "runs" / "a") == experiment / "runs" / "a"


def test_a_place_without_runs_has_none(tmp_path: Path) -> None:
    assert find_runs(tmp_path) == []
    assert find_runs(tmp_path / "nowhere") == []


def test_folders_are_never_written_twice(tmp_path: Path) -> None:
    name = directory_name(datetime(2026, 11, 21, 8, 9, 10, tzinfo=UTC), "download")
    first, second = new_directory(tmp_path, name), new_directory(tmp_path, name)
    assert (first.name, second.name) == ("20261121T080910Z-download", "20261121T080910Z-download-2")
    point_latest(first)
    point_latest(second)
    assert str((tmp_path / "latest").readlink()) == second.name


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/x.*--out"):
        new_directory(tmp_path / "file", "x")
