"""`--keep-raw-days`: raw data goes, figures stay, and nothing else is touched."""

import json
import shutil
from pathlib import Path

import pytest

from plimsoll.analysis.regress import intake
from plimsoll.analysis.regress.store import open_history
from tests.support.comparable import folder_of, regress, write_night

NIGHTS = 5


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Five nights, long ago."""
    results = tmp_path / "results"
    regress(
        tmp_path / "history.sqlite",
        *(write_night(results, number, {"nvme": 50, "sata": 80}) for number in range(NIGHTS)),
    )
    return tmp_path / "history.sqlite"


def runs_left(file: Path) -> list[int]:
    results = file.parent / "results"
    return [len(list((folder_of(results, at) / "runs").iterdir())) for at in range(NIGHTS)]


def test_old_raw_data_goes_and_its_figures_stay(file: Path) -> None:
    before = json.loads(regress(file, "--json").stdout)
    result = regress(file, "--keep-raw-days", "30")
    assert result.exit_code == 0
    assert "raw data of 8 runs deleted" in result.stderr
    assert runs_left(file) == [0, 0, 0, 0, 2], "the newest night stays"
    assert json.loads(regress(file, "--json").stdout) == before
    assert "raw data of 0 runs" in regress(file, "--keep-raw-days", "30").stderr


def test_a_dry_run_says_what_and_how_much(file: Path) -> None:
    result = regress(file, "--keep-raw-days", "30", "--dry-run")
    assert runs_left(file) == [2] * NIGHTS
    size = sum(
        path.stat().st_size
        for at in range(NIGHTS - 1)
        for path in (folder_of(file.parent / "results", at) / "runs").glob("*/*")
    )
    assert f"raw data of 8 runs would be deleted, {size:,} bytes" in result.stderr
    assert "0001-replay--nvme--1" in result.stderr


def test_what_is_young_stays(file: Path) -> None:
    regress(file, "--keep-raw-days", "100000")
    assert runs_left(file) == [2] * NIGHTS


def test_the_baseline_stays_unless_forced(file: Path) -> None:
    name = folder_of(file.parent / "results", 1).name
    regress(file, "--set-baseline", name, "--keep-raw-days", "30")
    assert runs_left(file) == [2] * NIGHTS, "the baseline is all of them, since it is still growing"
    regress(file, "--keep-raw-days", "30", "--force")
    assert runs_left(file) == [0] * NIGHTS
    assert len(json.loads(regress(file, "--json").stdout)["experiments"][0]["baseline"]) == NIGHTS


def test_links_and_other_runs_stay(file: Path) -> None:
    results = file.parent / "results"
    first, second, third = (sorted((folder_of(results, at) / "runs").iterdir()) for at in range(3))
    moved = file.parent / "elsewhere"
    first[0].rename(moved)
    first[0].symlink_to(moved)
    shutil.rmtree(second[0])
    shutil.copytree(third[1], second[0])
    result = regress(file, "--keep-raw-days", "30", "--force")
    assert moved.is_dir()
    assert first[0].is_symlink()
    assert second[0].is_dir()
    assert "is reached by a link" in result.stderr
    assert "is another run than the one that the history knows" in result.stderr


def test_a_folder_above_that_became_a_link_is_left_alone(file: Path) -> None:
    runs = folder_of(file.parent / "results", 0) / "runs"
    moved = file.parent / "elsewhere"
    runs.rename(moved)
    runs.symlink_to(moved)
    regress(file, "--keep-raw-days", "30", "--force")
    assert len(list(moved.iterdir())) == 2


def test_a_run_that_could_not_be_read_stays(tmp_path: Path) -> None:
    night = write_night(tmp_path, 0, {"nvme": 50, "sata": 80})
    first, _ = sorted((night / "runs").iterdir())
    (first / "requests.npy").write_bytes(b"")
    regress(tmp_path / "history.sqlite", night, "--keep-raw-days", "30", "--force")
    assert [run.name for run in (night / "runs").iterdir()] == [first.name]


def test_what_a_crash_left_half_deleted_is_deleted_next_time(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("plimsoll.analysis.regress.intake.shutil.rmtree", killed)
    with open_history(file) as kept, pytest.raises(KeyboardInterrupt):
        intake.prune(kept, 30, forced=False, dry_run=False)
    monkeypatch.undo()
    assert runs_left(file) == [2] * NIGHTS, "one of them is hidden"
    regress(file, "--keep-raw-days", "30")
    assert runs_left(file) == [0, 0, 0, 0, 2]
    with open_history(file) as kept:
        assert sum(run.pruned for run in kept.runs()) == 8
