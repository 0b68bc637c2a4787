"""Real rehearsals, each followed by `plimsoll ab` with a candidate as slow as was promised to be found.

    .venv/bin/python -m tests.verdicts.real_rehearsals 10 --out build/real-rehearsals

Both sites are nginx on this machine, with the files of the example log. Each answer waits for a time that is
drawn, so that the candidate is slower by exactly so much. A try that is there already is not made again, so
it goes on where it was stopped.
"""

import argparse
import json
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support.programs import PLIMSOLL
from tests.verdicts.two_servers import LOG, build_site, serve_late, serve_nginx

WAIT_MS, SPREAD = 10.0, 0.4  # the median wait, and its spread as a logarithm
OPTIONS = ["--speed", "2", "--gate", "p99:1.2x", "--json", "--runs", "4", "--duration", "10s"]


@contextmanager
def serve(site: Path, times: float = 1.0) -> Iterator[str]:
    """Serve the site, every answer so many times as late."""

    def wait_s() -> float:
        return times * WAIT_MS / 1000 * random.lognormvariate(0, SPREAD)

    with serve_late(wait_s) as late, serve_nginx(site, 100, late) as url:
        yield url


def run(command: str, *words: str, out: Path) -> dict[str, Any]:
    """Return what a command printed as JSON."""
    whole = [str(PLIMSOLL), command, str(LOG), *words, "--out", str(out), *OPTIONS]
    done = subprocess.run(whole, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def make_try(out: Path, site: Path) -> dict[str, Any]:
    """Make one try, and return what was promised, and what came."""
    with ExitStack() as stack:
        baseline = stack.enter_context(serve(site))
        rehearsal = run("rehearse", "--target", baseline, out=out)
        promised = rehearsal["rehearsal"] and rehearsal["rehearsal"]["finds_from"]
        if promised is None:
            return {"rehearsal": rehearsal, "verdict": "no promise"}
        candidate = stack.enter_context(serve(site, promised))
        found = run("ab", "--baseline", baseline, "--candidate", candidate, out=out)
    return {
        "promised": promised,
        "rehearsal": rehearsal,
        "verdict": found["verdict"],
        "gates": [
            {key: each[key] for key in ("metric", "verdict", "estimate", "lower", "upper")}
            for each in found["gates"]
        ],
        "findings": sorted({each["name"] for each in found["findings"]}),
        "load": Path("/proc/loadavg").read_text().split()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tries", type=int)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    folder = asked.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    site = folder / "site"
    if not site.is_dir():
        build_site(site)
    for number in range(1, asked.tries + 1):
        path = folder / f"{number}.json"
        if not path.exists():
            found = make_try(folder / str(number), site)
            path.write_text(json.dumps(found, indent=1))
            print(number, found["verdict"], found.get("promised"), flush=True)
    verdicts = [json.loads(path.read_text())["verdict"] for path in sorted(folder.glob("*.json"))]
    print(dict(Counter(verdicts)))


if __name__ == "__main__":
    main()
