"""The history's file: nothing lost, nothing doubled, whoever dies or writes meanwhile; old raw data."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.analysis.regress import intake, schema
from plimsoll.analysis.regress.intake import add_runs, select_readable
from plimsoll.analysis.regress.nights import run_identity
from plimsoll.analysis.regress.schema import APPLICATION_ID, MIGRATIONS, VERSION
from plimsoll.analysis.regress.store import open_history
from plimsoll.common.errors import HistoryError
from plimsoll.rundir.read import read_facts
from tests.support.comparable import FIRST, folder_of, regress, write_night
from tests.support.rundir import change

# Adds, and says after each run that it is kept.
ADDING = """
import sys
import tempfile
from pathlib import Path
from plimsoll.analysis.regress import schema
from plimsoll.analysis.regress.intake import add_runs, select_readable
from plimsoll.analysis.regress.store import open_history
with open_history(Path(sys.argv[1])) as kept:
    print("open", flush=True)
    add_runs(kept, select_readable([Path(sys.argv[2])]), lambda done, total: print(done, flush=True))
"""
RUNS = 24


def adding(file: Path, results: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", ADDING, str(file), str(results)], stdout=subprocess.PIPE, text=True
    )


def contents(file: Path) -> dict[str, int]:
    """Every run's identity, and how many figures it has; the file is whole."""
    with open_history(file) as kept:
        assert kept.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert kept.connection.execute("PRAGMA foreign_key_check").fetchall() == []
        rows = kept.connection.execute(
            "SELECT identity, count(figure.run) AS figures FROM run LEFT JOIN figure ON figure.run = run.id "
            "GROUP BY run.id"
        ).fetchall()
    found = {row["identity"]: row["figures"] for row in rows}
    assert len(found) == len(rows), "none is there twice"
    return found


def results_of(folder: Path, nights: int, backends: int = 2) -> Path:
    results = folder / "results"
    for number in range(nights):
        write_night(results, number, {f"b{at}": 50 + at for at in range(backends)}, count=1000)
    return results


