"""The most memory that a program had."""

import threading
from pathlib import Path

_EVERY_S = 0.01


class PeakMemory:
    """Watches a process's own high-water mark, until it is gone."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        return self._bytes

    def _watch(self) -> None:
        while not self._stop.wait(_EVERY_S):
            try:
                self._bytes = high_water_bytes(self._status.read_text()) or self._bytes
            except OSError:
                return


def high_water_bytes(status: str) -> int:
    """VmHWM of /proc/PID/status; 0 for a process that has ended and is not yet waited for."""
    _, found, rest = status.partition("VmHWM:")
    return int(rest.split()[0]) * 1024 if found else 0


def max_rss_bytes(waited_bytes: int, own_bytes: int, watched_bytes: int) -> int:
    """The kernel's exact figure where it is the program's, else what was watched.

    What wait4 reports begins with the memory of whoever started the program, this harness. A program that had
    less than that can only be watched.
    """
    return waited_bytes if waited_bytes > own_bytes or not watched_bytes else watched_bytes
