"""Which source the report names first on a host that stalls for a known reason: real ZFS, MariaDB and PHP.

python -m tests.verdicts.planted vm quiet,txg,scrub,page-cache 10 OUT     # four minutes a run, as root
python -m tests.verdicts.planted here row-lock,php-pool 10 OUT

The site's pages are what a site has: a file (`/f/N.bin`), on the machine one of a ZFS dataset that no cache
has, and a page of PHP that raises a counter in MariaDB and writes a file (`/page.php`). QEMU makes the disks
slow.

Each run is a run of an experiment, on the machine of `make zfs-vm` or on this one, and a line of
OUT/found.jsonl. Runs whose line is there are not done again. What serves the site is in OUT/host; it runs on;
`tools/zfs-vm/stop OUT/host` ends the machine.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.guests import TOOLS, ZfsVm
from tests.support.programs import PLIMSOLL, free_port
from tests.support.stalls import stalls_of_runs

NOTHING = "nothing"
SECONDS = 220  # of a run: with fewer windows than about 170, one stall cannot be distinguished from chance
_RATE = 5
_FILES, _FILE_BYTES = 40, 96 << 10
_SITE = Path(__file__).parent / "planted_site.sh"
_BOOT_S = 900


@dataclass(frozen=True)
class Cause:
    """What is done on the host for some seconds, and the sources that name it."""

    sources: frozenset[str]
    script: str  # of shell; {s} are the seconds, $W is the site's folder
    lasts: int = 1  # times as long as the others
    children: int = 8  # of PHP's pool


def _cause(script: str, *sources: str, lasts: int = 1, children: int = 8) -> Cause:
    return Cause(frozenset(sources), script, lasts, children)


CAUSES: dict[str, Cause] = {
    "quiet": _cause("", "nothing"),
    "txg": _cause(
        "dd if=/dev/zero of=$W/noise/burst bs=1M count=$(({s} * 10)) conv=notrunc status=none",
        "a transaction group's sync",
        "a group's dirty data",
        "writes that ZFS delayed",
    ),
    "scrub": _cause("zpool scrub tank; sleep {s}; zpool scrub -s tank || true", "a scrub", lasts=2),
    "page-cache": _cause(
        "for i in 1 2 3 4; do dd if=/dev/zero of=$W/up/burst$i bs=1M count=$(({s} * 4)) status=none & "
        "done; wait",
        "dirty memory",
        "dirty memory, of its limit",
    ),
    "row-lock": _cause(
        "mariadb --defaults-file=$W/client.cnf site "
        "-e 'BEGIN; UPDATE counters SET hits = 0 WHERE id = 1; SELECT SLEEP({s}); COMMIT'",
        "row-lock waits",
        "statements that wait for a row",
        "time in row-lock waits",
    ),
    "php-pool": _cause(
        'for i in 1 2; do curl -s -o /dev/null "http://127.0.0.1:$HTTP/slow.php?s={s}" & done; wait',
        "PHP's queue",
        "PHP's status page",
        "PHP's workers in use",
        children=2,
    ),
}


class PlantedHost:
    """A host with the site on it."""

    def __init__(self, folder: Path, *, on_zfs: bool) -> None:
        """Set it up in this folder, or take what a study has left there."""
        self._vm = ZfsVm(folder, ("0", "0")) if on_zfs else None
        self._site = Path("/srv") if on_zfs else folder
        known = folder / "http-port"
        port = int(known.read_text()) if known.exists() else free_port()
        self._http = 80 if on_zfs else port
        self.url = f"http://127.0.0.1:{port}"
        if known.exists():
            return
        if on_zfs:
            disks = ("--disk", "one:1G:10M", "--disk", "two:2G:10M")
            command: list[str | Path] = [
                TOOLS / "start",
                "--forward",
                f"{port}:80",
                *disks,
                "--wait",
                str(_BOOT_S),
                folder,
            ]
            subprocess.run(command, check=True, timeout=_BOOT_S + 120)
            self._set_up("disks")
        else:
            folder.mkdir(parents=True)
        self._set_up("site")
        known.write_text(str(port))

    def _set_up(self, *words: str) -> None:
        self.script(f"set -- {' '.join(words)}\n" + _SITE.read_text())

    def script(self, text: str) -> None:
        """Run a shell script there. Raises RuntimeError with what it said if it fails."""
        names = {
            "W": str(self._site),
            "HTTP": str(self._http),
            "FILES": str(_FILES),
            "FILE_BYTES": str(_FILE_BYTES),
        }
        text = "".join(f"export {name}={value}\n" for name, value in names.items()) + text
        if self._vm:
            done = self._vm.ask("sh", "-s", stdin=text)
        else:
            done = subprocess.run(["/bin/sh", "-s"], input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)

    def pool_of(self, children: int) -> None:
        """Start PHP anew, with so many workers."""
        self._set_up("pool", str(children))

    def lab(self, folder: Path) -> Path:
        """A lab.yml: one run of the site, observed in all that the host has."""
        disk: dict[str, Any] = {"kind": "folder", "path": str(self._site / "f")}
        backend = {"name": "site", "disk": disk, "clone": {"driver": "static", "target": self.url}}
        replay = {"log": str(_log(folder / "access.log")), "rate": _RATE}
        kinds = ["diskstats", "pressure", "cpu", "memory", "fsync", "mariadb", "php"]
        said: dict[str, Any] = {
            "name": "planted",
            "out": str(folder / "out"),
            "work": "/var/tmp/plimsoll-work",
            "backends": [backend],
            "scenarios": [{"scenario": "replay", "options": replay}],
            "phases": {"before_s": 0, "during_s": SECONDS, "after_s": 0},
            "warmup_s": 0,
            "limits": {"settle_s": 0},
            "repeats": 1,
        }
        if self._vm:
            said["hosts"] = [{"name": "vm", **self._vm.host}]
            backend["host"] = "vm"
            disk |= {"dataset": "tank/site", "devices": ["vda", "vdb", "vdc"]}
            kinds += ["arcstats", "zpool", "txg", "zil", "poolwaits", "poolstate"]
        said["observe"] = {
            "observe": kinds,
            "fsync": {"folder": str(self._site / "f")},
            "mariadb": {"defaults_file": str(self._site / "client.cnf")},
            "php": {"fastcgi": str(self._site / "status.sock")},
        }
        path = folder / "lab.yml"
        path.write_text(yaml.safe_dump(said))
        return path


def episodes(seed: int) -> list[tuple[int, int]]:
    """When the cause begins, in seconds from the start of the load, and for how long: some six times."""
    draw = random.Random(seed)
    found, at_s = list[tuple[int, int]](), draw.randint(12, 30)
    while at_s < SECONDS - 15:
        found.append((at_s, draw.randint(4, 7)))
        at_s += draw.randint(22, 48)
    return found


def planting(cause: Cause, when: Sequence[tuple[int, int]]) -> str:
    """The script that does it."""
    lines = ["exec >/dev/null 2>&1", "begun=$(date +%s)", "at() { sleep $((begun + $1 - $(date +%s))); }"]
    for at_s, seconds in when:
        lines += [f"at {at_s}", cause.script.format(s=seconds * cause.lasts)]
    return "\n".join([*lines, ""])


def _log(path: Path) -> Path:
    """A log in which files and pages take turns, without an order that repeats."""
    draw = random.Random(7)
    line = '192.0.2.{} - - [10/Oct/2000:13:{:02}:{:02} +0000] "GET {} HTTP/1.1" 200 {} "-" "curl/8"\n'
    rows = []
    for i in range(_RATE * SECONDS * 2):
        page = draw.random() < 0.5
        target = f"/page.php?n={i}" if page else f"/f/{draw.randint(1, _FILES)}.bin"
        rows.append(line.format(i % 50, i // 600 % 60, i // 10 % 60, target, 2 if page else _FILE_BYTES))
    path.write_text("".join(rows))
    return path


def named(run: Path) -> list[str]:
    """The sources that stood out in a run, first the one that is named first."""
    (stalls,) = stalls_of_runs([run])
    return [one.row.said for one in stalls.standing_out] or [NOTHING]


def run_once(host: PlantedHost, cause: Cause, folder: Path, seed: int) -> Path:
    """Run the experiment, and do to the host what is to be found."""
    folder.mkdir(parents=True)
    host.pool_of(cause.children)
    file = host.lab(folder)
    with (folder / "said.txt").open("w") as said:
        experiment = subprocess.Popen([PLIMSOLL, "run", str(file)], stdout=said, stderr=said)
        while not list(folder.glob("out/*/attempts/*/*/requests.npy")):
            if experiment.poll() is not None:
                raise RuntimeError((folder / "said.txt").read_text())
            time.sleep(0.2)
        if cause.script:
            host.script(planting(cause, episodes(seed)))
        if experiment.wait(600):
            raise RuntimeError((folder / "said.txt").read_text())
    (run,) = folder.glob("out/*/runs/*")
    return run


def main() -> None:
    """Run the study, and print how often each cause was named first."""
    where, names, runs = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
    out = Path(sys.argv[4]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    host = PlantedHost(out / "host", on_zfs=where == "vm")
    file = out / "found.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {(one["cause"], one["run"]) for one in found}
    for run in range(runs):
        for name in names:
            if (name, run) in done:
                continue
            cause = CAUSES[name]
            folder = out / f"{name}-{run}-{int(time.time())}"
            sources = named(run_once(host, cause, folder, seed=1000 * run + len(name)))
            one = {"cause": name, "run": run, "right": sources[0] in cause.sources, "named": sources}
            with file.open("a") as lines:
                lines.write(json.dumps(one) + "\n")
            print(json.dumps(one), flush=True)


if __name__ == "__main__":
    main()