@pytest.mark.slow
def test_kill_9_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    results, file = results_of(tmp_path, RUNS // 2), tmp_path / "history.sqlite"
    draw = random.Random(os.environ.get("PLIMSOLL_SEED", "7"))
    kept_before: set[str] = set()
    for _ in range(6):
        process = adding(file, results)
        assert process.stdout is not None
        said = 0
        for line in process.stdout:
            said = int(line) if line.strip().isdigit() else 0
            if draw.random() < 0.15:
                break
        process.kill()
        process.communicate()
        found = contents(file)
        assert len(found) >= said, "what was said to be kept is kept"
        assert kept_before <= found.keys(), "and so is what was kept before"
        assert len(set(found.values())) <= 1, "a run is there with all of its figures, or not at all"
        kept_before = set(found)
    process = adding(file, results)
    process.communicate()
    assert process.returncode == 0
    assert len(contents(file)) == RUNS


def test_kill_9_while_the_file_is_made(tmp_path: Path) -> None:
    results, file = results_of(tmp_path, 1), tmp_path / "history.sqlite"
    for delay_s in (0.0, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4):
        process = adding(file, results)
        try:
            process.communicate(timeout=delay_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
    with open_history(file) as kept:
        add_runs(kept, select_readable([results]))
    assert len(contents(file)) == 2


def test_two_that_write_at_once_both_get_their_turn(tmp_path: Path) -> None:
    one, other = results_of(tmp_path / "one", 6), results_of(tmp_path / "other", 6, backends=3)
    file = tmp_path / "history.sqlite"
    writers = [adding(file, results) for results in (one, other, one, other)]
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 4
    expected = {run_identity(read_facts(run)) for folder in (one, other) for run in folder.glob("*/runs/*")}
    assert contents(file).keys() == expected


def test_adding_twice_is_harmless_and_cheap(tmp_path: Path) -> None:
    results, file = results_of(tmp_path, 3), tmp_path / "history.sqlite"
    with open_history(file) as kept:
        first = add_runs(kept, select_readable([results]))
        again = add_runs(kept, select_readable([results, folder_of(results, 1)]))
    assert (first.new, first.known) == (6, 0)
    assert (again.new, again.known) == (0, 6)


def test_a_copy_elsewhere_is_the_same_run(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite"
    with open_history(file) as kept:
        add_runs(kept, select_readable([write_night(tmp_path / "here", 0, {"nvme": 50})]))
        add_runs(kept, select_readable([write_night(tmp_path / "there", 0, {"nvme": 50})]))
        assert [Path(run.path).parents[2].name for run in kept.runs()] == ["there"]


def test_a_run_that_went_on_is_read_again(tmp_path: Path) -> None:
    night, file = write_night(tmp_path, 0, {"nvme": 50}), tmp_path / "history.sqlite"
    run = next((night / "runs").iterdir())
    change(run, status="running")
    with open_history(file) as kept:
        add_runs(kept, select_readable([night]))
        assert kept.runs()[0].unfit
        change(run, status="complete")
        add_runs(kept, select_readable([night]))
        assert kept.runs()[0].unfit == ()


@pytest.mark.slow
@settings(deadline=None, max_examples=12)
@given(st.permutations(range(5)))
def test_the_order_of_adding_does_not_matter(order: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        nights = [write_night(results, number, {"nvme": 50 + 3 * number}, count=1000) for number in range(5)]
        straight = regress(Path(folder) / "straight.sqlite", *nights, "--json")
        shuffled = regress(Path(folder) / "shuffled.sqlite", *(nights[at] for at in order), "--json")
        one_by_one = None
        for at in order:
            regress(Path(folder) / "single.sqlite", nights[at])
            one_by_one = regress(Path(folder) / "single.sqlite", "--json")
        assert straight.exit_code == 0
        assert straight.stdout == shuffled.stdout
        assert one_by_one is not None
        assert straight.stdout == one_by_one.stdout


DAMAGED = [
    ("is no database", lambda file: file.write_text("nights" * 1000), "is not a history, or it is damaged"),
    ("is cut off", lambda file: os.truncate(file, file.stat().st_size // 2), "damaged"),
    ("has zeros inside", lambda file: _zeros(file), "damaged"),
    ("is a newer version", lambda file: _pragma(file, f"user_version = {VERSION + 1}"), "or a newer one"),
    ("is another program's", lambda file: _pragma(file, "application_id = 1"), "of another program"),
]


@pytest.mark.parametrize(("what", "harm", "says"), DAMAGED, ids=[row[0] for row in DAMAGED])
def test_a_file_that_is_none_is_named_and_left_alone(
    tmp_path: Path, what: str, harm: object, says: str
) -> None:
    night, file = write_night(tmp_path, 0, {"nvme": 50}), tmp_path / "history.sqlite"
    assert regress(file, night).exit_code == 0
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    assert callable(harm)
    harm(file)
    before = file.read_bytes()
    result = regress(file, night)
    assert result.exit_code == 2, what
    assert says in result.stderr
    assert str(file) in result.stderr
    assert file.read_bytes() == before


def test_an_empty_file_becomes_a_history(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite"
    file.touch()
    with open_history(file) as kept:
        assert kept.connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        assert kept.connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert kept.connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)


def test_a_folder_is_no_history(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="--history"), open_history(tmp_path):
        pass


def test_what_names_no_run_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, says in (("empty", "contains none"), ("nowhere", "does not exist")):
        result = regress(tmp_path / "history.sqlite", tmp_path / path)
        assert result.exit_code == 2
        assert says in result.stderr
        assert not (tmp_path / "history.sqlite").exists(), "nothing begins without a run"


def test_a_run_without_a_date_has_no_place(tmp_path: Path) -> None:
    night = write_night(tmp_path, 0, {"nvme": 50, "sata": 50})
    change(next(iter(sorted((night / "runs").iterdir()))), started_at=None)
    result = regress(tmp_path / "history.sqlite", night)
    assert "does not say when it began" in result.stderr
    assert result.exit_code == 3, "one of two runs is missing"


def test_runs_without_an_experiment_go_by_their_day(tmp_path: Path) -> None:
    night = write_night(tmp_path, 0, {"nvme": 50}, repeats=3)
    for run in (night / "runs").iterdir():
        change(run, experiment=None)
        run.rename(tmp_path / run.name)
    with open_history(tmp_path / "history.sqlite") as kept:
        runs = [run for run in tmp_path.iterdir() if (run / "run.json").exists()]
        added = add_runs(kept, select_readable(runs))
        assert added.experiments == [""]
        assert [night.name for night in kept.nights("")] == [f"{FIRST:%Y-%m-%d}"]


def test_a_history_of_an_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    """What was accepted stays so, by whom nobody knows; what was not is red until it is, or is mended."""
    nights = [write_night(tmp_path, at, {"nvme": 50.0 * (2 if at > 13 else 1)}) for at in range(20)]
    file, old = tmp_path / "new.sqlite", tmp_path / "old.sqlite"
    for night in nights:
        code = regress(file, night).exit_code
    assert code == 1
    with sqlite3.connect(old) as connection:
        for statement in schema._statements(MIGRATIONS[0]):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.execute("ATTACH ? AS new", (str(file),))
        for table in ("night", "run", "phase", "figure", "change"):
            columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}")  # noqa: S608
    connection.close()
    accepted = tmp_path / "accepted.sqlite"
    accepted.write_bytes(old.read_bytes())
    with sqlite3.connect(accepted) as connection:
        connection.execute("UPDATE change SET accepted_at = '2026-01-20T05:00:00.000000Z'")
    connection.close()
    assert regress(old).exit_code == 1, "it was neither accepted nor mended"
    result = regress(accepted, "--json")
    assert result.exit_code == 0
    (decision,) = json.loads(result.stdout)["experiments"][0]["decisions"]
    assert decision == {
        "kind": "accept",
        "name": "replay on nvme",
        "at": "2026-01-20T05:00:00.000000Z",
        "by": None,
        "note": None,
    }
    for path in (old, accepted):
        with open_history(path) as kept:
            assert kept.connection.execute("PRAGMA user_version").fetchone()[0] == VERSION
            assert kept.connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.slow
def test_the_version_before_access_logs_loses_nothing(tmp_path: Path) -> None:
    """Every row of every table is there as it was, and nights go on as before."""
    nights = [write_night(tmp_path, at, {"nvme": 50.0 * (2 if at > 13 else 1)}) for at in range(18)]
    file, old = tmp_path / "new.sqlite", tmp_path / "old.sqlite"
    for night in nights:
        code = regress(file, night, *(["--set-baseline", "latest"] if night == nights[9] else [])).exit_code
    assert code == 1
    with sqlite3.connect(old) as connection:
        for script in MIGRATIONS[:2]:
            for statement in schema._statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 2")
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        connection.execute("ATTACH ? AS new", (str(file),))
        for table in tables:
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM new.{table}")  # noqa: S608 our own names
    connection.close()
    before = _rows(old, tables)
    assert all(before[name] for name in ("night", "run", "phase", "figure", "change", "decision"))
    with open_history(old) as kept:
        assert kept.connection.execute("PRAGMA user_version").fetchone()[0] == VERSION
        assert kept.connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert _rows(old, tables) == before
    assert regress(old, "--json").stdout == regress(file, "--json").stdout


def _rows(file: Path, tables: list[str]) -> dict[str, list[tuple[object, ...]]]:
    connection = sqlite3.connect(file)
    found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}  # noqa: S608
    connection.close()
    return found


def _zeros(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4096 : len(data) - 4096] = bytes(len(data) - 8192)
    file.write_bytes(data)


def _pragma(file: Path, text: str) -> None:
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA {text}")
    connection.commit()
    connection.close()


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
