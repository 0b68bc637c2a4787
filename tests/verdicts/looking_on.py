"""What looking on costs a run: its lag with figures scraped each second, and with the live page open.

Rounds of one run each way, in an order that rotates; each replays the example log against the embedded
origin, all on this machine. Prints p99.9 of the lag of each run, and its ratio to that of the run `alone`.
`again` is such a run too: what its ratio is from 1 is noise.

    python -m tests.verdicts.looking_on [--rounds 8] [--rate 1000] [--seconds 10]
"""

import argparse
import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import geometric_mean

import requests
from playwright.sync_api import sync_playwright

from tests.support.chromium import CHROMIUM, FLAGS
from tests.support.programs import PLIMSOLL, REPLAY, ROOT, free_port

_PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
_Way = Callable[[Path, int], AbstractContextManager[list[str]]]  # gives flags of the run


def main() -> None:
    """Run the rounds and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=10)
    given = parser.parse_args()
    ratios: dict[str, list[float]] = {name: [] for name in _WAYS if name != "alone"}
    with tempfile.TemporaryDirectory(prefix="looking-on-") as folder:
        names = list(_WAYS)
        for number in range(given.rounds):
            turn = number % len(names)
            lag = {
                name: _lag_ms(Path(folder), _WAYS[name], given.rate, given.seconds)
                for name in [*names[turn:], *names[:turn]]
            }
            for name, each in ratios.items():
                each.append(lag[name] / lag["alone"])
            print(f"{number}: " + ", ".join(f"{name} {lag[name]:.3f} ms" for name in names), flush=True)
    for name, each in ratios.items():
        print(f"{name}: {geometric_mean(each):.2f} ({', '.join(f'{ratio:.2f}' for ratio in sorted(each))})")


def _lag_ms(folder: Path, way: _Way, rate: int, seconds: int) -> float:
    """Return the p99.9 of the lag of one run."""
    words = [
        str(REPLAY),
        "run",
        str(ROOT / "examples" / "access.log"),
        "--out",
        str(folder),
        "--quiet",
        "--json",
    ]
    words += ["--loops", "0", "--rate", str(rate), "--duration", f"{seconds}s", "--warmup", "1s"]
    with way(folder, free_port()) as flags:
        done = subprocess.run(
            [*words, *flags], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    return float(json.loads(done.stdout)["lag_ms"]["p99.9"])


@contextmanager
def _alone(_folder: Path, _port: int) -> Iterator[list[str]]:
    yield []


@contextmanager
def _metrics(_folder: Path, port: int) -> Iterator[list[str]]:
    """Have the run show its figures, and scrape them."""
    with _scraped(port):
        yield ["--metrics", f"127.0.0.1:{port}"]


@contextmanager
def _watch(folder: Path, port: int) -> Iterator[list[str]]:
    """Have `bin/replay watch` show them, and scrape them."""
    words = [str(REPLAY), "watch", str(folder), "--metrics", f"127.0.0.1:{port}"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as watching:
        try:
            with _scraped(port):
                yield []
        finally:
            watching.terminate()


@contextmanager
def _page_elsewhere(folder: Path, port: int) -> Iterator[list[str]]:
    """Scrape them, and read what the live page reads, as a browser on another machine does."""

    shown = 0

    def read(url: str) -> None:
        nonlocal shown
        try:
            with requests.get(f"{url}live/stream?run=", stream=True, timeout=60) as stream:
                for line in stream.iter_lines():
                    shown += line.startswith(b"data: ") and json.loads(line[6:])["run"] is not None
        except requests.RequestException:
            return  # the server was ended

    with _metrics(folder, port) as flags, _served(folder) as url:
        threading.Thread(target=read, args=[url], daemon=True).start()
        yield flags
    if not shown:
        raise SystemExit("nobody looked: the live page was sent nothing of the run")


@contextmanager
def _page_here(folder: Path, port: int) -> Iterator[list[str]]:
    """Scrape them, and have the live page open in a browser on this machine."""
    with _metrics(folder, port) as flags, _served(folder) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        browser.new_page().goto(f"{url}live")
        yield flags
        browser.close()


_WAYS: dict[str, _Way] = {
    "alone": _alone,
    "again": _alone,
    "metrics": _metrics,
    "watch": _watch,
    "metrics and page elsewhere": _page_elsewhere,
    "metrics and page here": _page_here,
}


@contextmanager
def _scraped(port: int) -> Iterator[None]:
    """Ask for the figures each second, as a Prometheus does that takes native histograms."""
    over = threading.Event()
    answered = 0

    def scrape() -> None:
        nonlocal answered
        while not over.wait(1):
            try:
                requests.get(
                    f"http://127.0.0.1:{port}/metrics", headers={"Accept": _PROTOBUF}, timeout=5
                ).raise_for_status()
            except requests.ConnectionError:
                continue  # it has not begun, or is over
            answered += 1

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if not answered:
        raise SystemExit("nobody looked: no scrape was answered")


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve the folder, and give the address."""
    words = [str(PLIMSOLL), "serve", str(folder), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().rpartition(" ")[2].strip()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
