"""Decides who gets an answer: requests in time that mean this server, from its own pages, with its token.

The token is read from a file or the environment, never from a command line.
"""

import asyncio
import contextlib
import hashlib
import hmac
import ipaddress
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from plimsoll.common.errors import SettingsError
from plimsoll.common.files import read_secret
from plimsoll.common.hostile import printable
from plimsoll.serve import TOKEN_VARIABLE

COOKIE = "plimsoll-serve"
LOGIN = "/login"
_OPEN = (LOGIN, "/static/")  # without a token
_READS = ("GET", "HEAD")
_MOST_QUERY_BYTES = 8192
_CONNECTIONS = 100  # half of them for one address
_REQUEST_S = 10.0  # for the head and the body of a request
_LAST_WORDS_S = 1  # pages that follow a run never end by themselves
_SHORTEST = 16  # characters: nobody guesses as many

# Of what says nothing else. Pages have a policy of their own.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Refusal:
    """Why a request gets nothing."""

    status: int
    text: str


def find_refusal(method: str, headers: Headers, names: frozenset[str]) -> Refusal | None:
    """Return why a request is refused, None where it may be answered. Pure."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not is_own(hosts[0], names):
        return Refusal(
            421, "This server does not go by that name. Open it by its address, or start it with --name NAME."
        )
    site = headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none"):
        return Refusal(403, "Pages of other servers are refused. Type the address into the browser.")
    origin = headers.get("origin")
    if origin is not None and not _is_origin(origin, hosts[0]):
        return Refusal(403, "Pages of other servers are refused.")
    if method not in _READS and origin is None:
        return Refusal(403, "Only this server's own pages may ask for that.")
    return None


def has_token(headers: Headers, token: str) -> bool:
    """Return whether a request brings the token, or the session that it opened. Pure."""
    kind, _, given = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return is_same(given.strip(), token)
    cookies = _cookies(headers.getlist("cookie"))
    return is_same(cookies.get(COOKIE, ""), session_token(token))


class Guard:
    """Stands before the application. `names` are its names beside `localhost` and IP addresses."""

    def __init__(self, app: ASGIApp, names: frozenset[str], token: str | None) -> None:
        self._app, self._names, self._token = app, names, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        if found := find_refusal(method, headers, self._names):
            return PlainTextResponse(found.text + "\n", found.status)
        if len(scope["query_string"]) > _MOST_QUERY_BYTES:
            return PlainTextResponse("The address is too long.\n", 414)
        if self._token is None or path.startswith(_OPEN) or has_token(headers, self._token):
            return None
        if method in _READS and "text/html" in headers.get("accept", ""):
            return RedirectResponse(LOGIN, 303)
        return PlainTextResponse(
            "It takes the token: Authorization: Bearer TOKEN.\n", 401, {"www-authenticate": "Bearer"}
        )


def _is_origin(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _cookies(values: list[str]) -> Mapping[str, str]:
    try:
        return {name: each.value for name, each in SimpleCookie("; ".join(values)).items()}
    except CookieError:
        return {}


def read_token(file: Path | None, environment: Mapping[str, str]) -> str | None:
    """Return the token that was given, or None. Raises SettingsError."""
    where = TOKEN_VARIABLE if file is None else f"--token-file: {file}"
    token = environment.get(TOKEN_VARIABLE, "").strip() if file is None else read_secret("--token-file", file)
    if not token and file is None:
        return None
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            f"{where}: must hold a token of {_SHORTEST} or more letters and digits; create one: openssl "
            "rand -hex 24"
        )
    return token


def session_token(token: str) -> str:
    """Return what the browser keeps instead of the token; it survives a restart. Pure."""
    return hmac.new(token.encode(), b"plimsoll serve", hashlib.sha256).hexdigest()


def is_same(given: str, wanted: str) -> bool:
    """Return whether two secrets are equal, in a time that does not reveal where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


