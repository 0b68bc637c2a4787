"""The time and memory that `plimsoll report` takes over very many requests.

Makes synthetic run directories (81 bytes a request), reports on them, removes them, and prints one JSON
object: `{"records": …, "runs": …, "seconds": …, "max_rss_mib": …, "html_mib": …}`. Several runs are those
of an experiment with two scenarios on two backends; a saturator keeps the disks busy for the middle half of
each run.

    python benchmarks/report_scale.py [--records 50000000] [--runs 1] [--under DIR]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from plimsoll.rundir.names import (
    ERRORS_FILE,
    EVENTS_FILE,
    FACTS_FILE,
    REPORT_FILE,
    REQUESTS_FILE,
    ROUTES_FILE,
)

COLUMNS = (
    "due_ns:<i8 lag_us:<u4 dns_us:<u4 connect_us:<u4 tls_us:<u4 ttfb_us:<u4 total_us:<u4 bytes:<i8 "
    "logged_bytes:<i8 line:<u8 client:<u4 route:<u2 status:<u2 logged_status:<u2 error:|u1 flags:|u1 "
    "late_us:<u4 served:|u1 page:<u4 paused_us:<u4"
)
RECORD = np.dtype([(name, kind) for name, _, kind in (column.partition(":") for column in COLUMNS.split())])
BLOCK = 1_000_000
REQUESTS_PER_S = 5_000


def main() -> None:
    """Make, measure, remove, print."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="report-scale-", dir=arguments.under) as folder:
        for number in range(arguments.runs):
            write_run(Path(folder) / f"{number:04d}", arguments.records // arguments.runs, number)
        page = Path(folder) / REPORT_FILE
        started = time.monotonic()
        command = [sys.executable, "-m", "plimsoll", "report", folder, "--out", str(page), "--json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)
        figures = {
            "records": arguments.records,
            "runs": arguments.runs,
            "seconds": round(time.monotonic() - started, 2),
            "max_rss_mib": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
            "html_mib": round(page.stat().st_size / 2**20, 1),
        }
    print(json.dumps(figures))


def write_run(run: Path, records: int, number: int) -> None:
    """Write a run directory of `records` requests at 5,000 a second, with a stall of 2 s each hour.

    Run `number` (from 0) is of the scenario and the backend whose turn it is.
    """
    run.mkdir()
    facts = {
        "format": 2,
        "scenario": ("replay", "visitors")[number % 2],
        "backend": ("nvme", "sata")[number // 2 % 2],
        "repeat": number // 4 + 1,
        "status": "complete",
        "speed": "1",
        "loop": "open",
    }
    lasts_ns = records * (1_000_000_000 // REQUESTS_PER_S)
    (run / FACTS_FILE).write_text(json.dumps(facts))
    (run / ROUTES_FILE).write_text(json.dumps([f"route {n}" for n in range(20)]))
    (run / ERRORS_FILE).write_text(json.dumps(["none", "timeout"]))
    with (run / EVENTS_FILE).open("w") as events:
        for phase, t_ns in (("start", lasts_ns // 4), ("stop", lasts_ns * 3 // 4)):
            events.write(json.dumps({"t_ns": t_ns, "event": "zfs-send", "phase": phase}) + "\n")
    random = np.random.default_rng(number + 1)
    with (run / REQUESTS_FILE).open("wb") as file:
        file.write(header(records))
        for first in range(0, records, BLOCK):
            file.write(block(random, first, min(BLOCK, records - first)).tobytes())


def block(random: np.random.Generator, first: int, count: int) -> np.ndarray:
    """Return `count` records from the `first` on, in the order of their ends."""
    requests = np.zeros(count, dtype=RECORD)
    due_ns = (np.arange(first, first + count) * (1_000_000_000 // REQUESTS_PER_S)).astype(np.int64)
    total_us = random.lognormal(8.5, 0.7, count)
    into_stall_s = due_ns / 1e9 % 3600
    total_us = np.where(into_stall_s < 2, np.maximum(total_us, (2 - into_stall_s) * 1e6), total_us)
    requests["due_ns"] = due_ns
    requests["lag_us"] = requests["late_us"] = random.exponential(60, count)
    requests["total_us"] = total_us
    requests["ttfb_us"] = total_us * 0.8
    requests["bytes"] = requests["logged_bytes"] = random.integers(200, 90_000, count)
    requests["line"] = np.arange(first + 1, first + count + 1)
    requests["route"] = random.integers(0, 20, count)
    requests["status"] = requests["logged_status"] = 200
    requests["error"] = random.random(count) < 0.0005
    return requests[np.argsort(due_ns / 1000 + total_us, kind="stable")]


def header(records: int) -> bytes:
    """Return the 512 bytes before the records, padded as docs/run-format.md says."""
    facts = {"descr": npy.dtype_to_descr(RECORD), "fortran_order": False, "shape": (records,)}
    return b"\x93NUMPY\x01\x00" + (502).to_bytes(2, "little") + repr(facts).ljust(501).encode() + b"\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=50_000_000, help="how many requests there are")
    parser.add_argument("--runs", type=int, default=1, help="in how many runs of the same size")
    parser.add_argument(
        "--under", default=None, help="where to put the runs meanwhile; default: the temporary folder"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
