"""The instants at which each client asks for something, according to a log."""

import base64
import json
import subprocess
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.sharing.share import Clients, client_of
from plimsoll.common.errors import NoRequestsError, SettingsError

_SECOND_NS = 1_000_000_000
_MINUTE_NS = 60 * _SECOND_NS
_METHODS = ("GET", "HEAD")


@dataclass(frozen=True)
class Arrivals:
    """Requests in the order in which they are due, shape (n,) each."""

    due_ns: NDArray[np.int64]  # since the first one
    clients: Clients

    @property
    def n(self) -> int:
        """The number of requests."""
        return len(self.due_ns)

    @property
    def span_s(self) -> float:
        """From the first to the last, in seconds."""
        return int(self.due_ns[-1]) / _SECOND_NS


def read_logs(replay: Path, logs: Sequence[str], log_format: str | None, seed: int) -> Arrivals:
    """Return the requests of `logs` that a replay sends by default: GET and HEAD.

    Raises SettingsError where `replay parse` cannot read them, and NoRequestsError where none is left.
    """
    further = ["--format", log_format] if log_format else []
    command = [str(replay), "parse", "--quiet", *further, "--", *logs]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parse:
            assert parse.stdout is not None
            assert parse.stderr is not None
            times, clients = _columns(parse.stdout)
            said = parse.stderr.read().decode("utf-8", "replace").strip()
    except OSError as error:
        raise SettingsError(f"{replay} cannot be run ({error.strerror}): make build") from None
    if parse.returncode:
        raise SettingsError(said or f"{replay} parse ended with {parse.returncode}")
    if len(times) < 2:
        raise NoRequestsError("the log has fewer than two GET or HEAD requests: nothing can be shared")
    return arranged(np.array(times, dtype=np.int64), np.array(clients, dtype=np.uint32), seed)


def arranged(times_ns: NDArray[np.int64], clients: Clients, seed: int) -> Arrivals:
    """Return the requests in order; those of a log of whole seconds spread over their second.

    The instants within a second are the order statistics of uniform ones (docs/measurement.md). Those of
    a replay are other ones of the same kind.
    """
    order = np.argsort(times_ns, kind="stable")
    times_ns, clients = times_ns[order], clients[order]
    if not (times_ns % _SECOND_NS).any():
        spread = np.random.default_rng(seed).integers(0, _SECOND_NS, len(times_ns))
        edges = [0, *(np.flatnonzero(np.diff(times_ns)) + 1), len(times_ns)]
        for start, stop in pairwise(edges):
            spread[start:stop].sort()
        times_ns = times_ns + spread
    return Arrivals(times_ns - times_ns[0], clients)


def copied(arrivals: Arrivals, copies: int, seed: int) -> Arrivals:
    """Return the traffic of a site that is `copies` times as busy: so many logs at once, of other clients.

    Each is moved by up to a minute, so that their bursts do not fall together; what goes past the end comes
    at the beginning.
    """
    if copies == 1:
        return arrivals
    random = np.random.default_rng(seed)
    shifts_ns = random.integers(0, _MINUTE_NS, (copies, 1))
    salts = random.integers(0, 1 << 32, (copies, 1), dtype=np.uint32)
    due_ns = ((arrivals.due_ns + shifts_ns) % (arrivals.due_ns[-1] + 1)).ravel()
    order = np.argsort(due_ns, kind="stable")
    return Arrivals(due_ns[order] - due_ns[order[0]], (arrivals.clients ^ salts).ravel()[order])


def _columns(lines: Iterable[bytes]) -> "tuple[array[int], array[int]]":
    times, clients = array("q"), array("L")
    numbered = cache(client_of)
    for line in lines:
        request = json.loads(line)
        if request.get("method", "GET") in _METHODS:
            times.append(_instant_ns(request["time"]))
            clients.append(numbered(_bytes(request, "host"), _bytes(request, "user_agent")))
    return times, clients


@cache
def _whole_second_ns(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp()) * _SECOND_NS


def _instant_ns(text: str) -> int:
    """Return an instant of `replay parse` (2026-11-22T10:00:00.123456789Z) in nanoseconds since 1970."""
    second, _, fraction = text.rstrip("Z").partition(".")
    return _whole_second_ns(second) + int(fraction.ljust(9, "0") or 0)


def _bytes(request: dict[str, Any], key: str) -> bytes:
    exact = request.get(f"{key}_base64")
    return base64.b64decode(exact) if exact is not None else str(request.get(key, "")).encode()
