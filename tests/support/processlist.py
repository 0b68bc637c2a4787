"""What others on the machine may read of a program while it runs: its command line, and its environment."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Self

EVERY_S = 0.02


class ProcessList:
    """The processes that this one has started, and theirs, again and again until the end of the block."""

    def __init__(self) -> None:
        self.shown: set[bytes] = set()  # each command line and each environment that was there to be read
        self._ended = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            for process in _below(os.getpid()):
                for name in ("cmdline", "environ"):
                    with suppress(OSError):  # it has ended meanwhile
                        self.shown.add(Path(f"/proc/{process}/{name}").read_bytes())


def _below(process: int) -> Iterator[int]:
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from _below(child)