@dataclass(frozen=True)
class Address:
    """An address and a port; port 0 is any that is free."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach it."""
        if self.host == "localhost":
            return True
        address = parse_ip(self.host)
        return address is not None and address.is_loopback

    def url(self, port: int) -> str:
        """Return what to open in a browser; an address that stands for all of them by this machine's own."""
        address = parse_ip(self.host)
        host = "127.0.0.1" if address is not None and address.is_unspecified else self.host
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def parse_address(text: str) -> Address:
    """Return `HOST:PORT`, or `[IPv6]:PORT`. Raises SettingsError."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
        well = bool(host) and port is not None and parts.netloc == text and "@" not in text
    except ValueError:
        well, host, port = False, None, None
    if not well or host is None or port is None:
        raise SettingsError(
            f"--listen: {printable(text)} is not an address; give HOST:PORT, such as 127.0.0.1:8090"
        )
    return Address(host, port)


def parse_ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that `host` is, or None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def parse_host(netloc: str) -> str | None:
    """Return the host, in lower case, of `HOST[:PORT]` in a header; None if it is malformed."""
    try:
        parts = urlsplit(f"//{netloc}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == netloc and "@" not in netloc else None


def is_own(netloc: str, names: frozenset[str]) -> bool:
    """Return whether a browser that says `Host: netloc` means this server, and not another one's name.

    Where a stranger's name leads to this machine (DNS rebinding), its pages may read what is served under it.
    An IP address has no such owner.
    """
    host = parse_host(netloc)
    return host is not None and (host == "localhost" or host in names or parse_ip(host) is not None)


def answer_requests(address: Address, application: ASGIApp, announce: Callable[[int], None]) -> None:
    """Answer until Ctrl-C; `announce` is called with the port once it listens. Raises SettingsError."""
    _give_way()
    with _listen(address) as listener:
        announce(listener.getsockname()[1])
        with contextlib.suppress(KeyboardInterrupt):
            build_server(application).run(sockets=[listener])


class Impatient(H11Protocol):
    """A connection whose requests must arrive in time, and which makes room for other addresses.

    When there are too many, the one that has waited longest for its request is closed.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, closing another one if there are too many."""
        super().connection_made(transport)
        self._await_request()
        for most, is_own in ((_CONNECTIONS // 2, True), (_CONNECTIONS - 1, False)):
            those = [each for each in self.connections if isinstance(each, Impatient)]
            those = [each for each in those if each.host == self.host or not is_own]
            if len(those) > most:
                min(those, key=Impatient.deadline_s).end()

    def data_received(self, data: bytes) -> None:
        """Receive part of a request."""
        super().data_received(data)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_waiting()

    def _await_request(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_waiting()
        elif self._late is None:
            self._late = self.loop.call_later(_REQUEST_S, self.end)

    def _stop_waiting(self) -> None:
        if self._late:
            self._late.cancel()
        self._late = None

    def end(self) -> None:
        """Close it and stop counting it."""
        self.connections.discard(self)
        self.transport.abort()

    @property
    def host(self) -> str | None:
        """The address at the other end."""
        return self.client[0] if self.client else None

    def deadline_s(self) -> float:
        """Return until when it waits for a request, by the loop's clock; inf while one is being answered."""
        timer = self._late or self.timeout_keep_alive_task
        return timer.when() if timer else float("inf")


def build_server(application: ASGIApp) -> uvicorn.Server:
    """Return the server that answers for an application."""
    return uvicorn.Server(
        uvicorn.Config(
            application,
            http=Impatient,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            limit_concurrency=_CONNECTIONS,
            timeout_graceful_shutdown=_LAST_WORDS_S,
        )
    )


def _give_way() -> None:
    """Give every other program priority: a load generator on the same machine must not notice."""
    with contextlib.suppress(OSError):
        os.nice(19)
    with contextlib.suppress(OSError):
        if os.sched_getscheduler(0) == os.SCHED_OTHER:  # else somebody chose already
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _listen(address: Address) -> socket.socket:
    try:
        family, kind, number, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise SettingsError(
            f"--listen: {printable(address.host)} is not an address of this machine: {error.strerror}"
        ) from None
    listener = socket.socket(family, kind, number)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(_CONNECTIONS)
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"--listen: {printable(address.host)}:{address.port} cannot be listened on: {error.strerror}; "
            "choose another"
        ) from None
    return listener
