"""Asks PHP-FPM and OPcache for their state once a second: `python3 -c` with SOCKET, STATUS and OPCACHE.

Standard library only: the text of this file is run where Plimsoll is not installed. SOCKET is a path or
HOST:PORT, STATUS the status page's path or an http:// address, OPCACHE a script's path or an address, or
empty. At the end of each second it prints a JSON object: `at_ns`, `waited_ms` (of an answer that has not come
yet, what it has been waited for so far), and the answers `status` and `opcache`, where they came.
"""

import http.client
import json
import signal
import socket
import struct
import sys
import threading
import time
import urllib.parse

_GIVE_UP_S = 60.0
_MOST_BYTES = 1 << 20
# FastCGI 1.0: types of records, and the role that answers a request.
_BEGIN, _PARAMS, _STDIN, _STDOUT, _RESPONDER = 1, 4, 5, 6, 1


def record(kind, body):
    # type: (int, bytes) -> bytes
    """Return a record of request 1."""
    return struct.pack(">BBHHBB", 1, kind, 1, len(body), 0, 0) + body


def pair(name, value):
    # type: (str, str) -> bytes
    """Return a name and its value, lengths first."""
    parts = [part.encode() for part in (name, value)]
    lengths = [
        struct.pack(">B", len(p)) if len(p) < 128 else struct.pack(">I", len(p) | 1 << 31) for p in parts
    ]
    return b"".join(lengths + parts)


def asked(script, query):
    # type: (str, str) -> bytes
    """Return the whole request for a script, or for a status page."""
    params = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": script,
        "SCRIPT_FILENAME": script,
        "REQUEST_URI": script,
        "QUERY_STRING": query,
        "SERVER_PROTOCOL": "HTTP/1.1",
    }
    begin = record(_BEGIN, struct.pack(">HBxxxxx", _RESPONDER, 0))
    body = b"".join(pair(name, value) for name, value in params.items())
    return begin + record(_PARAMS, body) + record(_PARAMS, b"") + record(_STDIN, b"")


def body_of(data):
    # type: (bytes) -> bytes
    """Return the body in the records that came. Raises ValueError where there is none."""
    out = b""
    while len(data) >= 8:
        _, kind, _, length, padding = struct.unpack(">BBHHBx", data[:8])
        out += data[8 : 8 + length] if kind == _STDOUT else b""
        data = data[8 + length + padding :]
    head, gap, body = out.partition(b"\r\n\r\n")
    if not gap:
        raise ValueError("it answers no FastCGI")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"status:") and not line[7:].strip().startswith(b"200"):
            raise ValueError("status " + line[7:].strip().decode("ascii", "replace")[:60])
    return body


def by_fastcgi(address, script):
    # type: (str, str) -> bytes
    """Return what a script, or a status page, prints."""
    if address.startswith("/"):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_GIVE_UP_S)
        connection.connect(address)
    else:
        host, _, port = address.rpartition(":")
        connection = socket.create_connection((host.strip("[]"), int(port)), _GIVE_UP_S)
    with connection:
        connection.sendall(asked(script, "json"))
        data = b""
        while len(data) <= _MOST_BYTES:
            piece = connection.recv(1 << 16)
            if not piece:
                return body_of(data)
            data += piece
    raise ValueError("its answer has no end")


def by_http(url):
    # type: (str) -> bytes
    """Return the body at an address; redirections are not followed."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=_GIVE_UP_S)
    try:
        connection.request("GET", (parts.path or "/") + ("?" + parts.query if parts.query else ""))
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError("status " + str(answer.status))
        return answer.read(_MOST_BYTES)
    finally:
        connection.close()


class Asking:
    """Asks in a thread of its own: a pool that is full lets its own status page wait, too."""

    def __init__(self, address, status, opcache):
        # type: (str, str, str) -> None
        self._address, self._places = address, (status, opcache)
        self._due = threading.Event()
        self.begun_ns = self.ended_ns = 0
        self.found = {}  # type: dict[str, object]
        threading.Thread(target=self._work, daemon=True).start()

    def begin(self):
        # type: () -> None
        """Ask, if no answer is waited for."""
        if self.ended_ns or not self.begun_ns:
            self.found, self.ended_ns, self.begun_ns = {}, 0, time.monotonic_ns()
            self._due.set()

    def line(self, now_ns):
        # type: (int) -> str
        """Return what came, or how long it is waited for."""
        ended_ns = self.ended_ns
        waited_ms = ((ended_ns or now_ns) - self.begun_ns) / 1e6
        return json.dumps(dict(self.found if ended_ns else {}, at_ns=ended_ns or now_ns, waited_ms=waited_ms))

    def _work(self):
        # type: () -> None
        while True:
            self._due.wait()
            self._due.clear()
            found, ended_ns = {}, 0
            for name, place in zip(("status", "opcache"), self._places):  # noqa: B905 older Pythons
                if place:
                    try:
                        found[name] = self._answer(place)
                    except (OSError, ValueError, http.client.HTTPException) as error:
                        found["error"] = "%s: %s" % (place, error)  # noqa: UP031 older Pythons
                # What is waited for is the status page: OPcache's script comes after it.
                ended_ns = ended_ns or time.monotonic_ns()
            self.found, self.ended_ns = found, ended_ns

    def _answer(self, place):
        # type: (str) -> object
        body = by_http(place) if place.startswith("http://") else by_fastcgi(self._address, place)
        return json.loads(body.decode("utf-8", "replace"))


def main():
    # type: () -> None
    """Ask until it is told to end."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    asking = Asking(*sys.argv[1:])
    due_s = time.monotonic()
    while True:
        asking.begin()
        due_s += max(int(time.monotonic() - due_s) + 1, 1)
        time.sleep(max(due_s - time.monotonic(), 0.0))
        print(asking.line(time.monotonic_ns()), flush=True)


if __name__ == "__main__":
    main()
