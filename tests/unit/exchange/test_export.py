"""`plimsoll export` as a user meets it."""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll.analysis.exchange import parquetfile
from plimsoll.analysis.exchange.exchange import FORMATS
from plimsoll.cli import main
from tests.support.rundir import records, write_run


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["export", *map(str, args)])


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", records(1200), summary={})


@pytest.mark.parametrize("to", FORMATS)
def test_each_format_is_written_and_said(tmp_path: Path, whole: Path, to: str) -> None:
    out = tmp_path / "out"
    out.write_text("an older one")
    result = run(whole, "--to", to, "--out", out)
    assert result.exit_code == 0, result.output
    assert "1,200 requests of" in result.output
    assert b"an older one" not in out.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "run"], "nothing else is left"
    assert stat.S_IMODE(out.stat().st_mode) == 0o666 & ~_umask()
    said = json.loads(run(whole, "--to", to, "--out", out, "--json").output)
    assert (said["requests"], said["bytes"], said["to"]) == (1200, out.stat().st_size, to)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_new_folder_is_made(tmp_path: Path, whole: Path) -> None:
    out = tmp_path / "new" / "folder" / "x.csv"
    assert run(whole, "--to", "csv", "--out", out).exit_code == 0
    assert out.is_file()


@pytest.mark.parametrize("to", FORMATS)
def test_a_run_that_did_not_end_is_a_part_and_exit_code_1(tmp_path: Path, to: str) -> None:
    part = write_run(tmp_path / "run", records(1200), status="interrupted", reason="the \x1b[31mpower failed")
    result = run(part, "--to", to, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert r"the run is interrupted: the \x1b[31mpower failed" in result.output
    assert (tmp_path / "out").stat().st_size


def test_standard_output_holds_the_file_alone(whole: Path) -> None:
    command = [sys.executable, "-m", "plimsoll", "export", str(whole), "--to", "csv", "--out", "-"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 1201
    assert "1,200 requests" in ran.stderr


def test_a_pipe_is_written_as_it_is(tmp_path: Path, whole: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    assert run(whole, "--to", "csv", "--out", tmp_path / "pipe").exit_code == 0
    reader.join(timeout=30)
    assert read[0].count(b"\n") == 1201
    assert (tmp_path / "pipe").is_fifo()


REFUSED = [
    ("a format that is none", ["run", "--to", "xml", "--out", "x"], "xml"),
    ("no file", ["run", "--to", "csv"], "--out"),
    ("a directory", ["run", "--to", "csv", "--out", "run"], "is a directory"),
    ("the records themselves", ["run", "--to", "csv", "--out", "run/requests.npy"], "is part of the run"),
    ("the facts, otherwise", ["run", "--to", "csv", "--out", "run/../run/run.json"], "is part of the run"),
    ("a log that the run wrote", ["run", "--to", "hdr", "--out", "run/latency.hlog"], "is part of the run"),
    ("a picture of the run", ["run", "--to", "csv", "--out", "run/screenshots/1.png"], "is part of the run"),
    ("a file where a folder belongs", ["run", "--to", "csv", "--out", "file/x"], "cannot be written"),
    ("no run", ["nothing", "--to", "csv", "--out", "x"], "does not exist"),
    ("both on standard output", ["run", "--to", "csv", "--out", "-", "--json"], "would both write"),
    ("nothing but warm-up", ["warm", "--to", "prometheus", "--out", "x"], "belongs to the warm-up"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "args", "says"), REFUSED)
def test_what_cannot_be_is_refused(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, why: str, args: list[str], says: str
) -> None:
    before = (whole / "requests.npy").read_bytes()
    write_run(tmp_path / "warm", records(5, flags=8), summary={})
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    result = run(*args)
    assert result.exit_code == 2, why
    assert says in result.output
    assert (whole / "requests.npy").read_bytes() == before
    assert not (tmp_path / "x").exists()


def test_a_file_that_shrinks_leaves_nothing(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the disk is full or the run is deleted meanwhile: the older file stays."""
    out = tmp_path / "out"
    out.write_text("an older one")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)
    result = run(whole, "--to", "csv", "--out", out)
    assert result.exit_code == 2
    assert "No space left on device" in result.output
    assert out.read_text() == "an older one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "run"]


def test_parquet_without_pyarrow_says_what_to_do(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run(whole, "--to", "parquet", "--out", tmp_path / "x")
    assert result.exit_code == 2
    assert "pip install 'pyarrow>=18'" in result.output
    assert not (tmp_path / "x").exists()
    assert "pyarrow" in parquetfile._REMEDY
