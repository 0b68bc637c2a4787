"""Copies what a command writes to a sink, counts it, and keeps to a rate.

`python -m plimsoll.lab.saturators.copier` runs it. Standard library only: on machines without Plimsoll the
text of this file is run by `python3 -c`. It prints the bytes so far once a second and when it is told to end
(TERM), as `bytes N` or with another word. It ends with the command's status, or with the receiver's.
"""

import argparse
import json
import os
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

_CHUNK = 1 << 20


def pause_s(rate, copied, elapsed_s):
    # type: (int | None, int, float) -> float
    """Return the seconds to wait until `copied` bytes in `elapsed_s` seconds are what `rate` allows."""
    return max(copied / rate - elapsed_s, 0.0) if rate else 0.0


def chunk_bytes(rate):
    # type: (int | None) -> int
    """Return the bytes to copy at once: at a rate, a tenth of a second's worth, so that it flows."""
    return _CHUNK if not rate else max(min(rate // 10, _CHUNK), 1)


def write_all(sink, data):
    # type: (int, bytes) -> None
    """Write all of `data`."""
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]


def recreate(path):
    # type: (str) -> int
    """Open `path` for writing: a file of its own, even if a round before, or somebody else, left one there.

    If a link were followed, or a hard one written to, its owner could choose the file that is written.
    """
    if path == os.devnull:
        return os.open(path, os.O_WRONLY)
    try:
        if stat.S_ISREG(os.lstat(path).st_mode):
            Path(path).unlink()
    except FileNotFoundError:
        pass
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)


class EndedError(Exception):
    """It was told to end."""


def end(_number, _frame):
    # type: (int, object) -> None
    """Stop copying at once; a second signal changes nothing."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise EndedError


def copy(source, sink, rate, wrap, word="bytes"):
    # type: (int, int, int | None, int | None, str) -> None
    """Copy until `source` ends, or until it is told to end; after `wrap` bytes the sink starts over."""
    copied = [0]
    try:
        copy_on(source, sink, rate, wrap, copied, word)
    finally:
        print(word, copied[0], flush=True)


def copy_on(source, sink, rate, wrap, copied, word):
    # type: (int, int, int | None, int | None, list[int], str) -> None
    """Copy, say how far it is, and keep the bytes so far in `copied`."""
    at, began_s = 0, time.monotonic()
    say_s = began_s + 1
    while True:
        now_s = time.monotonic()
        if now_s >= say_s:
            print(word, copied[0], flush=True)
            say_s += max(int(now_s - say_s) + 1, 1)
            continue
        wait_s = pause_s(rate, copied[0], now_s - began_s)
        if wait_s > 0:
            time.sleep(min(wait_s, say_s - now_s))
            continue
        if not select.select([source], [], [], say_s - now_s)[0]:
            continue
        data = os.read(source, chunk_bytes(rate))
        if not data:
            break
        if wrap and at and at + len(data) > wrap:
            os.lseek(sink, 0, os.SEEK_SET)
            at = 0
        write_all(sink, data)
        at += len(data)
        copied[0] += len(data)


def main():
    # type: () -> int
    """Run the command, copy, and return its status."""
    parser = argparse.ArgumentParser(prog="pace", description="Copies what COMMAND writes.")
    parser.add_argument("--rate", type=int, help="bytes a second")
    parser.add_argument("--to", default=os.devnull, help="file to write")
    parser.add_argument("--wrap", type=int, help="bytes after which the file starts over")
    parser.add_argument("--into", type=json.loads, help="command that receives, as a JSON list")
    parser.add_argument("--word", default="bytes", help="word before the bytes so far")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    asked = parser.parse_args()
    receiver = subprocess.Popen(asked.into, stdin=subprocess.PIPE) if asked.into else None  # noqa: S603
    sink = receiver.stdin.fileno() if receiver and receiver.stdin else recreate(asked.to)
    sender = subprocess.Popen(asked.command, stdout=subprocess.PIPE)  # noqa: S603
    signal.signal(signal.SIGTERM, end)
    assert sender.stdout  # noqa: S101 it is a pipe
    try:
        copy(sender.stdout.fileno(), sink, asked.rate, asked.wrap, asked.word)
    except OSError as error:
        print("pace: cannot write:", error.strerror, file=sys.stderr)
        sender.kill()
    except EndedError:
        sender.terminate()
    sender.stdout.close()
    received = 0
    if receiver and receiver.stdin:
        receiver.stdin.close()
        received = receiver.wait()
    sent = sender.wait()
    return 1 if sent or received else 0


if __name__ == "__main__":
    sys.exit(main())
