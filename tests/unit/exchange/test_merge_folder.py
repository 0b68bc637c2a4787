"""A merged run appears whole or not at all, and in bounded memory."""

import json
import os
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.summary import summarise
from plimsoll.analysis.exchange import merge as merging
from plimsoll.analysis.exchange.importing import in_order
from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.cli import main
from plimsoll.common.errors import OutputError
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.records import RECORD, RequestFile
from plimsoll.rundir.write import RunWriter
from tests.support.programs import ROOT
from tests.support.rundir import INSTANCES, header, records, write_instance, write_instances, write_run


def test_what_exists_is_not_written_over(tmp_path: Path) -> None:
    write_instances(tmp_path / "shards")
    (tmp_path / "there").mkdir()
    result = CliRunner().invoke(main, ["merge", str(tmp_path / "shards"), "--out", str(tmp_path / "there")])
    assert result.exit_code == 2
    assert "there: exists already; give another place with --out" in result.stderr
    assert not list((tmp_path / "there").iterdir())


def test_a_shard_is_not_written_over(tmp_path: Path) -> None:
    shards = write_instances(tmp_path)
    with pytest.raises(OutputError, match="exists already"):
        merge_shards(shards, shards[1])


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    shards = write_instances(tmp_path / "shards")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/run: cannot be written: .*; choose another place"):
        merge_shards(shards, tmp_path / "file" / "run")


def test_the_folder_that_holds_the_shards_becomes_the_run(tmp_path: Path) -> None:
    """As Locust's master makes it: its shards lie in the run directory that they become."""
    shards = write_instances(tmp_path / "run" / "shards")
    merge_shards(shards, tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "complete"
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith(".")]
    with pytest.raises(OutputError, match="exists already"):
        merge_shards(shards, tmp_path / "run")


@pytest.mark.parametrize("inside", [False, True])
def test_an_interrupt_leaves_nothing(tmp_path: Path, inside: bool) -> None:
    shards = write_instances(tmp_path / "run" / "shards")
    out = tmp_path / "run" if inside else tmp_path / "new"
    before = sorted(tmp_path.rglob("*"))

    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge_shards(shards, out, interrupt)
    assert sorted(tmp_path.rglob("*")) == before


def test_ctrl_c_ends_the_command_and_leaves_nothing(tmp_path: Path) -> None:
    write_instances(tmp_path / "shards")
    program = f"""
import os, signal
from plimsoll.cli import main
from plimsoll.analysis.exchange import merge
told = merge.copy_events
def copy_events(*given):
    os.kill(os.getpid(), signal.SIGINT)
    told(*given)
merge.copy_events = copy_events
main(["merge", {str(tmp_path / "shards")!r}, "--out", {str(tmp_path / "run")!r}])
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True)
    assert ended.returncode == 1, ended.stderr
    assert b"Aborted" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]


def test_kill_9_leaves_no_run(tmp_path: Path) -> None:
    write_instances(tmp_path / "shards")
    program = f"""
import os, signal
from plimsoll.cli import main
from plimsoll.analysis.exchange import merge
merge.copy_events = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(["merge", {str(tmp_path / "shards")!r}, "--out", {str(tmp_path / "run")!r}])
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["shards"]
    assert merge_shards([tmp_path / "shards"], tmp_path / "run").facts.status == "complete", (
        "the next one goes well"
    )


def test_progress_ends_where_it_said_it_would(tmp_path: Path) -> None:
    shards = write_instances(tmp_path / "shards")
    seen: list[tuple[int, int]] = []
    merge_shards(shards, tmp_path / "run", lambda done, total: seen.append((done, total)))
    assert {total for _, total in seen} == {1200}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == 1200


def peak_bytes_of_merging(folder: Path, each: int, window: int) -> int:
    """The most memory that putting the records of four shards in order takes, and writing them."""
    files = []
    for number in range(INSTANCES):
        path = folder / f"{each}-{number}.npy"
        table = records(1 << 16)
        with path.open("wb") as file:
            file.write(header())
            for start in range(0, each, len(table)):
                table["due_ns"] = np.arange(start, start + len(table)) * 1000 + number
                file.write(table[: each - start].tobytes())
        files.append(RequestFile.open(path))
    run = RunWriter(folder / f"run{each}", RunFacts(scenario="replay"), summarise, at_once=False)
    tracemalloc.start()
    streams = [(block.copy() for block in file.blocks(window)) for file in files]
    for block in in_order(streams, window):
        run.records(block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    run.abandon()
    assert (folder / f"run{each}" / "requests.npy").stat().st_size == 512 + INSTANCES * each * RECORD.itemsize
    return peak


@pytest.mark.slow
def test_the_memory_of_merging_does_not_grow_with_the_records(tmp_path: Path) -> None:
    window = 4096
    small, large = (peak_bytes_of_merging(tmp_path, each, window) for each in (75_000, 750_000))
    assert large < small * 1.1, "three million records take what three hundred thousand do"
    assert large < INSTANCES * window * RECORD.itemsize * 12, "a few times what is held back"


def test_the_window_of_a_merge_is_what_its_shards_are_read_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of some records, as it reads shards that are longer than what it holds of them."""
    monkeypatch.setattr(merging, "window_of", lambda _: 7)
    tables = [records(100, due_ns=np.arange(100) * 4_000_000 + n * 1_000_000) for n in range(INSTANCES)]
    shards = [write_instance(tmp_path / str(n), n, tables[n]) for n in range(INSTANCES)]
    merge_shards(shards, tmp_path / "run")
    due_ns = np.load(tmp_path / "run" / "requests.npy")["due_ns"]
    assert due_ns.tolist() == [n * 1_000_000 for n in range(400)]


def test_shards_of_one_process_each_merge_as_they_always_did(tmp_path: Path) -> None:
    """No instances of a replay: Locust's workers, whose directory's name says which they are."""
    for name in ("0", "1"):
        write_run(
            tmp_path / name,
            records(10),
            scenario="save-article",
            loop="closed",
            summary={"requests": {"total": 10, "sent": 10}},
        )
    result = CliRunner().invoke(main, ["merge", str(tmp_path), "--out", str(tmp_path / "run")])
    assert result.exit_code == 0, result.output
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert [(each["name"], each["index"], each["sent"]) for each in summary["instances"]] == [
        ("shard 0", None, 10),
        ("shard 1", None, 10),
    ]
    assert os.path.lexists(tmp_path / "run" / "run.json")
