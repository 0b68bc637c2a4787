"""A server like PHP-FPM: workers that each take one request at a time and so much processor time for it."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.background import background, first_line

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


@contextmanager
def busy_server(scratch: Path, workers: int, work_s: float) -> Iterator[str]:
    """Start it on loopback. Yield its address."""
    argv = [sys.executable, "-m", "benchmarks.busyserver", str(workers), str(work_s)]
    with background(argv, scratch) as process:
        yield first_line(process, scratch)


def _serve(workers: int, work_s: float) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    for _ in range(workers - 1):
        if os.fork() == 0:
            break
    while True:
        connection, _address = listener.accept()
        with connection:
            while b"\r\n\r\n" not in (head := connection.recv(65536)) and head:
                pass
            if head:
                until_s = time.thread_time() + work_s
                while time.thread_time() < until_s:
                    pass
                connection.sendall(_ANSWER)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), float(sys.argv[2]))
