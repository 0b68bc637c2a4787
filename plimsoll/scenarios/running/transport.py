"""Names for exceptions of requests: the reason why there is no response."""

import errno
import ssl
from collections.abc import Iterator
from http.client import RemoteDisconnected

import requests
import urllib3.exceptions as u3


def error_kind(error: BaseException) -> str:
    """Return the name in `errors.json` for an exception of requests, looking through to its causes. Pure."""
    chain = list(_causes(error))
    if any(isinstance(cause, ssl.SSLError | requests.exceptions.SSLError) for cause in chain):
        return "tls_failed"
    if any(isinstance(cause, RemoteDisconnected) for cause in chain):  # to Python this is a reset as well
        return "closed_early"
    for cause in chain:
        if isinstance(cause, ConnectionRefusedError):
            return "connect_refused"
        if isinstance(cause, ConnectionResetError | BrokenPipeError):
            return "reset"
        if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
            return "connect_refused"
    if any(isinstance(cause, u3.NewConnectionError) for cause in chain):  # urllib3 has it as a time-out
        return "connect_failed"
    if any(isinstance(cause, requests.Timeout | u3.TimeoutError | TimeoutError) for cause in chain):
        return "timeout"
    if any(isinstance(cause, u3.IncompleteRead) or _ended(cause) for cause in chain):
        return "closed_early"
    if any(isinstance(cause, u3.ProtocolError | requests.exceptions.ChunkedEncodingError) for cause in chain):
        return "bad_response"
    if any(isinstance(cause, requests.ConnectionError) for cause in chain):
        return "connect_failed"
    return "bad_response" if isinstance(error, requests.RequestException | u3.HTTPError) else "other"


def _ended(error: BaseException) -> bool:
    return any(words in str(error) for words in ("closed connection", "ended prematurely"))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        # The reason of urllib3's errors is an exception, that of ssl's a word.
        further = (one.__cause__, one.__context__, getattr(one, "reason", None), *one.args)
        waiting += [cause for cause in further if isinstance(cause, BaseException)]
