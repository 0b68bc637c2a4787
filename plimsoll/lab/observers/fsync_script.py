"""Writes 4 KiB and waits until the disk has them, once a second: `python3 -c` with FOLDER and NAME.

Standard library only: the text of this file is run where Plimsoll is not installed. At the end of each second
it prints `probe WRITE FDATASYNC TOTAL`, in nanoseconds: of the probe that was begun or waited for in it. One
that still waits counts with what it has waited so far, `-` for what it has not begun; none is begun beside
it. It ends when it is told to (TERM), and removes its file.
"""

import contextlib
import os
import signal
import sys
import threading
import time

BLOCK_BYTES = 4096
BLOCKS = 256


class EndedError(Exception):
    """It was told to end."""


def end(_number, _frame):
    # type: (int, object) -> None
    """End at once; a second signal changes nothing."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise EndedError


class Probe:
    """Probes on an open file, one after another in a thread of their own: any of them may wait for long."""

    def __init__(self, file):
        # type: (int) -> None
        self._file, self._block = file, 0
        self._due = threading.Event()
        self._instants = []  # type: list[int]
        self.error = None  # type: OSError | None
        threading.Thread(target=self._work, daemon=True).start()

    def begin(self):
        # type: () -> None
        """Begin the next one, if none is waited for."""
        if len(self._instants) in (0, 3):
            self._instants = [time.monotonic_ns()]
            self._due.set()

    def line(self, now_ns):
        # type: (int) -> str
        """Return what the current one has taken so far."""
        instants = list(self._instants)
        ends = [*instants[1:], now_ns][: len(instants) if len(instants) < 3 else 2]
        took = [str(later - earlier) for earlier, later in zip(instants, ends)]  # noqa: B905 older Pythons
        return " ".join(["probe", *[*took, "-"][:2], str(ends[-1] - instants[0])])

    def _work(self):
        # type: () -> None
        try:
            while True:
                self._due.wait()
                self._due.clear()
                # A ring: a database's log is written over and over too, and never at one place alone.
                os.pwrite(self._file, os.urandom(BLOCK_BYTES), self._block * BLOCK_BYTES)
                self._instants.append(time.monotonic_ns())
                os.fdatasync(self._file)
                self._instants.append(time.monotonic_ns())
                self._block = (self._block + 1) % BLOCKS
        except OSError as error:
            self.error = error


def make_file(folder, name):
    # type: (int, str) -> int
    """Return a new file, written once so that no probe allocates anything, in place of one left by a crash.

    It keeps its name: ZFS and Btrfs log nothing of a file that has none, so there would be nothing to wait
    for.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    # A site could put a link in its place, and choose the file that is written.
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    os.write(file, os.urandom(BLOCK_BYTES * BLOCKS))
    os.fsync(file)
    return file


def main():
    # type: () -> int
    """Probe until it is told to end."""
    path, name = sys.argv[1:]
    signal.signal(signal.SIGTERM, end)
    folder = None
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        probe = Probe(make_file(folder, name))
        due_s = time.monotonic()
        while not probe.error:
            probe.begin()
            due_s += max(int(time.monotonic() - due_s) + 1, 1)
            time.sleep(max(due_s - time.monotonic(), 0.0))
            if not probe.error:
                print(probe.line(time.monotonic_ns()), flush=True)
        raise probe.error
    except EndedError:
        return 0
    except OSError as error:
        print("cannot probe %s: %s" % (path, error.strerror), file=sys.stderr)  # noqa: UP031 older Pythons
        return 1
    finally:
        if folder is not None:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)


if __name__ == "__main__":
    STATUS = main()
    sys.stdout.flush()
    # The thread may wait for the disk yet; to exit otherwise would be to wait for it.
    os._exit(STATUS)
