"""Asks for a page again and again, to know from when to when it failed."""

import csv
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import requests


class Poll:
    """Asks for a page each 50 ms, whatever the answers take, and knows from when to when it failed."""

    def __init__(self, url: str, cookies: dict[str, str] | None = None) -> None:
        self._url, self._cookies = url, cookies or {}
        self._seen: list[tuple[float, bool]] = []
        self.late_ms = 0.0  # the most that a question came after its time
        self._ended = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> "Poll":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def outage_ms(self) -> float:
        """From the first failure to the first success after it, whatever came between."""
        found, since = 0.0, None
        for due_s, well in sorted(self._seen):
            if not well:
                since = due_s if since is None else since
            elif since is not None:
                found, since = found + due_s - since, None
        return found * 1000

    def differs_ms(self, run: Path) -> float:
        """How far its outage may be from that of a run: 200 ms, and what questions were late."""
        with (run / "probes.csv").open(newline="") as file:
            late_us = max(int(row["lag_us"]) for row in csv.DictReader(file))
        return 200 + self.late_ms + late_us / 1000

    def _run(self) -> None:
        with ThreadPoolExecutor(64) as pool:
            due_s = time.monotonic()
            while not self._ended.wait(max(due_s - time.monotonic(), 0)):
                pool.submit(self._ask, due_s)
                due_s += 0.05

    def _ask(self, due_s: float) -> None:
        self.late_ms = max(self.late_ms, (time.monotonic() - due_s) * 1000)
        try:
            well = requests.get(self._url, cookies=self._cookies, timeout=10).status_code == 200
        except requests.RequestException:
            well = False
        self._seen.append((due_s, well))
