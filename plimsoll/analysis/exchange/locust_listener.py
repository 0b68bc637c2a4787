"""Writes down every request of a Locust test, whatever its locustfile: Locust's own CSV files have none.

    locust -f locustfile.py,plimsoll_listener.py --headless -u 50 -t 5m -H http://10.0.0.5
    plimsoll import locust locust-requests-*.jsonl

Needs nothing but Locust (1.5 or newer). Each process writes a file of its own into the working directory;
PLIMSOLL_LOCUST_PREFIX names another place: /tmp/load gives /tmp/load-HOST-PID.jsonl. Bring the files of all
workers together to import them.
"""

import itertools
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import gevent
import locust


class Listener:
    """The file of one process; made with its first request."""

    def __init__(self) -> None:
        self._file: Any = None
        self._flushed = 0.0
        self._users = itertools.count(1)

    def request(
        self,
        request_type: str,
        name: str,
        response_time: float,
        response_length: int,
        exception: Any = None,
        start_time: float | None = None,
        response: Any = None,
        **_: Any,
    ) -> None:
        """Append a line: start and length in microseconds, method, name, status, bytes, error, user."""
        now = time.time()
        user = gevent.getcurrent()
        if not hasattr(user, "plimsoll_number"):
            user.plimsoll_number = next(self._users)
        length_us = round((response_time or 0) * 1000)
        line = [
            round(start_time * 1e6) if start_time else round(now * 1e6) - length_us,
            length_us,
            str(request_type),
            str(name)[:300],
            int(getattr(response, "status_code", 0) or 0),
            int(response_length or 0),
            "" if exception is None else f"{type(exception).__name__}: {exception}"[:300],
            user.plimsoll_number,
        ]
        if self._file is None:
            self._open()
        self._file.write(json.dumps(line) + "\n")
        if now - self._flushed > 1:
            self._flushed = now
            self._file.flush()

    def test_stop(self, **_: Any) -> None:
        """Hand over what waits; what comes later is written when the process ends."""
        if self._file is not None:
            self._file.flush()

    def _open(self) -> None:
        prefix = os.environ.get("PLIMSOLL_LOCUST_PREFIX", "locust-requests")
        path = Path(f"{prefix}-{socket.gethostname()}-{os.getpid()}.jsonl")
        self._file = path.open("w", encoding="utf-8")
        self._file.write(json.dumps({"plimsoll_locust": 1, "locust": locust.__version__}) + "\n")


def listen() -> None:
    """Register a listener for this process."""
    listener = Listener()
    hooks: list[tuple[Any, Any]] = [
        (locust.events.request, listener.request),
        (locust.events.test_stop, listener.test_stop),
    ]
    for hook, heard in hooks:
        hook.add_listener(heard)


listen()
