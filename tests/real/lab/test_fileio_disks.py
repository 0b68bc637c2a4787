"""`plimsoll fileio` on disks of files: its table against what sysbench itself printed, kept aside."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from tests.support.disks import clear, emulated, need_disks, run, slow_but
from tests.support.programs import ROOT, need

COMMAND = [sys.executable, "-c", "from plimsoll.lab.fileio import fileio; fileio()"]
OPERATIONS_PER_S = 400
KEEPING = """#!/bin/sh
case " $* " in
*" run "*) {real} "$@" >{kept}/output || {{ cat {kept}/output >&2; exit 1; }}
    cat {kept}/output
    mv {kept}/output {kept}/"$(ls {kept} | wc -l)" ;;
*) exec {real} "$@" ;;
esac
"""


def measured(folder: Path, kept: Path, *options: str) -> list[list[str]]:
    """The rows of the table. `kept` gets sysbench's own words, a file for each cell: 1, 2, …"""
    kept.mkdir()
    program = kept.parent / "bin" / "sysbench"
    program.parent.mkdir()
    program.write_text(KEEPING.format(real=need("sysbench"), kept=kept))
    program.chmod(0o755)
    done = subprocess.run(
        [
            *COMMAND,
            str(folder),
            "--volume",
            "it",
            "--no-progress",
            "--out",
            str(kept.parent / "cells"),
            *options,
        ],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [re.split(r"\s{2,}", line.strip()) for line in done.stdout.splitlines()[1:]]


def said(text: str, what: str) -> float:
    """A figure as sysbench prints it."""
    found = re.search(rf"^\s*{re.escape(what)}\s+([0-9.]+)", text, re.MULTILINE)
    assert found, what
    return float(found[1])


def number(text: str) -> float:
    return float(text.replace(",", "").replace("\u202f", "").replace(" ", ""))


def is_right(row: list[str], text: str) -> None:
    """Holds a row of the table against sysbench's output, by other means than the program's."""
    volume, threads, file_size, block_size, test, *figures = row
    reads, writes, throughput, iops, seconds, p999 = (number(f) if f != "–" else None for f in figures)
    assert (volume, file_size, block_size) == ("it", "64 MiB", "16 KiB")
    assert f"Number of threads: {threads}\n" in text
    assert {"rndrd": "random read", "rndwr": "random write", "rndrw": "combined random"}.get(test, "") in text
    took = said(text, "total time:")
    assert seconds == pytest.approx(took, abs=1e-4)
    per_s = [said(text, f"{what}/s:") for what in ("reads", "writes", "fsyncs")]
    assert reads is not None and writes is not None
    events = int(said(text, "total number of events:"))
    # sysbench counts events, and prints rates of each kind: the events are shared alike.
    assert reads == pytest.approx(events * per_s[0] / sum(per_s), abs=1, rel=1e-4)
    assert writes == pytest.approx(events * per_s[1] / sum(per_s), abs=1, rel=1e-4)
    assert iops == pytest.approx(per_s[0] + per_s[1], abs=0.011)
    assert throughput == pytest.approx(said(text, "read, MiB/s:") + said(text, "written, MiB/s:"), abs=0.011)
    histogram = re.findall(r"^\s*([0-9.]+) \|[* ]* ([0-9]+)$", text, re.MULTILINE)
    times = [float(value) for value, count in histogram for _ in range(int(count))]
    assert len(times) == events
    expected = times[math.ceil(0.999 * events) - 1] if events >= 1000 else None
    assert p999 == expected


def held_against(rows: list[list[str]], kept: Path) -> None:
    assert rows
    for at, row in enumerate(rows, 1):
        is_right(row, (kept / str(at)).read_text())
    assert len(list(kept.iterdir())) == len(rows)


@pytest.mark.parametrize("filesystem", slow_but("ext4"))
def test_the_table_says_what_sysbench_said(filesystem: str, work: Path, tmp_path: Path) -> None:
    need("sysbench")
    need_disks(filesystem)
    kept = tmp_path / "kept"
    disk = emulated(filesystem, work)

    async def life(machine: LocalMachine) -> None:
        await StepRunner(machine).do(disk.create())
        tests = "rndrd,seqrd,rndwr,seqwr,rndrw" if filesystem == "ext4" else "rndrd,rndwr"
        folder = Path(disk.place().folder)
        options = ["--file-size", "64M", "--threads", "2", "--time-s", "1", "--tests", tests]
        held_against(measured(folder, kept, *options), kept)
        assert {path.name for path in folder.iterdir()} <= {"lost+found"}
        await clear(machine, disk.find)

    run(life)


def test_a_slow_disk_is_measured_as_slow_as_it_is(work: Path, tmp_path: Path) -> None:
    need("sysbench")
    need_disks("ext4")
    kept = tmp_path / "kept"
    disk = emulated("ext4", work, operations_per_s=OPERATIONS_PER_S)

    async def life(machine: LocalMachine) -> None:
        runner = StepRunner(machine)
        await runner.do(disk.create())
        await runner.do(disk.limit())
        options = ["--file-size", "64M", "--threads", "8", "--time-s", "3", "--tests", "rndrd", "--direct"]
        rows = measured(Path(disk.place().folder), kept, *options)
        held_against(rows, kept)
        assert number(rows[0][8]) <= 1.2 * OPERATIONS_PER_S, "IOPS: it cannot do more"
        await runner.do(disk.destroy())

    run(life)
