"""One login of an account at a time, over all processes of this machine."""

import errno
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

import gevent

_LOOK_S = 0.02
_MOST_S = 120.0  # longer than a login takes on any disk that can be used


@contextmanager
def login_turn(site: str, user: str) -> Iterator[None]:
    """Wait until nobody else logs in as `user` to `site`, and keep others waiting meanwhile.

    WordPress keeps all logins of an account in one record, and forgets one of two at the same instant: of two
    users here, or of two scenarios that load one clone together. The turn is an address of unix(7) in the
    abstract namespace, which one socket at a time can have, and which is free again however its process ends.
    """
    address = "\0plimsoll-login-" + sha256(f"{site}\n{user}".encode()).hexdigest()
    until_s = time.monotonic() + _MOST_S
    with socket.socket(socket.AF_UNIX) as mine:
        while time.monotonic() < until_s:
            try:
                mine.bind(address)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:  # no such namespace: not Linux
                    break
            gevent.sleep(_LOOK_S)
        yield
