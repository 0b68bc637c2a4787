"""Which source the report names first on a host that stalls for a known reason: real ZFS, MariaDB and PHP.

python -m tests.verdicts.planted vm quiet,txg,scrub,page-cache 10 OUT     # four minutes a run, as root
python -m tests.verdicts.planted here row-lock,php-pool 10 OUT

Each run is a run of an experiment, on the machine of `make zfs-vm` or on this one, and a line of
OUT/found.jsonl. Runs whose line is there are not done again. What serves the site is in OUT/host; it runs on;
`tools/zfs-vm/stop OUT/host` ends the machine.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.support.planted import CAUSES, Cause, PlantedHost, episodes, planting
from tests.support.programs import PLIMSOLL
from tests.support.stalls import stalls_of_runs

NOTHING = "nothing"


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
