"""A program that a night runs: it is stopped when the night is, also when the night is killed."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event

_PR_SET_PDEATHSIG = 1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Children:
    """Runs programs one after the other. `stopped` is set once this process is to end."""

    def __init__(self, environment: Mapping[str, str], folder: str, lock: int) -> None:
        """`lock`: a descriptor that they inherit; `folder`: where they work."""
        self.stopped = Event()
        self._environment, self._folder, self._lock = dict(environment), folder, lock
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, words: Sequence[str], out: Path, err: Path) -> int:
        """Run `words` to the end; return how it ended, 128 + the signal that killed it. Raises OSError.

        Its output goes to files, not through this process, so it can go on writing, and tidy up, without it.
        """
        if self.stopped.is_set():
            return 128 + signal.SIGINT
        parent = os.getpid()
        with out.open("wb") as stdout, err.open("wb") as stderr:
            self._process = subprocess.Popen(  # noqa: S603 words of our own, by a list
                words,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,  # Ctrl-C at a terminal reaches it once, from this process
                pass_fds=(self._lock,),
                preexec_fn=lambda: _end_with(parent),
            )
            status = self._process.wait()
        self._process = None
        return 128 - status if status < 0 else status

    def stop(self, *_: object) -> None:
        """Tell the one that runs to end, as Ctrl-C does."""
        self.stopped.set()
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Let Ctrl-C, TERM and a closed terminal stop what runs in the block."""
        before: list[Callable[..., object] | int | None] = [signal.signal(one, self.stop) for one in _SIGNALS]
        try:
            yield
        finally:
            for one, handler in zip(_SIGNALS, before, strict=True):
                signal.signal(one, handler)


def _end_with(parent: int) -> None:
    """Be sent SIGINT when `parent` dies, also by kill -9."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT))
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGINT)
