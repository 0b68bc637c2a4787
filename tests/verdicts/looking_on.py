"""What looking on costs a run: its lag with --metrics scraped and `plimsoll serve` open in a browser.

Rounds of two runs each, one that nobody looks at and one that is looked at, in alternating order; each
replays the example log against the embedded origin. Prints p99.9 of the lag of each run, and the ratios.

    python -m tests.verdicts.looking_on [--rounds 10] [--rate 1000] [--seconds 10]
"""

import argparse
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import geometric_mean

import requests
from playwright.sync_api import sync_playwright

from tests.support.chromium import CHROMIUM, FLAGS
from tests.support.paths import ROOT
from tests.support.programs import REPLAY, free_port
from tests.support.scenario import PLIMSOLL

_PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"


def main() -> None:
    """Run the rounds and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=10)
    given = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory(prefix="looking-on-") as folder:
        for number in range(given.rounds):
            order = (False, True) if number % 2 else (True, False)
            lag = {looked: _lag_ms(Path(folder), looked, given.rate, given.seconds) for looked in order}
            ratios.append(lag[True] / lag[False])
            print(f"{number}: alone {lag[False]:.3f} ms, looked at {lag[True]:.3f} ms", flush=True)
    print(f"ratios: {', '.join(f'{ratio:.2f}' for ratio in sorted(ratios))}")
    print(f"geometric mean: {geometric_mean(ratios):.2f}")


def _lag_ms(folder: Path, looked: bool, rate: int, seconds: int) -> float:
    """Return the p99.9 of the lag of one run."""
    port = free_port()
    words = [
        str(REPLAY),
        "run",
        str(ROOT / "examples" / "access.log"),
        "--out",
        str(folder),
        "--quiet",
        "--json",
        "--loops",
        "0",
    ]
    words += ["--rate", str(rate), "--duration", f"{seconds}s", "--warmup", "1s"]
    if not looked:
        return _p999_ms(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
    with _open_page(folder), _scraped(port):
        words += ["--metrics", f"127.0.0.1:{port}"]
        return _p999_ms(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _p999_ms(said: str) -> float:
    return float(json.loads(said)["lag_ms"]["p99.9"])


@contextmanager
def _scraped(port: int) -> Iterator[None]:
    """Ask for the figures each second, as a Prometheus does that takes native histograms."""
    over = threading.Event()

    def scrape() -> None:
        while not over.wait(1):
            try:
                requests.get(
                    f"http://127.0.0.1:{port}/metrics", headers={"Accept": _PROTOBUF}, timeout=5
                ).raise_for_status()
            except requests.ConnectionError:
                continue  # it has not begun, or is over

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _open_page(folder: Path) -> Iterator[None]:
    """Have the live page of the folder open in a browser."""
    words = [str(PLIMSOLL), "serve", str(folder), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout
        url = server.stdout.readline().rpartition(" ")[2].strip()
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
                browser.new_page().goto(f"{url}live")
                yield
                browser.close()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
