"""`fsync` in `fileio` of lab.yml: measured after sysbench, timed and shown apart from it."""

import asyncio
import contextlib
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from plimsoll.lab.experiment.folder import ExperimentFolder, make_folder
from plimsoll.lab.experiment.plan import expected_s
from plimsoll.lab.experiment.rig import Rig
from plimsoll.lab.experiment.volumes import missing_cells
from plimsoll.lab.fileio.fio import ETCD, fsync_cell, parse_fio
from plimsoll.lab.fileio.measure import append_cell
from plimsoll.lab.fileio.sysbench import MatrixCase
from tests.support.scripted import ScriptedMachine
from tests.unit.lab.test_fileio_fsync import printed
from tests.unit.lab.test_lab_fileio import TWO, Looked, lab_of, measured_on, write_cells

BOTH = TWO | {"fsync": {"engines": ["psync"], "calls": ["fdatasync"], "time_s": 20}}


def test_fsyncs_are_measured_after_sysbench_and_lack_until_each_is_there(tmp_path: Path) -> None:
    lab, kept = lab_of(BOTH, "tank"), tmp_path / "fileio.jsonl"
    assert lab.fileio and lab.fileio.fsync
    assert missing_cells(lab, kept) == {"tank": [*lab.fileio.cells, *lab.fileio.fsync.cells]}
    assert len(lab.fileio.all_cells) == 4 + 1 + 4
    write_cells(kept, "tank", list(lab.fileio.cells))
    append_cell(kept, fsync_cell("tank", ETCD, parse_fio(printed("fio-3.33", "etcd"))))
    assert missing_cells(lab, kept) == {"tank": lab.fileio.fsync.cells[1:]}
    assert lab.fileio.programs == {"sysbench", "fio"}


def test_a_plan_counts_the_time_of_fsyncs() -> None:
    before, after = expected_s(lab_of(TWO, "tank")), expected_s(lab_of(BOTH, "tank"))
    assert before and after
    assert after - before == pytest.approx(5 * 21)


def test_a_recipe_alone_survives_the_experiments_folder(tmp_path: Path) -> None:
    lab = lab_of(TWO | {"fsync": {"preset": "etcd"}}, "zfs", out=str(tmp_path))
    again = ExperimentFolder(make_folder(lab).path).settings()
    assert again.fileio and again.fileio.fsync and again.fileio.fsync.cells == [ETCD]


def test_status_shows_fsyncs_and_counts_their_time_apart_from_sysbenchs(tmp_path: Path) -> None:
    short, long_s = TWO | {"tests": ["rndrd"], "time_s": 5}, 60
    fsync = {"calls": ["fsync"], "block_sizes": ["4K"], "threads": [1, 2, 4, 8], "time_s": long_s}
    it, ends = Looked(tmp_path, short | {"fsync": fsync}, ["tank"]), []
    cells = it.watch._lab.fileio
    assert cells and cells.fsync
    it.folder.journal.path.touch()
    with it.folder.journal.lock():
        it.note(0, "begun")
        it.note(0, "making", backend="tank")
        it.note(40, "made", backend="tank")
        it.note(0, "fileio begun", backend="tank")
        it.note(0, "fileio files", backend="tank", says="writing the test files")
        took = [("fileio cell", 5, case) for case in cells.cells]
        took += [("fsync cell", long_s, case) for case in cells.fsync.cells]  # type: ignore[misc]
        for what, lasts, case in took:
            it.note(1, what, backend="tank", says=case.says)
            for _ in range(lasts):
                it.now += timedelta(seconds=1)
                look = it.watch.read()
                assert look.ends_at and look.now
                ends.append(look.ends_at)
            assert look.now and (look.now.what, look.now.step) == ("fileio", case.says)
            if isinstance(case, MatrixCase):
                write_cells(it.folder.fileio, "tank", [case], time_s=5)
            else:
                append_cell(
                    it.folder.fileio, fsync_cell("tank", case, parse_fio(printed("fio-3.33", "etcd")))
                )
        it.note(1, "fileio ended", backend="tank")
        assert it.watch.read().fileio.model_dump() == {"total": 7, "finished": 7, "failed": {}}  # type: ignore[union-attr]
    apart = [abs((b - a).total_seconds()) for a, b in pairwise(ends)]
    assert max(apart) <= 3, "no cell of one kind is taken for one of the other"


class Full(ScriptedMachine):
    """A machine with one GiB of room left."""

    def __init__(self) -> None:
        super().__init__(lambda command: (0, f"Avail\n{1 << 30}\n" if "df" in command else "", ""))

    async def read_text(self, path: str) -> str:
        return ""


def test_a_full_disk_is_told_with_the_key_of_what_needs_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rig, "tune", lambda *_, **__: contextlib.nullcontext())
    lab = lab_of(TWO | {"fsync": {"file_size": "2G"}}, "tank", out=str(tmp_path))
    folder, said = make_folder(lab), list[str]()
    assert lab.fileio
    write_cells(folder.fileio, "tank", list(lab.fileio.cells))
    asyncio.run(measured_on(Full(), lab, folder, said))
    assert "the files need 2150 MiB: make room, or choose a smaller fileio.fsync.file_size" in said[-1]
