"""Who gets an answer: who means this server, asks from its own pages, and has its token if there is one."""

from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plimsoll.serve.address import is_own
from plimsoll.serve.token import is_same, session_of

COOKIE = "plimsoll-serve"
LOGIN = "/login"
_OPEN = (LOGIN, "/static/")  # without a token
_READS = ("GET", "HEAD")
_MOST_QUERY_BYTES = 8192

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


def refusal(method: str, headers: Headers, names: frozenset[str]) -> Refusal | None:
    """Return why a request is refused, None where it may be answered. Pure."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not is_own(hosts[0], names):
        return Refusal(
            421, "This is no name of this server. Open it by its address, or start it with --name NAME."
        )
    site = headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none"):
        return Refusal(403, "Pages of other servers get nothing here. Type the address into the browser.")
    origin = headers.get("origin")
    if origin is not None and not _is_origin(origin, hosts[0]):
        return Refusal(403, "Pages of other servers get nothing here.")
    if method not in _READS and origin is None:
        return Refusal(403, "Only this server's own pages may ask for that.")
    return None


def has_token(headers: Headers, token: str) -> bool:
    """Return whether a request brings the token, or the session that it opened. Pure."""
    kind, _, given = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return is_same(given.strip(), token)
    cookies = _cookies(headers.getlist("cookie"))
    return is_same(cookies.get(COOKIE, ""), session_of(token))


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

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, hardened)

    def _answer(self, scope: Scope) -> Response | None:
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        if found := refusal(method, headers, self._names):
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
